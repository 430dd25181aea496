"""Opening and closing: lock, witness, file, epoch, in an order that a power cut at any point leaves sound."""

import contextlib
import logging
import sqlite3
from pathlib import Path

from msgspec.structs import replace

from edge_daemon.clock import NS_PER_MS, MonotonicNs
from edge_daemon.ledger import schema
from edge_daemon.ledger.books import Books
from edge_daemon.ledger.epoch import (
    LINEAGE_BYTES,
    Stamp,
    Witness,
    WitnessUnreadable,
    lineage,
    new_nonce,
    raised_for,
    read_witness,
    write_witness,
)
from edge_daemon.ledger.errors import (
    StorageFault,
    StorageUnavailable,
    fault_of,
    fault_of_os,
)
from edge_daemon.ledger.files import Files, Lock, make_directories, sync_names
from edge_daemon.ledger.identity import read_identity, write_identity
from edge_daemon.ledger.log_check import missing_transactions
from edge_daemon.ledger.sealed import corrupt, fetch

_UNNOTED_MS = 86_400_000
"""A stamp further ahead of the time that was noted last is damaged: time is noted each hour while the disk takes it."""

_log = logging.getLogger("edge_daemon.ledger")


class OpenLedger:
    """Everything that is open; made, used and closed on the writer's thread."""

    def __init__(
        self,
        path: Path,
        connect: schema.Connect,
        files: Files,
        lock: Lock,
        connection: sqlite3.Connection,
        books: Books,
        nonce: str,
        renewed: str | None,
    ) -> None:
        self.path = path
        self.connection = connection
        self.books = books
        self.renewed = renewed
        self._connect = connect
        self._files = files
        self._lock = lock
        self._connected = True
        self._nonce = nonce

    def raise_epoch(self, remembered: int) -> int:
        """To be run inside a transaction; should that fail, the witness alone has the higher epoch, and wins."""
        epoch = self.books.epoch()
        raised = raised_for(remembered, epoch)
        if raised != epoch:
            write_witness(self._files, _witness_path(self.path), Witness(raised, self._nonce))
            self.books.set_epoch(raised)
        return raised

    def reopen(self) -> sqlite3.Connection:
        """A connection to trust, after a sync has failed on the one there was.

        Of that one's log a part may be gone any moment, see `schema.close_unmoved`; and a transaction that failed may
        stand in it complete. Hence first a harmless one in its place, durable; then recovery, by the log's checksums.
        Raises StorageUnavailable, sqlite3.Error, OSError: to be called again then.
        """
        if self._connected:
            schema.write_anything(self.connection)
            schema.close_unmoved(self.connection, self.path)
            self._connected = False
        self.connection = connected(self._connect, self._files, self.path)
        self._connected = True
        self.books.use(self.connection)
        _log.warning("ledger %s: opened anew after a failing sync", self.path)
        return self.connection

    def close(self, trusted: bool = True) -> None:
        """A copy taken while the ledger was open is told from it afterwards by the nonce written here.

        trusted: no sync has failed on the connection.
        """
        try:
            if not trusted:
                self.reopen()
            self.books.note_time()
            self._nonce = _change_nonce(
                self.connection, self._files, self.path, self.books.epoch(), self._nonce
            )
            self.connection.close()
        except (sqlite3.Error, OSError, StorageUnavailable) as error:
            # Either of the two nonces is accepted at the next opening: nothing is lost by it.
            _log.warning("ledger %s closes without a new nonce: %s", self.path, error)
            if self._connected:
                schema.close_unmoved(self.connection, self.path)
        finally:
            self._lock.release()


