"""Small rows that are one blob with its checksum in it, and how any row is fetched from a file that may be damaged."""

import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edge_daemon.ledger.errors import LedgerCorrupt, StorageFault

CHECK_BYTES = 4


def sealed(content: bytes) -> bytes:
    """The content, and behind it its CRC-32. The ledger's files are full of these: it cannot be changed."""
    return content + zlib.crc32(content).to_bytes(CHECK_BYTES, "big")


def unsealed(found: object) -> bytes | None:
    """The content; None for anything that `sealed` has not made, or that has been damaged since."""
    if not isinstance(found, bytes):
        return None
    content = found[:-CHECK_BYTES]
    return content if sealed(content) == found else None


def fetch(
    connection: sqlite3.Connection, path: Path, statement: str, parameters: Sequence[bytes | str | int] = ()
) -> list[Any]:
    """All rows. path: of the ledger, for the error.

    Raises LedgerCorrupt when a value said to be text is none: one flipped bit makes a text of a blob.
    Raises sqlite3.Error as SQLite does.
    """
    try:
        return connection.execute(statement, parameters).fetchall()
    except sqlite3.OperationalError as error:
        # The sqlite3 module complains by itself, without a code of SQLite's, when it cannot decode a text.
        if getattr(error, "sqlite_errorcode", None) is not None:
            raise
        raise corrupt(path, f"a row holds a text that is none ({type(error).__name__})") from error


def corrupt(path: Path, detail: str) -> LedgerCorrupt:
    return LedgerCorrupt(StorageFault("corrupt", path, detail))
