"""How the ledger fails.

What a request can run into is a `Refused` too: the disk's faults as `storage_unavailable`.
"""

import errno
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from edge_daemon.contract import Receipt, Refused

FaultKind = Literal["full", "read_only", "locked", "io", "corrupt"]

_WHAT_TO_DO: dict[FaultKind, str] = {
    "full": "free space on that file system; the ledger goes on by itself",
    "read_only": "make the file system and the file writable for the daemon; the ledger goes on by itself",
    "locked": "end the program that holds the file open for writing; the ledger goes on by itself",
    "io": "look for disk errors in the kernel log and check the card; the ledger goes on by itself if it recovers",
    "corrupt": (
        "stop the daemon and put a good copy of the file, with its -wal beside it, in its place; or move both away "
        "to begin anew: the epoch is then raised and no answer is invented. Keep the damaged file for examination"
    ),
}

# Primary result codes, https://www.sqlite.org/rescode.html. What is not listed is a mistake in our SQL.
_KIND_OF_CODE: dict[int, FaultKind] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "read_only",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_CANTOPEN: "io",
    sqlite3.SQLITE_NOMEM: "io",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
    sqlite3.SQLITE_FORMAT: "corrupt",
}

_KIND_OF_ERRNO: dict[int, FaultKind] = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EFBIG: "full",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
}


class StorageFault(msgspec.Struct, frozen=True):
    """Why the disk does not keep what it is given."""

    kind: FaultKind
    path: Path
    detail: str

    def __str__(self) -> str:
        return f"ledger {self.path}: {self.detail} ({self.kind}); {_WHAT_TO_DO[self.kind]}"

    def exception(self) -> "StorageUnavailable":
        """A fresh one for each waiter: a traceback is not shared."""
        return LedgerCorrupt(self) if self.kind == "corrupt" else StorageUnavailable(self)


class LedgerError(Exception):
    """Base of what the ledger raises, apart from a plain `Refused`."""


class StorageUnavailable(LedgerError, Refused):
    """The disk says no. Nothing was promised, and the books say nothing that is not on the disk."""

    def __init__(self, fault: StorageFault) -> None:
        Refused.__init__(self, "storage_unavailable", str(fault), retryable=fault.kind != "corrupt")
        self.fault = fault


class LedgerCorrupt(StorageUnavailable):
    """The file is damaged or is no ledger. It was left as found and will not be made anew by itself."""


class LedgerInUse(LedgerError):
    """Another process (or another part of this one) has this ledger open."""

    def __init__(self, path: Path, holder_pid: int | None) -> None:
        who = "an unknown process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(
            f"ledger {path} is in use by {who}; stop it first: two writers would break the promise"
        )
        self.holder_pid = holder_pid


class LedgerTooNew(LedgerError):
    """The file was written by a later version of this program."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"ledger {path} has schema version {found}, this program knows up to {known}; "
            "install the version that wrote it: reading it with an older one could lose receipts"
        )
        self.found = found
        self.known = known


class LedgerClosed(LedgerError, Refused):
    """The ledger was asked after it had been closed, or its writer has ended by a mistake of ours."""

    def __init__(
        self, message: str = "the ledger is closed, nothing was stored; ask again after the start"
    ) -> None:
        Refused.__init__(self, "storage_unavailable", message)


class EpochsExhausted(LedgerError, Refused):
    """The ledger would have to go on in an epoch that no message can carry."""

    def __init__(self, epoch: int, highest: int) -> None:
        Refused.__init__(
            self,
            "storage_unavailable",
            f"the ledger would have to go on in epoch {epoch}, and there is none above {highest}: stop the daemon, "
            "move the ledger file and its witness both away to begin anew, and have the plane forget the epoch that it "
            "remembers of this edge and look after what it sent before",
            retryable=False,
        )


class SettledAlready(LedgerError):
    """The receipt was final before; the stored outcome stands."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(
            f"receipt ({receipt.device_id}, {receipt.idempotency_key}) is already {receipt.status}; "
            "a receipt is settled once and the stored outcome stands"
        )
        self.receipt = receipt


class UnknownReceipt(LedgerError, Refused):
    """There is no such receipt to settle or to acknowledge."""

    def __init__(self, device_id: str, key: str, wanted: str) -> None:
        Refused.__init__(
            self,
            "invalid_argument",
            f"no receipt ({device_id}, {key}) that could be {wanted}; only an accepted one is settled, only a final "
            "one acknowledged",
            field="idempotencyKey",
        )


def fault_of(error: sqlite3.Error, path: Path) -> StorageFault | None:
    """The fault behind an SQLite error; None when the error is a mistake of ours and not the disk's."""
    code = getattr(error, "sqlite_errorcode", None)  # absent when the sqlite3 module itself complains
    kind = None if code is None else _KIND_OF_CODE.get(code & 0xFF)
    if kind is None:
        return None
    return StorageFault(kind, path, f"{error.sqlite_errorname}: {error}")


def fault_of_findings(findings: Sequence[str], path: Path) -> StorageFault:
    """The fault behind what `PRAGMA integrity_check` found: it words even an unreadable sector as a finding."""
    codes = [int(code) for finding in findings for code in re.findall(r"error code=(\d+)", finding)]
    kinds = {_KIND_OF_CODE.get(code & 0xFF, "corrupt") for code in codes}
    return StorageFault("io" if kinds == {"io"} else "corrupt", path, "; ".join(findings))


def fault_of_os(error: OSError, path: Path) -> StorageFault:
    """The fault behind a failing system call on a file beside the ledger."""
    kind = _KIND_OF_ERRNO.get(error.errno or 0, "io")
    return StorageFault(kind, path, str(error))
