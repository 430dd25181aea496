"""What the ledger asks of the operating system besides SQLite: files, names, room, a lock, randomness.

Each method is one step that a power cut can fall before or after; what is durable when is said with each. A simulation
hands in its own `Files` and fails, cuts or loses any of these steps.
"""

import contextlib
import errno
import os
from pathlib import Path
from typing import Protocol

from edge_daemon.ledger.lock import LockFile

_PRIVATE = 0o600
_PRIVATE_DIRECTORY = 0o700
_READ_AHEAD_BYTES = 2**20


class Lock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    """Every method may raise OSError. Paths are files beside the ledger, or its directory."""

    def make_directory(self, directory: Path) -> None:
        """A private one; its parent is there. There already: nothing happens. Durable after the parent's sync."""

    def exists(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int:
        """In bytes."""

    def read(self, path: Path) -> bytes:
        """Raises FileNotFoundError."""

    def read_part(self, path: Path, start: int, size: int) -> bytes:
        """Less than `size` at the end of the file. Raises FileNotFoundError."""

    def read_ahead(self, path: Path) -> None:
        """From its start to its end, into the machine's memory: whoever then reads here and there need not wait.

        Of no use where nothing waits; never raises.
        """

    def create(self, path: Path) -> None:
        """An empty, private file. Raises FileExistsError."""

    def write_synced(self, path: Path, content: bytes) -> None:
        """Replaces the content, which is durable when this returns; the name, if new, is not yet."""

    def sync(self, path: Path) -> None:
        """Makes the content durable."""

    def rename(self, old: Path, new: Path) -> None:
        """Takes the place of `new` in one step; durable after `sync_directory`."""

    def unlink(self, path: Path) -> None:
        """Not there: nothing happens. Durable after `sync_directory`."""

    def sync_directory(self, directory: Path) -> None:
        """Makes created, renamed and removed names durable."""

    def restrict(self, path: Path) -> None:
        """Takes all rights from others than the owner. Not there: nothing happens."""

    def free_bytes(self, directory: Path) -> int:
        """What this user may still write to that file system."""

    def lock(self, path: Path, ledger: Path) -> Lock:
        """Until released, or until this process dies, nobody else gets it. Raises LedgerInUse."""

    def random_bytes(self, count: int) -> bytes:
        """For a salt, an id or a nonce: nobody can guess them, and no two are equal."""


class OsFiles:
    """The machine's own."""

    def make_directory(self, directory: Path) -> None:
        directory.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def read_part(self, path: Path, start: int, size: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    def read_ahead(self, path: Path) -> None:
        # What cannot be read is told by whoever needs it.
        with contextlib.suppress(OSError), path.open("rb", buffering=0) as file:
            while file.read(_READ_AHEAD_BYTES):
                pass

    def create(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE))

    def write_synced(self, path: Path, content: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)

    def sync(self, path: Path) -> None:
        _sync(path, 0)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, directory: Path) -> None:
        _sync(directory, os.O_DIRECTORY)

    def restrict(self, path: Path) -> None:
        if path.exists() and path.stat().st_mode & 0o077:
            os.chmod(path, _PRIVATE)

    def free_bytes(self, directory: Path) -> int:
        space = os.statvfs(directory)
        return space.f_bavail * space.f_frsize

    def lock(self, path: Path, ledger: Path) -> Lock:
        return LockFile.acquire(path, ledger)

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


OS_FILES = OsFiles()


def write_durably(files: Files, path: Path, content: bytes) -> None:
    """The old content or the new is there after a power cut; the new one once this has returned. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    files.write_synced(temporary, content)
    files.rename(temporary, path)
    files.sync_directory(path.parent)


def make_directories(files: Files, directory: Path) -> None:
    """With its parents; durable after `sync_names`. Raises OSError."""
    if not files.exists(directory):
        make_directories(files, directory.parent)
        files.make_directory(directory)


def sync_names(files: Files, directory: Path) -> None:
    """Its own and those of all above it: whoever made them may have died before, or been refused. Raises OSError.

    A directory whose own name is lost takes all that was synced in it along. A parent that we may not even read is
    somebody else's, and so was the making of what is in it; the same of one that takes no writes.
    """
    for one in (directory, *directory.parents):
        if one == one.parent:
            continue
        try:
            files.sync_directory(one.parent)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL):
                raise


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
