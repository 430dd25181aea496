"""The tables, and how a connection to them is made, checked and brought up to date."""

import os
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path

from edge_daemon.ledger.epoch import Stamp, sync_directory
from edge_daemon.ledger.errors import LedgerCorrupt, LedgerTooNew, StorageFault, fault_of_findings

APPLICATION_ID = 0x45444C47
"""'EDLG': tells a ledger from any other SQLite file."""

PAGE_BYTES = 4096
"""A page is one block of ext4 and of the card: writing it never rewrites a neighbour that holds other receipts."""

BUSY_TIMEOUT_S = 1.0
"""For a person's sqlite3 shell that holds the file for a moment; another daemon is kept out by the lock file."""

_SALT_BYTES = 32

Connect = Callable[[Path], sqlite3.Connection]
"""Opens an existing ledger file for reading and writing, in autocommit mode.

The one place where the ledger meets the file system through SQLite: a simulation hands in its own, naming a VFS
that fails the n-th write or fsync (`file:…?vfs=NAME`) or limiting the file (`PRAGMA max_page_count`).
"""

_SCHEMA_1 = """
CREATE TABLE meta (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    ledger_id TEXT NOT NULL,
    salt BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    nonce TEXT NOT NULL,
    boot_id TEXT NOT NULL,            -- the machine's boot that last had the ledger open
    boot_seen_ms INTEGER NOT NULL,    -- its monotonic clock when last written
    lived_before_ms INTEGER NOT NULL  -- monotonic time of all earlier boots, summed
);
CREATE TABLE device (
    device_id TEXT PRIMARY KEY,
    highest_token INTEGER NOT NULL DEFAULT 0,
    hold_hint TEXT,
    hold_owner TEXT,
    parked_note TEXT                  -- NULL: not parked
) WITHOUT ROWID;
CREATE TABLE receipt (
    id INTEGER PRIMARY KEY,           -- order of acceptance
    key BLOB NOT NULL UNIQUE,         -- salted digest of (device, idempotency key)
    fingerprint BLOB NOT NULL,        -- salted digest of the action
    settled INTEGER,                  -- order and time of settling; NULL: pending
    acknowledged INTEGER NOT NULL,
    crc INTEGER NOT NULL,             -- of key, fingerprint, command and receipt
    command BLOB,                     -- whom to ask; NULL once settled
    receipt BLOB NOT NULL             -- MessagePack
);
-- Indexes nothing but the open rows, and settling a receipt does not touch it: one page less to write.
CREATE INDEX open_receipt ON receipt (acknowledged) WHERE acknowledged = 0;
CREATE TABLE spent_key (              -- keys whose receipts have been pruned
    key BLOB PRIMARY KEY
) WITHOUT ROWID;
"""

_SCHEMA_2 = """
ALTER TABLE device ADD COLUMN orientation TEXT  -- how staff said the screen is turned; NULL: as configured
    CHECK (orientation IN ('portrait', 'landscape_left', 'portrait_upside_down', 'landscape_right'));
"""

MIGRATIONS: tuple[str, ...] = (_SCHEMA_1, _SCHEMA_2)
"""Script n brings version n to n+1; a script that has been released is never edited, a new one follows it.

A change of the stored structs (`Receipt`, `CommandRef`) that an earlier program or an earlier row cannot be read with
needs a step too, if only an empty one: it keeps an older program from taking new rows for damaged ones.
"""


def connect_file(path: Path) -> sqlite3.Connection:
    """The usual `Connect`.

    psow=0: a commit never shares a block with the one before it. SQLite's default trusts the disk not to harm
    neighbouring bytes when power fails in the middle of a write, and would put the outcome of an action into the
    block that holds its pending receipt; a card rewrites whole blocks.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw&psow=0"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)


def create(path: Path, connect: Connect, stamp: Stamp) -> None:
    """Makes an empty ledger at `path`, complete or not at all. Raises sqlite3.Error, OSError."""
    fresh = path.with_name(path.name + ".new")
    for leftover in (fresh, Path(f"{fresh}-wal"), Path(f"{fresh}-shm"), Path(f"{fresh}-journal")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    connection = connect(fresh)
    try:
        # Not yet in WAL mode: every commit below is in the file itself, so that one rename moves everything.
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection, path)
        connection.execute(
            "INSERT INTO meta VALUES (1, ?, ?, ?, ?, '', 0, 0)",
            (uuid.uuid4().hex, os.urandom(_SALT_BYTES), stamp.epoch, stamp.nonce),
        )
    finally:
        connection.close()
    descriptor = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(fresh, path)
    sync_directory(path.parent)


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Checks a ledger just connected to and sets what SQLite forgets between connections.

    Raises LedgerCorrupt, LedgerTooNew, StorageUnavailable, sqlite3.Error.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise _corrupt(path, f"an SQLite file but no ledger (application id {application_id:#x})")
    connection.execute("PRAGMA synchronous = FULL")  # NORMAL loses acknowledged commits when power fails
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # done by the writer after it has woken its waiters
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA secure_delete = OFF")  # nothing secret is stored; zeroing costs writes
    connection.execute("PRAGMA temp_store = MEMORY")
    (journal_mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if journal_mode != "wal":
        raise StorageFault(
            "io", path, f"this file system cannot hold a WAL ledger ({journal_mode})"
        ).exception()
    findings = [finding for (finding,) in connection.execute("PRAGMA quick_check(3)")]
    if findings != ["ok"]:
        raise fault_of_findings(findings, path).exception()
    migrate(connection, path)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Brings the tables to the current version, one transaction a step. Raises LedgerTooNew, sqlite3.Error."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > len(MIGRATIONS):
        raise LedgerTooNew(path, found, len(MIGRATIONS))
    for version, script in enumerate(MIGRATIONS[found:], start=found + 1):
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {version};\nCOMMIT;")


def _corrupt(path: Path, detail: str) -> LedgerCorrupt:
    return LedgerCorrupt(StorageFault("corrupt", path, detail))
