"""`edge-daemon calibration history`: every calibration of a device."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from calibration.store import HistoryEntry, Stamp


@click.command()
@click.argument("device")
@config_option("the store lies in its state_dir")
@json_option
def command(device: str, config_path: Path, as_json: bool) -> None:
    """List the calibrations of DEVICE, the oldest first; * is in use.

    \b
    edge-daemon calibration history phone-1
    """
    from edge_daemon.cli.support import echo_json, staff_errors, store_of

    with staff_errors():
        store = store_of(config_path, device)
        entries, log = store.history(), store.log()
    if as_json:
        echo_json({"entries": entries, "log": log})
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not entries:
        console.print(f"{device} has never been calibrated. Run: edge-daemon calibrate {device}")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("", "number", "id", "made, UTC", "how", "p95 mm", "max mm"):
        table.add_column(name, no_wrap=True)
    table.add_column("remarks")
    for entry in entries:
        table.add_row(*_row(entry))
    if any(entry.created is not None and not entry.created.clock_synced for entry in entries):
        table.caption = "? made while no plane had set the clock"
    console.print(table)
    for line in log:
        console.print(f"{created_text(line.at)}: {line.what} {line.entry} {line.why}", style="dim")


def _row(entry: "HistoryEntry") -> tuple[str, ...]:
    mark = "*" if entry.current else ""
    if entry.problem:
        return (mark, f"{entry.number:04}", entry.id, *[""] * 4, f"[red]{entry.problem}[/]")
    return (
        mark,
        f"{entry.number:04}",
        entry.id,
        _short(entry.created),
        entry.origin or "",
        "" if entry.p95_mm is None else f"{entry.p95_mm:.3f}",
        "" if entry.max_mm is None else f"{entry.max_mm:.3f}",
        "; ".join(words for words in (_not_true(entry), entry.note) if words),
    )


def _short(stamp: "Stamp | None") -> str:
    if stamp is None:
        return "not known"
    minute = stamp.wall_utc[:16].replace("T", " ")
    return minute if stamp.clock_synced else f"{minute} ?"


def _not_true(entry: "HistoryEntry") -> str:
    found = invalid_text(entry)
    return f"not true: {found}" if found else ""


def created_text(stamp: "Stamp | None") -> str:
    """A moment for a person, marked where nobody had set the clock."""
    if stamp is None:
        return "not known"
    return stamp.wall_utc if stamp.clock_synced else f"{stamp.wall_utc} (clock not set by a plane)"


def invalid_text(entry: "HistoryEntry") -> str:
    """What was found since; "" for an entry that nothing speaks against."""
    from calibration.store import WHAT_HAPPENED

    return ", ".join(WHAT_HAPPENED[cause] for cause in entry.invalidated_by)
