"""What is in the ledger and by which rules it changes: plain SQL on one connection, no thread, no commit.

Each writing method decides first and writes after, and is run inside the writer's transaction. Nothing here is
remembered outside the file except what a rolled back transaction cannot falsify.
"""

import os
import sqlite3
import zlib
from hashlib import blake2b
from pathlib import Path

import msgspec

from edge_daemon.clock import NS_PER_MS, MonotonicNs
from edge_daemon.contract import Orientation, Receipt, ReceiptAnswer, Refused
from edge_daemon.ledger.epoch import FIRST_EPOCH
from edge_daemon.ledger.errors import LedgerCorrupt, SettledAlready, StorageFault, UnknownReceipt
from edge_daemon.ledger.types import (
    Acceptance,
    Accepted,
    CommandRef,
    DeviceMarks,
    Existing,
    Hold,
    PendingEntry,
)

_DIGEST_BYTES = 16
_COLUMNS = "id, key, fingerprint, settled, acknowledged, crc, command, receipt"
_encode = msgspec.msgpack.Encoder().encode
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode
_decode_command = msgspec.msgpack.Decoder(CommandRef).decode


class _Row(msgspec.Struct, frozen=True):
    id: int
    fingerprint: bytes
    acknowledged: bool
    command: CommandRef | None
    receipt: Receipt


