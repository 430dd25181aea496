"""`edge-daemon calibrate`: from an uncalibrated device to a verdict in millimetres."""

from pathlib import Path

import click

from edge_daemon.cli.run import DEFAULT_CONFIG


@click.command()
@click.argument("device")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="The running daemon's configuration; its staff socket is asked.",
)
@click.option(
    "--yes", is_flag=True, help="Do not wait for a person to confirm each page: something else shows them."
)
@click.option("--quick", is_flag=True, help="Nine places and five held-out touches: to try a rig out only.")
@click.option(
    "--targets",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("calibration-targets"),
    show_default=True,
    help="Folder for the two pictures to be opened on the phone, full screen.",
)
def command(device: str, config_path: Path, yes: bool, quick: bool, targets: Path) -> None:
    """Calibrate DEVICE: camera, glass height and hand, accepted only by held-out touches.

    The daemon must be running. The device is held meanwhile, so the plane cannot act; on any exit the hand is
    parked and the device given back. The previous calibration stays until a better one is accepted.
    """
    import trio
    from rich.console import Console

    from calibration.options import Options
    from edge_daemon.cli.support import staff_errors
    from edge_daemon.config import load_config
    from edge_daemon.staff.calibrate import calibrate_device
    from edge_daemon.staff.console import StepPrinter, console_asker
    from edge_daemon.upstream.client import connect_staff

    console = Console()

    async def run() -> None:
        async with connect_staff(Path(config.staff.unix_socket), "calibrate") as edge:
            facts = await edge.rig_facts(device)
            asker = console_asker(console, facts.screen, targets, wait=not yes)
            options = Options.quick() if quick else Options()
            result = await calibrate_device(edge, device, asker, options, StepPrinter(console))
        acceptance = result.acceptance
        console.print(
            f"[bold green]accepted[/]: {len(acceptance.touches)} held-out touches, p95 {acceptance.p95_mm:.2f} mm, "
            f"max {acceptance.max_mm:.2f} mm (limit {acceptance.limit_mm} mm); {len(result.touches)} touches in all"
        )
        console.print(f"stored in {facts.calibration_path}")

    with staff_errors():
        config = load_config(config_path)
        trio.run(run)
