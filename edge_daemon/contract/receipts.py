"""The durable record of one action, found by (deviceId, idempotencyKey)."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from edge_daemon.contract.actions import (
    Action,
    LongPress,
    OpenApp,
    PressKey,
    ReceiptAction,
    Swipe,
    Tap,
    TypeText,
)
from edge_daemon.contract.base import Data
from edge_daemon.contract.errors import ErrorInfo
from edge_daemon.contract.frames import FrameNotes
from edge_daemon.contract.identity import Actor, BackendKind, DeviceId, FrameId, IdempotencyKey, OrgId

ReceiptStatus = Literal["pending", "committed", "failed"]
ReceiptReason = Literal["interrupted_by_restart", "outcome_unknown"]
ResolvedAs = Literal["committed", "not_executed"]
ReviewNote = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,500}\Z")]
Stage = Literal["accepted", "dispatched", "contact", "hover"]
STAGES: tuple[Stage, ...] = ("accepted", "dispatched", "contact", "hover")


class Timing(Data, frozen=True, kw_only=True):
    """Milliseconds from the request's arrival at the edge (`queued` = 0) to each stage; None: not reached."""

    queued_ms: float
    accepted_ms: float | None = None
    """The board has accepted the command."""
    contact_ms: float | None = None
    hover_ms: float | None = None


class Resolution(Data, frozen=True, kw_only=True):
    """What a person found out about a receipt of which nobody could tell. It stands beside the receipt's own words:
    `status`, `reason` and `error` stay as they were written."""

    outcome: ResolvedAs
    note: ReviewNote
    """How the person knows."""
    actor: Actor
    resolved_at: str
    """A label as in `Receipt`, with its own `clock_synced`."""
    clock_synced: bool
    boot_id: str
    resolved_ns: int
    """CLOCK_MONOTONIC of that boot."""


class Receipt(Data, frozen=True, kw_only=True):
    """Times are ISO-8601, all of them on the plane's clock where `clock_synced`; else at least one of them is by the
    edge's own, unset clock: one that a restart asked for before it decided was labelled by two."""

    org_id: OrgId
    device_id: DeviceId
    idempotency_key: IdempotencyKey
    backend_kind: BackendKind
    action: ReceiptAction
    args_summary: dict[str, Any]
    status: ReceiptStatus
    requested_at: str
    boot_id: str
    """The edge machine's boot during which the request was accepted."""
    requested_ns: int
    """CLOCK_MONOTONIC of that boot."""
    clock_synced: bool
    actor: Actor
    observed_frame: FrameId | None = None
    committed_at: str | None = None
    failed_at: str | None = None
    finished_ns: int | None = None
    error: ErrorInfo | None = None
    reason: ReceiptReason | None = None
    requires_manual_review: bool = False
    frame_notes: FrameNotes | None = None
    timing: Timing | None = None
    resolution: Resolution | None = None
    """Set when a person has settled the review; `requires_manual_review` is then False."""


def args_summary(action: Action, text_digest: str) -> dict[str, Any]:
    """What a receipt may say about an action's arguments.

    `text_digest` is the ledger's salted digest, used for typed text, which itself is never stored.
    """
    match action:
        case Tap(x=x, y=y):
            return {"x": x, "y": y}
        case LongPress(x=x, y=y, duration_ms=hold_ms):
            return {"x": x, "y": y, "holdMs": hold_ms}
        case Swipe():
            return {
                "fromX": action.from_x,
                "fromY": action.from_y,
                "toX": action.to_x,
                "toY": action.to_y,
                "durationMs": action.duration_ms,
            }
        case TypeText(text=text):
            return {"characters": len(text), "digest": text_digest}
        case PressKey(key=key):
            return {"key": key}
        case OpenApp(app_id=app_id):
            return {"appId": app_id}
        case _:
            raise TypeError(f"{type(action).__name__} writes no receipt")
