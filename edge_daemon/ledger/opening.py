"""Opening and closing: lock, witness, file, epoch, in an order that a power cut at any point leaves sound."""

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

from edge_daemon.clock import NS_PER_MS, MonotonicNs
from edge_daemon.ledger import schema
from edge_daemon.ledger.books import Books
from edge_daemon.ledger.epoch import (
    Stamp,
    Witness,
    WitnessUnreadable,
    lineage,
    new_nonce,
    read_witness,
    write_witness,
)
from edge_daemon.ledger.errors import LedgerCorrupt, StorageFault, fault_of, fault_of_os
from edge_daemon.ledger.lock import LockFile

_log = logging.getLogger("edge_daemon.ledger")


class OpenLedger:
    """Everything that is open; made, used and closed on the writer's thread."""

    def __init__(
        self,
        path: Path,
        lock: LockFile,
        connection: sqlite3.Connection,
        books: Books,
        nonce: str,
        renewed: str | None,
    ) -> None:
        self.path = path
        self.connection = connection
        self.books = books
        self.renewed = renewed
        self._lock = lock
        self._nonce = nonce

    def raise_epoch(self, above: int) -> int:
        """To be run inside a transaction; should that fail, the witness alone has the higher epoch, and wins."""
        epoch = self.books.epoch()
        if above <= epoch:
            return epoch
        write_witness(_witness_path(self.path), Witness(above + 1, self._nonce))
        self.books.set_epoch(above + 1)
        return above + 1

    def close(self) -> None:
        """A copy taken while the ledger was open is told from it afterwards by the nonce written here."""
        try:
            self.books.note_time()
            self._nonce = _change_nonce(self.connection, self.path, self.books.epoch(), self._nonce)
        except (sqlite3.Error, OSError) as error:
            # Either of the two nonces is accepted at the next opening: nothing is lost by it.
            _log.warning("ledger %s closes without a new nonce: %s", self.path, error)
        finally:
            self.connection.close()
            self._lock.release()


def open_files(
    path: Path, monotonic_ns: MonotonicNs, boot_id: str, connect: schema.Connect, reserve_bytes: int
) -> OpenLedger:
    """Raises LedgerInUse, LedgerCorrupt, LedgerTooNew, StorageUnavailable; then nothing stays open or locked."""
    with contextlib.ExitStack() as undo:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = LockFile.acquire(path.with_name(path.name + ".lock"), path)
            undo.callback(lock.release)
            witness, missing = _found_or_created(path, connect)
            connection = connect(path)
            undo.callback(connection.close)
            schema.prepare(connection, path)
            stamp = _stamp(connection, path)
            line = lineage(witness, stamp)
            renewed = missing or line.renewed
            if renewed is not None:
                _log.warning("ledger %s goes on in epoch %d: %s", path, line.epoch, renewed)
            nonce = _change_nonce(connection, path, line.epoch, stamp.nonce)
            _begin_boot(connection, boot_id, monotonic_ns() // NS_PER_MS)
            books = Books(connection, path, monotonic_ns, reserve_bytes)
        except sqlite3.Error as error:
            fault = fault_of(error, path) or StorageFault(
                "corrupt", path, f"tables not as they should be: {error}"
            )
            raise fault.exception() from error
        except OSError as error:
            raise fault_of_os(error, path).exception() from error
        undo.pop_all()
        return OpenLedger(path, lock, connection, books, nonce, renewed)


def _found_or_created(path: Path, connect: schema.Connect) -> tuple[Witness | None, str | None]:
    """The witness as it stands once the ledger file is there; and, when it had to be made anew, why."""
    unreadable: WitnessUnreadable | None = None
    try:
        witness = read_witness(_witness_path(path))
    except WitnessUnreadable as error:
        witness, unreadable = None, error
    if path.exists():
        _refuse_empty(path)
        _restrict(path)
        return witness, None
    log = Path(f"{path}-wal")
    if log.exists():
        # SQLite would delete it as an orphan, and with it what was committed last.
        raise _corrupt(path, f"the file is missing but its log {log.name} is there")
    if unreadable is not None:
        raise _corrupt(path, f"the file is missing and its witness cannot be read: {unreadable}")
    born = lineage(witness, None)
    witness = Witness(born.epoch, None, new_nonce())
    write_witness(_witness_path(path), witness)
    assert witness.next is not None
    schema.create(path, connect, Stamp(born.epoch, witness.next))
    return witness, born.renewed


def _stamp(connection: sqlite3.Connection, path: Path) -> Stamp:
    found = connection.execute("SELECT epoch, nonce FROM meta").fetchone()
    if found is None:
        raise _corrupt(path, "the ledger has no identity row")
    return Stamp(*found)


def _change_nonce(connection: sqlite3.Connection, path: Path, epoch: int, old: str) -> str:
    """Witness, ledger, witness: after a cut at any point the two still know each other."""
    new = new_nonce()
    write_witness(_witness_path(path), Witness(epoch, old, new))
    connection.execute("UPDATE meta SET epoch = ?, nonce = ?", (epoch, new))
    write_witness(_witness_path(path), Witness(epoch, new))
    return new


def _begin_boot(connection: sqlite3.Connection, boot_id: str, now_ms: int) -> None:
    connection.execute(
        "UPDATE meta SET lived_before_ms = lived_before_ms + CASE WHEN boot_id = ?1 THEN 0 ELSE boot_seen_ms END, "
        "boot_id = ?1, boot_seen_ms = ?2",
        (boot_id, now_ms),
    )


def _refuse_empty(path: Path) -> None:
    """SQLite takes an empty file for a new one and would throw its log away."""
    if path.stat().st_size == 0:
        raise _corrupt(path, "the file is empty")


def _restrict(path: Path) -> None:
    """A copy put back by hand may have come with wider rights."""
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if file.exists() and file.stat().st_mode & 0o077:
            os.chmod(file, 0o600)


def _witness_path(path: Path) -> Path:
    return path.with_name(path.name + ".witness")


def _corrupt(path: Path, detail: str) -> LedgerCorrupt:
    return LedgerCorrupt(StorageFault("corrupt", path, detail))
