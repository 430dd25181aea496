"""A disk in memory that does to the ledger what disks do: cuts, tears, loses, refuses, fills up.

What it promises is what POSIX and SQLite's own assumptions promise and no more: a write is durable once its file
was synced, a name once its directory was. Time and threads do not occur; one seed, one behaviour.
"""

import errno
import random
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from edge_daemon.bench.crash.disk_file import Keep, SimFile

OpKind = Literal["write", "sync", "rename", "create", "unlink", "truncate", "dirsync"]

Snapshot = Mapping[str, bytes]
"""Every file's content by its path, as programs saw it: what a copy of the card holds."""

CARD_BYTES = 2**30


class DiskOp(msgspec.Struct, frozen=True):
    kind: OpKind
    file: str
    """Its path; the directory's for `dirsync`, the old one for `rename`."""
    number: int
    """1 for the first operation of the disk's life."""
    offset: int = 0
    size: int = 0


Hook = Callable[[DiskOp], None]


class DiskError(OSError):
    """Raised by a hook: the operation fails with this errno.

    written_bytes: how much of a failing write got through all the same.
    """

    def __init__(self, number: int = errno.EIO, written_bytes: int = 0) -> None:
        super().__init__(number, f"simulated {errno.errorcode[number]}")
        self.written_bytes = written_bytes


