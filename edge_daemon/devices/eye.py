"""Looks at one device, and the notes on the frame an action was decided on."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import msgspec
import trio

from edge_daemon.cameras.camera import Camera, CameraOnline
from edge_daemon.cameras.errors import BadPicture, CameraError, UnknownFrame
from edge_daemon.cameras.frames import FrameBook, FrameRecord
from edge_daemon.cameras.orientation import OrientationFound
from edge_daemon.cameras.ring import RawFrame
from edge_daemon.cameras.settle import MIN_STILL_MS, SettleVerdict
from edge_daemon.clock import NS_PER_MS, MonotonicNs, PlaneClock
from edge_daemon.contract import FrameNotes, Look, Orientation, Picture, PixelSize, Refused
from edge_daemon.devices.history import HandHistory
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.sight import Sight
from edge_daemon.devices.slot import CalibrationSlot

FRAME_TIMEOUT_S = 3.0
"""The daemon never waits longer for a dead camera."""
LATE_FRAMES_S = 1.0
"""How long an outcome waits for the frames that were exposed before it was begun: an action of a hand lasts longer than
a picture is on its way, so nearly always not at all."""
REACTION_NS = 200 * NS_PER_MS
"""A phone begins to show its answer 30 to 150 ms after a key or a touch; until then its old page looks still."""


class Eye:
    """Serves pictures of one device and remembers which frames were served to whom.

    orientation: how the screen is turned now, as it was configured or set.
    """

    def __init__(
        self,
        device_id: str,
        camera: Camera,
        slot: CalibrationSlot,
        keeper: HandKeeper | None,
        history: HandHistory,
        orientation: Callable[[], Orientation],
        clock: PlaneClock,
        monotonic_ns: MonotonicNs,
    ) -> None:
        self._device_id = device_id
        self._camera = camera
        self._slot = slot
        self._keeper = keeper
        self._history = history
        self._orientation = orientation
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
        return self._orientation() if bound is None else bound.orientation

    def refuse_contradicted(self, bound: FrameRecord) -> None:
        """For actions at a place, also a hand's: refuses when nobody can say which place was meant.

        Such a frame was never current: its orientation is not how the screen was turned when it was taken.
        """
        if bound.contradicted_by is not None:
            raise Refused(
                "stale_frame",
                f"frame {bound.frame_id} was turned as {bound.orientation}, but shows a screen turned "
                f"{bound.contradicted_by}: its places are not clear. Turn the phone back, or have staff run: "
                f"edge-daemon devices orientation {self._device_id} found; then look and decide again",
                field="observedFrame",
            )

    def refuse_stale(self, bound: FrameRecord) -> None:
        """For parts that must not act on an old frame: refuses when something was done, turned or shown since."""
        since_ns = max(self._last_act_ns, self._history.last_edge_move_ns)
        current = bound.frame_id == self._newest_served and bound.orientation == self._orientation()
        if not current or since_ns > bound.exposed_ns:
            raise Refused(
                "stale_frame",
                f"frame {bound.frame_id} is no longer current: look again and decide again",
                field="observedFrame",
            )

    def acted(self, at_ns: int) -> None:
        """Something was done to the phone; frames exposed before are no longer current."""
        self._last_act_ns = max(self._last_act_ns, at_ns)

    def notes(self, bound: FrameRecord, accepted_ns: int) -> FrameNotes:
        """Measured at the moment the board accepted the action; `completed` adds what is known later only.

        Raises nothing: the hand is moving already.
        """
        settled, reason = _settled(bound, self._history)
        return FrameNotes(
            age_ms=round((accepted_ns - bound.exposed_about_ns) / NS_PER_MS, 3),
            newer_frames=0,
            edge_moved_since=self._history.edge_moved_between(bound.exposed_ns, accepted_ns),
            settled=settled,
            settle_reason=reason,
        )

    async def completed(self, notes: FrameNotes, bound: FrameRecord, accepted_ns: int) -> FrameNotes:
        """`notes` with the frames exposed after the bound one and up to `accepted_ns`, and the moves of the edge that
        were told late. Waits for frames still on their way, but not for long; a shutdown does not cut it short."""
        if isinstance(self._camera.status, CameraOnline):
            with trio.move_on_after(LATE_FRAMES_S, shield=True), suppress(CameraError):
                await self._camera.frame_after(accepted_ns, LATE_FRAMES_S)
        return msgspec.structs.replace(
            notes,
            newer_frames=self._camera.captured_between(bound.sequence, accepted_ns),
            edge_moved_since=notes.edge_moved_since
            or self._history.edge_moved_between(bound.exposed_ns, accepted_ns),
        )

    # -- looking ------------------------------------------------------------------------------------------

    async def look(self, request: Look) -> Picture:
        """A picture exposed after this call; with a lease, bound to a frame id. Raises `Refused`."""
        arrived_ns = self._now_ns()
        orientation = self._orientation()
        sight = await self._current_sight()
        wait_s = request.wait_settled_ms / 1000.0
        try:
            if request.lease is not None and self._keeper is not None and wait_s > 0:
                # A look that will decide an action wants the hand out of the picture; a watch moves nothing.
                await self._keeper.out_of_picture(wait_s)
            frame, verdict = await self._settled_frame(sight, orientation, arrived_ns, wait_s)
            rendered, found = await trio.to_thread.run_sync(
                sight.show, frame.jpeg, request.format, orientation
            )
        except BadPicture as error:
            raise Refused("uncalibrated", f"{self._device_id}: {error}") from error
        except CameraError as error:
            raise Refused("device_offline", f"{self._device_id}: {error}") from error
        contradicted_by = self._contradiction(found, orientation, frame)
        record = self._book.mint(
            frame,
            orientation=orientation,
            contradicted_by=contradicted_by,
            settle=verdict,
            fencing_token=request.lease.fencing_token if request.lease is not None else None,
        )
        if record is not None:
            self._newest_served = record.frame_id
        return Picture(
            format=rendered.format,
            image=rendered.image,
            pixel_size=PixelSize(width=rendered.width, height=rendered.height),
            orientation=orientation,
            sequence=frame.sequence,
            captured_at=self._clock.iso(frame.exposed_about_ns) if self._clock.synced else None,
            clock_synced=self._clock.synced,
            age_ms=round((self._now_ns() - frame.exposed_about_ns) / NS_PER_MS, 3),
            settle=verdict.state,
            settle_reason=verdict.reason if verdict.state != "still" else None,
            hand_in_picture=self._hand_in_picture(frame),
            frame_id=record.frame_id if record is not None else None,
            orientation_mismatch=contradicted_by,
        )

    async def found_orientation(self) -> Orientation:
        """How a picture exposed after this call shows the screen to be turned. Raises `Refused`."""
        sight = await self._current_sight()
        try:
            frame = await self._camera.frame_after(self._now_ns(), FRAME_TIMEOUT_S)
            _, found = await trio.to_thread.run_sync(sight.show, frame.jpeg, "jpeg", self._orientation())
        except BadPicture as error:
            raise Refused("uncalibrated", f"{self._device_id}: {error}") from error
        except CameraError as error:
            raise Refused("device_offline", f"{self._device_id}: {error}") from error
        if found.orientation is None or self._hand_in_picture(frame):
            why = found.evidence if found.orientation is None else "the hand is in the picture"
            raise Refused(
                "invalid_argument",
                f"the picture does not tell how the screen of {self._device_id} is turned: {why}. Show a page with the "
                "navigation handle or a page of the calibration, or name the orientation",
                field="orientation",
            )
        return found.orientation

    def _contradiction(
        self, found: OrientationFound, orientation: Orientation, frame: RawFrame
    ) -> Orientation | None:
        """What the picture shows where that is not the orientation it was taken for. A hand that lies over a bar may
        look like anything."""
        if found.orientation == orientation or self._hand_in_picture(frame):
            return None
        return found.orientation

    async def _current_sight(self) -> Sight:
        calibration = self._slot.require_camera()
        if self._sight is None or self._sight.calibration is not calibration:
            try:
                self._sight = await trio.to_thread.run_sync(Sight.of, calibration)
            except ValueError as error:
                raise Refused("uncalibrated", f"{self._device_id}: {error}") from error
        return self._sight

    async def _settled_frame(
        self, sight: Sight, orientation: Orientation, arrived_ns: int, wait_s: float
    ) -> tuple[RawFrame, SettleVerdict]:
        """The very frame the verdict was made on when the screen is still; else the newest, and why not."""
        if wait_s == 0:
            frame = await self._camera.frame_after(arrived_ns, FRAME_TIMEOUT_S)
            return frame, SettleVerdict(state="unreliable", reason="nobody waited for the screen to be still")
        # A still stretch that begins no earlier than this ends after the request arrived.
        stretch_ns = arrived_ns - round(MIN_STILL_MS * NS_PER_MS)
        answered_ns = max(self._last_act_ns, self._history.last_edge_move_ns) + REACTION_NS
        verdict = await self._camera.settled(
            max(self._history.last_move_end_ns, answered_ns, stretch_ns),
            wait_s,
            mask=sight.screen,
            ignore=[sight.status_bars[orientation]],
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
        """Whether it may be: only a hand that stood parked all the while is known to be out of it."""
        return self._keeper is not None and not self._history.was_out_of_picture(
            frame.exposed_ns, frame.received_ns
        )


def _settled(record: FrameRecord, history: HandHistory) -> tuple[bool, str | None]:
    """Was the frame taken after the screen had become still following the hand's last move?"""
    if record.settle.state != "still":
        return False, record.settle.reason
    if record.exposed_ns <= history.last_move_end_ns:
        return False, "the hand has moved since the frame"
    return True, None
