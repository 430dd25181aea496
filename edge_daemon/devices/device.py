"""A phone and its parts: one action at a time, in the order of acceptance, each at most once."""

import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import trio

from edge_daemon.boards import BoardError, Done, OutcomeUnknown, Stage
from edge_daemon.clock import MonotonicNs
from edge_daemon.contract import (
    Dispatch,
    ErrorInfo,
    FrameNotes,
    LongPress,
    Outcome,
    Receipt,
    ReceiptAnswer,
    ReceiptReason,
    Refused,
    Swipe,
    Tap,
    Wake,
    canonical,
)
from edge_daemon.devices.command_ids import CommandIds
from edge_daemon.devices.drift import DriftWatch
from edge_daemon.devices.eye import Eye
from edge_daemon.devices.gate import Gate
from edge_daemon.devices.job import Job, ProgressListener
from edge_daemon.devices.orders import Order
from edge_daemon.devices.parts import Parts
from edge_daemon.devices.receipts import ReceiptWriter, verdict_of
from edge_daemon.devices.recovery import Recovery
from edge_daemon.ledger import (
    CommandRef,
    Existing,
    Ledger,
    LedgerCorrupt,
    SettledAlready,
    StorageUnavailable,
)

logger = logging.getLogger(__name__)

REST_AFTER_S = 0.5
"""A plane that taps on and on should not wait for the hand to come back from its park position each time; one
that looks has the hand parked at once."""
SETTLE_SHIELD_S = 2.0
"""A commit on a slow SD card takes a tenth of this."""
_NO_COMMAND = CommandRef(board_uid="", board_boot_id=0, cmd_id=0)
DRAIN_S = 5.0
"""How long a shutdown waits for the action under way: longer than a tap, shorter than systemd's patience."""


