"""One life of the daemon on the simulated disk: the `Files` and the `Connect` that its ledger is given."""

import random
import sqlite3
from pathlib import Path

from edge_daemon.bench.crash.disk import Incarnation, SimDisk
from edge_daemon.bench.crash.sim_sqlite import SimVfs
from edge_daemon.ledger.errors import LedgerInUse
from edge_daemon.ledger.files import Files, Lock


class DiskHandle:
    """`cut()`, or a process death or power cut of the disk, ends it: whatever still holds it does nothing more.

    rng: the randomness of this life's nonces and salts, so that a history repeats itself.
    """

    def __init__(self, disk: SimDisk, rng: random.Random) -> None:
        self._disk = disk
        self._incarnation = disk.begin()
        self._files = SimFiles(disk, self._incarnation, rng)
        self._vfs = SimVfs(disk, self._incarnation)

    @property
    def dead(self) -> bool:
        return self._incarnation.dead

    def files(self) -> Files:
        return self._files

    def connect(self, path: Path) -> sqlite3.Connection:
        """A `Connect`."""
        return self._vfs.connect(path)

    def cut(self) -> None:
        self._disk.cut_off(self._incarnation)


class SimFiles:
    """A `Files` on the simulated disk."""

    def __init__(self, disk: SimDisk, who: Incarnation, rng: random.Random) -> None:
        self._disk = disk
        self._who = who
        self._rng = rng

    def make_directory(self, directory: Path) -> None:
        if not self._disk.has(str(directory)):
            self._disk.make_directory(self._who, str(directory))

    def exists(self, path: Path) -> bool:
        return self._disk.has(str(path))

    def size(self, path: Path) -> int:
        return len(self._disk.file(str(path)).seen)

    def read(self, path: Path) -> bytes:
        file = self._disk.file(str(path))
        return self._disk.read(self._who, file, 0, len(file.seen))

    def read_part(self, path: Path, start: int, size: int) -> bytes:
        return self._disk.read(self._who, self._disk.file(str(path)), start, size)

    def read_ahead(self, path: Path) -> None:
        """This disk lets nobody wait."""

    def create(self, path: Path) -> None:
        self._disk.create(self._who, str(path))

    def write_synced(self, path: Path, content: bytes) -> None:
        file = self._disk.find(str(path))
        if file is None:
            file = self._disk.create(self._who, str(path))
        elif file.seen:
            self._disk.truncate(self._who, file, 0)
        self._disk.write(self._who, file, 0, content)
        self._disk.sync(self._who, file)

    def sync(self, path: Path) -> None:
        self._disk.sync(self._who, self._disk.file(str(path)))

    def rename(self, old: Path, new: Path) -> None:
        self._disk.rename(self._who, str(old), str(new))

    def unlink(self, path: Path) -> None:
        if self._disk.has(str(path)):
            self._disk.unlink(self._who, str(path))

    def sync_directory(self, directory: Path) -> None:
        self._disk.sync_directory(self._who, str(directory))

    def restrict(self, path: Path) -> None:
        """Nobody else uses this disk."""

    def free_bytes(self, directory: Path) -> int:
        return self._disk.free_bytes

    def lock(self, path: Path, ledger: Path) -> Lock:
        if not self._disk.has(str(path)):
            self._disk.create(self._who, str(path))
        if not self._disk.lock(self._who, str(path)):
            raise LedgerInUse(ledger, None)
        return SimLock(self._disk, self._who, str(path))

    def random_bytes(self, count: int) -> bytes:
        return self._rng.randbytes(count)


class SimLock:
    def __init__(self, disk: SimDisk, who: Incarnation, path: str) -> None:
        self._disk = disk
        self._who = who
        self._path = path

    def release(self) -> None:
        self._disk.unlock(self._who, self._path)
