"""A camera as the daemon uses it: supervised, never stale, honest about what it cannot do."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import monotonic_ns
from typing import Any

import trio

from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.errors import CameraClosed, FrameTimeout, PipeError
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.health import Outline, look
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES
from edge_daemon.cameras.process import Capture, Capturing, capture_process
from edge_daemon.cameras.ring import FrameRing, RawFrame
from edge_daemon.cameras.settle import Polygon, SettleDetector, SettleVerdict
from edge_daemon.cameras.sources import CameraSource
from edge_daemon.cameras.status import CameraCounters as CameraCounters
from edge_daemon.cameras.status import CameraOffline as CameraOffline
from edge_daemon.cameras.status import CameraOnline as CameraOnline
from edge_daemon.cameras.status import CameraStatus as CameraStatus
from edge_daemon.cameras.status import Condition

RING_BYTES = 32 * 1024 * 1024
"""About ten seconds of 1080p at 15 fps; a wait for stillness needs less than one."""
SILENCE_S = 3.0
"""No new frame for this long and the process is killed, and nobody waits any more."""
FROZEN_SHARE = 0.6
"""Of that patience: how long one picture may be repeated until the process itself says that the camera is
frozen. µStreamer repeats a picture once a second, so two repetitions come in time."""
OPEN_S = 10.0
"""A USB camera that has to be woken and set up, on a loaded Pi. Nobody waits for it so long: the status says that it
is being opened."""
OPENING_SAID_S = 1.0
FIRST_BACKOFF_S = 0.25
LONGEST_BACKOFF_S = 1.5
"""A camera that is back gives pictures within three seconds, the start of a process included."""
FIRST_ATTEMPTS, MOST_ATTEMPTS = 3, 60
"""Of one capture process to open the camera: soon a new process may be what helps; while a camera is missing for a
night, one each half minute is enough."""
LOOK_EVERY_S = 2.0
HISTORY_NS = 1_000_000_000
"""A wait for stillness begins with at most this much of what was captured before it."""

InThread = Callable[..., Awaitable[Any]]
"""Runs a function with its arguments where it may take its time."""


def backoff_s(failures: int) -> float:
    """Before the next attempt, after `failures` in a row (1 and more)."""
    return min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 16))


class Camera:
    """One camera and the process that captures from it.

    The owner runs `run()` in its nursery. Everything else may be called from any task of the same trio loop.
    """

    def __init__(
        self,
        name: str,
        source: CameraSource,
        *,
        ring_bytes: int = RING_BYTES,
        silence_s: float = SILENCE_S,
        open_s: float = OPEN_S,
        look_every_s: float = LOOK_EVERY_S,
        capture: Capture = capture_process,
        now_ns: Callable[[], int] = monotonic_ns,
        in_thread: InThread = trio.to_thread.run_sync,
    ) -> None:
        """capture, now_ns, in_thread: where records and times come from and where pictures are decoded; others than
        the real ones make a simulation."""
        if ring_bytes < MAX_JPEG_BYTES:
            raise ValueError(
                f"ring_bytes {ring_bytes}: must hold at least one frame of {MAX_JPEG_BYTES} bytes"
            )
        self.name = name
        self._source = source
        self._frozen_after_ms = round(silence_s * 1000 * FROZEN_SHARE)
        self._ring = FrameRing(ring_bytes)
        self._new: RawFrame | None = None
        self._silence_s = silence_s
        self._open_s = open_s
        self._look_every_s = look_every_s
        self._capture = capture
        self._now_ns = now_ns
        self._in_thread = in_thread
        self._condition = Condition(source, now_ns(), round(silence_s * 1e9))
        self._told = self._condition.status
        self._frame_news: trio.Event | None = None
        self._status_news = trio.Event()
        self._alive_at: float | None = None
        self._scope: trio.CancelScope | None = None
        self._pid: int | None = None
        self._closed = False

    # -- life --

    async def run(self) -> None:
        """Keep the camera open until cancelled or closed. On the way out the capture process is killed and
        reaped."""
        if self._scope is not None or self._closed:
            raise RuntimeError(f"camera {self.name}: run() may be called once")
        self._scope = trio.CancelScope()
        self._alive_at = trio.current_time()
        self._condition.opening()
        self._announce_status()
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._look_now_and_then)
                    await self._supervise()
        finally:
            self._closed = True
            self._condition.closed(self._now_ns())
            self._announce_status()
            self._announce_frame()

    def close(self) -> None:
        """End `run()` for good. Whoever waits for a frame gets CameraClosed."""
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()
        self._announce_status()
        self._announce_frame()

    async def _supervise(self) -> None:
        """Reopened in the same process, then in a new one, for ever; what is wrong meanwhile stands in the status."""
        deaths = 0
        while True:
            captured = self._condition.captured
            cause = await self._capture_once()
            deaths = 1 if self._condition.captured > captured else deaths + 1
            if cause is not None:
                self._fail(*cause)
            self._condition.process_ended()
            # A process that ended as it should has waited before each of its attempts already.
            await trio.sleep(0 if cause is None else backoff_s(deaths))

    async def _capture_once(self) -> tuple[CameraFault, str] | None:
        """One run of the capture process; why it had to end, None when it has said why itself."""
        order = CaptureOrder(
            source=self._source,
            frozen_after_ms=self._frozen_after_ms,
            attempts=min(MOST_ATTEMPTS, FIRST_ATTEMPTS + self.counters.failures),
            last=self._condition.last,
        )
        try:
            async with self._capture(order) as process:
                self._pid = process.pid
                return await self._receive(process)
        except PipeError as error:
            return CameraFault.CAPTURE_DIED, str(error)
        except OSError as error:
            return CameraFault.CAPTURE_DIED, f"no capture process can be started: {error.strerror}"
        finally:
            self._pid = None

    async def _receive(self, process: Capturing) -> tuple[CameraFault, str] | None:
        patience_s, opening_said = self._open_s, False
        until = trio.current_time() + OPENING_SAID_S
        while True:
            # One scope for many records. Its end is moved forward at once, but back only when it has come: to move
            # it with each record costs more than to take the record.
            with trio.CancelScope(deadline=until) as scope:
                ends_at = until
                while (records := await process.receive()) is not None:
                    for header, jpeg in records:
                        self._take(header, jpeg)
                    opening_said = not isinstance(header, pipe.Fault)
                    patience_s = self._silence_s if opening_said else self._open_s
                    until = trio.current_time() + (patience_s if opening_said else OPENING_SAID_S)
                    if until < ends_at:
                        scope.deadline = ends_at = until
                why = await process.why_it_ended()
                return None if why is None else (CameraFault.CAPTURE_DIED, why)
            if trio.current_time() < until:
                continue
            if opening_said:
                return CameraFault.BLOCKED, f"no picture for {patience_s:g} s; the capture process was killed"
            opening_said, until = True, trio.current_time() + patience_s
            self._condition.opening()
            self._announce_status()

    def _take(self, header: pipe.Header, jpeg: bytes) -> None:
        match header:
            case pipe.Opened(notes=notes):
                self._condition.opened(notes)
            case pipe.Fault(fault=fault, reason=reason):
                self._fail(fault, reason)
            case pipe.Frame():
                self._take_frame(header, jpeg)

    def _take_frame(self, header: pipe.Frame, jpeg: bytes) -> None:
        self._condition.took(header, self._now_ns())
        frame = RawFrame(
            camera=self.name,
            sequence=self._condition.captured,
            exposed_ns=header.exposed_ns,
            received_ns=header.received_ns,
            jpeg=jpeg,
            width=header.width,
            height=header.height,
            crc32=header.crc32,
            exposed_about_ns=header.exposed_about_ns,
            captured_about_ns=header.captured_about_ns,
        )
        self._ring.append(frame)
        if self._is_new(frame):
            self._new = frame
            self._alive_at = trio.current_time()
        self._announce_frame()
        self._announce_status()

    def _is_new(self, frame: RawFrame) -> bool:
        """Pictures whose time stands still, or whose time alone goes on, are no sign of life: nobody can use them."""
        known = self._new
        if known is None:
            return True
        repeats = self._condition.live and frame.crc32 == known.crc32
        return frame.exposed_ns > known.exposed_ns and not repeats

    def _fail(self, fault: CameraFault, reason: str) -> None:
        self._condition.failed(fault, reason, self._now_ns())
        self._announce_status()

    async def _look_now_and_then(self) -> None:
        """So that a covered lens is known before somebody acts on its picture."""
        seen = 0
        while True:
            # What was bad is looked at twice as often: that it is over has to be said soon.
            await trio.sleep(self._look_every_s / 2 if self._condition.seen else self._look_every_s)
            frame = self._ring.newest()
            if frame is None or frame.sequence == seen or not isinstance(self.status, CameraOnline):
                continue
            seen = frame.sequence
            screens = dict(self._condition.screens)
            self._condition.looked(await self._in_thread(look, frame.jpeg, screens))
            self._announce_status()

    # -- status --

    @property
    def status(self) -> CameraStatus:
        return self._condition.status

    @property
    def counters(self) -> CameraCounters:
        return self._condition.counters

    @property
    def capture_pid(self) -> int | None:
        """The capture process running now."""
        return self._pid

    def watch_screen(self, name: str, outline: Outline | None) -> None:
        """From now on say when the screen of `name` is dark while its surroundings are lit. outline: its corners in
        raw camera pixels; None when nobody knows them any more."""
        self._condition.screens.pop(name, None)
        if outline is not None:
            self._condition.screens[name] = outline

    async def status_other_than(self, known: CameraStatus) -> CameraStatus:
        """Wait until the status is not `known` any more. Cancelling loses nothing."""
        await trio.lowlevel.checkpoint()
        while self.status == known:
            await self._status_news.wait()
        return self.status

    async def wait_online(self) -> CameraOnline:
        """Wait until frames come. Raises CameraClosed."""
        while not isinstance(self.status, CameraOnline):
            self._refuse_closed()
            await self._status_news.wait()
        return self.status

    def _announce_status(self) -> None:
        """Nobody is woken for a status that is as it was: it is looked at with each frame."""
        status = self._condition.status
        # Mostly it is the same one, and to compare it costs more than to see that.
        if self._closed or (status is not self._told and status != self._told):
            self._told = status
            self._status_news.set()
            self._status_news = trio.Event()

    def _announce_frame(self) -> None:
        """Mostly nobody waits for a frame."""
        if self._frame_news is not None:
            self._frame_news.set()
            self._frame_news = None

    # -- frames --

    def latest(self) -> RawFrame | None:
        """The newest frame, however old it is; see its exposed_ns."""
        return self._ring.newest()

    def captured_after(self, sequence: int) -> int:
        """How many frames the camera captured after that one, sent to us or not."""
        if not 0 <= sequence <= self.counters.captured:
            raise ValueError(f"camera {self.name}: sequence {sequence} is not of 0..{self.counters.captured}")
        return self._condition.captured - sequence

    def captured_between(self, sequence: int, until_ns: int) -> int:
        """How many frames the camera captured after that one and no later than `until_ns`. One that was being exposed
        then is none yet.

        To be asked once a later frame has come: frames exposed by then may still be on their way. Frames that
        were dropped unsent count with those before them, for their exposure is not known.
        """
        later = next(
            (
                frame
                for frame in self._ring
                if frame.sequence > sequence and frame.captured_about_ns > until_ns
            ),
            None,
        )
        return self.captured_after(sequence) if later is None else later.sequence - sequence - 1

    def frame_numbered(self, sequence: int) -> RawFrame | None:
        """The frame of that sequence, while it is kept."""
        return next((frame for frame in self._ring if frame.sequence == sequence), None)

    async def frame_after(self, t_ns: int, timeout_s: float) -> RawFrame:
        """The newest frame whose exposure began after `t_ns` (CLOCK_MONOTONIC); waits for one where there
        is none, but never longer on a dead camera than `silence_s` after its last sign of life. A live camera's picture
        that repeats the one before byte for byte is none: no two exposures of a sensor are equal.

        Raises FrameTimeout, whose text carries the camera's status, or CameraClosed. Cancelling loses
        nothing.
        """
        await self._wait(lambda: self._is_after(self._new, t_ns), trio.current_time() + timeout_s)
        frame = self._new
        if frame is None or not self._is_after(frame, t_ns):
            raise FrameTimeout(
                f"camera {self.name}: no new picture within {timeout_s:g} s ({self._status_in_words()})"
            )
        return frame

    async def settled(
        self,
        after_ns: int,
        timeout_s: float,
        *,
        mask: Polygon | None = None,
        ignore: Sequence[Polygon] = (),
        noise_sigma: float | None = None,
        min_still_ms: float = 250,
    ) -> SettleVerdict:
        """Wait until the screen has been still since some moment after `after_ns`, and say which.

        The verdict is `still`, or after `timeout_s` whatever held last, with `timed_out` set. What each
        argument means, see SettleDetector. A screen that has not begun to react yet looks still: give the
        phone its time in `min_still_ms`. Raises CameraClosed. Cancelling loses nothing.
        """
        detector = SettleDetector(
            mask=mask, ignore=ignore, noise_sigma=noise_sigma, min_still_ms=min_still_ms
        )
        newest = self._ring.newest()
        begin_ns = after_ns if newest is None else max(after_ns, newest.exposed_ns - HISTORY_NS)
        verdict = detector.verdict
        sequence, crc32, repeated = 0, None, 0
        until = trio.current_time() + timeout_s
        while verdict.state != "still":
            frame = await self._next_frame(sequence, begin_ns, until)
            if frame is None or trio.current_time() >= until:
                return self._timed_out(verdict, timeout_s, repeated)
            sequence = frame.sequence
            if self._condition.live and frame.crc32 == crc32:
                # No evidence: a stuck driver's picture looks as still as can be.
                repeated += 1
                continue
            crc32 = frame.crc32
            verdict = await self._in_thread(detector.feed_jpeg, frame.jpeg, frame.exposed_ns)
            verdict = replace(verdict, sequence=sequence)
        return verdict

    async def _next_frame(self, sequence: int, exposed_ns: int, until: float) -> RawFrame | None:
        frame = None

        def found() -> bool:
            nonlocal frame
            frame = self._ring.first_after(sequence, exposed_ns)
            return frame is not None

        await self._wait(found, until)
        return frame

    def _timed_out(self, verdict: SettleVerdict, timeout_s: float, repeated: int) -> SettleVerdict:
        reason = f"not still within {timeout_s:g} s: {verdict.reason}"
        # Not having seen the screen move is no knowledge that it moved.
        if verdict.frames == 0 or isinstance(self.status, CameraOffline):
            return replace(
                verdict, state="unreliable", reason=f"{reason} ({self._status_in_words()})", timed_out=True
            )
        if repeated >= verdict.frames:
            reason = f"{reason}; {repeated} pictures were repetitions of the one before: the camera is stuck"
            return replace(verdict, state="unreliable", reason=reason, timed_out=True)
        return replace(verdict, reason=reason, timed_out=True)

    async def _wait(self, holds: Callable[[], bool], until: float) -> None:
        """Until `holds()`, or `until`, or until the camera has been dead for too long."""
        await trio.lowlevel.checkpoint()
        began_at = trio.current_time()
        while not holds():
            self._refuse_closed()
            dead_at = (began_at if self._alive_at is None else self._alive_at) + self._silence_s
            news = self._frame_news = trio.Event() if self._frame_news is None else self._frame_news
            with trio.move_on_at(min(until, dead_at)) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                return

    def _refuse_closed(self) -> None:
        if self._closed:
            raise CameraClosed(f"camera {self.name} is closed")

    def _status_in_words(self) -> str:
        if isinstance(self.status, CameraOffline):
            return f"offline: {self.status.words}"
        newest = self._ring.newest()
        if newest is not None and newest is not self._new:
            return "online, but the same picture comes again and again: the camera is stuck"
        age_ms = math.inf if newest is None else (monotonic_ns() - newest.exposed_ns) / 1e6
        return f"online, newest picture {age_ms:.0f} ms old"

    @staticmethod
    def _is_after(frame: RawFrame | None, t_ns: int) -> bool:
        return frame is not None and frame.exposed_ns > t_ns
