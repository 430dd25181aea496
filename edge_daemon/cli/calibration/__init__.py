"""`edge-daemon calibration`: look at, compare, check and roll back the calibrations of a device."""

import click

from edge_daemon.cli.lazy import LazyGroup

_COMMANDS: dict[str, str] = {
    name: f"edge_daemon.cli.calibration.{name}"
    for name in ("show", "history", "diff", "verify", "drift", "rollback", "solve", "report", "targets")
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def command() -> None:
    """Look at the calibrations of a device: every one is kept, one is in use.

    REF names one: its number (12), the beginning of its id (3fa2), or current.

    \b
    What is in use, how good it is:   edge-daemon calibration show phone-1
    Is it still true? (half a minute) edge-daemon calibration verify phone-1
    What changed since last week?     edge-daemon calibration diff phone-1 11 current
    """
