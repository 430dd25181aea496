"""The one file of a device's folder that changes: which entry is in use, and which are no longer true."""

from pathlib import Path
from typing import Literal

import msgspec

from calibration.errors import StoreCorrupt
from calibration.store.chain import Part
from calibration.store.entries import Invalidation, Stamp
from calibration.store.files import read_body, write_body

STATE_FILE = "state.json"
# A year of weekly work; the file stays small enough to be read at a glance.
LOG_KEPT = 100


class LogLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One decision after the calibrating: what, about which entry ("" for all), and why."""

    what: Literal["rolled back", "invalidated", "state lost"]
    entry: str
    why: str
    at: Stamp


class State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """current: the id of the entry in use. invalidated: by entry id."""

    schema: int = 1
    current: str | None = None
    invalidated: dict[str, tuple[Invalidation, ...]] = {}
    log: tuple[LogLine, ...] = ()

    def using(self, entry_id: str) -> "State":
        """The same with another entry in use."""
        return msgspec.structs.replace(self, current=entry_id)

    def noting(self, line: LogLine) -> "State":
        """The same with one more line in the log; the oldest beyond LOG_KEPT go."""
        return msgspec.structs.replace(self, log=(*self.log, line)[-LOG_KEPT:])

    def invalidating(self, entry_ids: list[str], found: Invalidation) -> "State":
        """The same with these entries' parts lost; one that lost them to the same cause is left as it is."""
        marked = dict(self.invalidated)
        for entry_id in entry_ids:
            before = marked.get(entry_id, ())
            known: frozenset[Part] = frozenset().union(*(old.lost for old in before if old.by == found.by))
            if not found.lost <= known:
                marked[entry_id] = (*before, found)
        return msgspec.structs.replace(self, invalidated=marked)

    def forgetting(self, entry_ids: set[str]) -> "State":
        """The same without entries that are gone."""
        kept = {key: value for key, value in self.invalidated.items() if key not in entry_ids}
        return msgspec.structs.replace(self, invalidated=kept)


def read_state(folder: Path) -> State | None:
    """The folder's state, None where there is none yet. Raises StoreCorrupt, or StoreError (not readable)."""
    path = folder / STATE_FILE
    try:
        return msgspec.json.decode(read_body(path), type=State)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"{path}: not this version's shape ({error}); roll back to an entry that you know to be true, "
            "or calibrate again"
        ) from error


def write_state(folder: Path, state: State) -> None:
    """Replace the folder's state, durably. Raises StoreError; the state is then the old one or the new one."""
    write_body(folder / STATE_FILE, msgspec.json.encode(state, order="deterministic"))
