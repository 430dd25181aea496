"""The tables, and how a connection to them is made, checked and brought up to date."""

import contextlib
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from edge_daemon.ledger.epoch import Stamp
from edge_daemon.ledger.errors import LedgerTooNew, StorageFault, fault_of_findings
from edge_daemon.ledger.files import Files
from edge_daemon.ledger.identity import Identity, write_identity
from edge_daemon.ledger.sealed import corrupt, sealed

APPLICATION_ID = 0x45444C47
"""'EDLG': tells a ledger from any other SQLite file."""

PAGE_BYTES = 4096
"""A page is one block of ext4 and of the card: writing it never rewrites a neighbour that holds other receipts."""

BUSY_TIMEOUT_S = 1.0
"""For a person's sqlite3 shell that holds the file for a moment; another daemon is kept out by the lock file."""

_NO_CHECKPOINT_ON_CLOSE = 1006
"""SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, https://www.sqlite.org/c3ref/c_dbconfig_defensive.html"""

_SALT_BYTES = 32
_ID_BYTES = 16

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

# Receipts have `resolution` from here on. What an open receipt is to be found by was an index, and a page more to write
# for each acceptance and each acknowledgement; the ledger reads them once, when it is opened.
_SCHEMA_3 = """
ALTER TABLE receipt ADD COLUMN review INTEGER NOT NULL DEFAULT 0;  -- 1: a person has yet to say what happened
UPDATE receipt SET review = 1 WHERE instr(receipt, CAST('requiresManualReview' AS BLOB)) > 0;
CREATE INDEX unreviewed_receipt ON receipt (review) WHERE review = 1;
DROP INDEX open_receipt;
"""

# Every row has a check from here on. One flipped bit could lower a fencing token, give back a hold, turn a screen, keep
# a receipt from its plane, let a key act again, and nobody would have known.
_SCHEMA_4 = """
CREATE TABLE identity (               -- in place of `meta`, see identity.py
    only INTEGER PRIMARY KEY CHECK (only = 1),
    state BLOB NOT NULL
);
INSERT INTO identity SELECT 1,
    sealed(packed(ledger_id, salt, epoch, nonce, boot_id, boot_seen_ms, lived_before_ms)) FROM meta;
CREATE TABLE device_state (           -- in place of `device`, see marks.py
    device_id TEXT PRIMARY KEY,
    state BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO device_state SELECT device_id,
    sealed(packed(device_id, highest_token, hold_hint, hold_owner, parked_note, orientation)) FROM device;
CREATE TABLE spent (                  -- in place of `spent_key`, see spent.py
    digest BLOB PRIMARY KEY
) WITHOUT ROWID;
INSERT INTO spent SELECT sealed(substr(key, 1, 12)) FROM spent_key ORDER BY key;
-- What the columns beside the receipt say, once more (rows.py). Rows not changed since have the default, which costs no
-- write: there may be a million of them.
ALTER TABLE receipt ADD COLUMN filed INTEGER NOT NULL DEFAULT -9;
DROP TABLE meta;
DROP TABLE device;
DROP TABLE spent_key;
"""

MIGRATIONS: tuple[str, ...] = (_SCHEMA_1, _SCHEMA_2, _SCHEMA_3, _SCHEMA_4)
"""Script n brings version n to n+1; a script that has been released is never edited, a new one follows it.

A change of the stored structs (`Receipt`, `CommandRef`) that an earlier program or an earlier row cannot be read with
needs a step too, if only an empty one: it keeps an older program from taking new rows for damaged ones.
The scripts call `sealed` and `packed`: those stay as they are.
"""


