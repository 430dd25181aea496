"""The row that says which ledger this is, and how long its machine has lived: a damaged one is never believed.

With another salt no key would be found; with another epoch a ledger would pass for complete, or for incomplete; with
another lived time receipts would be removed too early.
"""

import sqlite3
from pathlib import Path

import msgspec

from edge_daemon.ledger.sealed import corrupt, fetch, sealed, unsealed

ASK_IDENTITY = "SELECT state FROM identity"
"""For a statement that asks for other things too; `identity_of` takes what it finds."""


class Identity(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """In the order in which migration 4 has packed it."""

    ledger_id: str
    salt: bytes
    epoch: int
    nonce: str
    boot_id: str = ""
    """The machine's boot that last had the ledger open."""
    boot_seen_ms: int = 0
    """Its monotonic clock when last written."""
    lived_before_ms: int = 0
    """Monotonic time of all earlier boots, summed."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Identity).decode


def identity_of(path: Path, found: object) -> Identity:
    """path: of the ledger, for the error. Raises LedgerCorrupt."""
    content = unsealed(found)
    if content is None:
        raise corrupt(
            path, "its identity (salt, epoch, nonce, time lived) is missing or does not match its checksum"
        )
    try:
        return _decode(content)
    except msgspec.DecodeError as error:
        raise corrupt(path, f"its identity cannot be read: {error}") from error


def read_identity(connection: sqlite3.Connection, path: Path) -> Identity:
    """Raises LedgerCorrupt, sqlite3.Error."""
    rows = fetch(connection, path, ASK_IDENTITY)
    return identity_of(path, rows[0][0] if rows else None)


def write_identity(connection: sqlite3.Connection, identity: Identity) -> None:
    """Raises sqlite3.Error."""
    connection.execute("INSERT OR REPLACE INTO identity VALUES (1, ?)", (sealed(_encode(identity)),))
