"""What the upstream room asks of the rig: implemented by the devices room, free of any transport."""

from contextlib import AbstractContextManager
from typing import Annotated, Literal, Protocol

import trio
from msgspec import Meta

from edge_daemon.contract import (
    Actor,
    DeviceDescription,
    DeviceId,
    Dispatch,
    Look,
    Orientation,
    Outcome,
    Picture,
    Progress,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    ResolvedAs,
)
from edge_daemon.contract.base import Data

MAX_HAND_MM = 2_000.0

HandMm = Annotated[float, Meta(ge=-MAX_HAND_MM, le=MAX_HAND_MM)]
"""Hand millimetres. The bound only keeps nonsense out; the hand's own envelope decides."""

DwellMs = Annotated[int, Meta(ge=1, le=10_000)]
AxisFraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Counts = Annotated[int, Meta(ge=0, le=65_535)]
StepCounts = Annotated[int, Meta(ge=1, le=127)]
"""Of one report of a relative pointer."""

Side = Literal["low", "high"]
TouchKind = Literal["digitizer", "pointer"]
CalibrationKind = Literal["full", "camera"]
WantedOrientation = Literal["portrait", "landscape_left", "portrait_upside_down", "landscape_right", "found"]
"""`found`: whatever the camera's picture shows."""


class HandEnvelope(Data, frozen=True):
    """Where the hand's drives can go, in hand mm; z grows away from the glass."""

    x_min_mm: float
    x_max_mm: float
    y_min_mm: float
    y_max_mm: float
    z_min_mm: float
    z_max_mm: float


class HandPoint(Data, frozen=True):
    x_mm: float
    y_mm: float
    z_mm: float


class ScreenSize(Data, frozen=True):
    """The phone's screen in its portrait orientation, from the configuration."""

    width_px: int
    height_px: int
    width_mm: float
    height_mm: float


class RigHand(Data, frozen=True):
    """The robot hand over a device, as its board announced it and the configuration places it."""

    uid: str
    firmware: str
    envelope: HandEnvelope
    park: HandPoint
    search_z_mm: float
    """Hand mm; a height at which the stylus clears the glass everywhere: the search for contact starts here."""
    approach_mm: float
    """From so far to one side, in x and in y, the hand comes to every place."""


class RigHid(Data, frozen=True, omit_defaults=False):
    """The HID board plugged into a device's phone, as it announced itself."""

    uid: str
    firmware: str
    boot_id: int
    profile: str
    touch: TouchKind | None
    """How it touches the phone, if it can."""


class RigCamera(Data, frozen=True, omit_defaults=False):
    """The camera that looks at a device. width, height: px; None while it has not given a picture yet."""

    name: str
    source: str
    width: int | None
    height: int | None


class RigMoment(Data, frozen=True):
    """When it was asked. Only the boot and its monotonic clock order and measure; the wall clock is for people."""

    wall_utc: str
    clock_synced: bool
    boot_id: str
    monotonic_ns: int


class RigFacts(Data, frozen=True):
    """What a technician's tool must know before it calibrates a device.

    hand, hid: None for a part that the device does not have, and for a keyboard that has never announced itself.
    """

    device_id: DeviceId
    screen: ScreenSize
    orientation: Orientation
    camera: RigCamera
    calibration_folder: str
    """The store's root on this machine: one folder of it is this device's."""
    now: RigMoment
    hand: RigHand | None = None
    hid: RigHid | None = None
    page_url: str | None = None
    """Where the phone finds the calibration page that the daemon serves; None: it serves none."""


class RawPicture(Data, frozen=True):
    """A camera picture as the camera gave it: not rectified, exposed after it was asked for."""

    jpeg: bytes
    width: int
    height: int
    camera: str
    sequence: int
    exposed_ns: int
    """CLOCK_MONOTONIC of this machine, start of the exposure."""


class HandTouchAt(Data, frozen=True, kw_only=True, tag_field="type", tag="hand"):
    """One touch at hand coordinates: hover above, press down, dwell, back to hover.

    approach_x, approach_y: from which end of the axis the hand comes; "high" only to measure the drives' play.
    """

    x_mm: HandMm
    y_mm: HandMm
    press_z_mm: HandMm
    hover_z_mm: HandMm
    dwell_ms: DwellMs
    approach_x: Side = "low"
    approach_y: Side = "low"


class DigitizerTouchAt(Data, frozen=True, kw_only=True, tag_field="type", tag="digitizer"):
    """One touch of the HID board's touch screen, at fractions of its axes."""

    x: AxisFraction
    y: AxisFraction
    dwell_ms: DwellMs


class PointerTouchAt(Data, frozen=True, kw_only=True, tag_field="type", tag="pointer"):
    """One click of the HID board's pointer: into the top left corner with `home_counts`, then so many right and down.

    step_counts: the most of one report. A phone moves its cursor by more or less per count depending on it.
    """

    x_counts: Counts
    y_counts: Counts
    home_counts: Counts
    step_counts: StepCounts
    dwell_ms: DwellMs


StaffTouchAt = HandTouchAt | DigitizerTouchAt | PointerTouchAt


class DriftFound(Data, frozen=True, omit_defaults=False):
    """What a measurement of drift said: has the camera or the phone moved since the calibration?

    verdict: `still`, `camera_moved`, `phone_moved`, `both_moved` or `unmeasured`, which is not `still`.
    shift_px: the largest shift found, raw camera px; None where nothing could be measured.
    hold: too much to act on; the device refuses until it is calibrated again. warn: more than there should be.
    """

    verdict: str
    message: str
    warn: bool
    hold: bool
    shift_px: float | None


