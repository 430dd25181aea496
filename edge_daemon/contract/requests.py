"""What the plane asks for, and what it is answered; free of any transport."""

from typing import Annotated, Literal

from msgspec import Meta

from edge_daemon.contract.actions import Action
from edge_daemon.contract.base import Data
from edge_daemon.contract.errors import ErrorInfo
from edge_daemon.contract.frames import FrameNotes, ImageFormat
from edge_daemon.contract.identity import Actor, DeviceId, Epoch, FrameId, IdempotencyKey, Lease, OrgId
from edge_daemon.contract.receipts import Receipt, Stage

MAX_WAIT_MS = 600_000


class Dispatch(Data, frozen=True, kw_only=True):
    """One action for one device, at most once per (deviceId, idempotencyKey)."""

    device_id: DeviceId
    idempotency_key: IdempotencyKey
    org_id: OrgId
    actor: Actor
    lease: Lease
    action: Action
    observed_frame: FrameId | None = None
    expires_in_ms: Annotated[int, Meta(ge=1, le=MAX_WAIT_MS)] = 60_000
    """Not begun within this time after arrival: `expired`, not executed."""
    epoch: Epoch | None = None
    """The ledger's epoch when this key was sent for the first time. With it, a ledger that was made anew or restored
    since refuses a key it does not know, instead of taking it for new."""


class Look(Data, frozen=True, kw_only=True):
    """A picture of the screen, exposed after this request arrived."""

    device_id: DeviceId
    org_id: OrgId
    actor: Actor
    lease: Lease | None = None
    """With the current lease a `frameId` is minted; without one this is a watch."""
    format: ImageFormat = "jpeg"
    wait_settled_ms: Annotated[int, Meta(ge=0, le=10_000)] = 2_000
    """How long to wait for a still screen; the picture then says what it found."""


class Progress(Data, frozen=True, kw_only=True):
    """A stage was reached. It never implies success."""

    device_id: DeviceId
    idempotency_key: IdempotencyKey
    stage: Stage
    elapsed_ms: float


class Outcome(Data, frozen=True, kw_only=True):
    """The answer to a dispatch: the receipt as it stands durable, or the refusal that left none."""

    receipt: Receipt | None = None
    error: ErrorInfo | None = None
    """Set when the request was refused before its key was accepted; then nothing was or will be executed."""
    deduplicated: bool = False
    """True when an earlier acceptance of the same key answers; nothing was executed for this request."""

    @property
    def frame_notes(self) -> FrameNotes | None:
        return self.receipt.frame_notes if self.receipt else None


class ReceiptAnswer(Data, frozen=True, kw_only=True, omit_defaults=False):
    """`known=False`: this ledger cannot say (it may be younger than the key); it is not `found=False`."""

    known: bool
    found: bool
    epoch: int
    receipt: Receipt | None = None


ReceiptKind = Literal["pending", "committed", "failed", "unknown"]
"""For people: each receipt is one of them. `failed`: not executed. `unknown`: `outcome_unknown`, reviewed or not."""

MAX_RECEIPTS = 200
"""Of one page."""


class ReceiptQuery(Data, frozen=True, kw_only=True):
    """Which receipts somebody wants to see, a page at a time in the order of acceptance."""

    device_id: DeviceId | None = None
    kind: ReceiptKind | None = None
    needs_review: bool = False
    """Only those that wait for a person's word."""
    since: Annotated[str, Meta(max_length=64)] | None = None
    """Only those whose `requestedAt`, which is a label and no order, is this or a later one."""
    oldest_first: bool = False
    cursor: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None
    """The `next` of the page before; None for the first."""
    limit: Annotated[int, Meta(ge=1, le=MAX_RECEIPTS)] = MAX_RECEIPTS

    def takes(self, receipt: Receipt) -> bool:
        return (
            self.device_id in (None, receipt.device_id)
            and self.kind in (None, kind_of(receipt))
            and (receipt.requires_manual_review or not self.needs_review)
            and (self.since is None or receipt.requested_at >= self.since)
        )


class ReceiptPage(Data, frozen=True, kw_only=True, omit_defaults=False):
    """Up to `limit` receipts; fewer, or none, are no sign of the end: that is `next` being None."""

    receipts: tuple[Receipt, ...]
    next: int | None
    devices: tuple[DeviceId, ...]
    """Every device of which this ledger may have receipts, configured or not, whatever was asked for."""


def kind_of(receipt: Receipt) -> ReceiptKind:
    if receipt.status == "failed" and receipt.reason == "outcome_unknown":
        return "unknown"
    return receipt.status
