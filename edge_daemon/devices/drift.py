"""Has the camera or the phone moved since the calibration? Looked at on start, on schedule and after a disturbance.

Nothing is moved for it and nothing waits for it: pictures are taken while the hand happens to stand parked, and
thrown away when something began meanwhile. Too large a shift is written into the store before anybody hears of it, so
that a restart does not forget it. What cannot be measured is said to be unmeasured, never taken for still.
"""

import logging
from collections.abc import Callable

import cv2
import msgspec
import numpy as np
import trio

from calibration.drift import DriftReference, DriftReport, measure
from calibration.errors import PictureRefused
from calibration.result import DeviceCalibration
from calibration.store import Cause
from calibration.targets import Image
from edge_daemon.boards import Board, BoardInfo, BoardOnline, HandMoved, StatusChanged
from edge_daemon.cameras.camera import CameraOnline
from edge_daemon.cameras.errors import CameraError
from edge_daemon.clock import MonotonicNs
from edge_daemon.contract import Refused
from edge_daemon.devices.parts import Parts
from edge_daemon.ledger import Ledger
from edge_daemon.upstream.service import DriftFound

logger = logging.getLogger(__name__)

PICTURES = 5
"""Averaged by the measurement; a third of a second at 15 pictures a second."""
MEASUREMENTS_MAX = 3
PICTURE_TIMEOUT_S = 3.0
CHECK_NOW_TIMEOUT_S = 10.0
"""How long somebody who asks waits for the hand to be parked between two actions of the plane."""
RETRY_S = 5.0
"""After pictures that had to be thrown away, or a moment at which none may be taken."""


_WHO_MOVED = {"camera_moved": "the camera", "phone_moved": "the phone", "both_moved": "camera and phone"}
NO_REFERENCE = DriftFound(
    verdict="unmeasured",
    message="the calibration in use was made without anything to measure against; the next one will have it",
    warn=False,
    hold=False,
    shift_px=None,
)