def open_files(
    path: Path,
    monotonic_ns: MonotonicNs,
    boot_id: str,
    connect: schema.Connect,
    files: Files,
    reserve_bytes: int,
) -> OpenLedger:
    """Raises LedgerInUse, LedgerCorrupt, LedgerTooNew, EpochsExhausted, StorageUnavailable.

    Nothing stays open or locked then.
    """
    with contextlib.ExitStack() as undo:
        try:
            make_directories(files, path.parent)
            lock = files.lock(path.with_name(path.name + ".lock"), path)
            undo.callback(lock.release)
            witness, missing = _found_or_created(path, connect, files)
            # SQLite checks the whole file, in an order that takes a card many times longer.
            files.read_ahead(path)
            connection = connected(connect, files, path)
            undo.callback(schema.close_unmoved, connection, path)
            found = read_identity(connection, path)
            stamp = Stamp(found.epoch, found.nonce)
            line = lineage(witness, stamp, files.random_bytes(LINEAGE_BYTES))
            renewed = missing or line.renewed
            if renewed is not None:
                _log.warning("ledger %s goes on in epoch %d: %s", path, line.epoch, renewed)
            nonce = _change_nonce(connection, files, path, line.epoch, stamp.nonce)
            _begin_boot(connection, path, boot_id, monotonic_ns() // NS_PER_MS)
            books = Books(connection, path, files, monotonic_ns, reserve_bytes)
        except sqlite3.Error as error:
            fault = fault_of(error, path) or StorageFault(
                "corrupt", path, f"tables not as they should be: {error}"
            )
            raise fault.exception() from error
        except OSError as error:
            raise fault_of_os(error, path).exception() from error
        undo.pop_all()
        return OpenLedger(path, connect, files, lock, connection, books, nonce, renewed)


def _found_or_created(path: Path, connect: schema.Connect, files: Files) -> tuple[Witness | None, str | None]:
    """The witness as it stands once the ledger file is there; and, when it had to be made anew, why."""
    unreadable: WitnessUnreadable | None = None
    try:
        witness = read_witness(files, _witness_path(path))
    except WitnessUnreadable as error:
        witness, unreadable = None, error
    if files.exists(path):
        _refuse_empty(path, files)
        _restrict(path, files)
        return witness, None
    log = Path(f"{path}-wal")
    if files.exists(log):
        # SQLite would delete it as an orphan, and with it what was committed last.
        raise corrupt(path, f"the file is missing but its log {log.name} is there")
    if unreadable is not None:
        raise corrupt(path, f"the file is missing and its witness cannot be read: {unreadable}")
    sync_names(files, path.parent)
    born = lineage(witness, None, files.random_bytes(LINEAGE_BYTES))
    witness = Witness(born.epoch, None, new_nonce(files))
    write_witness(files, _witness_path(path), witness)
    assert witness.next is not None
    schema.create(path, connect, files, Stamp(born.epoch, witness.next))
    return witness, born.renewed


def connected(connect: schema.Connect, files: Files, path: Path) -> sqlite3.Connection:
    """To a ledger that has been checked, its log empty by then.

    Raises StorageUnavailable, LedgerTooNew, sqlite3.Error, OSError; it is closed then, the log left as it was.
    """
    log_path = Path(f"{path}-wal")
    log = files.read(log_path) if files.exists(log_path) else b""
    connection = connect(path)
    try:
        if log:
            _require_whole_log(connection, files, path, log)
        schema.prepare(connection, path)
        schema.empty_log(connection, path)
    except BaseException:
        schema.close_unmoved(connection, path)
        raise
    return connection


def _require_whole_log(connection: sqlite3.Connection, files: Files, path: Path, log: bytes) -> None:
    taken = schema.frames_taken(connection, path)
    size = schema.PAGE_BYTES
    missing = missing_transactions(
        log, taken, size, lambda page: files.read_part(path, (page - 1) * size, size)
    )
    if missing:
        raise corrupt(
            path, f"its log is damaged, {missing} transactions behind the damage cannot be read any more"
        )


def _change_nonce(connection: sqlite3.Connection, files: Files, path: Path, epoch: int, old: str) -> str:
    """Witness, ledger, witness: after a cut at any point the two still know each other."""
    new = new_nonce(files)
    write_witness(files, _witness_path(path), Witness(epoch, old, new))
    write_identity(connection, replace(read_identity(connection, path), epoch=epoch, nonce=new))
    write_witness(files, _witness_path(path), Witness(epoch, new))
    return new


def _begin_boot(connection: sqlite3.Connection, path: Path, boot_id: str, now_ms: int) -> None:
    """The time that the boots before this one lasted is summed up: of a crash, what the last outcome shows of it.

    That time goes on above all that was ever settled: command ids are drawn from it, and may not go back. An outcome's
    own stamp is believed as far as it can be true: time is noted each hour.
    """
    last = read_identity(connection, path)
    lived_ms = last.lived_before_ms
    if last.boot_id != boot_id:
        lived_ms += last.boot_seen_ms
        ((settled_ms,),) = fetch(
            connection, path, "SELECT max(settled) FROM receipt WHERE settled <= ?", (lived_ms + _UNNOTED_MS,)
        )
        lived_ms = max(lived_ms, settled_ms or 0)
    now = replace(last, boot_id=boot_id, boot_seen_ms=now_ms, lived_before_ms=lived_ms)
    write_identity(connection, now)


def _refuse_empty(path: Path, files: Files) -> None:
    """SQLite takes an empty file for a new one and would throw its log away."""
    if files.size(path) == 0:
        raise corrupt(path, "the file is empty")


def _restrict(path: Path, files: Files) -> None:
    """A copy put back by hand may have come with wider rights."""
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        files.restrict(file)


def _witness_path(path: Path) -> Path:
    return path.with_name(path.name + ".witness")
