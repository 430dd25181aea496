"""Opening and closing: lock, witness, file, epoch, in an order that a power cut at any point leaves sound."""

import contextlib
import logging
import sqlite3
from functools import partial
from pathlib import Path

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
    LedgerCorrupt,
    StorageFault,
    StorageUnavailable,
    fault_of,
    fault_of_os,
)
from edge_daemon.ledger.files import Files, Lock, make_directories, sync_name
from edge_daemon.ledger.log_check import missing_transactions
from edge_daemon.ledger.rows import crc_of, device_of

_ROWS_FOR_SALT = 8
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
        unreadable: StorageFault | None = None,
    ) -> None:
        self.path = path
        self.connection = connection
        self.books = books
        self.renewed = renewed
        self.unreadable = unreadable
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
        self.connection = _connected(self._connect, self._files, self.path)
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
    """Raises LedgerInUse, LedgerCorrupt, LedgerTooNew, StorageUnavailable; then nothing stays open or locked."""
    with contextlib.ExitStack() as undo:
        try:
            make_directories(files, path.parent)
            lock = files.lock(path.with_name(path.name + ".lock"), path)
            undo.callback(lock.release)
            witness, missing = _found_or_created(path, connect, files)
            connection = _connected(connect, files, path)
            undo.callback(schema.close_unmoved, connection, path)
            stamp = _stamp(connection, path)
            line = lineage(witness, stamp, files.random_bytes(LINEAGE_BYTES))
            renewed = missing or line.renewed
            if renewed is not None:
                _log.warning("ledger %s goes on in epoch %d: %s", path, line.epoch, renewed)
            nonce = _change_nonce(connection, files, path, line.epoch, stamp.nonce)
            _begin_boot(connection, boot_id, monotonic_ns() // NS_PER_MS)
            books = Books(connection, path, files, monotonic_ns, reserve_bytes)
            unreadable = _checked_salt(connection, books, path)
        except sqlite3.Error as error:
            fault = fault_of(error, path) or StorageFault(
                "corrupt", path, f"tables not as they should be: {error}"
            )
            raise fault.exception() from error
        except OSError as error:
            raise fault_of_os(error, path).exception() from error
        undo.pop_all()
        return OpenLedger(path, connect, files, lock, connection, books, nonce, renewed, unreadable)


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
        raise _corrupt(path, f"the file is missing but its log {log.name} is there")
    if unreadable is not None:
        raise _corrupt(path, f"the file is missing and its witness cannot be read: {unreadable}")
    sync_name(files, path.parent)  # whoever made the directory may have died before
    born = lineage(witness, None, files.random_bytes(LINEAGE_BYTES))
    witness = Witness(born.epoch, None, new_nonce(files))
    write_witness(files, _witness_path(path), witness)
    assert witness.next is not None
    schema.create(path, connect, files, Stamp(born.epoch, witness.next))
    return witness, born.renewed


def _connected(connect: schema.Connect, files: Files, path: Path) -> sqlite3.Connection:
    """Checked, and its log empty. Raises StorageUnavailable, LedgerTooNew, sqlite3.Error; it is closed then."""
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
    missing = missing_transactions(log, taken, schema.PAGE_BYTES, partial(files.read, path))
    if missing:
        raise _corrupt(
            path, f"its log is damaged, {missing} transactions behind the damage cannot be read any more"
        )


def _stamp(connection: sqlite3.Connection, path: Path) -> Stamp:
    found = connection.execute("SELECT epoch, nonce FROM meta").fetchone()
    if found is None:
        raise _corrupt(path, "the ledger has no identity row")
    return Stamp(*found)


def _checked_salt(connection: sqlite3.Connection, books: Books, path: Path) -> StorageFault | None:
    """With a damaged one no key would be found any more: raises LedgerCorrupt.

    A fault when no receipt is left to tell by: nothing new may be done then, and what can be read is answered. Single
    damaged rows are told when they are come upon.
    """
    rows = connection.execute(
        f"SELECT key, fingerprint, crc, command, receipt FROM receipt ORDER BY id DESC LIMIT {_ROWS_FOR_SALT}"
    ).fetchall()
    if not rows or any(device_of(books.digests, key, blob) is not None for key, *_, blob in rows):
        return None
    if any(crc == crc_of(key, fingerprint, command, blob) for key, fingerprint, crc, command, blob in rows):
        raise _corrupt(path, "the salt of its keys is damaged")
    return StorageFault("corrupt", path, f"none of its last {len(rows)} receipts matches its checksum")


def _change_nonce(connection: sqlite3.Connection, files: Files, path: Path, epoch: int, old: str) -> str:
    """Witness, ledger, witness: after a cut at any point the two still know each other."""
    new = new_nonce(files)
    write_witness(files, _witness_path(path), Witness(epoch, old, new))
    connection.execute("UPDATE meta SET epoch = ?, nonce = ?", (epoch, new))
    write_witness(files, _witness_path(path), Witness(epoch, new))
    return new


def _begin_boot(connection: sqlite3.Connection, boot_id: str, now_ms: int) -> None:
    """The time that the boots before this one lasted is summed up: of a crash, what the last outcome shows of it.

    That time goes on above all that was ever settled: command ids are drawn from it, and may not go back. An outcome's
    own stamp is believed as far as it can be true: time is noted each hour.
    """
    connection.execute(
        "UPDATE meta SET lived_before_ms = CASE WHEN boot_id = ?1 THEN lived_before_ms ELSE "
        "max(lived_before_ms + boot_seen_ms, (SELECT coalesce(max(settled), 0) FROM receipt "
        f"WHERE settled <= lived_before_ms + boot_seen_ms + {_UNNOTED_MS})) END, "
        "boot_id = ?1, boot_seen_ms = ?2",
        (boot_id, now_ms),
    )


def _refuse_empty(path: Path, files: Files) -> None:
    """SQLite takes an empty file for a new one and would throw its log away."""
    if files.size(path) == 0:
        raise _corrupt(path, "the file is empty")


def _restrict(path: Path, files: Files) -> None:
    """A copy put back by hand may have come with wider rights."""
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        files.restrict(file)


def _witness_path(path: Path) -> Path:
    return path.with_name(path.name + ".witness")


def _corrupt(path: Path, detail: str) -> LedgerCorrupt:
    return LedgerCorrupt(StorageFault("corrupt", path, detail))
