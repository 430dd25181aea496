"""`edge-daemon calibration verify`: is the calibration in use still true? Five touches."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option, page_options

if TYPE_CHECKING:
    from calibration.store import StoredCalibration
    from calibration.verify import Verification


@click.command()
@click.argument("device")
@page_options
@config_option()
@json_option
def command(
    device: str, targets: Path, page: tuple[str, int] | None, yes: bool, config_path: Path, as_json: bool
) -> None:
    """Check the calibration of DEVICE by the page's marks and five touches; it changes nothing.

    The daemon must be running. The device is held for half a minute; on any exit its hand is parked.

    \b
    edge-daemon calibration verify phone-1 --page 192.168.1.20:7411

    Exit status 0: still good. 1: it is not. 2: it could not be checked.
    """
    import trio
    from rich.console import Console

    from calibration.options import Options
    from edge_daemon.cli.sessions import Showing, at_the_rig
    from edge_daemon.cli.support import config_with, echo_json, staff_errors
    from edge_daemon.staff.calibrate import verify_device

    console = Console(stderr=as_json)

    async def run() -> "tuple[StoredCalibration, Verification]":
        async with at_the_rig(config, device, console, Showing(targets, page, yes)) as rig:
            return await verify_device(rig.client, device, rig.terminal.answer, Options(), rig.bar)

    with staff_errors():
        config = config_with(config_path, device)
        stored, verification = trio.run(run)
    if as_json:
        echo_json({"deviceId": device, "calibrationId": stored.id, "verification": verification})
    else:
        colour = "green" if verification.good else "red"
        console.print(f"[bold {colour}]{verification.verdict}[/]: {verification.message}")
        if not verification.good:
            console.print(f"Run: edge-daemon calibrate {device}")
    sys.exit(0 if verification.good else 1)
