"""`edge-daemon estop`: stop a device's boards at once, or clear the stop."""

from pathlib import Path

import click

from edge_daemon.cli.run import DEFAULT_CONFIG


@click.command()
@click.argument("device")
@click.option("--clear", is_flag=True, help="Lift a latched stop: only after somebody has looked at the rig.")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="The running daemon's configuration; its staff socket is asked.",
)
def command(device: str, clear: bool, config_path: Path) -> None:
    """Stop every board of DEVICE at once: the stylus lifts, keys are released, and the stop stays latched.

    Nobody needs the hold for it. Acts are refused as `estopped` until the stop is cleared. It is no substitute
    for a switch that cuts the power.
    """
    import trio

    from edge_daemon.cli.support import staff_errors
    from edge_daemon.config import load_config
    from edge_daemon.upstream.client import connect_staff

    async def ask() -> None:
        async with connect_staff(Path(config.staff.unix_socket), "estop") as edge:
            await (edge.clear_estop(device) if clear else edge.estop(device))

    with staff_errors():
        config = load_config(config_path)
        trio.run(ask)
    click.echo(f"{device}: the stop is cleared" if clear else f"{device}: stopped; clear with --clear")
