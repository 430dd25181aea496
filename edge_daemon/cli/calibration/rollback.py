"""`edge-daemon calibration rollback`: use an earlier calibration again."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from calibration.store import StoredCalibration


@click.command()
@click.argument("device")
@click.argument("ref")
@config_option()
@json_option
def command(device: str, ref: str, config_path: Path, as_json: bool) -> None:
    """Use calibration REF of DEVICE again, if it is true of the rig as it stands; the running daemon loads it.

    Refused for one that belongs to another board, camera or screen, or that something was found against since.

    \b
    edge-daemon calibration history phone-1
    edge-daemon calibration rollback phone-1 11
    """
    import trio

    from edge_daemon.cli.support import config_with, echo_json, staff_errors, store_of
    from edge_daemon.staff.conditions import conditions_of
    from edge_daemon.upstream.client import connect_staff

    async def run() -> "StoredCalibration":
        async with connect_staff(Path(config.staff.unix_socket), "rollback") as edge:
            conditions = conditions_of(await edge.rig_facts(device))
            stored = await trio.to_thread.run_sync(partial(store.rollback, ref, conditions))
            await edge.adopt_calibration(device)
            return stored

    with staff_errors():
        config = config_with(config_path, device)
        store = store_of(config_path, device)
        stored = trio.run(run)
    if as_json:
        echo_json({"deviceId": device, "calibrationId": stored.id, "number": stored.number})
    else:
        click.echo(f"{device}: calibration {stored.label} is in use again")