class CutOff(OSError):
    """Whoever asks is dead; the operation had no effect."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the process that asks has died")


class Incarnation:
    """One life of the daemon, as the disk sees it."""

    def __init__(self) -> None:
        self.dead = False


class _Name(msgspec.Struct, frozen=True):
    """A change of a directory: `old` goes, `new` comes; None: neither goes nor comes."""

    old: str | None
    new: str | None
    file: SimFile | None
    """None: a directory."""


class SimDisk:
    """Files by their absolute paths; the directory `/` is there.

    hook: called before each operation; may raise DiskError, call `power_cut` or `process_death`.
    after_hook: called once the operation is done, before whoever asked knows; may cut or kill too.
    free_bytes: how much all files together may still grow.
    """

    def __init__(self, rng: random.Random) -> None:
        """rng: decides which pages a failing sync loses."""
        self._rng = rng
        self._names: dict[str, SimFile | None] = {"/": None}
        self._durable_names = dict(self._names)
        self._unsynced_names: list[_Name] = []
        self._alive: list[Incarnation] = []
        self._locks: dict[str, Incarnation] = {}
        self._capacity_bytes = CARD_BYTES
        self._used_bytes = 0
        self.hook: Hook | None = None
        self.after_hook: Hook | None = None
        self.operations = 0
        self.reads = 0
        self.writes = 0
        self.syncs = 0
        self.bytes_written = 0

    # -- what befalls it ---------------------------------------------------------------------------------------

    @property
    def free_bytes(self) -> int:
        return max(0, self._capacity_bytes - self._used_bytes)

    @free_bytes.setter
    def free_bytes(self, value: int) -> None:
        self._capacity_bytes = self._used_bytes + value

    def process_death(self) -> None:
        """Everybody who uses the disk dies; it keeps all it was told, synced or not."""
        for incarnation in tuple(self._alive):
            self.cut_off(incarnation)

    def power_cut(self, keep: Keep, rng: random.Random | None = None) -> None:
        """Everybody dies and what was not synced is lost, kept, or each part at random: torn and reordered."""
        chance = self._rng if rng is None else rng
        self.process_death()
        files = dict.fromkeys(file for file in self._all_files() if file is not None)
        for file in files:
            file.cut_power(keep, chance)
        for change in self._unsynced_names:
            if keep == "all" or (keep == "torn" and chance.random() < 0.5):
                _apply(self._durable_names, change)
        self._unsynced_names.clear()
        self._start_from(_reachable(self._durable_names))

    def restore(self, snapshot: Snapshot) -> None:
        """An earlier copy, or whatever the mapping holds, is the card's whole content from now on; everybody dies."""
        self.process_death()
        self._unsynced_names.clear()
        names: dict[str, SimFile | None] = {"/": None}
        for path, content in snapshot.items():
            directory = path
            while directory != "/":
                directory = directory_of(directory)
                names[directory] = None
            names[path] = SimFile(path, content)
        self._start_from(names)

    def snapshot(self) -> Snapshot:
        return {path: bytes(file.seen) for path, file in self._names.items() if file is not None}

    def cut_off(self, incarnation: Incarnation) -> None:
        """This one dies, whether it knows or not: nothing it does has an effect any more, and its locks are free."""
        incarnation.dead = True
        self._alive = [other for other in self._alive if other is not incarnation]
        self._locks = {path: holder for path, holder in self._locks.items() if holder is not incarnation}

    # -- what an incarnation does ------------------------------------------------------------------------------

    def begin(self) -> Incarnation:
        incarnation = Incarnation()
        self._alive.append(incarnation)
        return incarnation

    def find(self, path: str) -> SimFile | None:
        """None: there is no such file."""
        return self._names.get(path)

    def file(self, path: str) -> SimFile:
        """Raises FileNotFoundError."""
        found = self._names.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
        return found

    def has(self, path: str) -> bool:
        """A file or a directory."""
        return path in self._names

    def create(self, who: Incarnation, path: str) -> SimFile:
        """Raises FileExistsError, FileNotFoundError when the directory is missing."""
        if path in self._names:
            raise FileExistsError(errno.EEXIST, "there is such a file", path)
        if self._names.get(directory_of(path), self) is not None:
            raise FileNotFoundError(errno.ENOENT, "there is no such directory", path)
        file = SimFile(path)
        self._rename(who, "create", path, _Name(None, path, file))
        return file

    def make_directory(self, who: Incarnation, path: str) -> None:
        self._rename(who, "create", path, _Name(None, path, None))

    def rename(self, who: Incarnation, old: str, new: str) -> None:
        self._rename(who, "rename", old, _Name(old, new, self.file(old)))

    def unlink(self, who: Incarnation, path: str) -> None:
        self.file(path)
        self._rename(who, "unlink", path, _Name(path, None, None))

    def sync_directory(self, who: Incarnation, path: str) -> None:
        """A failing one loses nothing by itself: a journal writes names later, or the file system stops for good."""
        op = self._before(who, "dirsync", path)
        waiting = self._unsynced_names
        self._unsynced_names = [change for change in waiting if not _concerns(change, path)]
        for change in waiting:
            if _concerns(change, path):
                _apply(self._durable_names, change)
        self.syncs += 1
        self._after(who, op)

    def read(self, who: Incarnation, file: SimFile, offset: int, size: int) -> bytes:
        if who.dead:
            raise CutOff
        self.reads += 1
        return bytes(file.seen[offset : offset + size])

    def write(self, who: Incarnation, file: SimFile, offset: int, data: bytes) -> None:
        """Beyond what is free: what fits is written, then OSError with ENOSPC."""
        try:
            op = self._before(who, "write", file.name, offset, len(data))
        except DiskError as error:
            self._put(file, offset, data[: error.written_bytes])
            raise
        growth = offset + len(data) - len(file.seen)
        lacking = growth - self.free_bytes
        if growth > 0 and lacking > 0:
            self._put(file, offset, data[: max(0, len(data) - lacking)])
            raise OSError(errno.ENOSPC, "No space left on the simulated disk", file.name)
        self._put(file, offset, data)
        self._after(who, op)

    def truncate(self, who: Incarnation, file: SimFile, size: int) -> None:
        op = self._before(who, "truncate", file.name, size)
        self._used_bytes += size - len(file.seen)
        file.truncate(size)
        self._after(who, op)

    def sync(self, who: Incarnation, file: SimFile) -> None:
        try:
            op = self._before(who, "sync", file.name)
        except DiskError:
            file.fail_sync(self._rng)
            raise
        file.sync()
        self.syncs += 1
        self._after(who, op)

    def lock(self, who: Incarnation, path: str) -> bool:
        """Whether it is his now."""
        if who.dead:
            raise CutOff
        return self._locks.setdefault(path, who) is who

    def unlock(self, who: Incarnation, path: str) -> None:
        if self._locks.get(path) is who:
            del self._locks[path]

    # -- inside ------------------------------------------------------------------------------------------------

    def _before(self, who: Incarnation, kind: OpKind, file: str, offset: int = 0, size: int = 0) -> DiskOp:
        if who.dead:
            raise CutOff
        self.operations += 1
        op = DiskOp(kind, file, self.operations, offset, size)
        if self.hook is not None:
            self.hook(op)
            if who.dead:
                raise CutOff
        return op

    def _after(self, who: Incarnation, op: DiskOp) -> None:
        if self.after_hook is not None:
            self.after_hook(op)
            if who.dead:
                raise CutOff

    def _put(self, file: SimFile, offset: int, data: bytes) -> None:
        if not data:
            return
        self._used_bytes += max(0, offset + len(data) - len(file.seen))
        file.write(offset, data)
        self.writes += 1
        self.bytes_written += len(data)

    def _rename(self, who: Incarnation, kind: OpKind, path: str, change: _Name) -> None:
        op = self._before(who, kind, path)
        replaced = self._names.get(change.new) if change.new is not None else self._names.get(path)
        if replaced is not None:
            self._used_bytes -= len(replaced.seen)
        _apply(self._names, change)
        if change.file is not None and change.new is not None:
            change.file.name = change.new
        self._unsynced_names.append(change)
        self._after(who, op)

    def _all_files(self) -> list[SimFile | None]:
        """Also those that only an unsynced change could still bring back."""
        named = [*self._names.values(), *self._durable_names.values()]
        return named + [change.file for change in self._unsynced_names]

    def _start_from(self, names: dict[str, SimFile | None]) -> None:
        self._names, self._durable_names = names, dict(names)
        for path, file in names.items():
            if file is not None:
                file.name = path
        self._used_bytes = sum(len(file.seen) for file in names.values() if file is not None)


def _apply(names: dict[str, SimFile | None], change: _Name) -> None:
    if change.old is not None:
        names.pop(change.old, None)
    if change.new is not None:
        names[change.new] = change.file


def _concerns(change: _Name, directory: str) -> bool:
    return any(path is not None and directory_of(path) == directory for path in (change.old, change.new))


def _reachable(names: dict[str, SimFile | None]) -> dict[str, SimFile | None]:
    """Without what lies in directories whose own name was lost."""
    kept: dict[str, SimFile | None] = {"/": None}
    for path in sorted(names):
        if kept.get(directory_of(path), "lost") is None:
            kept[path] = names[path]
    return kept


def directory_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"
