"""Looks at one device, and the notes on the frame an action was decided on."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import trio

from calibration.result import DeviceCalibration
from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.errors import BadPicture, CameraError, UnknownFrame
from edge_daemon.cameras.frames import FrameBook, FrameRecord
from edge_daemon.cameras.rectify import QuarterTurns, Rectifier
from edge_daemon.cameras.ring import RawFrame
from edge_daemon.cameras.settle import MAX_GIVEN_SIGMA, MIN_STILL_MS, Polygon, SettleVerdict
from edge_daemon.clock import NS_PER_MS, MonotonicNs, PlaneClock
from edge_daemon.contract import FrameNotes, Look, Orientation, Picture, PixelSize, Refused
from edge_daemon.contract.actions import GRID_MAX
from edge_daemon.devices.history import HandHistory
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.slot import CalibrationSlot

FRAME_TIMEOUT_S = 3.0
"""The daemon never waits longer for a dead camera."""
LONG_SIDE_PX = 1000
"""Of the rectified picture: about what a 1280-pixel camera resolves along the long side of a phone."""
REACTION_NS = 200 * NS_PER_MS
"""A phone begins to show its answer 30 to 150 ms after a key or a touch; until then its old page looks still."""
STATUS_BAR_GRID = 35.0
"""Height of the strip at the top whose clock and icons change without the page changing."""

_TURNS: dict[Orientation, QuarterTurns] = {
    "portrait": 0,
    "landscape_right": 1,
    "portrait_upside_down": 2,
    "landscape_left": 3,
}


@dataclass
class Sight:
    """What a calibration means for pictures; made once per calibration, it costs some 50 ms."""

    calibration: DeviceCalibration
    rectifier: Rectifier
    screen: Polygon
    status_bar: Polygon = field(default=())

    @classmethod
    def of(cls, calibration: DeviceCalibration) -> "Sight":
        camera, screen = calibration.camera.model, calibration.screen
        noise = calibration.camera.noise_sigma
        if noise is not None and not 0.0 <= noise <= MAX_GIVEN_SIGMA:
            raise ValueError(
                f"its camera's noise was measured as {noise:.2f} grey levels, more than {MAX_GIVEN_SIGMA:g}: a still "
                "screen could not be told; look at light and exposure, then calibrate again"
            )
        width = round(LONG_SIDE_PX * screen.width_mm / screen.height_mm)
        map_x, map_y = camera.rectify_maps(screen, width, LONG_SIDE_PX)
        return cls(
            calibration=calibration,
            rectifier=Rectifier(map_x, map_y, source_size=(camera.image_width, camera.image_height)),
            screen=_polygon(calibration, screen.outline_mm()),
            status_bar=_polygon(
                calibration,
                screen.grid_to_mm(
                    np.array(
                        [[0.0, 0.0], [GRID_MAX, 0.0], [GRID_MAX, STATUS_BAR_GRID], [0.0, STATUS_BAR_GRID]]
                    )
                ),
            ),
        )


def _polygon(calibration: DeviceCalibration, screen_mm: Any) -> Polygon:
    return [(float(x), float(y)) for x, y in calibration.camera.model.project(screen_mm)]


class Eye:
    """Serves pictures of one device and remembers which frames were served to whom."""

    def __init__(
        self,
        device_id: str,
        camera: Camera,
        slot: CalibrationSlot,
        keeper: HandKeeper | None,
        history: HandHistory,
        orientation: Orientation,
        clock: PlaneClock,
        monotonic_ns: MonotonicNs,
    ) -> None:
        self._device_id = device_id
        self._camera = camera
        self._slot = slot
        self._keeper = keeper
        self._history = history
        self._orientation: Orientation = orientation
        self._clock = clock
        self._now_ns = monotonic_ns
        self._book = FrameBook()
        self._sight: Sight | None = None
        self._newest_served = ""
        self._last_act_ns = 0

    # -- bound frames -------------------------------------------------------------------------------------

    def bound(self, frame_id: str | None) -> FrameRecord | None:
        """The frame an action is bound to. Raises `Refused` for one that this eye never served or has forgotten:
        a hand acts on old frames, but on an unknown one it could not even tell the orientation."""
        if frame_id is None:
            return None
        try:
            return self._book.lookup(frame_id)
        except UnknownFrame as error:
            raise Refused("stale_frame", str(error), field="observedFrame") from error

    def orientation_of(self, bound: FrameRecord | None) -> Orientation:
        """The orientation that the coordinates mean: the bound frame's, else the device's current one."""
        return self._orientation if bound is None else bound.orientation

    def refuse_stale(self, bound: FrameRecord) -> None:
        """For parts that must not act on an old frame: refuses when something was done or shown since."""
        since_ns = max(self._last_act_ns, self._history.last_edge_move_ns)
        if bound.frame_id != self._newest_served or since_ns > bound.exposed_ns:
            raise Refused(
                "stale_frame",
                f"frame {bound.frame_id} is no longer current: look again and decide again",
                field="observedFrame",
            )

    def acted(self, at_ns: int) -> None:
        """Something was done to the phone; frames exposed before are no longer current."""
        self._last_act_ns = max(self._last_act_ns, at_ns)

    def notes(self, bound: FrameRecord, accepted_ns: int) -> FrameNotes:
        """Measured at the moment the board accepted the action. `newer_frames` is counted by `recount`: frames
        exposed by then may still be on their way from the camera. Raises nothing: the hand is moving already."""
        history = self._history
        settled, reason = _settled(bound, history)
        return FrameNotes(
            age_ms=round((accepted_ns - bound.exposed_ns) / NS_PER_MS, 3),
            newer_frames=0,
            edge_moved_since=history.last_edge_move_ns > bound.exposed_ns,
            settled=settled,
            settle_reason=reason,
        )

    def recount(self, notes: FrameNotes, bound: FrameRecord, accepted_ns: int) -> FrameNotes:
        """`notes` with the frames exposed after the bound one and up to `accepted_ns`."""
        newer = self._camera.captured_between(bound.sequence, accepted_ns)
        return msgspec.structs.replace(notes, newer_frames=newer)

    # -- looking ------------------------------------------------------------------------------------------

    async def look(self, request: Look) -> Picture:
        """A picture exposed after this call; with a lease, bound to a frame id. Raises `Refused`."""
        arrived_ns = self._now_ns()
        sight = await self._current_sight()
        wait_s = request.wait_settled_ms / 1000.0
        try:
            if request.lease is not None and self._keeper is not None and wait_s > 0:
                # A look that will decide an action wants the hand out of the picture; a watch moves nothing.
                await self._keeper.out_of_picture(wait_s)
            frame, verdict = await self._settled_frame(sight, arrived_ns, wait_s)
            rendered = await sight.rectifier.picture(
                frame.jpeg, request.format, turns=_TURNS[self._orientation]
            )
        except BadPicture as error:
            raise Refused("uncalibrated", f"{self._device_id}: {error}") from error
        except CameraError as error:
            raise Refused("device_offline", f"{self._device_id}: {error}") from error
        record = self._book.mint(
            frame,
            orientation=self._orientation,
            settle=verdict,
            fencing_token=request.lease.fencing_token if request.lease is not None else None,
        )
        if record is not None:
            self._newest_served = record.frame_id
        return Picture(
            format=rendered.format,
            image=rendered.image,
            pixel_size=PixelSize(width=rendered.width, height=rendered.height),
            orientation=self._orientation,
            sequence=frame.sequence,
            captured_at=self._clock.iso(frame.exposed_ns) if self._clock.synced else None,
            clock_synced=self._clock.synced,
            age_ms=round((self._now_ns() - frame.exposed_ns) / NS_PER_MS, 3),
            settle=verdict.state,
            settle_reason=verdict.reason if verdict.state != "still" else None,
            hand_in_picture=self._hand_in_picture(frame),
            frame_id=record.frame_id if record is not None else None,
        )

    async def _current_sight(self) -> Sight:
        calibration = self._slot.require_camera()
        if self._sight is None or self._sight.calibration is not calibration:
            try:
                self._sight = await trio.to_thread.run_sync(Sight.of, calibration)
            except ValueError as error:
                raise Refused("uncalibrated", f"{self._device_id}: {error}") from error
        return self._sight

    async def _settled_frame(
        self, sight: Sight, arrived_ns: int, wait_s: float
    ) -> tuple[RawFrame, SettleVerdict]:
        """The very frame the verdict was made on when the screen is still; else the newest, and why not."""
        if wait_s == 0:
            frame = await self._camera.frame_after(arrived_ns, FRAME_TIMEOUT_S)
            return frame, SettleVerdict(state="unreliable", reason="nobody waited for the screen to be still")
        # A still stretch that begins no earlier than this ends after the request arrived.
        stretch_ns = arrived_ns - round(MIN_STILL_MS * NS_PER_MS)
        answered_ns = self._last_act_ns + REACTION_NS
        verdict = await self._camera.settled(
            max(self._history.last_move_end_ns, answered_ns, stretch_ns),
            wait_s,
            mask=sight.screen,
            ignore=[sight.status_bar],
            noise_sigma=sight.calibration.camera.noise_sigma,
        )
        still = None
        if verdict.state == "still" and verdict.sequence is not None:
            still = self._camera.frame_numbered(verdict.sequence)
        if still is not None and still.exposed_ns > arrived_ns:
            return self._without_hand(still, verdict)
        frame = await self._camera.frame_after(arrived_ns, FRAME_TIMEOUT_S)
        if verdict.state == "still":
            verdict = replace(verdict, state="unreliable", reason="the settled frame was no longer kept")
        return self._without_hand(frame, verdict)

    def _without_hand(self, frame: RawFrame, verdict: SettleVerdict) -> tuple[RawFrame, SettleVerdict]:
        if self._hand_in_picture(frame):
            verdict = replace(verdict, state="unreliable", reason="the hand is in the picture")
        return frame, verdict

    def _hand_in_picture(self, frame: RawFrame) -> bool:
        history = self._history
        return self._keeper is not None and not (
            history.parked and history.last_move_end_ns < frame.exposed_ns
        )


def _settled(record: FrameRecord, history: HandHistory) -> tuple[bool, str | None]:
    """Was the frame taken after the screen had become still following the hand's last move?"""
    if record.settle.state != "still":
        return False, record.settle.reason
    if record.exposed_ns <= history.last_move_end_ns:
        return False, "the hand has moved since the frame"
    return True, None
