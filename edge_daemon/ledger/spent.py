"""The keys whose receipts have been removed: each leaves a digest, for ever, so that it is never taken for a new one.

They are too many to look at each of them when the ledger is opened, and one that is damaged is not found by its key any
more. But they stand in order. That a key is not among them is believed only where the two next to its place are whole:
between two that are what they were, and where they were, no third can have been. A damaged one so refuses the few keys
that belong beside it, its own among them, and all others are answered as before.
"""

import sqlite3
from pathlib import Path

from edge_daemon.ledger.sealed import corrupt, fetch, sealed, unsealed

DIGEST_BYTES = 12
"""Of the key's digest. Among 100 million keys the chance that any two of them share these is below 10^-12."""

ASK_SPENT = (
    "(SELECT digest FROM spent WHERE digest >= {0} ORDER BY digest LIMIT 1), "
    "(SELECT digest FROM spent WHERE digest < {0} ORDER BY digest DESC LIMIT 1)"
)
"""Two columns for a statement that asks for other things too; `is_spent` takes what they find."""


def spent_form(key: bytes) -> bytes:
    """As it is kept. key: a receipt's, which is its digest."""
    return sealed(key[:DIGEST_BYTES])


def is_spent(path: Path, kept: bytes, at_or_after: object, before: object) -> bool:
    """kept: the `spent_form` of a key. path: of the ledger, for the error. Raises LedgerCorrupt."""
    if at_or_after == kept:
        return True
    for neighbour in (at_or_after, before):
        if neighbour is not None and not _whole(neighbour):
            raise corrupt(
                path,
                "the digest of a removed receipt's key is damaged where this key's would stand: whether it was used "
                "is not known",
            )
    return False


def find_spent(connection: sqlite3.Connection, path: Path, key: bytes) -> bool:
    """Raises LedgerCorrupt, sqlite3.Error."""
    kept = spent_form(key)
    ((at_or_after, before),) = fetch(connection, path, f"SELECT {ASK_SPENT.format('?1')}", (kept,))
    return is_spent(path, kept, at_or_after, before)


def remember_spent(connection: sqlite3.Connection, path: Path, key: bytes) -> None:
    """Only between two that are whole: otherwise it would hide the damaged one from the keys behind it.

    Raises LedgerCorrupt, sqlite3.Error.
    """
    if not find_spent(connection, path, key):
        connection.execute("INSERT INTO spent VALUES (?)", (spent_form(key),))


def _whole(found: object) -> bool:
    content = unsealed(found)
    return content is not None and len(content) == DIGEST_BYTES
