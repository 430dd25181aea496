"""`edge-daemon calibration drift`: have camera or phone moved? Pictures only."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from edge_daemon.upstream.service import DriftFound


@click.command()
@click.argument("device")
@config_option()
@json_option
def command(device: str, config_path: Path, as_json: bool) -> None:
    """Measure whether the camera or the phone of DEVICE has moved since the calibration. Nothing moves for it.

    The daemon does so by itself on start, on schedule and after a disturbance. Too large a shift takes the calibration
    out of use.

    \b
    edge-daemon calibration drift phone-1

    Exit status 0: nothing moved. 1: something did, or it could not be told. 2: it could not be asked.
    """
    import trio

    from edge_daemon.cli.support import config_with, echo_json, staff_errors
    from edge_daemon.upstream.client import connect_staff

    async def ask() -> "DriftFound":
        async with connect_staff(Path(config.staff.unix_socket), "drift") as edge:
            return await edge.check_drift(device)

    with staff_errors():
        config = config_with(config_path, device)
        found = trio.run(ask)
    if as_json:
        echo_json(found)
    else:
        click.echo(f"{found.verdict}: {found.message}")
        if found.hold:
            click.echo(f"{device} is out of use until it is calibrated again; edge-daemon devices says how")
    sys.exit(0 if found.verdict == "still" and not found.warn else 1)
