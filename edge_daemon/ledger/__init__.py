"""Receipts, outbox, fencing tokens and holds, durable: one SQLite file, one writer thread, group commit."""

from edge_daemon.ledger.errors import (
    EpochsExhausted,
    FaultKind,
    LedgerClosed,
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    LedgerTooNew,
    SettledAlready,
    StorageFault,
    StorageUnavailable,
    UnknownReceipt,
)
from edge_daemon.ledger.ledger import Ledger, open_ledger
from edge_daemon.ledger.retention import Retention
from edge_daemon.ledger.schema import Connect, connect_file
from edge_daemon.ledger.types import Acceptance, Accepted, CommandRef, Existing, Hold, PendingEntry, Pruned

__all__ = [
    "Acceptance",
    "Accepted",
    "CommandRef",
    "Connect",
    "EpochsExhausted",
    "Existing",
    "FaultKind",
    "Hold",
    "Ledger",
    "LedgerClosed",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerInUse",
    "LedgerTooNew",
    "PendingEntry",
    "Pruned",
    "Retention",
    "SettledAlready",
    "StorageFault",
    "StorageUnavailable",
    "UnknownReceipt",
    "connect_file",
    "open_ledger",
]