def connect_file(path: Path) -> sqlite3.Connection:
    """The usual `Connect`.

    psow=0: a commit never shares a block with the one before it. SQLite's default trusts the disk not to harm
    neighbouring bytes when power fails in the middle of a write, and would put the outcome of an action into the
    block that holds its pending receipt; a card rewrites whole blocks.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw&psow=0"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)


def close_unmoved(connection: sqlite3.Connection, path: Path) -> None:
    """Closes, and leaves the log to the next opening, which takes from it only what its checksums vouch for.

    An ordinary close moves the log into the file first. After a failing sync that is no good: the kernel takes the
    pages it could not write for written, forgets them when it likes, and what SQLite then reads where it wrote a
    committed page is something else.
    """
    if hasattr(connection, "setconfig"):  # Python 3.12
        connection.setconfig(_NO_CHECKPOINT_ON_CLOSE, True)
        connection.close()
        return
    # SQLite moves nothing while somebody else is connected, and a reader cannot when it is the last.
    with contextlib.ExitStack() as connected:
        # One that finds the file damaged is connected all the same.
        with contextlib.suppress(sqlite3.Error):
            reader = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S)
            connected.callback(reader.close)
            reader.execute("PRAGMA user_version").fetchone()
        connection.close()


def create(path: Path, connect: Connect, files: Files, stamp: Stamp) -> None:
    """Makes an empty ledger at `path`, complete or not at all. Raises sqlite3.Error, OSError."""
    fresh = path.with_name(path.name + ".new")
    for leftover in (fresh, Path(f"{fresh}-wal"), Path(f"{fresh}-shm"), Path(f"{fresh}-journal")):
        files.unlink(leftover)
    files.create(fresh)
    connection = connect(fresh)
    try:
        # Not yet in WAL mode: every commit below is in the file itself, so that one rename moves everything.
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrate(connection, path)
        ledger_id, salt = files.random_bytes(_ID_BYTES).hex(), files.random_bytes(_SALT_BYTES)
        write_identity(connection, Identity(ledger_id, salt, stamp.epoch, stamp.nonce))
    finally:
        connection.close()
    files.sync(fresh)
    files.rename(fresh, path)
    files.sync_directory(path.parent)


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Checks a ledger just connected to and sets what SQLite forgets between connections.

    Raises LedgerCorrupt, LedgerTooNew, StorageUnavailable, sqlite3.Error.
    """
    _require_ledger(connection, path)
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
    findings = [finding for (finding,) in connection.execute("PRAGMA integrity_check(3)")]
    if findings != ["ok"]:
        raise fault_of_findings(findings, path).exception()
    migrate(connection, path)
    if _columns(connection) != _known_columns():
        raise corrupt(path, "the description of its tables is damaged")


def frames_taken(connection: sqlite3.Connection, path: Path) -> int:
    """How many frames of its log SQLite has taken. Raises LedgerCorrupt, sqlite3.Error."""
    _require_ledger(connection, path)
    connection.execute("PRAGMA synchronous = FULL")
    (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(0, int(frames))


def write_anything(connection: sqlite3.Connection) -> None:
    """A transaction that changes nothing and is written all the same. Raises sqlite3.Error."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def empty_log(connection: sqlite3.Connection, path: Path) -> None:
    """Everything is in the file itself then, synced.

    What was found in the log may be known to the kernel's cache alone, when an earlier process was refused its sync.
    The log is read up to the first gap: all that is written behind one is lost with it when power fails.
    Raises StorageUnavailable, sqlite3.Error.
    """
    (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StorageFault("locked", path, "another program is reading it").exception()


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Brings the tables to the current version, one transaction a step. Raises LedgerTooNew, sqlite3.Error."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > len(MIGRATIONS):
        raise LedgerTooNew(path, found, len(MIGRATIONS))
    connection.create_function("sealed", 1, sealed, deterministic=True)
    connection.create_function("packed", -1, _packed, deterministic=True)
    for version, script in enumerate(MIGRATIONS[found:], start=found + 1):
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {version};\nCOMMIT;")


def _packed(*values: bytes | str | int | None) -> bytes:
    """A MessagePack array."""
    return msgspec.msgpack.encode(values)


def _require_ledger(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise corrupt(path, f"an SQLite file but no ledger (application id {application_id:#x})")


def _columns(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Of each table and index, as SQLite understood its description: statements would fail on anything else."""
    described = connection.execute("SELECT type, name FROM sqlite_master WHERE sql NOT NULL ORDER BY name")
    return {
        name: [tuple(column) for column in connection.execute(f"PRAGMA {kind}_info('{name}')")]
        for kind, name in described.fetchall()
    }


@cache
def _known_columns() -> dict[str, list[Any]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, Path(":memory:"))
        return _columns(connection)
