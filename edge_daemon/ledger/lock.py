"""One process per ledger: a lock file beside it, held for as long as the ledger is open."""

import fcntl
import os
from pathlib import Path
from typing import Self

from edge_daemon.ledger.errors import LedgerInUse


class LockFile:
    """An exclusive flock that names its holder.

    SQLite's own locks let a second writer in between two transactions; this one does not. The kernel drops it
    when the holder dies, however it dies. The file stays: removing it would let two processes lock two files
    of one name.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path, ledger: Path) -> Self:
        """Raises LedgerInUse with the holder's pid, OSError when the file cannot be written."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LedgerInUse(ledger, _pid(os.pread(descriptor, 32, 0))) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        os.close(self._descriptor)


def _pid(text: bytes) -> int | None:
    """None in the instant between a holder's lock and its note."""
    return int(text) if text.strip().isdigit() else None
