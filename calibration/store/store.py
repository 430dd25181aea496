"""The calibrations of one device on disk.

`<root>/<device_id>/` holds one file per calibration, `NNNN-<id>.json`, never changed once written, and
`state.json`, which says which one is in use and which are no longer true. The numbers are the order: a small
computer boots with a wrong clock. Whatever a power cut leaves is the old state or the new one, whole.

A calibration file without a word in the state is history, not in use: that is what a cut between the two
leaves behind.
"""

import contextlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from calibration.errors import (
    CalibrationError,
    CalibrationMissing,
    DeviceMismatch,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
    UnknownEntry,
)
from calibration.result import DeviceCalibration
from calibration.store.chain import EVERYTHING, LOST, WHAT_HAPPENED, Cause, Part, parts_of
from calibration.store.draft import drafted
from calibration.store.entries import SCHEMA, Conditions, Invalidation, Origin, Stamp, StoredCalibration
from calibration.store.files import locked, make_folder, read_body, remove, write_body
from calibration.store.history import HistoryEntry, damaged, readable
from calibration.store.judge import Usable, judge
from calibration.store.migrate import migrated, schema_of
from calibration.store.state import STATE_FILE, LogLine, State, read_state, write_state

# An id begins with a letter: what is all digits is a number, and nobody gets an entry by mistake.
_ENTRY_FILE = re.compile(r"(\d{4,})-([a-f][0-9a-f]{7})\.json")
_DEVICE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, order=True)
class _Place:
    """An entry as its file's name tells it."""

    number: int
    id: str
    path: Path


