"""What is in the ledger and by which rules it changes: plain SQL on one connection, no thread, no commit.

Each writing method decides first and writes after, and is run inside the writer's transaction. Nothing here is
remembered outside the file except what a rolled back transaction cannot falsify.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from edge_daemon.clock import NS_PER_MS, MonotonicNs
from edge_daemon.contract import (
    Orientation,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Refused,
    Resolution,
)
from edge_daemon.ledger.epoch import never_raised
from edge_daemon.ledger.errors import LedgerCorrupt, SettledAlready, StorageFault, UnknownReceipt
from edge_daemon.ledger.files import Files
from edge_daemon.ledger.identity import ASK_IDENTITY, Identity, identity_of, read_identity, write_identity
from edge_daemon.ledger.marks import ASK_MARKS, marks_of, read_all_marks, read_marks, write_marks
from edge_daemon.ledger.rows import (
    COLUMNS,
    FILED_OTHERWISE,
    Digests,
    Filed,
    Row,
    crc_of,
    device_of,
    encode,
    row_of,
)
from edge_daemon.ledger.sealed import fetch
from edge_daemon.ledger.spent import ASK_SPENT, find_spent, is_spent, remember_spent, spent_form
from edge_daemon.ledger.types import (
    Acceptance,
    Accepted,
    CommandRef,
    Damage,
    DeviceMarks,
    Existing,
    Hold,
    PendingEntry,
    Pruned,
    Resolved,
)

PAGE_ROWS = 200
"""Rows read for one page of receipts: about 3 ms on a small machine, for which an action may have to wait."""

PLENTY_NS = 250 * NS_PER_MS
"""For so long the room on the disk is not looked at again, where there is twice the reserve: a card takes less than the
reserve meanwhile, whoever writes."""

_ASK = (  # one statement for what an acceptance has to know; one row, its first columns NULL for a new key
    f"SELECT {', '.join(f'receipt.{column.strip()}' for column in COLUMNS.split(','))}, "
    f"{ASK_SPENT.format('?2')}, ({ASK_MARKS} ?3), ({ASK_IDENTITY}) "
    "FROM (SELECT 1) LEFT JOIN receipt ON receipt.key = ?1"
)


class Books:
    """Used by the writer alone. Every method may raise sqlite3.Error and LedgerCorrupt."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        files: Files,
        monotonic_ns: MonotonicNs,
        reserve_bytes: int,
    ) -> None:
        self._sql = connection
        self._path = path
        self._files = files
        self._monotonic_ns = monotonic_ns
        self._reserve_bytes = reserve_bytes
        self._plenty_until_ns = 0
        self._open: dict[bytes, bytes] = {}  # fingerprint of each key accepted here and not settled
        identity = read_identity(connection, path)
        self.ledger_id = identity.ledger_id
        self.digests = Digests(identity.salt)
        self._lived_before_ms = identity.lived_before_ms
        # Only among what is not acknowledged does the order matter.
        ((last_settled,),) = self._fetch(
            "SELECT coalesce(max(settled), 0) FROM receipt WHERE acknowledged = 0"
        )
        self._last_settled: int = last_settled

    def use(self, connection: sqlite3.Connection) -> None:
        """From now on, of the same file."""
        self._sql = connection

    # -- receipts ----------------------------------------------------------------------------------------------

    def accept(
        self,
        receipt: Receipt,
        action_canonical: bytes,
        fencing_token: int,
        command: CommandRef,
        epoch: int | None,
    ) -> Acceptance:
        """Raises Refused: idempotency_conflict, outcome_unknown, lease_mismatch, storage_unavailable."""
        device_id, idempotency_key = receipt.device_id, receipt.idempotency_key
        key = self.digests.key(device_id, idempotency_key)
        fingerprint = self.digests.action(action_canonical)
        kept = spent_form(key)
        ((*columns, at_or_after, before, state, identity),) = self._fetch(_ASK, key, kept, device_id)
        if columns[0] is not None:
            row = row_of(self._path, *columns)
            if row.fingerprint != fingerprint:
                raise _other_action(row.receipt)
            return Existing(row.receipt)
        if is_spent(self._path, kept, at_or_after, before):
            raise Refused(
                "idempotency_conflict",
                f"key {idempotency_key} of {device_id} was used by an action whose receipt has been "
                "acknowledged and removed since; use a new key for a new action",
                field="idempotencyKey",
            )
        ours = identity_of(self._path, identity).epoch
        if epoch is not None and epoch != ours:
            raise Refused(
                "outcome_unknown",
                f"the ledger was made anew or restored since this key was first sent (epoch {epoch}, now {ours}): "
                "whether it was executed is not known, and it is not executed now",
                field="epoch",
            )
        marks = marks_of(self._path, device_id, state)
        highest = marks.highest_token
        if fencing_token < highest:
            raise Refused(
                "lease_mismatch",
                f"fencing token {fencing_token} is older than {highest}, already seen for {device_id}: "
                "somebody else holds the device now; take a new lease",
                field="lease.fencingToken",
            )
        self._require_reserve()
        command_blob, receipt_blob = encode(command), encode(receipt)
        self._sql.execute(
            "INSERT INTO receipt (key, fingerprint, acknowledged, filed, crc, command, receipt) "
            "VALUES (?, ?, 0, ?, ?, ?, ?)",
            (
                key,
                fingerprint,
                Filed(None, False, False).check,
                crc_of(key, fingerprint, command_blob, receipt_blob),
                command_blob,
                receipt_blob,
            ),
        )
        self._open[key] = fingerprint
        self._raise_token(device_id, marks, fencing_token)
        return Accepted()

    def existing(self, device_id: str, idempotency_key: str, action_canonical: bytes) -> Existing | None:
        """Raises Refused: idempotency_conflict."""
        row = self._find(self.digests.key(device_id, idempotency_key))
        if row is None:
            return None
        if row.fingerprint != self.digests.action(action_canonical):
            raise _other_action(row.receipt)
        return Existing(row.receipt)

    def settle(self, receipt: Receipt) -> int:
        """The row's id. The same outcome again changes nothing. Raises SettledAlready, UnknownReceipt."""
        key = self.digests.key(receipt.device_id, receipt.idempotency_key)
        # What was accepted just now is not read again, it is written over anyway. It may have been rolled back, though.
        fingerprint = self._open.pop(key, None)
        if fingerprint is not None:
            row_id = self._file(key, fingerprint, receipt, "AND settled IS NULL")
            if row_id is not None:
                return row_id
        row = self._find(key)
        if row is None:
            raise UnknownReceipt(receipt.device_id, receipt.idempotency_key, "settled")
        if not row.pending:
            if row.receipt == receipt:
                return row.id
            raise SettledAlready(row.receipt)
        self._file(key, row.fingerprint, receipt)
        return row.id

    def resolve(self, device_id: str, idempotency_key: str, resolution: Resolution) -> Resolved:
        """Raises UnknownReceipt, Refused."""
        key = self.digests.key(device_id, idempotency_key)
        row = self._find(key)
        if row is None:
            raise UnknownReceipt(device_id, idempotency_key, "resolved")
        receipt = row.receipt
        if receipt.resolution is not None:
            if receipt.resolution.outcome == resolution.outcome:
                return Resolved(row.id, receipt, row.acknowledged)
            by = receipt.resolution.actor
            raise Refused(
                "invalid_argument",
                f"key {idempotency_key} of {device_id} was resolved as {receipt.resolution.outcome} by "
                f"{by.id or by.kind}: that stands",
                field="outcome",
            )
        if not receipt.requires_manual_review:
            raise Refused(
                "invalid_argument",
                f"key {idempotency_key} of {device_id} is {receipt.status} and needs no review",
                field="idempotencyKey",
            )
        receipt = replace(receipt, requires_manual_review=False, resolution=resolution)
        # Acknowledged or not before: what is said now the plane has not heard.
        self._file(key, row.fingerprint, receipt)
        return Resolved(row.id, receipt, acknowledged=False)

    def lookup(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer:
        digest = self.digests.key(device_id, key)
        ours = self.epoch()
        row = self._find(digest)
        if row is not None:
            return ReceiptAnswer(known=True, found=True, epoch=ours, receipt=row.receipt)
        complete = never_raised(ours) if epoch is None else epoch == ours
        return ReceiptAnswer(known=complete and not self._is_spent(digest), found=False, epoch=ours)

    def page(self, query: ReceiptQuery) -> ReceiptPage:
        """The next receipts that the query takes, of at most `PAGE_ROWS` looked at."""
        beyond, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
        start = query.cursor if query.cursor is not None else 0 if query.oldest_first else 2**63 - 1
        only = "review = 1 AND" if query.needs_review else ""
        rows = self._rows(f"WHERE {only} id {beyond} ? ORDER BY id {order} LIMIT {PAGE_ROWS}", start)
        found: list[Receipt] = []
        for row in rows:
            if query.takes(row.receipt):
                found.append(row.receipt)
                if len(found) == query.limit:
                    return ReceiptPage(receipts=tuple(found), next=row.id, devices=self.devices())
        end = rows[-1].id if len(rows) == PAGE_ROWS else None
        return ReceiptPage(receipts=tuple(found), next=end, devices=self.devices())

    def pending(self) -> tuple[list[PendingEntry], list[Damage]]:
        """In order of acceptance, and those that cannot be read. Looks at every row: for the start."""
        rows, damages = self._sound_rows("WHERE settled IS NULL ORDER BY id")
        return [PendingEntry(row.receipt, row.command) for row in rows if row.command is not None], damages

    def outbox(self) -> tuple[list[int], list[Damage]]:
        """The ids of the final receipts not acknowledged, in order of settling. Looks at every row: for the start.

        And those whose filing is damaged: one that only seems to have been acknowledged would never be told.
        """
        _, damages = self._sound_rows(f"WHERE {FILED_OTHERWISE}")
        found = self._fetch(
            f"SELECT id FROM receipt WHERE acknowledged = 0 AND settled IS NOT NULL AND NOT ({FILED_OTHERWISE}) "
            "ORDER BY settled"
        )
        return [row_id for (row_id,) in found], damages

    def unacknowledged(self, ids: Iterable[int]) -> tuple[dict[int, Receipt], list[Damage]]:
        """Of these the ones still to be acknowledged, in the order given, and those that cannot be read."""
        found: dict[int, Receipt] = {}
        damages: list[Damage] = []
        for row_id in ids:
            rows, damaged = self._sound_rows("WHERE id = ? AND acknowledged = 0", row_id)
            found |= {row.id: row.receipt for row in rows}
            damages += damaged
        return found, damages

    def acknowledge(self, device_id: str, key: str, resolved: bool) -> int | None:
        """The id of the row that is acknowledged now; None when there is none any more, or it says more by now.

        Raises UnknownReceipt, also while pending.
        """
        digest = self.digests.key(device_id, key)
        row = self._find(digest)
        if row is None and self._is_spent(digest):
            return None
        if row is None or row.pending:
            raise UnknownReceipt(device_id, key, "acknowledged")
        if row.receipt.resolution is not None and not resolved:
            return None
        if not row.acknowledged:
            filed = row.filed._replace(acknowledged=True)
            self._sql.execute(
                "UPDATE receipt SET acknowledged = 1, filed = ? WHERE id = ?", (filed.check, row.id)
            )
        return row.id

    def prune(self, older_than_ms: int, keep_newest: int, after: int, limit: int) -> Pruned:
        """Each receipt removed leaves its key's digest behind."""
        self.note_time()
        looked_at = self._rows(
            "WHERE id > ? AND id <= (SELECT coalesce(max(id), 0) FROM receipt) - ? ORDER BY id LIMIT ?",
            after,
            keep_newest,
            limit,
        )
        settled_by = self._lived_ms() - older_than_ms
        old = [row for row in looked_at if row.removable(settled_by)]
        for row in old:
            remember_spent(self._sql, self._path, row.key)
            self._sql.execute("DELETE FROM receipt WHERE id = ?", (row.id,))
        return Pruned(len(old), looked_at[-1].id if len(looked_at) == limit else None)

    # -- devices -----------------------------------------------------------------------------------------------

    def devices(self) -> tuple[str, ...]:
        """All that have marks: with its first request a device has a fencing token."""
        found = self._fetch("SELECT device_id FROM device_state ORDER BY device_id")
        return tuple(device_id for (device_id,) in found)

    def marks(self) -> dict[str, DeviceMarks]:
        return read_all_marks(self._sql, self._path)

    def note_token(self, device_id: str, token: int) -> None:
        """The highest stays, in whatever order they are seen."""
        self._raise_token(device_id, self._marks_of(device_id), token)

    def _raise_token(self, device_id: str, marks: DeviceMarks, token: int) -> None:
        if token > marks.highest_token:
            write_marks(self._sql, device_id, replace(marks, highest_token=token))

    def set_hold(self, device_id: str, hold: Hold | None, held_by: str | None = None) -> DeviceMarks:
        """Raises Refused: leased (another has it), permission_denied (to be given back, and not that owner's)."""
        marks = self._marks_of(device_id)
        current = marks.hold
        if hold is not None and current is not None and current.owner != hold.owner:
            raise Refused("leased", f"{device_id} is already held: {current.hint}", hint=current.hint)
        if hold is None and current is not None and held_by not in (None, current.owner):
            raise Refused("permission_denied", f"{device_id} is held by {current.owner}, not by this session")
        return self._keep(device_id, replace(marks, hold=hold))

    def set_parked(self, device_id: str, note: str | None) -> DeviceMarks:
        return self._keep(device_id, replace(self._marks_of(device_id), parked_note=note))

    def set_orientation(self, device_id: str, orientation: Orientation | None) -> DeviceMarks:
        return self._keep(device_id, replace(self._marks_of(device_id), orientation=orientation))

    def _keep(self, device_id: str, marks: DeviceMarks) -> DeviceMarks:
        write_marks(self._sql, device_id, marks)
        return marks

    def _marks_of(self, device_id: str) -> DeviceMarks:
        return read_marks(self._sql, self._path, device_id)

    # -- the ledger itself -------------------------------------------------------------------------------------

    def epoch(self) -> int:
        return self._identity().epoch

    def set_epoch(self, epoch: int) -> None:
        write_identity(self._sql, replace(self._identity(), epoch=epoch))

    def note_time(self) -> None:
        """So that the next boot knows how long this one lasted."""
        now_ms = self._monotonic_ns() // NS_PER_MS
        write_identity(self._sql, replace(self._identity(), boot_seen_ms=now_ms))

    def _identity(self) -> Identity:
        return read_identity(self._sql, self._path)

    def _lived_ms(self) -> int:
        """A clock that goes on across boots: later than every outcome that is durable.

        It stands still while the machine is off, so an age measured with it is never too high.
        """
        return self.lived_ns() // NS_PER_MS

    def lived_ns(self) -> int:
        """The same in nanoseconds. May be called from any thread."""
        return self._lived_before_ms * NS_PER_MS + self._monotonic_ns()

    # -- rows --------------------------------------------------------------------------------------------------

    def _find(self, key: bytes) -> Row | None:
        rows = self._rows("WHERE key = ?", key)
        return rows[0] if rows else None

    def _is_spent(self, key: bytes) -> bool:
        return find_spent(self._sql, self._path, key)

    def _rows(self, where: str, *parameters: bytes | int) -> list[Row]:
        found = self._fetch(f"SELECT {COLUMNS} FROM receipt {where}", *parameters)
        return [row_of(self._path, *columns) for columns in found]

    def _fetch(self, statement: str, *parameters: bytes | str | int) -> list[Any]:
        return fetch(self._sql, self._path, statement, parameters)

    def _file(self, key: bytes, fingerprint: bytes, receipt: Receipt, only: str = "") -> int | None:
        """In place of what is there: final, and no plane has it. The row's id; None when none is as `only` says."""
        filed, blob = Filed(self._next_settled(), False, receipt.requires_manual_review), encode(receipt)
        changed = self._sql.execute(
            "UPDATE receipt SET settled = ?, acknowledged = ?, review = ?, filed = ?, crc = ?, command = NULL, "
            f"receipt = ? WHERE key = ? AND fingerprint = ? {only} RETURNING id",
            (*filed, filed.check, crc_of(key, fingerprint, None, blob), blob, key, fingerprint),
        ).fetchall()
        return changed[0][0] if changed else None

    def _sound_rows(self, where: str, *parameters: bytes | int) -> tuple[list[Row], list[Damage]]:
        """Each is judged by itself: one that is damaged must not hide the others."""
        found = self._fetch(f"SELECT {COLUMNS} FROM receipt {where}", *parameters)
        sound: list[Row] = []
        damages: list[Damage] = []
        for columns in found:
            try:
                row = row_of(self._path, *columns)
                row.require_readable()
            except LedgerCorrupt as error:
                _, key, *_, blob = columns
                damages.append(Damage(device_of(self.digests, key, blob), error.fault))
            else:
                sound.append(row)
        return sound, damages

    def _next_settled(self) -> int:
        """Gaps that a rolled back transaction leaves do not matter."""
        self._last_settled = max(self._last_settled + 1, self._lived_ms())
        return self._last_settled

    def _require_reserve(self) -> None:
        """Accepting is a promise to write an outcome later: room for it must be left."""
        now_ns = self._monotonic_ns()
        if now_ns < self._plenty_until_ns:
            return
        free = self._files.free_bytes(self._path.parent)
        if free >= 2 * self._reserve_bytes:
            self._plenty_until_ns = now_ns + PLENTY_NS
        if free < self._reserve_bytes:
            raise StorageFault(
                "full",
                self._path,
                f"{free} bytes are free, {self._reserve_bytes} are kept for the outcomes of accepted actions",
            ).exception()


def _other_action(known: Receipt) -> Refused:
    return Refused(
        "idempotency_conflict",
        f"key {known.idempotency_key} of {known.device_id} was accepted for another action "
        f"({known.action}, {known.status}); use a new key for a new action",
        field="idempotencyKey",
    )
