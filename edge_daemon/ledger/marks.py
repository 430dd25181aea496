"""What outlives a restart about each device, in one row: a damaged one is never believed.

A fencing token that sinks lets a former holder act, a hold that is gone lets a plane act under a person's hands, and
another orientation touches at wrong places.
"""

import sqlite3
from pathlib import Path

import msgspec

from edge_daemon.contract import Orientation
from edge_daemon.ledger.errors import LedgerCorrupt
from edge_daemon.ledger.sealed import corrupt, fetch, sealed, unsealed
from edge_daemon.ledger.types import DeviceMarks, Hold

ASK_MARKS = "SELECT state FROM device_state WHERE device_id = "
"""For a statement that asks for other things too; `marks_of` takes what it finds."""


class _State(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """In the order in which migration 4 has packed it. The device's id once more: a row stands for no other."""

    device_id: str
    highest_token: int
    hold_hint: str | None
    hold_owner: str | None
    parked_note: str | None
    orientation: Orientation | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode


def marks_of(path: Path, device_id: str, found: object) -> DeviceMarks:
    """found: NULL when there is no row. path: of the ledger, for the error. Raises LedgerCorrupt."""
    if found is None:
        return DeviceMarks()
    content = unsealed(found)
    if content is None:
        raise _damaged(path, device_id, "do not match their checksum")
    try:
        state = _decode(content)
    except msgspec.DecodeError as error:
        raise _damaged(path, device_id, f"cannot be read: {error}") from error
    if state.device_id != device_id:
        raise _damaged(path, device_id, f"are those of {state.device_id!r}")
    hold = None if state.hold_owner is None else Hold(state.hold_hint or "", state.hold_owner)
    return DeviceMarks(state.highest_token, hold, state.parked_note, state.orientation)


def read_marks(connection: sqlite3.Connection, path: Path, device_id: str) -> DeviceMarks:
    """Raises LedgerCorrupt, sqlite3.Error."""
    rows = fetch(connection, path, f"{ASK_MARKS} ?", (device_id,))
    return marks_of(path, device_id, rows[0][0] if rows else None)


def read_all_marks(connection: sqlite3.Connection, path: Path) -> dict[str, DeviceMarks]:
    """By device. Raises LedgerCorrupt, sqlite3.Error."""
    rows = fetch(connection, path, "SELECT device_id, state FROM device_state")
    return {device_id: marks_of(path, device_id, state) for device_id, state in rows}


def write_marks(connection: sqlite3.Connection, device_id: str, marks: DeviceMarks) -> None:
    """Raises sqlite3.Error."""
    hint, owner = (None, None) if marks.hold is None else (marks.hold.hint, marks.hold.owner)
    state = _State(device_id, marks.highest_token, hint, owner, marks.parked_note, marks.orientation)
    connection.execute(
        "INSERT OR REPLACE INTO device_state VALUES (?, ?)", (device_id, sealed(_encode(state)))
    )


def _damaged(path: Path, device_id: str, detail: str) -> LedgerCorrupt:
    return corrupt(
        path, f"the marks of device {device_id!r} (fencing token, hold, park, orientation) {detail}"
    )