class Digests:
    """Salted, so that two ledgers cannot be compared; the salt is in the file, so a short text can be guessed
    by whoever holds the file and tries them all."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def text(self, text: str) -> str:
        return self._digest(b"text", text.encode()).hex()

    def key(self, device_id: str, key: str) -> bytes:
        return self._digest(b"key", msgspec.msgpack.encode((device_id, key)))

    def action(self, canonical: bytes) -> bytes:
        return self._digest(b"action", canonical)

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return blake2b(content, key=self._salt, person=purpose, digest_size=_DIGEST_BYTES).digest()


class Books:
    """Used by the writer thread alone. Every method may raise sqlite3.Error and LedgerCorrupt."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, monotonic_ns: MonotonicNs, reserve_bytes: int
    ) -> None:
        self._sql = connection
        self._path = path
        self._monotonic_ns = monotonic_ns
        self._reserve_bytes = reserve_bytes
        ledger_id, salt, lived_before_ms = connection.execute(
            "SELECT ledger_id, salt, lived_before_ms FROM meta"
        ).fetchone()
        self.ledger_id: str = ledger_id
        self.digests = Digests(salt)
        self._lived_before_ms: int = lived_before_ms
        # Only among what is not acknowledged does the order matter.
        (last_settled,) = connection.execute(
            "SELECT coalesce(max(settled), 0) FROM receipt WHERE acknowledged = 0"
        ).fetchone()
        self._last_settled: int = last_settled

    # -- receipts ----------------------------------------------------------------------------------------------

    def accept(
        self, receipt: Receipt, action_canonical: bytes, fencing_token: int, command: CommandRef
    ) -> Acceptance:
        """Raises Refused: idempotency_conflict, lease_mismatch, storage_unavailable."""
        device_id = receipt.device_id
        key = self.digests.key(device_id, receipt.idempotency_key)
        fingerprint = self.digests.action(action_canonical)
        row = self._find(key)
        if row is not None:
            if row.fingerprint != fingerprint:
                raise Refused(
                    "idempotency_conflict",
                    f"key {receipt.idempotency_key} of {device_id} was accepted for another action "
                    f"({row.receipt.action}, {row.receipt.status}); use a new key for a new action",
                    field="idempotencyKey",
                )
            return Existing(row.receipt)
        if self._is_spent(key):
            raise Refused(
                "idempotency_conflict",
                f"key {receipt.idempotency_key} of {device_id} was used by an action whose receipt has been "
                "acknowledged and removed since; use a new key for a new action",
                field="idempotencyKey",
            )
        highest = self._marks_of(device_id).highest_token
        if fencing_token < highest:
            raise Refused(
                "lease_mismatch",
                f"fencing token {fencing_token} is older than {highest}, already seen for {device_id}: "
                "somebody else holds the device now; take a new lease",
                field="lease.fencingToken",
            )
        self._require_reserve()
        command_blob, receipt_blob = _encode(command), _encode(receipt)
        self._sql.execute(
            "INSERT INTO receipt (key, fingerprint, acknowledged, crc, command, receipt) VALUES (?, ?, 0, ?, ?, ?)",
            (
                key,
                fingerprint,
                _crc(key, fingerprint, command_blob, receipt_blob),
                command_blob,
                receipt_blob,
            ),
        )
        if fencing_token > highest:
            self._sql.execute(
                "INSERT INTO device (device_id, highest_token) VALUES (?, ?) "
                "ON CONFLICT (device_id) DO UPDATE SET highest_token = excluded.highest_token",
                (device_id, fencing_token),
            )
        return Accepted()

    def settle(self, receipt: Receipt) -> None:
        """Raises SettledAlready, UnknownReceipt."""
        key = self.digests.key(receipt.device_id, receipt.idempotency_key)
        row = self._find(key)
        if row is None:
            raise UnknownReceipt(receipt.device_id, receipt.idempotency_key, "settled")
        if row.command is None:
            raise SettledAlready(row.receipt)
        self._last_settled = max(self._last_settled + 1, self._lived_ms())
        blob = _encode(receipt)
        self._sql.execute(
            "UPDATE receipt SET settled = ?, crc = ?, command = NULL, receipt = ? WHERE id = ?",
            (self._last_settled, _crc(key, row.fingerprint, None, blob), blob, row.id),
        )

    def lookup(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer:
        digest = self.digests.key(device_id, key)
        ours = self.epoch()
        row = self._find(digest)
        if row is not None:
            return ReceiptAnswer(known=True, found=True, epoch=ours, receipt=row.receipt)
        complete = ours == FIRST_EPOCH if epoch is None else epoch == ours
        return ReceiptAnswer(known=complete and not self._is_spent(digest), found=False, epoch=ours)

    def pending(self) -> list[PendingEntry]:
        """In order of acceptance."""
        rows = self._rows("WHERE acknowledged = 0 AND settled IS NULL ORDER BY id")
        return [PendingEntry(row.receipt, row.command) for row in rows if row.command is not None]

    def unacknowledged(self, limit: int) -> list[Receipt]:
        """Final receipts in order of settling."""
        rows = self._rows("WHERE acknowledged = 0 AND settled IS NOT NULL ORDER BY settled LIMIT ?", limit)
        return [row.receipt for row in rows]

    def acknowledge(self, device_id: str, key: str) -> None:
        """Again, or after the receipt was pruned: nothing happens. Raises UnknownReceipt, also while pending."""
        digest = self.digests.key(device_id, key)
        row = self._find(digest)
        if row is None and self._is_spent(digest):
            return
        if row is None or row.command is not None:
            raise UnknownReceipt(device_id, key, "acknowledged")
        if not row.acknowledged:
            self._sql.execute("UPDATE receipt SET acknowledged = 1 WHERE id = ?", (row.id,))

    def prune(self, older_than_ms: int, keep_newest: int, limit: int) -> int:
        """The number of receipts removed. Each leaves its key's digest behind."""
        self.note_time()
        oldest_ids = self._sql.execute(
            # The inner limit bounds the scan: receipts are settled nearly in the order of acceptance.
            "SELECT id FROM (SELECT id, settled, acknowledged FROM receipt WHERE id <= "
            "(SELECT coalesce(max(id), 0) FROM receipt) - ? ORDER BY id LIMIT ?) "
            "WHERE acknowledged = 1 AND settled <= ?",
            (keep_newest, limit, self._lived_ms() - older_than_ms),
        ).fetchall()
        self._sql.executemany("INSERT INTO spent_key SELECT key FROM receipt WHERE id = ?", oldest_ids)
        self._sql.executemany("DELETE FROM receipt WHERE id = ?", oldest_ids)
        return len(oldest_ids)

    # -- devices -----------------------------------------------------------------------------------------------

    def marks(self) -> dict[str, DeviceMarks]:
        rows = self._sql.execute("SELECT device_id FROM device").fetchall()
        return {device_id: self._marks_of(device_id) for (device_id,) in rows}

    def set_hold(self, device_id: str, hold: Hold | None) -> DeviceMarks:
        hint, owner = (None, None) if hold is None else (hold.hint, hold.owner)
        self._sql.execute(
            "INSERT INTO device (device_id, hold_hint, hold_owner) VALUES (?, ?, ?) ON CONFLICT (device_id) "
            "DO UPDATE SET hold_hint = excluded.hold_hint, hold_owner = excluded.hold_owner",
            (device_id, hint, owner),
        )
        return self._marks_of(device_id)

    def set_parked(self, device_id: str, note: str | None) -> DeviceMarks:
        self._sql.execute(
            "INSERT INTO device (device_id, parked_note) VALUES (?, ?) "
            "ON CONFLICT (device_id) DO UPDATE SET parked_note = excluded.parked_note",
            (device_id, note),
        )
        return self._marks_of(device_id)

    def set_orientation(self, device_id: str, orientation: Orientation | None) -> DeviceMarks:
        self._sql.execute(
            "INSERT INTO device (device_id, orientation) VALUES (?, ?) "
            "ON CONFLICT (device_id) DO UPDATE SET orientation = excluded.orientation",
            (device_id, orientation),
        )
        return self._marks_of(device_id)

    def _marks_of(self, device_id: str) -> DeviceMarks:
        found = self._sql.execute(
            "SELECT highest_token, hold_hint, hold_owner, parked_note, orientation FROM device WHERE device_id = ?",
            (device_id,),
        ).fetchone()
        if found is None:
            return DeviceMarks()
        token, hint, owner, parked_note, orientation = found
        return DeviceMarks(token, None if owner is None else Hold(hint, owner), parked_note, orientation)

    # -- the ledger itself -------------------------------------------------------------------------------------

    def epoch(self) -> int:
        (epoch,) = self._sql.execute("SELECT epoch FROM meta").fetchone()
        return int(epoch)

    def set_epoch(self, epoch: int) -> None:
        self._sql.execute("UPDATE meta SET epoch = ?", (epoch,))

    def note_time(self) -> None:
        """So that the next boot knows how long this one lasted."""
        self._sql.execute("UPDATE meta SET boot_seen_ms = ?", (self._monotonic_ns() // NS_PER_MS,))

    def _lived_ms(self) -> int:
        """A clock that goes on across boots and never back by more than what a crash left unnoted.

        It stands still while the machine is off, so an age measured with it is never too high.
        """
        return self._lived_before_ms + self._monotonic_ns() // NS_PER_MS

    # -- rows --------------------------------------------------------------------------------------------------

    def _find(self, key: bytes) -> _Row | None:
        rows = self._rows("WHERE key = ?", key)
        return rows[0] if rows else None

    def _is_spent(self, key: bytes) -> bool:
        return self._sql.execute("SELECT 1 FROM spent_key WHERE key = ?", (key,)).fetchone() is not None

    def _rows(self, where: str, *parameters: bytes | int) -> list[_Row]:
        found = self._sql.execute(f"SELECT {_COLUMNS} FROM receipt {where}", parameters).fetchall()
        return [self._row(*columns) for columns in found]

    def _row(
        self,
        row_id: int,
        key: bytes,
        fingerprint: bytes,
        settled: int | None,
        acknowledged: int,
        crc: int,
        command: bytes | None,
        blob: bytes,
    ) -> _Row:
        """Nothing that does not fit together leaves here as an answer."""
        if crc != _crc(key, fingerprint, command, blob):
            raise self._corrupt(f"receipt row {row_id} does not match its checksum")
        try:
            receipt = _decode_receipt(blob)
            reference = None if command is None else _decode_command(command)
        except msgspec.DecodeError as error:
            raise self._corrupt(f"receipt row {row_id} cannot be read: {error}") from error
        if len({receipt.status == "pending", settled is None, reference is not None}) != 1:
            raise self._corrupt(f"receipt row {row_id} is {receipt.status} but filed otherwise")
        return _Row(row_id, fingerprint, bool(acknowledged), reference, receipt)

    def _require_reserve(self) -> None:
        """Accepting is a promise to write an outcome later: room for it must be left."""
        space = os.statvfs(self._path.parent)
        free = space.f_bavail * space.f_frsize
        if free < self._reserve_bytes:
            raise StorageFault(
                "full",
                self._path,
                f"{free} bytes are free, {self._reserve_bytes} are kept for the outcomes of accepted actions",
            ).exception()

    def _corrupt(self, detail: str) -> LedgerCorrupt:
        return LedgerCorrupt(StorageFault("corrupt", self._path, detail))


def _crc(key: bytes, fingerprint: bytes, command: bytes | None, receipt: bytes) -> int:
    return zlib.crc32(b"".join((key, fingerprint, command or b"", receipt)))
