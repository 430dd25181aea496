"""What staff at the rig may do with a device: take it, look raw, touch, stop it, have another calibration used."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from calibration.store import CalibrationStore, Conditions, StoredCalibration
from edge_daemon.boards import Board, BoardError, HidClient
from edge_daemon.cameras.errors import CameraError
from edge_daemon.clock import MonotonicNs
from edge_daemon.config import DeviceSection
from edge_daemon.contract import DeviceDescription, Orientation, Refused, StaffHold
from edge_daemon.devices.approach import approach
from edge_daemon.devices.command_ids import CommandIds
from edge_daemon.devices.drift import DriftWatch
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.parts import Parts
from edge_daemon.devices.pointer import place_of_counts
from edge_daemon.devices.receipts import verdict_of
from edge_daemon.devices.rigfacts import RigReader
from edge_daemon.ledger import Hold, Ledger
from edge_daemon.upstream.service import (
    DigitizerTouchAt,
    DriftFound,
    HandTouchAt,
    PointerTouchAt,
    RawPicture,
    RigFacts,
    StaffTouchAt,
)

T = TypeVar("T")

STAFF_LOOK_TIMEOUT_S = 3.0
PARK_TIMEOUT_S = 10.0
EDGE_OWNER = "edge:"
"""Begins the owner of a hold that the daemon itself took. No session's name can: it begins with a letter or digit."""