class DriftWatch:
    """The watch over one device. `run` belongs into the device's nursery."""

    def __init__(
        self,
        device_id: str,
        parts: Parts,
        ledger: Ledger,
        monotonic_ns: MonotonicNs,
        every_s: float,
        on_change: Callable[[], None],
    ) -> None:
        self._device_id = device_id
        self._parts = parts
        self._slot = parts.slot
        self._ledger = ledger
        self._now_ns = monotonic_ns
        self._every_s = every_s
        self._on_change = on_change
        self._stir = trio.Event()
        self._measuring = trio.Lock()
        parts.shelf.on_filled = lambda: self.disturbed("a calibration is in use")

    def disturbed(self, why: str) -> None:
        """Something may have moved: look as soon as the device is idle."""
        logger.debug("%s: drift is measured soon: %s", self._device_id, why)
        self._stir.set()

    # -- when ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            for board in self._parts.boards:
                nursery.start_soon(self._feel, board)
            nursery.start_soon(self._watch_camera)
            self.disturbed("start")
            while True:
                await self._rest(self._every_s)
                while not await self._measure_when_idle():
                    await self._rest(RETRY_S)

    async def _rest(self, longest_s: float) -> None:
        """Until something is disturbed, for so long at most."""
        with trio.move_on_after(longest_s):
            await self._stir.wait()
        self._stir = trio.Event()

    async def _feel(self, board: Board) -> None:
        """A push that the board senses, or a board that comes back: somebody was at the rig."""
        known = board.last_info
        while True:
            with board.events() as events:
                async for event in events:
                    if isinstance(event, HandMoved):
                        self.disturbed(f"board {board.name} was moved ({event.cause})")
                    elif isinstance(event, StatusChanged) and isinstance(event.status, BoardOnline):
                        self.disturbed(f"board {board.name} came back")
                        if known is not None and _lost_power(known, event.status.info):
                            await self._distrust_pointer(board)
                        known = event.status.info
            self.disturbed(f"events of board {board.name} were missed")

    async def _distrust_pointer(self, board: Board) -> None:
        """The phone feeds its HID board: one that lost its power tells of a phone that started again."""
        calibration = self._slot.calibration
        if board is self._parts.hid_board and calibration is not None and calibration.pointer is not None:
            logger.warning("%s: the phone started again: its pointer's speed may be another", self._device_id)
            await self._parts.shelf.invalidate("phone_rebooted", None)
            self._on_change()

    async def _watch_camera(self) -> None:
        camera = self._parts.camera
        known = camera.status
        while True:
            status = await camera.status_other_than(known)
            if isinstance(status, CameraOnline) and not isinstance(known, CameraOnline):
                self.disturbed(f"camera {camera.name} came back")
            known = status

    async def _measure_when_idle(self) -> bool:
        """False: not now, try again. True also when there is nothing to measure, or nothing to measure it with."""
        if self._slot.calibration is None or self._slot.moved is not None:
            return True
        if not isinstance(self._parts.camera.status, CameraOnline):
            # Its return stirs the watch.
            return True
        if self._parts.keeper is not None:
            await self._parts.keeper.wait_parked()
        async with self._measuring:
            return await self._judge() is not None

    # -- measuring ----------------------------------------------------------------------------------------

    async def check_now(self) -> DriftFound:
        """For whoever asks. Raises `Refused` when the device is not calibrated, or no picture may be taken now."""
        if self._slot.moved is None:
            self._slot.require_camera()
        if self._ledger.parked(self._device_id):
            raise Refused(
                "needs_user_control", f"a person has the screen of {self._device_id}: no picture is taken"
            )
        found: DriftFound | None = None
        with trio.move_on_after(CHECK_NOW_TIMEOUT_S):
            if self._parts.keeper is not None:
                await self._parts.keeper.wait_parked()
            async with self._measuring:
                found = await self._judge()
        if found is None:
            raise Refused(
                "device_offline",
                f"{self._device_id}: no picture without the hand in it came within {CHECK_NOW_TIMEOUT_S:.0f} s; "
                "ask again while it is idle",
            )
        return found

    async def _judge(self) -> DriftFound | None:
        """One measurement and what follows of it; None when its pictures cannot be used. Another confirms a hold."""
        calibration = self._slot.calibration
        if calibration is None or self._slot.moved is not None:
            return self._slot.drift
        reference = calibration.camera.reference
        if reference is None:
            self._note(NO_REFERENCE)
            return NO_REFERENCE
        try:
            report = await self._measured_surely(calibration, reference)
        except PictureRefused as error:
            found = msgspec.structs.replace(NO_REFERENCE, message=str(error))
            self._note(found)
            return found
        if report is None or self._slot.calibration is not calibration:
            return None
        found = found_of(report)
        self._note(found)
        if report.hold:
            await self._hold(report, found)
        return found

    def _note(self, found: DriftFound) -> None:
        """Told once for each time it changes: a measurement every few minutes must not fill the log."""
        before, self._slot.drift = self._slot.drift, found
        self._slot.warning = found.message if found.warn or found.hold else None
        if before is None or (before.verdict, before.warn, before.hold) != (
            found.verdict,
            found.warn,
            found.hold,
        ):
            level = logging.INFO if found.verdict == "still" and not found.warn else logging.WARNING
            logger.log(level, "%s: drift: %s: %s", self._device_id, found.verdict, found.message)
        self._on_change()

    async def _hold(self, report: DriftReport, found: DriftFound) -> None:
        cause: Cause = "camera_moved" if report.verdict == "camera_moved" else "phone_moved"
        who = _WHO_MOVED.get(report.verdict, "camera or phone")
        moved = (
            f"{who} moved by {found.shift_px:.2f} px since the calibration; nothing is shown, and nothing done on a "
            "false picture"
        )
        logger.error("%s: out of use: %s", self._device_id, moved)
        await self._parts.shelf.invalidate(cause, moved)
        self._on_change()

    async def _measured_surely(
        self, calibration: DeviceCalibration, reference: DriftReference
    ) -> DriftReport | None:
        """A hold only when two measurements in a row say so: a passing hand or a jolt may look like a shift.

        And "unmeasured" only when it stays so: pictures of a phone that is just being moved do not agree.
        """
        report = None
        for _ in range(MEASUREMENTS_MAX):
            former, report = report, await self._measure(calibration, reference)
            if report is None:
                return None
            confirmed = former is not None and former.hold and report.hold
            if confirmed or not (report.hold or report.verdict == "unmeasured"):
                return report
        return report

    async def _measure(self, calibration: DeviceCalibration, reference: DriftReference) -> DriftReport | None:
        """None when something moved, or somebody has the device, while the pictures were taken."""
        begun_ns = self._now_ns()
        if not self._is_quiet(begun_ns):
            return None
        jpegs = await self._take_pictures(begun_ns)
        if jpegs is None or not self._is_quiet(begun_ns):
            return None
        return await trio.to_thread.run_sync(_measured, jpegs, reference, calibration)

    def _is_quiet(self, begun_ns: int) -> bool:
        """Nobody is at the phone, and the hand has stood out of the picture since `begun_ns`."""
        if self._ledger.parked(self._device_id) or self._ledger.hold(self._device_id) is not None:
            return False
        if self._parts.busy.locked():
            return False
        history = self._parts.history
        return self._parts.keeper is None or (history.parked and history.last_move_end_ns < begun_ns)

    async def _take_pictures(self, begun_ns: int) -> list[bytes] | None:
        jpegs: list[bytes] = []
        after_ns = begun_ns
        try:
            while len(jpegs) < PICTURES:
                frame = await self._parts.camera.frame_after(after_ns, PICTURE_TIMEOUT_S)
                after_ns = frame.exposed_ns
                jpegs.append(frame.jpeg)
        except CameraError as error:
            logger.info("%s: drift not measured: %s", self._device_id, error)
            return None
        return jpegs


def _lost_power(before: BoardInfo, now: BoardInfo) -> bool:
    return now.boot_id != before.boot_id and now.reset_cause == "power-on"


def found_of(report: DriftReport) -> DriftFound:
    """As it travels."""
    shifts = [report.bed_shift_px, report.outline_shift_px, report.phone_shift_px]
    return DriftFound(
        verdict=report.verdict,
        message=report.message,
        warn=report.warn,
        hold=report.hold,
        shift_px=max((shift for shift in shifts if shift is not None), default=None),
    )


def _measured(jpegs: list[bytes], reference: DriftReference, calibration: DeviceCalibration) -> DriftReport:
    """Runs in a worker thread. Raises PictureRefused for pictures of another size."""
    pictures = [_decoded(jpeg) for jpeg in jpegs]
    return measure(pictures, reference, calibration.camera.model, calibration.screen)


def _decoded(jpeg: bytes) -> Image:
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None, "the capture process lets only whole pictures through"
    return np.asarray(image, dtype=np.uint8)