class Device:
    """Public verbs: `submit`, `cancel`, `run`, `drain`."""

    def __init__(
        self,
        device_id: str,
        parts: Parts,
        eye: Eye,
        gate: Gate,
        ledger: Ledger,
        writer: ReceiptWriter,
        recovery: Recovery,
        drift: DriftWatch,
        ids: CommandIds,
        monotonic_ns: MonotonicNs,
        *,
        queue_limit: int,
        on_receipt: Callable[[Receipt], None],
    ) -> None:
        self.device_id = device_id
        self.parts = parts
        self.eye = eye
        self.gate = gate
        self._ledger = ledger
        self._writer = writer
        self._recovery = recovery
        self._drift = drift
        self._ids = ids
        self._now_ns = monotonic_ns
        self._queue_limit = queue_limit
        self._on_receipt = on_receipt
        self._jobs: dict[str, Job] = {}
        self._line: deque[Job] = deque()
        self._stir = trio.Event()
        # Unbounded here; the sessions bound how many requests of a plane are in work.
        self._arrivals, self._admissions = trio.open_memory_channel[Job](math.inf)
        self._nursery: trio.Nursery | None = None
        self._closing = False
        self._current: Job | None = None

    # -- asking -------------------------------------------------------------------------------------------

    async def submit(self, request: Dispatch, on_progress: ProgressListener) -> Outcome:
        """At most one execution per key; returns when the receipt is final, or with the refusal.

        Whatever is answered, the holder's fencing token is durable before. Where the disk refuses that, a request is
        refused (or `Refused` is raised), unless its key is known: what became of that is told all the same.
        Cancelling abandons the waiting alone: an accepted action goes on, and its receipt waits in the outbox.
        """
        job = await self._job_of_key(request)
        follows = job is not None
        try:
            self._refuse_at_once(request, job)
        except Refused as refusal:
            await self._note_holder(request)
            return _refused(refusal)
        if job is None:
            job = self._begin(request)
        job.listeners.append(on_progress)
        try:
            if follows:
                # Where the disk refuses it there is no refusal: that would say that nothing will be executed.
                with suppress(StorageUnavailable):
                    await self._note_holder(request)
            await job.finished.wait()
        finally:
            job.listeners.remove(on_progress)
        if job.refusal is not None:
            return _refused(job.refusal)
        return Outcome(receipt=job.receipt, deduplicated=follows or job.deduplicated)

    async def _job_of_key(self, request: Dispatch) -> Job | None:
        """The one under way. Whether one of another action has the key is waited for: the ledger may refuse it."""
        key = request.idempotency_key
        job = self._jobs.get(key)
        while job is not None and canonical(job.request.action) != canonical(request.action):
            await job.admitted.wait()
            if self._jobs.get(key) is job:
                break
            job = self._jobs.get(key)
        return job

    def _refuse_at_once(self, request: Dispatch, job: Job | None) -> None:
        """What needs no look into the ledger. job: the one of the same key that is under way, if any."""
        if isinstance(request.action, Wake):
            raise Refused("capability_unsupported", f"{self.device_id} has no part that can wake a screen")
        if job is not None and canonical(job.request.action) != canonical(request.action):
            raise Refused(
                "idempotency_conflict",
                f"key {request.idempotency_key!r} is already used for another action of {self.device_id}",
                field="idempotencyKey",
            )
        if job is None and self._closing:
            raise Refused("device_offline", "the edge daemon is starting or stopping; try again")

    async def _note_holder(self, request: Dispatch) -> None:
        await self._ledger.note_token(self.device_id, request.lease.fencing_token)

    def _begin(self, request: Dispatch) -> Job:
        """Registers the job before anything is awaited, so that a second dispatch of the key finds it."""
        job = Job(request=request, arrived_ns=self._now_ns())
        self._jobs[request.idempotency_key] = job
        self._arrivals.send_nowait(job)
        return job

    async def receipt(self, key: str, epoch: int | None) -> ReceiptAnswer:
        """What is known about a key; while it is being accepted, waits until that has been decided."""
        while True:
            job = self._jobs.get(key)
            if job is not None:
                await job.admitted.wait()
            answer = await self._ledger.lookup(self.device_id, key, epoch)
            # It may have been sent again while the disk was read.
            if answer.found or self._jobs.get(key) in (None, job):
                return answer

    async def cancel(self, key: str) -> Outcome:
        """Takes an action back before it begins. The receipt says whether that was in time."""
        job = self._jobs.get(key)
        if job is not None:
            await job.admitted.wait()
        if job is not None and not job.begun and job in self._line:
            self._line.remove(job)
            await self._fail(job, Refused("canceled", "taken back by the plane before it began"))
            return Outcome(receipt=job.receipt) if job.refusal is None else _refused(job.refusal)
        answer = await self._ledger.lookup(self.device_id, key, None)
        if answer.receipt is None:
            return _refused(
                Refused("invalid_argument", f"no action is known by key {key!r}", field="idempotencyKey")
            )
        return Outcome(receipt=answer.receipt)

    # -- accepting ----------------------------------------------------------------------------------------

    async def _admit_in_order(self) -> None:
        """One at a time, in the order of arrival: the line, the ledger and the board must agree on the order.

        Restart recovery rests on it. And it is the device's own task: a plane that hangs up must not cancel an
        acceptance half way.
        """
        async for job in self._admissions:
            try:
                await self._accept(job)
            except Refused as refusal:
                job.refusal = refusal
                self._finish(job)
            job.admitted.set()

    async def _accept(self, job: Job) -> None:
        request = job.request
        # A known key's command stands in the ledger already; the ledger decides and ignores this one.
        command = _NO_COMMAND
        try:
            # Before anything else may refuse it: an older holder must not act once a newer one was answered.
            await self._note_holder(request)
            self._refuse_early(job)
            command = self.parts.command_for(request.action, self._ids.next())
        except Refused as refusal:
            await self._require_known(request, refusal)
        # Made once: a clock measured meanwhile must not make what is told differ from what is durable.
        pending = self._writer.pending(job)
        try:
            result = await self._ledger.accept(
                pending,
                canonical(request.action),
                request.lease.fencing_token,
                command,
                request.epoch,
            )
        except StorageUnavailable as refusal:
            result = await self._read_existing(request, refusal)
        if isinstance(result, Existing):
            job.deduplicated = True
            assert self._nursery is not None
            self._nursery.start_soon(self._replay, job, result.receipt)
            return
        job.command = command
        job.receipt = pending
        job.reached("accepted", self._now_ns())
        if self._closing:
            await self._fail(
                job, Refused("interrupted_by_restart", "the edge daemon stopped before it began")
            )
            return
        self._line.append(job)
        self._stir.set()

    async def _require_known(self, request: Dispatch, refusal: Refused) -> None:
        """A key known to the ledger is answered from there, whatever speaks against acting now. Raises `Refused`."""
        known = await self._ledger.lookup(self.device_id, request.idempotency_key, request.epoch)
        if known.found:
            return
        if request.epoch is not None and not known.known:
            raise Refused(
                "outcome_unknown",
                f"whether this key, first sent in epoch {request.epoch}, was executed is not known in epoch "
                f"{known.epoch}, and it is not executed now",
                field="epoch",
            )
        raise refusal

    async def _read_existing(self, request: Dispatch, refusal: StorageUnavailable) -> Existing:
        """What is known of a key stands also while the disk takes nothing: a refusal would say that nothing was
        executed. Raises `Refused` for a key that is not known."""
        await self._require_known(request, refusal)
        key = request.idempotency_key
        existing = await self._ledger.existing(self.device_id, key, canonical(request.action))
        if existing is None:
            raise refusal
        return existing

    async def _replay(self, job: Job, receipt: Receipt) -> None:
        try:
            job.receipt = await self._recovery.final(receipt)
        except Refused as refusal:
            job.refusal = refusal
        self._finish(job)

    def _refuse_early(self, job: Job) -> None:
        """Everything that will be checked again at the moment of dispatch, plus the length of the line."""
        self._refuse_dispatch(job)
        if len(self._line) >= self._queue_limit:
            raise Refused("rate_limited", f"{len(self._line)} actions already wait for {self.device_id}")

    def _refuse_dispatch(self, job: Job) -> None:
        now_ns = self._now_ns()
        request = job.request
        if now_ns >= job.expires_ns:
            raise Refused("expired", f"not begun within {request.expires_in_ms} ms: nothing was executed")
        self.gate.refuse_act(request.lease, lease_ends_ns=job.lease_ends_ns, now_ns=now_ns)
        bound = self.eye.bound(request.observed_frame)
        if bound is not None and isinstance(request.action, Tap | Swipe | LongPress):
            self.eye.refuse_contradicted(bound)
        self.parts.refuse(request.action, self.eye.orientation_of(bound))
        if bound is not None and not self.parts.acts_on_old_frames:
            self.eye.refuse_stale(bound)

    # -- doing --------------------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Works until cancelled; then the hand is parked and keys are released, within a bound."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self.parts.run)
                nursery.start_soon(self._drift.run)
                nursery.start_soon(self._admit_in_order)
                nursery.start_soon(self._work)
                task_status.started()
        finally:
            self._nursery = None
            await self.parts.leave_safe()

    async def _work(self) -> None:
        async with self.parts.busy:
            await self._recovery.run()
        while True:
            if self._line and not self._closing:
                self._current = self._line.popleft()
                await self._carry_out(self._current)
                self._current = None
                continue
            self._stir = trio.Event()
            with trio.move_on_after(REST_AFTER_S) as grace:
                await self._stir.wait()
            if grace.cancelled_caught:
                await self.parts.rest()
                if not self._line:
                    await self._stir.wait()

    async def drain(self) -> None:
        """Begins the shutdown: nothing new begins, the action under way may finish, the line is told."""
        self._closing = True
        while self._line:
            job = self._line.popleft()
            await self._fail(
                job, Refused("interrupted_by_restart", "the edge daemon stopped before it began")
            )
        current = self._current
        if current is not None:
            with trio.move_on_after(DRAIN_S):
                await current.finished.wait()
        await self.parts.leave_safe()

    async def _carry_out(self, job: Job) -> None:
        request = job.request
        try:
            self._refuse_dispatch(job)
            bound = self.eye.bound(request.observed_frame)
        except Refused as refusal:
            await self._fail(job, refusal)
            return
        notes: FrameNotes | None = None
        accepted_ns = 0

        def on_stage(stage: Stage, _board_us: int, at_ns: int) -> None:
            nonlocal notes, accepted_ns
            if stage == "accepted":
                accepted_ns = at_ns
                # Only what acts on old frames has something to report of them.
                reports = bound is not None and self.parts.acts_on_old_frames
                notes = self.eye.notes(bound, at_ns) if bound is not None and reports else None
                job.reached("dispatched", at_ns)
            elif stage == "contact":
                job.reached("contact", at_ns)

        def last_check() -> int:
            self._refuse_dispatch(job)
            assert job.command is not None, "set when it was accepted"
            job.begun = True
            # The boot that the ledger names, not the present one: only the boot that was named durably can be
            # asked after a crash, so a board that restarted while the action waited must not get it.
            return job.command.board_boot_id

        assert job.command is not None, "set when it was accepted"
        cmd_id = job.command.cmd_id
        order = Order(request.action, self.eye.orientation_of(bound), cmd_id, last_check, on_stage)
        try:
            # Up to the board's last word: who used it meanwhile could make it forget what it is asked about.
            async with self.parts.busy:
                failure = await self._do(job, order)
        except Refused as refusal:
            assert not job.begun, "a refusal comes before the first byte of the action"
            await self._fail(job, refusal)
            return
        now_ns = self._now_ns()
        self.eye.acted(now_ns)
        if notes is not None and bound is not None:
            notes = await self.eye.completed(notes, bound, accepted_ns)
        assert job.receipt is not None
        if failure is None:
            at_ns = job.stages_ns.get("hover", now_ns)
            receipt = self._writer.committed(job.receipt, at_ns, job, notes)
        else:
            info, reason = failure
            logger.warning("%s: key %s: %s", self.device_id, request.idempotency_key, info.message)
            receipt = self._writer.failed(job.receipt, now_ns, info, job, reason=reason, notes=notes)
        await self._settle(job, receipt)

    async def _do(self, job: Job, order: Order) -> tuple[ErrorInfo, ReceiptReason | None] | None:
        """None when it was done, otherwise what the failure means. Raises `Refused` before its first byte."""
        try:
            done = await self.parts.perform(order)
        except BoardError as error:
            return await self._last_word(job, error)
        job.reached("hover", done.done_ns)
        return None

    async def _last_word(self, job: Job, error: BoardError) -> tuple[ErrorInfo, ReceiptReason | None] | None:
        """What the failure means; None when the board, asked again, says that the action was done.

        While a board that may still know is out of reach, the device waits for it: only it can tell.
        """
        if isinstance(error, OutcomeUnknown) and not error.final and job.command is not None:
            answer = await self._recovery.ask(job.command)
            if isinstance(answer, Done):
                return None
            if isinstance(answer, BoardError):
                error = answer
        return verdict_of(error)

    # -- settling -----------------------------------------------------------------------------------------

    async def _fail(self, job: Job, refusal: Refused) -> None:
        """The key was accepted and nothing was executed."""
        assert job.receipt is not None
        await self._settle(job, self._writer.failed(job.receipt, self._now_ns(), refusal.info, job))

    async def _settle(self, job: Job, receipt: Receipt) -> None:
        """Makes the outcome durable before anybody hears of it; waits while the disk refuses.

        Shielded for a while: an outcome that is known is handed to the ledger even during a shutdown. What the
        ledger cannot write before it closes stays pending, and the board is asked at the next start.
        """
        try:
            with trio.move_on_after(SETTLE_SHIELD_S, shield=True) as shielded:
                await self._ledger.settle(receipt)
            if shielded.cancelled_caught:
                await self._ledger.settle(receipt)
        except SettledAlready:
            # The first hand-over was queued and has been written while we waited for the second.
            logger.info("%s: the ledger took an outcome late", self.device_id)
        except LedgerCorrupt as error:
            told = self._writer.unrecorded(receipt, error)
            key, outcome = receipt.idempotency_key, receipt.reason or receipt.status
            logger.error("%s: key %s: its outcome, %s, cannot be recorded", self.device_id, key, outcome)
            if isinstance(told, Refused):
                job.refusal = told
            else:
                job.receipt = told
            self._finish(job)
            return
        job.receipt = receipt
        self._finish(job)
        self._on_receipt(receipt)

    def _finish(self, job: Job) -> None:
        self._jobs.pop(job.request.idempotency_key, None)
        job.finished.set()


def _refused(refusal: Refused) -> Outcome:
    return Outcome(error=refusal.info)