class CalibrationStore:
    """The history of one device's calibrations, and the one in use.

    Every verb may raise StoreError for a disk that refuses. Verbs block for the disk; they may be called from
    several processes at once.
    """

    def __init__(self, root: Path, device_id: str) -> None:
        """root: the folder of all devices. Nothing is read or written yet. Raises StoreError for a bad id."""
        if not _DEVICE_ID.fullmatch(device_id):
            raise StoreError(
                f"device id {device_id!r} cannot name a folder; use letters, digits, dot, dash and underscore"
            )
        self.folder = root / device_id
        self._device_id = device_id
        self._former_file = root / f"{device_id}.json"

    # -- reading ------------------------------------------------------------------------------------------

    def current(self, conditions: Conditions) -> StoredCalibration:
        """The entry in use, every part of it true of the rig as it stands.

        Raises CalibrationMissing, StoreCorrupt, SchemaMismatch, DeviceMismatch, ScreenMismatch, BoardMismatch,
        FirmwareMismatch, CameraMismatch, Invalidated or Expired; of several the first in this order.
        """
        usable = self.usable(conditions)
        if usable.objections:
            raise usable.objections[0]
        return usable.stored

    def usable(self, conditions: Conditions) -> Usable:
        """The entry in use and which of its parts are still true, for a caller who can live without the others.

        After `camera_moved` the hand's part still holds: it maps the screen to the hand. Raises as `current`
        does, but where any part is left it returns.
        """
        state = self._state()
        if state is None or state.current is None:
            raise CalibrationMissing(self._nothing_in_use())
        place = next((place for place in self._places() if place.id == state.current), None)
        if place is None:
            raise CalibrationMissing(
                f"{self.folder}: the entry in use, {state.current}, has no file any more; roll back to "
                "another, or calibrate again"
            )
        usable = self._judge(self._read(place), state, conditions)
        if usable.lost == parts_of(usable.stored.calibration):
            raise usable.objections[0]
        return usable

    def history(self) -> list[HistoryEntry]:
        """Every entry by number, the oldest first. A file that cannot be read is listed with its problem.

        A state or a former file that cannot be read is listed as number 0.
        """
        entries = []
        try:
            state = self._state() or State()
        except StoreError as error:
            state = State()
            entries.append(damaged(0, "", False, str(error)))
        for place in self._places():
            in_use = place.id == state.current
            try:
                entries.append(readable(self._read(place), in_use, state.invalidated.get(place.id, ())))
            except StoreError as error:
                entries.append(damaged(place.number, place.id, in_use, str(error)))
        return entries

    def load(self, ref: str | int) -> StoredCalibration:
        """The entry of that number, of that beginning of an id, or "current", whether or not it is still true.

        Raises UnknownEntry, CalibrationMissing ("current" of nothing), StoreCorrupt or SchemaMismatch.
        """
        return self._read(self._find(ref, self._state()))

    def log(self) -> tuple[LogLine, ...]:
        """What was decided after the calibrating: invalidations and rollbacks, the oldest first."""
        return (self._state() or State()).log

    # -- writing ------------------------------------------------------------------------------------------

    def save(
        self,
        calibration: DeviceCalibration,
        conditions: Conditions,
        *,
        origin: Origin,
        parent_id: str | None = None,
        note: str = "",
        expires_after_days: float | None = None,
    ) -> StoredCalibration:
        """Write a calibration and take it into use, in this order; on any error the former stays in use.

        "camera only" and "solved again" take measurements over from an entry: parent_id names it, and boards, age
        and invalidations of what was taken over come from there. Raises StoreError and its kinds for a
        calibration that was not accepted, or that could not be loaded again under these conditions.
        """
        if conditions.device_id != self._device_id:
            raise DeviceMismatch(
                f"{self.folder}: a calibration of device {conditions.device_id} does not belong here"
            )
        if expires_after_days is not None and not expires_after_days > 0.0:
            raise StoreError(
                f"expires_after_days is {expires_after_days}; give more than 0, or None for never"
            )
        # A former file that cannot be read must not keep a new calibration from being saved.
        with contextlib.suppress(StoreCorrupt, SchemaMismatch, DeviceMismatch):
            self._migrate()
        make_folder(self.folder)
        with locked(self.folder):
            state = self._state_or_rebuilt(conditions.now)
            parent: StoredCalibration | None = None
            lost: tuple[Invalidation, ...] = ()
            if parent_id is not None:
                parent = self._read(self._find(parent_id, state))
                lost = state.invalidated.get(parent.id, ())
            stored = msgspec.structs.replace(
                drafted(calibration, conditions, origin, parent, lost),
                number=1 + max((place.number for place in self._places()), default=0),
                id=self._fresh_id(),
                note=note,
                expires_after_days=expires_after_days,
            )
            self._write(stored)
            write_state(self.folder, state.using(stored.id))
        return stored

    def rollback(self, ref: str | int, conditions: Conditions) -> StoredCalibration:
        """Take an earlier entry into use again, only one that `current` would return. Logged.

        Where the state is damaged, the person who names an entry vouches for it; all others count as untrue.
        Raises UnknownEntry, and what `current` raises.
        """
        with contextlib.suppress(StoreCorrupt, SchemaMismatch, DeviceMismatch):
            self._migrate()
        if not self.folder.is_dir():
            raise CalibrationMissing(self._nothing_in_use())
        with locked(self.folder):
            place = self._find(ref, self._state_or_rebuilt(conditions.now))
            state = self._state_or_rebuilt(conditions.now, vouched_for=place.id)
            usable = self._judge(self._read(place), state, conditions)
            if usable.objections:
                raise usable.objections[0]
            former = state.current or "nothing"
            line = LogLine(what="rolled back", entry=place.id, why=f"from {former}", at=conditions.now)
            write_state(self.folder, state.using(place.id).noting(line))
        return usable.stored

    def invalidate(self, by: Cause, at: Stamp, *, parts: Collection[Part] | None = None) -> None:
        """Note that something happened which makes parts untrue: of every entry so far, not only the one in use.

        parts: other ones than the chain names for this cause. Said again of the same parts, nothing is written.
        """
        self._migrate()
        if not self.folder.is_dir():
            return
        lost = LOST[by] if parts is None else frozenset(parts)
        with locked(self.folder):
            before = self._state_or_rebuilt(at)
            found = Invalidation(by=by, at=at, lost=lost)
            state = before.invalidating([place.id for place in self._places()], found)
            if state != before:
                line = LogLine(what="invalidated", entry="", why=f"{by}: {WHAT_HAPPENED[by]}", at=at)
                write_state(self.folder, state.noting(line))

    def prune(self, keep: int) -> list[int]:
        """Remove all but the newest `keep` entries, the one in use and its parents; returns the removed numbers.

        Raises StoreError for keep below 1, and StoreCorrupt where the state does not tell what is in use.
        """
        if keep < 1:
            raise StoreError(f"keep is {keep}; at least one entry must be kept")
        state = self._state()
        if state is None:
            return []
        with locked(self.folder):
            state = read_state(self.folder) or state
            places = self._places()
            needed = self._with_parents(places, state.current) | {place.id for place in places[-keep:]}
            gone = [place for place in places if place.id not in needed]
            if gone:
                # In this order: an entry must not outlive the word that it is untrue.
                remove([place.path for place in gone])
                write_state(self.folder, state.forgetting({place.id for place in gone}))
        return [place.number for place in gone]

    # -- the folder ---------------------------------------------------------------------------------------

    def _state(self) -> State | None:
        self._migrate()
        return read_state(self.folder)

    def _state_or_rebuilt(self, now: Stamp, vouched_for: str = "") -> State:
        """The state; where it is damaged a new one, in which every entry but vouched_for is untrue."""
        try:
            return read_state(self.folder) or State()
        except StoreCorrupt as error:
            found = Invalidation(by="state_lost", at=now, lost=EVERYTHING)
            ids = [place.id for place in self._places() if place.id != vouched_for]
            line = LogLine(what="state lost", entry="", why=str(error), at=now)
            return State().invalidating(ids, found).noting(line)

    def _places(self) -> list[_Place]:
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be read: {error.strerror}; check its owner") from error
        matches = [match for name in names if (match := _ENTRY_FILE.fullmatch(name))]
        return sorted(_Place(int(match[1]), match[2], self.folder / match[0]) for match in matches)

    def _find(self, ref: str | int, state: State | None) -> _Place:
        wanted = str(ref)
        places = self._places()
        if wanted == "current":
            if state is None or state.current is None:
                raise CalibrationMissing(self._nothing_in_use())
            wanted = state.current
        if wanted.isdecimal():
            found = [place for place in places if place.number == int(wanted)]
        else:
            found = [place for place in places if wanted and place.id.startswith(wanted)]
        if len(found) != 1:
            count = "no entry" if not found else f"{len(found)} entries"
            known = ", ".join(f"{place.number:04}-{place.id}" for place in places[-5:]) or "none"
            raise UnknownEntry(
                f"{self.folder}: {count} named {ref!r}; give a number, the beginning of an id or "
                f'"current"; the last entries are: {known}'
            )
        return found[0]

    def _read(self, place: _Place) -> StoredCalibration:
        try:
            body = read_body(place.path)
        except FileNotFoundError as error:
            raise UnknownEntry(f"{place.path}: is gone; choose another entry") from error
        schema = schema_of(place.path, body)
        if schema != SCHEMA:
            raise SchemaMismatch(
                f"{place.path}: written with schema {schema}, this version reads {SCHEMA}; calibrate again, or go "
                "back to the version that wrote it"
            )
        stored = _decoded(place.path, body)
        if (stored.number, stored.id) != (place.number, place.id):
            raise StoreCorrupt(
                f"{place.path}: holds entry {stored.label}, the file was renamed; rename it back"
            )
        return stored

    def _write(self, stored: StoredCalibration) -> None:
        path = self.folder / stored.file_name
        body = msgspec.json.encode(stored)
        try:
            readable_again = _decoded(path, body) == stored
        except StoreCorrupt:
            readable_again = False
        if not readable_again:
            raise StoreError(f"{path}: not saved, the calibration has numbers that are not finite; repeat it")
        write_body(path, body)

    def _migrate(self) -> None:
        """Takes a schema 1 file over as entry 1, in use; does nothing once there is a state."""
        if (self.folder / STATE_FILE).exists() or not self._former_file.exists():
            return
        entry_id = self._fresh_id()
        stored = migrated(self._former_file, self._device_id, entry_id)
        make_folder(self.folder)
        with locked(self.folder):
            if (self.folder / STATE_FILE).exists():
                return
            places = self._places()
            if not places:
                self._write(stored)
            elif places[0].number == 1:
                # A cut between entry and state: the entry is there already.
                entry_id = places[0].id
            write_state(self.folder, State(current=entry_id))

    def _judge(self, stored: StoredCalibration, state: State, conditions: Conditions) -> Usable:
        where = f"{self.folder}: entry {stored.label}"
        return judge(where, stored, state.invalidated.get(stored.id, ()), conditions)

    def _with_parents(self, places: list[_Place], entry_id: str | None) -> set[str]:
        by_id = {place.id: place for place in places}
        needed: set[str] = set()
        while entry_id in by_id and entry_id not in needed:
            needed.add(entry_id)
            entry_id = self._read(by_id[entry_id]).parent_id
        return needed

    def _fresh_id(self) -> str:
        taken = {place.id for place in self._places()}
        while True:
            made = secrets.choice("abcdef") + secrets.token_hex(4)[1:]
            if made not in taken:
                return made

    def _nothing_in_use(self) -> str:
        count = len(self._places())
        if count:
            return (
                f"{self.folder}: none of the {count} calibrations of {self._device_id} is in use; roll back to one, "
                "or calibrate again"
            )
        return f"{self.folder}: no calibration of device {self._device_id}; calibrate it"


def _decoded(path: Path, body: bytes) -> StoredCalibration:
    try:
        return msgspec.json.decode(body, type=StoredCalibration)
    except (msgspec.DecodeError, CalibrationError) as error:
        raise StoreCorrupt(f"{path}: not a whole calibration ({error}); calibrate again") from error
