"""What staff at the rig may do with a device: take it, look raw, touch at hand coordinates, adopt a calibration."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import trio

from calibration.errors import CalibrationError
from calibration.result import DeviceCalibration
from calibration.store import load
from edge_daemon.boards import Board, BoardError, HandLimits
from edge_daemon.cameras.errors import CameraError
from edge_daemon.clock import MonotonicNs
from edge_daemon.config import DeviceSection
from edge_daemon.contract import DeviceDescription, Refused, StaffHold
from edge_daemon.devices.approach import approach
from edge_daemon.devices.command_ids import CommandIds
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.parts import Parts
from edge_daemon.devices.receipts import verdict_of
from edge_daemon.ledger import Hold, Ledger
from edge_daemon.upstream.service import (
    HandEnvelope,
    HandPoint,
    RawPicture,
    RigFacts,
    ScreenSize,
    StaffTouchAt,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

STAFF_LOOK_TIMEOUT_S = 3.0
PARK_TIMEOUT_S = 10.0


class StaffDesk:
    """One device from the staff's side. Moves made here are what `edgeMovedSince` tells the plane."""

    def __init__(
        self,
        device_id: str,
        section: DeviceSection,
        parts: Parts,
        ledger: Ledger,
        calibration_path: Path,
        ids: CommandIds,
        monotonic_ns: MonotonicNs,
    ) -> None:
        self._device_id = device_id
        self._section = section
        self._parts = parts
        self._ledger = ledger
        self._calibration_path = calibration_path
        self._ids = ids
        self._now_ns = monotonic_ns

    def describe(self) -> DeviceDescription:
        status, reason = self._parts.status()
        hold = self._ledger.hold(self._device_id)
        has_hand = self._parts.keeper is not None
        return DeviceDescription(
            device_id=self._device_id,
            backend_kind="robot_hand" if has_hand else "esp32_hid",
            kind="robot" if has_hand else "physical",
            status=status,
            status_reason=reason,
            capabilities=self._parts.capabilities(),
            orientation=self._section.orientation,
            calibrated=self._parts.calibrated,
            parked=self._ledger.parked(self._device_id),
            display_name=self._section.display_name,
            staff_hold=StaffHold(hint=hold.hint) if hold is not None else None,
            metadata=self._parts.metadata(),
        )

    def facts(self) -> RigFacts:
        keeper = self._keeper()
        info = keeper.board.last_info
        limits = keeper.hand.limits
        if info is None or limits is None:
            raise Refused("device_offline", f"board {keeper.board.name} has never announced itself")
        motion, screen = self._section.motion, self._section.screen
        hid = next((board for board in self._parts.boards if board.kind == "hid"), None)
        return RigFacts(
            device_id=self._device_id,
            hand_uid=info.uid,
            hid_uid=hid.last_info.uid if hid is not None and hid.last_info is not None else None,
            envelope=_envelope(limits),
            park=HandPoint(x_mm=motion.park_x_mm, y_mm=motion.park_y_mm, z_mm=motion.park_z_mm),
            search_z_mm=motion.search_z_mm,
            screen=ScreenSize(
                width_px=screen.width_px,
                height_px=screen.height_px,
                width_mm=screen.width_mm,
                height_mm=screen.height_mm,
            ),
            calibration_path=str(self._calibration_path),
            camera_name=self._parts.camera.name,
            orientation=self._section.orientation,
        )

    # -- holds --------------------------------------------------------------------------------------------

    async def take_hold(self, hint: str, owner: str) -> None:
        """Durable when it returns; an action already under way ends first, what waits in line is refused."""
        current = self._ledger.hold(self._device_id)
        if current is not None and current.owner != owner:
            raise Refused("leased", f"{self._device_id} is already held: {current.hint}", hint=current.hint)
        await self._ledger.set_hold(self._device_id, Hold(hint=hint, owner=owner))
        async with self._parts.busy:
            pass

    async def release_hold(self, owner: str | None) -> None:
        current = self._ledger.hold(self._device_id)
        if current is None:
            return
        if owner is not None and current.owner != owner:
            raise Refused(
                "permission_denied", f"{self._device_id} is held by {current.owner}, not by this session"
            )
        if self._parts.keeper is not None:
            await self._parts.keeper.rest()
        await self._ledger.set_hold(self._device_id, None)

    def _refuse_without_hold(self, owner: str) -> None:
        hold = self._ledger.hold(self._device_id)
        if hold is None or hold.owner != owner:
            raise Refused(
                "lease_required", f"take the hold of {self._device_id} first: the plane could act meanwhile"
            )

    # -- looking and moving -------------------------------------------------------------------------------

    async def look(self) -> RawPicture:
        """A raw picture exposed after this call; the hand is parked for it if staff hold the device.

        Without a hold nothing is moved: the plane may be acting.
        """
        keeper, held = self._parts.keeper, self._ledger.hold(self._device_id) is not None
        if keeper is not None and held and not await keeper.out_of_picture(PARK_TIMEOUT_S):
            raise Refused("device_offline", f"the hand of {self._device_id} could not be parked for a look")
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
        """One tap at hand coordinates, approached from the same side as the plane's taps are."""
        self._refuse_without_hold(owner)
        keeper = self._ready_keeper()
        async with keeper.moving_at_edge() as hand:
            await _do(
                approach(hand, touch.x_mm, touch.y_mm, touch.hover_z_mm, self._section.motion.approach_mm)
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

    async def park(self, owner: str) -> None:
        self._refuse_without_hold(owner)
        await _do(self._ready_keeper().park())

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

    def adopt_calibration(self) -> None:
        """Reads the device's file again. Raises `Refused` and keeps what is in use when the file is no good."""
        info = self._keeper().board.last_info
        if info is None:
            raise Refused(
                "device_offline", "the hand's board has not announced itself: whose file would this be?"
            )
        try:
            self._parts.slot.adopt(self._stored(info.uid))
        except CalibrationError as error:
            raise Refused("uncalibrated", str(error)) from error

    def load_calibration(self) -> None:
        """When the hand's board has announced itself: what there is for this very board, else the reason why not."""
        info = self._keeper().board.last_info
        assert info is not None
        try:
            self._parts.slot.adopt(self._stored(info.uid))
        except CalibrationError as error:
            self._parts.slot.drop(str(error))
            logger.warning("%s: not calibrated: %s", self._device_id, error)

    def _stored(self, board_uid: str) -> DeviceCalibration:
        return load(self._calibration_path, device_id=self._device_id, board_uid=board_uid).calibration

    # -- inside -------------------------------------------------------------------------------------------

    def _keeper(self) -> HandKeeper:
        if self._parts.keeper is None:
            raise Refused("capability_unsupported", f"{self._device_id} has no hand")
        return self._parts.keeper

    def _ready_keeper(self) -> HandKeeper:
        keeper = self._keeper()
        status, reason = self._parts.status()
        if status != "online":
            raise Refused("device_offline", f"{self._device_id} is {status}: {reason}")
        return keeper


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


def _envelope(limits: HandLimits) -> HandEnvelope:
    return HandEnvelope(
        x_min_mm=limits.x_min_mm,
        x_max_mm=limits.x_max_mm,
        y_min_mm=limits.y_min_mm,
        y_max_mm=limits.y_max_mm,
        z_min_mm=limits.z_min_mm,
        z_max_mm=limits.z_max_mm,
    )
