"""`edge-daemon calibrate`: from an uncalibrated device to a verdict in millimetres."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option, page_options

if TYPE_CHECKING:
    from rich.console import Console

    from calibration.store import StoredCalibration


@click.command()
@click.argument("device")
@click.option(
    "--camera-only",
    is_flag=True,
    help="Only how the camera sees the screen, after the camera was moved and the phone was not.",
)
@click.option("--quick", is_flag=True, help="Nine places instead of 24: to try a rig out only.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the report.  [default: calibration-reports/DEVICE-NUMBER]",
)
@click.option("--note", default="", help="Stands beside it in the history.")
@page_options
@config_option()
@json_option
def command(
    device: str,
    camera_only: bool,
    quick: bool,
    report: Path | None,
    note: str,
    targets: Path,
    page: tuple[str, int] | None,
    yes: bool,
    config_path: Path,
    as_json: bool,
) -> None:
    """Calibrate DEVICE: camera, glass and whatever touches it, accepted only by held-out touches.

    The daemon must be running. The device is held meanwhile, so the plane cannot act; on any exit, Ctrl-C too, the
    hand is parked and the device given back. The previous calibration stays in use until a better one is accepted.

    \b
    At the rig:            edge-daemon calibrate phone-1 --page 192.168.1.20:7411
    After the camera fell: edge-daemon calibrate phone-1 --camera-only
    Unattended:            edge-daemon calibrate phone-1 --yes --page 192.168.1.20:7411 --json

    Exit status 1: carried out, and not good enough. 2: it could not be carried out; the message says why.
    """
    import trio
    from rich.console import Console

    from calibration.errors import AcceptanceFailed
    from calibration.options import Options
    from edge_daemon.cli.sessions import Showing, at_the_rig
    from edge_daemon.cli.support import config_with, echo_json, staff_errors
    from edge_daemon.staff.calibrate import calibrate_device

    console = Console(stderr=as_json)

    async def run() -> "tuple[StoredCalibration, bytes | None]":
        async with at_the_rig(config, device, console, Showing(targets, page, yes)) as rig:
            stored = await calibrate_device(
                rig.client,
                device,
                rig.terminal.answer,
                Options.quick() if quick else Options(),
                rig.bar,
                kind="camera" if camera_only else "full",
                note=note,
            )
            return stored, await rig.picture()

    with staff_errors():
        config = config_with(config_path, device)
        try:
            stored, picture = trio.run(run)
        except* AcceptanceFailed as group:
            _show_refused(console, group)
            raise
    folder = report or Path("calibration-reports") / f"{device}-{stored.number:04}"
    with staff_errors():
        page_file = _write_report(config_path, device, folder, stored, picture)
    acceptance = stored.calibration.acceptance
    if as_json:
        echo_json(
            {
                "deviceId": device,
                "verdict": "accepted",
                "calibrationId": stored.id,
                "number": stored.number,
                "touches": len(stored.calibration.touches),
                "acceptance": acceptance,
                "report": str(page_file),
            }
        )
        return
    console.print(f"[bold green]in use[/]: calibration {stored.label}")
    if camera_only:
        camera = stored.calibration.camera
        console.print(
            f"control marks: {camera.marks_mean_mm:.3f} mm off on the mean, {camera.marks_max_mm:.3f} at most"
        )
        console.print(
            f"Whether the phone lay still only touches tell: edge-daemon calibration verify {device}"
        )
    console.print(f"report: {page_file}", soft_wrap=True)


def _show_refused(console: "Console", group: BaseExceptionGroup[BaseException]) -> None:
    from calibration.errors import AcceptanceFailed
    from edge_daemon.leaves import leaves
    from edge_daemon.staff.verdict import verdict_table

    for error in leaves(group):
        if isinstance(error, AcceptanceFailed) and error.acceptance is not None:
            console.print(verdict_table(error.acceptance))


def _write_report(
    config_path: Path, device: str, folder: Path, stored: "StoredCalibration", picture: bytes | None
) -> Path:
    from calibration.report import write_report
    from edge_daemon.cli.support import before, decoded, store_of

    former = before(store_of(config_path, device), stored)
    image = decoded(picture) if picture is not None else None
    return write_report(folder, stored, camera_picture=image, before=former)[0]
