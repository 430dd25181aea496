"""`edge-daemon calibration solve`: compute a calibration again from its stored points."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from calibration.result import DeviceCalibration
    from calibration.store import CalibrationStore, StoredCalibration
    from edge_daemon.config import Config


@click.command()
@click.argument("device")
@click.argument("ref", default="current")
@click.option("--save", is_flag=True, help="Store the result and have the running daemon use it.")
@config_option("the store lies in its state_dir; with --save its staff socket is asked")
@json_option
def command(device: str, ref: str, save: bool, config_path: Path, as_json: bool) -> None:
    """Compute calibration REF of DEVICE again from its raw points, with this version's code. Nothing is touched.

    \b
    edge-daemon calibration solve phone-1 11             only say what would come out
    edge-daemon calibration solve phone-1 11 --save      and use it

    Exit status 1: the result does not meet its limits; it is not saved.
    """
    import trio

    from calibration.solve import solve_again
    from edge_daemon.cli.support import config_with, echo_json, staff_errors, store_of

    with staff_errors():
        config = config_with(config_path, device)
        store = store_of(config_path, device)
        stored = store.load(ref)
        solved = solve_again(stored.calibration)
        accepted = solved.acceptance is None or solved.acceptance.passed
        fresh = trio.run(_save, config, device, store, stored, solved) if save and accepted else None
    if as_json:
        echo_json(
            {
                "deviceId": device,
                "from": stored.id,
                "before": stored.calibration.acceptance,
                "after": solved.acceptance,
                "savedAs": fresh.id if fresh is not None else None,
            }
        )
    else:
        _show(stored, solved, fresh)
    sys.exit(0 if accepted else 1)


async def _save(
    config: "Config",
    device: str,
    store: "CalibrationStore",
    stored: "StoredCalibration",
    solved: "DeviceCalibration",
) -> "StoredCalibration":
    import trio

    from edge_daemon.staff.conditions import conditions_of
    from edge_daemon.upstream.client import connect_staff

    async with connect_staff(Path(config.staff.unix_socket), "solve") as edge:
        conditions = conditions_of(await edge.rig_facts(device))
        write = partial(store.save, solved, conditions, origin="solved again", parent_id=stored.id)
        fresh = await trio.to_thread.run_sync(write)
        await edge.adopt_calibration(device)
    return fresh


def _show(stored: "StoredCalibration", solved: "DeviceCalibration", fresh: Any) -> None:
    from rich.console import Console

    from edge_daemon.staff.verdict import verdict_table

    console = Console()
    for name, acceptance in (("before", stored.calibration.acceptance), ("after", solved.acceptance)):
        if acceptance is not None:
            console.print(f"{name}:", verdict_table(acceptance))
    if fresh is not None:
        console.print(f"[bold green]in use[/]: calibration {fresh.label}")
    elif solved.acceptance is not None and not solved.acceptance.passed:
        console.print("[bold red]not saved[/]: it does not meet its limits")
    else:
        console.print("not saved; --save uses it")