class StaffDesk:
    """One device from the staff's side. What is touched here is what `edgeMovedSince` tells the plane."""

    def __init__(
        self,
        device_id: str,
        section: DeviceSection,
        parts: Parts,
        drift: DriftWatch,
        ledger: Ledger,
        reader: RigReader,
        ids: CommandIds,
        monotonic_ns: MonotonicNs,
    ) -> None:
        self.device_id = device_id
        self._section = section
        self._parts = parts
        self._drift = drift
        self._ledger = ledger
        self._reader = reader
        self._ids = ids
        self._now_ns = monotonic_ns

    def facts(self) -> RigFacts:
        """The rig as it is now. Raises `Refused` while the board that touches has never announced itself."""
        facts, reader = self._reader.now(), self._reader
        touches, known = (reader.hand, facts.hand) if reader.hand is not None else (reader.hid, facts.hid)
        if known is None:
            assert touches is not None, "the configuration was checked"
            raise Refused("device_offline", f"board {touches.name} has never announced itself")
        return facts

    def describe(self) -> DeviceDescription:
        status, reason = self._parts.status()
        hold = self._ledger.hold(self.device_id)
        has_hand = self._parts.keeper is not None
        return DeviceDescription(
            device_id=self.device_id,
            backend_kind="robot_hand" if has_hand else "esp32_hid",
            kind="robot" if has_hand else "physical",
            status=status,
            status_reason=reason,
            capabilities=self._parts.capabilities(),
            orientation=self._reader.orientation(),
            calibrated=self._parts.calibrated,
            parked=self._ledger.parked(self.device_id),
            display_name=self._section.display_name,
            staff_hold=StaffHold(hint=hold.hint) if hold is not None else None,
            metadata=self._parts.metadata() | storage_said(self._ledger, self.device_id),
        )

    # -- holds --------------------------------------------------------------------------------------------

    async def take_hold(self, hint: str, owner: str) -> None:
        """Durable when it returns; an action already under way ends first, what waits in line is refused.

        Raises `Refused`: `leased` when somebody else has it, also when both ask at once.
        """
        await self._ledger.set_hold(self.device_id, Hold(hint=hint, owner=owner))
        async with self._parts.busy:
            pass

    async def release_hold(self, owner: str | None) -> None:
        current = self._ledger.hold(self.device_id)
        if current is None:
            return
        if owner is not None and current.owner != owner:
            raise Refused(
                "permission_denied", f"{self.device_id} is held by {current.owner}, not by this session"
            )
        if self._parts.keeper is not None:
            await self._parts.keeper.rest()
        # Only this one: it may be given back by force and be somebody else's by now.
        await self._ledger.set_hold(self.device_id, None, held_by=current.owner)
        # Somebody had the rig: fingers, lamps and phones move.
        self._drift.disturbed("staff gave the device back")

    async def drop_orphaned_hold(self) -> None:
        """At start: a hold that this daemon took itself belongs to work that ended with the former process."""
        current = self._ledger.hold(self.device_id)
        if current is not None and current.owner.startswith(EDGE_OWNER):
            await self._ledger.set_hold(self.device_id, None)

    def _refuse_without_hold(self, owner: str) -> None:
        hold = self._ledger.hold(self.device_id)
        if hold is None or hold.owner != owner:
            raise Refused(
                "lease_required", f"take the hold of {self.device_id} first: the plane could act meanwhile"
            )

    # -- how the phone lies -------------------------------------------------------------------------------

    async def set_orientation(self, orientation: Orientation) -> None:
        """From now on the screen is turned so; durable. What is configured needs no mark."""
        configured = self._section.orientation
        await self._ledger.set_orientation(self.device_id, None if orientation == configured else orientation)

    # -- looking and touching -----------------------------------------------------------------------------

    async def look(self) -> RawPicture:
        """A raw picture exposed after this call; the hand is parked for it if staff hold the device.

        Without a hold nothing is moved: the plane may be acting.
        """
        keeper, held = self._parts.keeper, self._ledger.hold(self.device_id) is not None
        if keeper is not None and held and not await keeper.out_of_picture(PARK_TIMEOUT_S):
            raise Refused("device_offline", f"the hand of {self.device_id} could not be parked for a look")
        try:
            frame = await self._parts.camera.frame_after(self._now_ns(), STAFF_LOOK_TIMEOUT_S)
        except CameraError as error:
            raise Refused("device_offline", str(error)) from error
        return RawPicture(
            jpeg=frame.jpeg,
            width=frame.width,
            height=frame.height,
            camera=frame.camera,
            sequence=frame.sequence,
            exposed_ns=frame.exposed_ns,
        )

    async def touch(self, touch: StaffTouchAt, owner: str) -> None:
        """One touch of the hand or of the HID board; returns when it is over."""
        self._refuse_without_hold(owner)
        if isinstance(touch, HandTouchAt):
            await self._touch_by_hand(touch)
        else:
            await self._touch_by_hid(touch)

    async def _touch_by_hand(self, touch: HandTouchAt) -> None:
        async with self._ready_keeper().moving_at_edge() as hand:
            await _do(
                approach(
                    hand,
                    touch.x_mm,
                    touch.y_mm,
                    touch.hover_z_mm,
                    self._section.motion.approach_mm,
                    touch.approach_x,
                    touch.approach_y,
                )
            )
            await _do(
                hand.tap(
                    self._ids.next(),
                    touch.x_mm,
                    touch.y_mm,
                    hover_z_mm=touch.hover_z_mm,
                    press_z_mm=touch.press_z_mm,
                    dwell_ms=touch.dwell_ms,
                )
            )

    async def _touch_by_hid(self, touch: DigitizerTouchAt | PointerTouchAt) -> None:
        board = self._parts.hid_board
        profile = board.last_info.hid if board is not None and board.last_info is not None else None
        wanted = "digitizer" if isinstance(touch, DigitizerTouchAt) else "pointer"
        if board is None or profile is None or profile.touch != wanted:
            raise Refused("capability_unsupported", f"{self.device_id} has no {wanted}", field="touch.type")
        self._refuse_offline()
        hid = HidClient(board)
        async with self._parts.touching_at_edge():
            if isinstance(touch, DigitizerTouchAt):
                await _do(hid.tap(self._ids.next(), touch.x, touch.y, touch.dwell_ms))
                return
            place = place_of_counts(touch.x_counts, touch.y_counts, touch.home_counts, touch.step_counts)
            await _do(hid.pointer_tap(self._ids.next(), place.x, place.y, touch.dwell_ms, place.scale))

    async def park(self, owner: str) -> None:
        self._refuse_without_hold(owner)
        await _do(self._ready_keeper().park(at_edge=True))

    async def estop(self) -> None:
        """Stops every board of the device at once and latches; allowed to anybody at the rig, hold or not.

        A board that cannot be stopped keeps none of the others from being stopped; it is told afterwards.
        """
        await _each(self._parts.boards, Board.estop)

    async def clear_estop(self) -> None:
        """Lifts the stop of every board that has one latched; one that restarted since has none any more."""
        stopped = [board for board in self._parts.boards if board.flags is None or board.flags.estopped]
        await _each(stopped, Board.clear_estop)

    # -- calibration --------------------------------------------------------------------------------------

    async def adopt_calibration(self) -> None:
        """Reads the store again. Raises `Refused` and keeps what is in use when nothing in there can be used."""
        await self._parts.shelf.adopt()

    async def save_calibration(
        self, save: Callable[[CalibrationStore, Conditions], StoredCalibration]
    ) -> StoredCalibration:
        """Has `save` store a calibration, and uses it. Raises what it raises; then the former stays in use."""
        return await self._parts.shelf.save(save)

    async def check_drift(self) -> DriftFound:
        """Measures now, without moving anything. Raises `Refused` when there is nothing to measure against."""
        return await self._drift.check_now()

    # -- inside -------------------------------------------------------------------------------------------

    def _ready_keeper(self) -> HandKeeper:
        if self._parts.keeper is None:
            raise Refused("capability_unsupported", f"{self.device_id} has no hand")
        self._refuse_offline()
        return self._parts.keeper

    def _refuse_offline(self) -> None:
        status, reason = self._parts.status()
        if status != "online":
            raise Refused("device_offline", f"{self.device_id} is {status}: {reason}")


async def _each(boards: Sequence[Board], verb: Callable[[Board], Awaitable[None]]) -> None:
    """`verb` on all boards at once; the first refusal is raised when every one has been tried."""
    refusals: list[Refused] = []

    async def do(board: Board) -> None:
        try:
            await _do(verb(board))
        except Refused as refusal:
            refusals.append(refusal)

    async with trio.open_nursery() as nursery:
        for board in boards:
            nursery.start_soon(do, board)
    if refusals:
        raise refusals[0]


async def _do(verb: Awaitable[T]) -> T:
    """A board's failure, as the refusal that staff are told."""
    try:
        return await verb
    except BoardError as error:
        info, _ = verdict_of(error)
        raise Refused(info.code, info.message) from error


def storage_said(ledger: Ledger, device_id: str) -> dict[str, str]:
    """What stands in a device's metadata when a damaged receipt keeps it from being used."""
    fault = ledger.damage(device_id)
    return {} if fault is None else {"storageFault": str(fault)}
