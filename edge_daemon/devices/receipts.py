"""How a job becomes a receipt: pending before the board hears of it, final when its fate is known."""

import msgspec

from edge_daemon.boards import ArgumentRefused, BoardError, CommandFault, NotExecuted, NotSent
from edge_daemon.clock import NS_PER_MS, PlaneClock
from edge_daemon.contract import (
    BackendKind,
    Dispatch,
    ErrorCode,
    ErrorInfo,
    FrameNotes,
    Receipt,
    ReceiptReason,
    Refused,
    args_summary,
    error_info,
    receipt_action,
)
from edge_daemon.contract.actions import TypeText
from edge_daemon.devices.job import Job
from edge_daemon.ledger import Ledger, LedgerCorrupt
from firmware import wire


class ReceiptWriter:
    """Builds the receipts of one device. Stamps are the plane's clock, converted from monotonic time."""

    def __init__(self, backend_kind: BackendKind, boot_id: str, clock: PlaneClock, ledger: Ledger) -> None:
        self._backend_kind: BackendKind = backend_kind
        self._boot_id = boot_id
        self._clock = clock
        self._ledger = ledger

    def pending(self, job: Job) -> Receipt:
        request: Dispatch = job.request
        digest = self._ledger.digest(request.action.text) if isinstance(request.action, TypeText) else ""
        return Receipt(
            org_id=request.org_id,
            device_id=request.device_id,
            idempotency_key=request.idempotency_key,
            backend_kind=self._backend_kind,
            action=receipt_action(request.action),
            args_summary=args_summary(request.action, digest),
            status="pending",
            requested_at=self._clock.iso(job.arrived_ns),
            boot_id=self._boot_id,
            requested_ns=job.arrived_ns,
            clock_synced=self._clock.synced,
            actor=request.actor,
            observed_frame=request.observed_frame,
        )

    def committed(self, pending: Receipt, at_ns: int, job: Job | None, notes: FrameNotes | None) -> Receipt:
        """`job` is None when the receipt is settled after a restart."""
        return msgspec.structs.replace(
            pending,
            status="committed",
            committed_at=self._clock.iso(at_ns),
            finished_ns=at_ns,
            clock_synced=self._clock.synced,
            timing=job.timing() if job else None,
            frame_notes=notes,
        )

    def failed(
        self,
        pending: Receipt,
        at_ns: int,
        error: ErrorInfo,
        job: Job | None = None,
        *,
        reason: ReceiptReason | None = None,
        notes: FrameNotes | None = None,
    ) -> Receipt:
        return msgspec.structs.replace(
            pending,
            status="failed",
            failed_at=self._clock.iso(at_ns),
            finished_ns=at_ns,
            clock_synced=self._clock.synced,
            error=error,
            reason=reason,
            requires_manual_review=reason == "outcome_unknown",
            timing=job.timing() if job else None,
            frame_notes=notes,
        )

    def unrecorded(self, final: Receipt, error: LedgerCorrupt) -> Receipt | Refused:
        """What is told of an outcome that the ledger cannot take, for the row of its receipt is damaged.

        A refusal says that nothing was executed. Of what was, or may have been, a receipt says that a person must look:
        the outcome stands in its words, for nobody will find it recorded.
        """
        why = f"its outcome, {final.reason or final.status}, could not be recorded: {error}"
        if final.status == "failed" and not final.requires_manual_review:
            return Refused("storage_unavailable", f"nothing was executed; {why}", retryable=False)
        return msgspec.structs.replace(
            final,
            status="failed",
            committed_at=None,
            failed_at=final.failed_at or final.committed_at,
            error=error_info("storage_unavailable", f"{why}. A person must look", retryable=False),
            reason="outcome_unknown",
            requires_manual_review=True,
        )


def verdict_of(error: BoardError) -> tuple[ErrorInfo, ReceiptReason | None]:
    """What a board's failure means for the receipt: was anything executed, or can nobody tell?"""
    match error:
        case ArgumentRefused():
            return error_info("invalid_argument", f"nothing was sent to the board: {error}"), None
        case NotSent():
            return error_info("device_offline", f"nothing was sent to the board: {error}"), None
        case NotExecuted():
            return error_info("not_executed", f"the board never received it: {error}", retryable=True), None
        case CommandFault(effect=False):
            code: ErrorCode = "estopped" if error.code == wire.FAULT_ESTOPPED else "not_executed"
            return error_info(code, f"the board did not touch the phone: {error}"), None
        case CommandFault():
            return (
                error_info(
                    "outcome_unknown",
                    f"the board broke it off after it had reached the phone: {error}. A person must look",
                ),
                "outcome_unknown",
            )
        case _:
            return (
                error_info("outcome_unknown", f"nobody can tell what happened: {error}. A person must look"),
                "outcome_unknown",
            )


def ms(from_ns: int, to_ns: int) -> float:
    return round((to_ns - from_ns) / NS_PER_MS, 3)
