"""Receipts of a ledger that no daemon has open: read from a private copy, the files themselves stay as they are."""

import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec.structs import replace

from edge_daemon.contract import ReceiptAnswer, ReceiptPage, ReceiptQuery
from edge_daemon.ledger.books import Books
from edge_daemon.ledger.errors import (
    LedgerError,
    LedgerTooNew,
    StorageFault,
    StorageUnavailable,
    fault_of,
    fault_of_os,
)
from edge_daemon.ledger.files import OS_FILES
from edge_daemon.ledger.opening import connected
from edge_daemon.ledger.schema import connect_file


class NoLedger(LedgerError):
    """There is none, or none that can be read now; the message says what to do."""


class OfflineReceipts:
    """What `Ledger` tells of receipts, of a ledger as it stood when it was copied."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def page(self, query: ReceiptQuery) -> ReceiptPage:
        return self._books.page(query)

    def devices(self) -> list[str]:
        """Every device that may have receipts, configured or not."""
        return list(self._books.devices())

    def lookup(self, device_id: str, key: str) -> ReceiptAnswer:
        return self._books.lookup(device_id, key, None)


@contextmanager
def offline_receipts(path: Path) -> Iterator[OfflineReceipts]:
    """Raises NoLedger, LedgerCorrupt, LedgerTooNew, StorageUnavailable."""
    with tempfile.TemporaryDirectory(prefix="edge-daemon-") as directory:
        try:
            copy = _copy(path, Path(directory))
            with closing(_connected(copy, path)) as connection:
                yield OfflineReceipts(Books(connection, path, OS_FILES, time.monotonic_ns, 0))
        except sqlite3.Error as error:
            raise (fault_of(error, path) or StorageFault("corrupt", path, str(error))).exception() from error
        except OSError as error:
            raise fault_of_os(error, path).exception() from error


def _connected(copy: Path, path: Path) -> sqlite3.Connection:
    """Checked as the daemon checks it: what stands behind a damaged block of the log must not seem never written."""
    try:
        return connected(connect_file, OS_FILES, copy)
    except StorageUnavailable as error:
        # The copy is gone when this is read.
        raise replace(error.fault, path=path).exception() from error
    except LedgerTooNew as error:
        raise LedgerTooNew(path, error.found, error.known) from error


def daemon_has(path: Path) -> bool:
    """Whether a process has the ledger open. Raises OSError."""
    try:
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Given back at once: a daemon that starts must not find it taken.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _copy(path: Path, directory: Path) -> Path:
    """The file and its log, which a daemon that was killed leaves behind with what it wrote last."""
    if daemon_has(path):
        raise NoLedger(f"ledger {path}: a process has it open, but does not answer; is the daemon starting?")
    if not path.exists():
        raise NoLedger(f"there is no ledger {path}: no daemon has run with this configuration")
    before = _marks(path)
    copy = directory / path.name
    for name in (path.name, f"{path.name}-wal"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), directory / name)
    if daemon_has(path) or _marks(path) != before:
        raise NoLedger(f"ledger {path}: a daemon has started meanwhile; ask again")
    return copy


def _marks(path: Path) -> list[tuple[int, int] | None]:
    files = (path, path.with_name(f"{path.name}-wal"))
    found = [file.stat() if file.exists() else None for file in files]
    return [None if one is None else (one.st_mtime_ns, one.st_size) for one in found]
