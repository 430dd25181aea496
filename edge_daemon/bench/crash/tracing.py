"""A history as lines of text: the same seed, the same lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from edge_daemon.bench.crash.notes import (
    Acknowledged,
    Entry,
    Notebook,
    Progressed,
    Resolved,
    Schedule,
    Sent,
    Told,
)
from edge_daemon.bench.crash.phones import Touch


def trace_of(
    notebook: Notebook, schedule: Schedule, touches: Sequence[Touch], state_dir: Path
) -> tuple[str, ...]:
    """Everything that was noted, in the order of time, each with its milliseconds.

    state_dir: of this process alone, so its name is not in the lines, which a history of the same seed repeats.
    """
    lines = sorted(_lines(notebook, schedule, touches), key=lambda line: line[0])
    return tuple(f"{at_ns / 1e6:12.3f}  {what.replace(f'{state_dir}/', '')}" for at_ns, what in lines)


def _lines(notebook: Notebook, schedule: Schedule, touches: Sequence[Touch]) -> Iterator[tuple[int, str]]:
    yield from schedule.life
    for board in schedule.boards:
        detail = f" command {board.cmd_id}, pressing: {board.pressing}" if board.cmd_id else ""
        yield board.at_ns, f"board of {board.device} {board.what} (boot {board.boot_id}){detail}"
    for command in schedule.commands:
        yield (
            command.at_ns,
            f"first byte to the board of {command.device}: op {command.op:#x} {command.args}, "
            f"command {command.cmd_id}",
        )
    for touch in touches:
        yield touch.at_ns, f"{touch.device} feels {touch.kind} {touch.name or (touch.x, touch.y)}"
    for bar in notebook.barred:
        yield bar.from_ns, f"{bar.device} is {bar.why} from here"
        if bar.until_ns is not None:
            yield bar.until_ns, f"{bar.device} was {bar.why} up to here"
    for entry in notebook.entries:
        yield entry.at_ns, _entry(entry)


def _entry(entry: Entry) -> str:
    name = " ".join(entry.name)
    match entry:
        case Sent(plane=plane, token=token):
            return f"{plane} sends {name}, token {token}"
        case Progressed(stage=stage):
            return f"told: {name} {stage}"
        case Acknowledged():
            return f"acknowledged: {name}"
        case Resolved(outcome=outcome):
            return f"a person's word is kept: {name} {outcome}"
        case Told():
            return f"told by {entry.by}: {name} {_told(entry)}"


def _told(told: Told) -> str:
    if told.receipt is not None:
        error = told.receipt.get("error") or {}
        said = f"{told.receipt['status']} {told.receipt.get('reason', '')} {error.get('code', '')}"
        resolution = told.receipt.get("resolution")
        return f"{said.rstrip()}, resolved: {resolution['outcome']}" if resolution else said.rstrip()
    if told.error is not None:
        return f"refused: {told.error['code']}: {told.error['message']}"
    return f"not found, known: {told.known}"