class CalibrationStage(Data, frozen=True, omit_defaults=False):
    """Where a calibration stands: step number of steps, its title and caution for a person.

    fraction: of the whole, 0..1. remaining_s: an estimate. touches: made so far.
    """

    number: int
    steps: int
    title: str
    caution: str
    detail: str
    touches: int
    fraction: float
    remaining_s: float | None


class CalibrationOutcome(Data, frozen=True):
    """How a calibration ended: `accepted`, stored as `calibration_id` and in use; or `refused`, nothing changed.

    refusal: the kind of refusal, one word. reason: a sentence for a person.
    """

    device_id: DeviceId
    verdict: Literal["accepted", "refused"]
    touches: int
    calibration_id: str | None = None
    refusal: str | None = None
    reason: str | None = None
    p50_mm: float | None = None
    p95_mm: float | None = None
    max_mm: float | None = None


Change = Receipt | DeviceDescription


class Service(Protocol):
    """Every method may raise `Refused`; nothing was executed then. Any other exception is a defect and ends
    the daemon.

    A cancelled call has not taken an action back: what became of it is in its receipt.
    """

    @property
    def epoch(self) -> int:
        """The ledger's epoch."""
        ...

    @property
    def epoch_raised(self) -> str | None:
        """Why this start raised the epoch; None when it did not."""
        ...

    @property
    def ledger_id(self) -> str: ...

    def devices(self) -> list[DeviceDescription]: ...

    def subscribe(self) -> AbstractContextManager[trio.MemoryReceiveChannel[Change]]:
        """Receipts that became final and devices that changed, from now on.

        The channel is bounded. When a subscriber is too slow the service ENDS its channel instead of
        dropping one change; the subscriber then subscribes anew and reads everything again.
        """
        ...

    async def dispatch(self, dispatch: Dispatch, on_progress: "ProgressCallback") -> Outcome:
        """Execute at most once per key; waits for the outcome. Goes on when nobody waits any more.

        Called in the order in which the plane sent its requests: whoever queues by device must do so before
        the first checkpoint. From then on `get_receipt` must not say `found=False` for this key.
        """
        ...

    async def look(self, look: Look) -> Picture: ...

    async def get_receipt(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer: ...

    async def cancel(self, device_id: str, key: str) -> Outcome:
        """Take back an action that has not begun; the outcome says whether that came in time."""
        ...

    async def set_parked(self, device_id: str, parked: bool, actor: Actor) -> None: ...

    async def unacknowledged(self, limit: int) -> list[Receipt]:
        """The oldest final receipts not yet acknowledged, in the order in which they became final."""
        ...

    async def acknowledge(self, device_id: str, key: str, resolved: bool) -> None:
        """Durable when it returns. Acknowledging twice is no error.

        resolved: what the plane has is the receipt with its resolution. A receipt resolved since stays in the outbox.
        """
        ...

    async def list_receipts(self, query: ReceiptQuery) -> ReceiptPage: ...

    async def resolve_receipt(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        """A person's word on a receipt that requires a review; durable when it returns, and in the outbox."""
        ...

    async def raise_epoch(self, remembered: int) -> None:
        """The highest epoch that the plane remembers.

        Where it shows that receipts may be missing here, the ledger goes on in a greater one, durably. Refused with
        `invalid_argument` when no edge can have told it.
        """
        ...

    async def take_hold(self, device_id: str, hint: str, owner: str) -> None: ...

    async def release_hold(self, device_id: str, owner: str | None) -> None:
        """Give the device back, its hand parked. `None` releases whoever's hold it is."""
        ...

    async def set_orientation(self, device_id: str, orientation: WantedOrientation) -> None:
        """Durable when it returns."""
        ...

    async def rig_facts(self, device_id: str) -> RigFacts: ...

    async def staff_look(self, device_id: str) -> RawPicture:
        """A raw picture exposed after the call, the hand out of the picture."""
        ...

    async def staff_touch(self, device_id: str, touch: StaffTouchAt, owner: str) -> None: ...

    async def staff_park(self, device_id: str, owner: str) -> None: ...

    async def estop(self, device_id: str) -> None: ...

    async def clear_estop(self, device_id: str) -> None: ...

    async def adopt_calibration(self, device_id: str) -> None:
        """Read the device's calibration from the store again."""
        ...

    async def check_drift(self, device_id: str) -> DriftFound:
        """Measure now; nothing moves. What it says of the device is acted on as after a scheduled measurement."""
        ...

    async def calibrate(
        self, device_id: str, kind: CalibrationKind, actor: Actor, on_stage: "StageCallback"
    ) -> CalibrationOutcome:
        """Calibrate without a person: hold, procedure, store, adopt; the hand parked and the hold given back.

        Goes on when nobody waits any more.
        """
        ...

    async def stop_calibration(self, device_id: str, actor: Actor) -> None:
        """Take a calibration back that `calibrate` runs; returns when its hand is parked and its hold given back."""
        ...


class ProgressCallback(Protocol):
    def __call__(self, progress: Progress, /) -> None: ...


class StageCallback(Protocol):
    def __call__(self, stage: CalibrationStage, /) -> None: ...
