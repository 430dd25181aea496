"""What the upstream room asks of the rig: implemented by the devices room, free of any transport."""

from contextlib import AbstractContextManager
from typing import Annotated, Protocol

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
)
from edge_daemon.contract.base import Data

MAX_HAND_MM = 2_000.0

HandMm = Annotated[float, Meta(ge=-MAX_HAND_MM, le=MAX_HAND_MM)]
"""Hand millimetres. The bound only keeps nonsense out; the hand's own envelope decides."""

DwellMs = Annotated[int, Meta(ge=1, le=10_000)]


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


class RigFacts(Data, frozen=True):
    """What a technician's tool must know before it calibrates a device."""

    device_id: DeviceId
    hand_uid: str
    hid_uid: str | None
    envelope: HandEnvelope
    park: HandPoint
    search_z_mm: float
    """Hand mm; a height at which the stylus clears the glass everywhere: the search for contact starts here."""
    screen: ScreenSize
    calibration_path: str
    camera_name: str
    orientation: Orientation


class RawPicture(Data, frozen=True):
    """A camera picture as the camera gave it: not rectified, exposed after it was asked for."""

    jpeg: bytes
    width: int
    height: int
    camera: str
    sequence: int
    exposed_ns: int
    """CLOCK_MONOTONIC of this machine, start of the exposure."""


class StaffTouchAt(Data, frozen=True):
    """One touch at hand coordinates: hover above, press down, dwell, back to hover."""

    x_mm: HandMm
    y_mm: HandMm
    press_z_mm: HandMm
    hover_z_mm: HandMm
    dwell_ms: DwellMs


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

    async def acknowledge(self, device_id: str, key: str) -> None:
        """Durable when it returns. Acknowledging twice is no error."""
        ...

    async def raise_epoch(self, above: int) -> None:
        """The plane remembers epoch `above`: the ledger's must become greater, durably."""
        ...

    async def take_hold(self, device_id: str, hint: str, owner: str) -> None: ...

    async def release_hold(self, device_id: str, owner: str | None) -> None:
        """Give the device back, its hand parked. `None` releases whoever's hold it is."""
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


class ProgressCallback(Protocol):
    def __call__(self, progress: Progress, /) -> None: ...
