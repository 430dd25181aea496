"""The ledger's public face: typed verbs for trio; each returns when what it says is durable."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from edge_daemon.clock import MonotonicNs, machine_boot_id
from edge_daemon.contract import (
    Orientation,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Resolution,
)
from edge_daemon.ledger.commit import Job
from edge_daemon.ledger.errors import LedgerCorrupt, StorageFault
from edge_daemon.ledger.files import OS_FILES, Files
from edge_daemon.ledger.opening import OpenLedger, open_files
from edge_daemon.ledger.schema import Connect, connect_file
from edge_daemon.ledger.types import (
    Acceptance,
    Accepted,
    CommandRef,
    Damage,
    DeviceMarks,
    Hold,
    PendingEntry,
    Pruned,
    Resolved,
)
from edge_daemon.ledger.writer import LedgerWriter, NewWriter, Writer

RESERVE_BYTES = 32 * 2**20
"""Kept free for outcomes: no action is accepted when the file system has less."""

RETRY_S = 1.0
"""How often a disk that has refused an outcome is tried again."""

PRUNE_LIMIT = 100
"""Rows looked at by one `prune`: a transaction of some 150 kB, and the longest that an action waits for it."""

T = TypeVar("T")

_log = logging.getLogger("edge_daemon.ledger")


class Ledger:
    """Receipts, outbox, fencing tokens, holds and parkings of one rig. Made by `open_ledger`.

    Every async method may raise `StorageUnavailable` (its subclass `LedgerCorrupt` when the file is damaged) and
    `LedgerClosed`; both are `Refused("storage_unavailable")`.
    Cancelling one of them does not undo it: once queued it is committed all the same and only its answer is lost.
    Whoever accepts a receipt shields that call, or settles what may have been accepted.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        opened: OpenLedger,
        marks: dict[str, DeviceMarks],
        epoch: int,
        outbox: list[int],
    ) -> None:
        self._writer = writer
        self._opened = opened
        self._books = opened.books
        self._marks = marks
        self._epoch = epoch
        # In order of settling; changed only by what is durable.
        self._outbox = dict.fromkeys(outbox)
        self._damages: dict[str, Damage] = {}
        self._on_damage: Callable[[], None] = lambda: None
        if opened.unreadable is not None:
            self._note_damages([Damage(None, opened.unreadable)])

    # -- what is known without asking the disk -----------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Raised whenever this ledger may lack receipts that an earlier one had."""
        return self._epoch

    @property
    def renewed(self) -> str | None:
        """Why this opening raised the epoch; None when it did not. Holds and parkings may be missing too."""
        return self._opened.renewed

    @property
    def ledger_id(self) -> str:
        """Random, made with the file."""
        return self._books.ledger_id

    @property
    def storage_fault(self) -> StorageFault | None:
        """Why the last transaction failed; None when it did not. For health; accepting asks the disk anew."""
        return self._writer.fault

    def damage(self, device_id: str) -> StorageFault | None:
        """Why nothing new may be done on the device: a receipt that is damaged is its own, or may be.

        Of those that this ledger came upon since it was opened: among the pending and the not acknowledged ones.
        """
        concern = (damage for damage in self._damages.values() if damage.device_id in (device_id, None))
        return next((damage.fault for damage in concern), None)

    def watch_damage(self, on_damage: Callable[[], None]) -> None:
        """Called on each damage that is found from now on."""
        self._on_damage = on_damage

    def lived_ns(self) -> int:
        """Monotonic time, summed over the machine's boots: later than it was when any durable outcome was settled."""
        return self._books.lived_ns()

    def digest(self, text: str) -> str:
        """Salted with the ledger's own salt: tells equal texts apart from others without storing them."""
        return self._books.digests.text(text)

    def highest_token(self, device_id: str) -> int:
        """The highest fencing token seen for the device, and durable; 0 when none was."""
        return self._marks_of(device_id).highest_token

    def hold(self, device_id: str) -> Hold | None:
        return self._marks_of(device_id).hold

    def parked(self, device_id: str) -> bool:
        return self.parked_note(device_id) is not None

    def parked_note(self, device_id: str) -> str | None:
        """What was said when the device was parked; None when it is not."""
        return self._marks_of(device_id).parked_note

    def orientation(self, device_id: str) -> Orientation | None:
        """How staff said the screen is turned; None: as it is configured."""
        return self._marks_of(device_id).orientation

    # -- receipts ----------------------------------------------------------------------------------------------

    async def accept(
        self,
        receipt: Receipt,
        action_canonical: bytes,
        fencing_token: int,
        command: CommandRef,
        epoch: int | None = None,
    ) -> Acceptance:
        """Makes a pending receipt durable; from then on its key is answered from here.

        action_canonical: decides whether the same key asks for the same thing; only a salted digest is kept.
        epoch: the ledger's when the asker sent the key for the first time; None when not remembered.
        Existing, with the receipt as it stands, for a key accepted before with the same action: its token is
        not looked at, nothing will be executed for it.
        Raises Refused: `idempotency_conflict` (the key was used for another action, or its receipt was pruned),
        `outcome_unknown` (the key is of another epoch: this ledger may lack its receipt), `lease_mismatch` (a higher
        token has been seen for the device), `storage_unavailable` (nothing was stored: no action may follow).
        Raises ValueError when the receipt is not pending.
        """
        if receipt.status != "pending":
            raise ValueError(f"a receipt is accepted as pending, not as {receipt.status}")
        body = partial(self._books.accept, receipt, action_canonical, fencing_token, command, epoch)

        def publish(acceptance: Acceptance) -> None:
            if isinstance(acceptance, Accepted):
                self._saw(receipt.device_id, fencing_token)

        return await self._writer.submit(Job(body, "write", publish))

    async def settle(self, receipt: Receipt) -> None:
        """Makes a pending receipt final, once.

        While the disk refuses, this waits: the outcome is kept and written as soon as the disk takes it, before
        anything new is accepted. Only when the ledger closes first does it raise StorageUnavailable: the receipt
        then stays pending and its board is asked at the next start.
        Raises SettledAlready with the stored receipt, UnknownReceipt, LedgerCorrupt when its row has been damaged since
        it was accepted: nothing new is accepted for the device then. ValueError when the receipt is not final.
        """
        if receipt.status == "pending":
            raise ValueError("a receipt is settled as committed or failed, not as pending")
        body = partial(self._books.settle, receipt)
        try:
            await self._writer.submit(Job(body, "owed", self._into_outbox))
        except LedgerCorrupt as error:
            self._note_damages([Damage(receipt.device_id, error.fault)])
            raise

    async def resolve(self, device_id: str, key: str, resolution: Resolution) -> Receipt:
        """A person says what became of an action that nobody could tell of; returns the receipt with that in it.

        What it said before stays in it. It goes to the outbox once more. Saying the same outcome again changes nothing,
        the first word stands.
        Raises UnknownReceipt; Refused `invalid_argument`: it needs no review, or was resolved as something else.
        """

        def publish(resolved: Resolved) -> None:
            if not resolved.acknowledged:
                self._into_outbox(resolved.id)

        body = partial(self._books.resolve, device_id, key, resolution)
        return (await self._writer.submit(Job(body, "write", publish))).receipt

    async def lookup(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer:
        """What is durable about a key.

        epoch: the ledger's epoch when the asker handed the key in; None when not remembered.
        `found=False, known=True` says that nothing was dispatched under this key: only when this ledger has been
        complete since (same epoch, or none given and never renewed) and the receipt has not been pruned.
        """
        return await self._read(partial(self._books.lookup, device_id, key, epoch))

    async def pending(self) -> list[PendingEntry]:
        """In order of acceptance, with whom to ask about each; for the recovery after a start.

        One that is damaged is left out, and `damage` says so.
        """
        entries, damages = await self._read(self._books.pending)
        self._note_damages(damages)
        return entries

    async def unacknowledged(self, limit: int) -> list[Receipt]:
        """The outbox: final receipts in order of settling, at most `limit`.

        One that is damaged is left out, and `damage` says so.
        """
        while True:
            oldest = list(islice(self._outbox, limit))

            def publish(answer: tuple[dict[int, Receipt], list[Damage]], oldest: list[int] = oldest) -> None:
                found, damages = answer
                for row_id in oldest:
                    if row_id not in found:  # damaged; or a refused acknowledgement became durable after all
                        self._outbox.pop(row_id, None)
                self._note_damages(damages)

            body = partial(self._books.unacknowledged, oldest)
            found, damages = await self._writer.submit(Job(body, "read", publish))
            if not damages:
                return list(found.values())

    async def acknowledge(self, device_id: str, key: str, *, resolved: bool = False) -> None:
        """The plane has the final receipt, `resolved`: with its resolution. Saying it again does nothing.

        An acknowledgement of a receipt that has been resolved since does nothing either: that word goes out first.
        Raises UnknownReceipt when there is none, or when it is still pending.
        """

        def publish(row_id: int | None) -> None:
            if row_id is not None:
                self._outbox.pop(row_id, None)

        body = partial(self._books.acknowledge, device_id, key, resolved)
        await self._writer.submit(Job(body, "write", publish))

    async def receipts(self, query: ReceiptQuery) -> ReceiptPage:
        """A page of receipts, for people. Short: whoever wants many asks again from its `next`."""
        return await self._read(partial(self._books.page, query))

    async def prune(
        self, older_than_ms: int, keep_newest: int, after: int = 0, limit: int = PRUNE_LIMIT
    ) -> Pruned:
        """Removes receipts settled longer ago than `older_than_ms` that are acknowledged and wait for no review.

        The newest `keep_newest` stay in any case; at most `limit` are looked at, so that no transaction is long: call
        again with the `after` of the answer, while it has one. Age is time during which the machine ran (monotonic,
        summed over its boots), so never too high. A removed key's digest stays: it is refused if it comes again, and
        looked up as not known.
        """
        return await self._write(partial(self._books.prune, older_than_ms, keep_newest, after, limit))

    # -- devices and epoch -------------------------------------------------------------------------------------

    async def note_token(self, device_id: str, token: int) -> None:
        """A holder came with this fencing token, whatever becomes of its request: durable when this returns.

        A commit only when it is higher than any before.
        """
        if token <= self.highest_token(device_id):
            return

        def publish(_: None) -> None:
            self._saw(device_id, token)

        body = partial(self._books.note_token, device_id, token)
        await self._writer.submit(Job(body, "write", publish))

    async def set_hold(self, device_id: str, hold: Hold | None, held_by: str | None = None) -> None:
        """Staff take the device, or give it back. Survives a restart.

        held_by: given back only if it is this owner's; None: whoever has it. Of several at once one gets it.
        Raises Refused: `leased` (another owner has it), `permission_denied` (to be given back, and not `held_by`'s).
        """
        await self._mark(device_id, partial(self._books.set_hold, device_id, hold, held_by))

    async def set_parked(self, device_id: str, parked: bool, note: str = "") -> None:
        """A person takes the screen, or gives it back. Survives a restart."""
        await self._mark(device_id, partial(self._books.set_parked, device_id, note if parked else None))

    async def set_orientation(self, device_id: str, orientation: Orientation | None) -> None:
        """Staff say how the screen is turned; None: as it is configured. Survives a restart: a phone that lies turned
        still does, and would be touched at wrong places."""
        await self._mark(device_id, partial(self._books.set_orientation, device_id, orientation))

    async def raise_epoch(self, remembered: int) -> None:
        """What the plane remembers as the highest epoch. Another one than ours may show that receipts are missing here:
        then go on in a later one (`epoch.raised_for`)."""

        def publish(epoch: int) -> None:
            self._epoch = epoch

        await self._writer.submit(Job(partial(self._opened.raise_epoch, remembered), "write", publish))

    def _note_damages(self, damages: Sequence[Damage]) -> None:
        for damage in damages:
            if damage.fault.detail in self._damages:
                continue
            self._damages[damage.fault.detail] = damage
            concerned = "every device" if damage.device_id is None else damage.device_id
            _log.error("nothing new is accepted for %s: %s", concerned, damage.fault)
            self._on_damage()

    def _into_outbox(self, row_id: int) -> None:
        """At its end: also what has been there before."""
        self._outbox.pop(row_id, None)
        self._outbox[row_id] = None

    def _saw(self, device_id: str, token: int) -> None:
        marks = self._marks_of(device_id)
        if token > marks.highest_token:
            self._marks[device_id] = msgspec.structs.replace(marks, highest_token=token)

    def _marks_of(self, device_id: str) -> DeviceMarks:
        return self._marks.get(device_id, DeviceMarks())

    async def _mark(self, device_id: str, body: Callable[[], DeviceMarks]) -> None:
        await self._writer.submit(Job(body, "write", partial(self._marks.__setitem__, device_id)))

    async def _write(self, body: Callable[[], T]) -> T:
        return await self._writer.submit(Job(body, "write"))

    async def _read(self, body: Callable[[], T]) -> T:
        return await self._writer.submit(Job(body, "read"))


@asynccontextmanager
async def open_ledger(
    path: Path,
    monotonic_ns: MonotonicNs = time.monotonic_ns,
    *,
    boot_id: str | None = None,
    connect: Connect = connect_file,
    files: Files = OS_FILES,
    new_writer: NewWriter = Writer,
    reserve_bytes: int = RESERVE_BYTES,
    retry_s: float = RETRY_S,
) -> AsyncIterator[Ledger]:
    """The ledger in the file `path`, made when there is none, with `.lock` and `.witness` files beside it.

    boot_id: of the machine, this boot's when not given. connect, files, new_writer: a simulation hands in its own, see
    `schema.Connect`, `files.Files`, `writer.LedgerWriter`.
    On leaving, what was queued is finished and the file closed, cancelled or not.
    Raises LedgerInUse (with the holder's pid), LedgerCorrupt, LedgerTooNew, StorageUnavailable.
    """
    boot = machine_boot_id() if boot_id is None else boot_id
    writer = new_writer(retry_s)
    opened = await writer.start(partial(open_files, path, monotonic_ns, boot, connect, files, reserve_bytes))
    try:
        marks = await writer.submit(Job(opened.books.marks, "read"))
        epoch = await writer.submit(Job(opened.books.epoch, "read"))
        outbox = await writer.submit(Job(opened.books.outbox, "read"))
        yield Ledger(writer, opened, marks, epoch, outbox)
    finally:
        await writer.close()
