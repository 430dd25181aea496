"""A camera as the daemon uses it: supervised, never stale, honest about what it cannot do."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic_ns

import trio

from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.errors import CameraClosed, FrameTimeout, PipeError
from edge_daemon.cameras.health import StuckCheck, darkness
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES
from edge_daemon.cameras.process import CaptureProcess, capture_process
from edge_daemon.cameras.ring import FrameRing, RawFrame
from edge_daemon.cameras.settle import Polygon, SettleDetector, SettleVerdict
from edge_daemon.cameras.sources import CameraSource, FilesSource

RING_BYTES = 32 * 1024 * 1024
"""About ten seconds of 1080p at 15 fps; a wait for stillness needs less than one."""
SILENCE_S = 3.0
"""No new frame for this long and the process is killed."""
FROZEN_SHARE = 0.6
"""Of that patience: how long one picture may be repeated until the process itself says that the camera is
frozen. µStreamer repeats a picture once a second, so two repetitions come in time."""
OPEN_S = 10.0
"""A USB camera that has to be woken and set up, on a loaded Pi."""
FIRST_BACKOFF_S = 0.25
LONGEST_BACKOFF_S = 8.0
HEALTHY_S = 10.0
"""A camera that lasted this long is opened again at once; one that keeps failing ever more slowly."""
DARKNESS_EVERY_S = 2.0
HISTORY_NS = 1_000_000_000
"""A wait for stillness begins with at most this much of what was captured before it."""


@dataclass(frozen=True)
class CameraOnline:
    """Frames come. `degraded`: what is wrong all the same, in words ("the picture is black", a rate not
    kept)."""

    width: int
    height: int
    since_ns: int
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class CameraOffline:
    """No frames come. `failures`: attempts in a row that ended without lasting frames."""

    reason: str
    since_ns: int
    failures: int = 0


CameraStatus = CameraOnline | CameraOffline


@dataclass(frozen=True)
class CameraCounters:
    """Since the daemon started. dropped: captured, counted, but too late to be sent; broken: no whole
    picture."""

    captured: int = 0
    dropped: int = 0
    broken: int = 0
    restarts: int = 0


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
        darkness_every_s: float = DARKNESS_EVERY_S,
    ) -> None:
        if ring_bytes < MAX_JPEG_BYTES:
            raise ValueError(
                f"ring_bytes {ring_bytes}: must hold at least one frame of {MAX_JPEG_BYTES} bytes"
            )
        self.name = name
        self._order = CaptureOrder(source=source, frozen_after_ms=round(silence_s * 1000 * FROZEN_SHARE))
        self._ring = FrameRing(ring_bytes)
        self._silence_s = silence_s
        self._open_s = open_s
        self._darkness_every_s = darkness_every_s
        self._status: CameraStatus = CameraOffline("not started", monotonic_ns())
        self._notes: tuple[str, ...] = ()
        self._dark: str | None = None
        self._stuck: str | None = None
        self._stuck_check = StuckCheck(round(silence_s * 1e9))
        # A recording may hold equal pictures, a sensor never gives two.
        self._live = not isinstance(source, FilesSource)
        self._counters = CameraCounters()
        self._before = CameraCounters()
        self._news = trio.Event()
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
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch_darkness)
                    await self._supervise()
        finally:
            self._closed = True
            self._set_status(CameraOffline("closed", monotonic_ns()))

    def close(self) -> None:
        """End `run()` for good. Whoever waits for a frame gets CameraClosed."""
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()
        self._announce()

    async def _supervise(self) -> None:
        failures = 0
        while True:
            started = trio.current_time()
            reason = await self._capture_once()
            failures = 1 if trio.current_time() - started >= HEALTHY_S else failures + 1
            self._before = self._counters = replace(self._counters, restarts=self._counters.restarts + 1)
            self._dark = self._stuck = None
            self._set_status(CameraOffline(reason, monotonic_ns(), failures))
            await trio.sleep(backoff_s(failures))

    async def _capture_once(self) -> str:
        """One run of the capture process; returns why it ended."""
        try:
            async with capture_process(self._order) as process:
                self._pid = process.pid
                return await self._receive_frames(process)
        except PipeError as error:
            return str(error)
        except OSError as error:
            return f"no capture process can be started: {error.strerror}"
        finally:
            self._pid = None

    async def _receive_frames(self, process: CaptureProcess) -> str:
        patience_s = self._open_s
        deadline = trio.current_time() + patience_s
        while True:
            with trio.move_on_at(deadline) as waiting:
                records = await process.receive()
            if waiting.cancelled_caught:
                return f"no picture for {patience_s:g} s; the capture process was killed"
            if records is None:
                return await process.why_it_ended()
            for header, jpeg in records:
                match header:
                    case pipe.Opened(notes=notes):
                        self._notes = notes
                    case pipe.Fault(reason=reason):
                        return reason
                    case pipe.Frame():
                        self._take(header, jpeg)
                        patience_s = self._silence_s
                        deadline = trio.current_time() + patience_s

    def _take(self, header: pipe.Frame, jpeg: bytes) -> None:
        self._counters = CameraCounters(
            captured=self._before.captured + header.sequence,
            dropped=self._before.dropped + header.dropped,
            broken=self._before.broken + header.broken,
            restarts=self._before.restarts,
        )
        self._ring.append(
            RawFrame(
                camera=self.name,
                sequence=self._counters.captured,
                exposed_ns=header.exposed_ns,
                received_ns=header.received_ns,
                jpeg=jpeg,
                width=header.width,
                height=header.height,
                crc32=header.crc32,
            )
        )
        self._stuck = self._stuck_check.take(header.crc32, header.exposed_ns)
        self._set_online(header.width, header.height)

    def _set_online(self, width: int, height: int) -> None:
        degraded = (*self._notes, *(fault for fault in (self._dark, self._stuck) if fault is not None))
        known = self._status
        since_ns = known.since_ns if isinstance(known, CameraOnline) else monotonic_ns()
        self._set_status(CameraOnline(width, height, since_ns=since_ns, degraded=degraded))

    async def _watch_darkness(self) -> None:
        """A look now and then, so that a covered lens is known before somebody acts on its picture."""
        seen = 0
        while True:
            await trio.sleep(self._darkness_every_s)
            frame = self._ring.newest()
            if frame is None or frame.sequence == seen or not isinstance(self._status, CameraOnline):
                continue
            seen = frame.sequence
            self._dark = await trio.to_thread.run_sync(darkness, frame.jpeg)
            if isinstance(self._status, CameraOnline):
                self._set_online(self._status.width, self._status.height)

    # -- status --

    @property
    def status(self) -> CameraStatus:
        return self._status

    @property
    def counters(self) -> CameraCounters:
        return self._counters

    @property
    def capture_pid(self) -> int | None:
        """The capture process running now."""
        return self._pid

    async def status_other_than(self, known: CameraStatus) -> CameraStatus:
        """Wait until the status is not `known` any more. Cancelling loses nothing."""
        await self._until(lambda: self._status != known)
        return self._status

    async def wait_online(self) -> CameraOnline:
        """Wait until frames come. Raises CameraClosed."""
        while not isinstance(self._status, CameraOnline):
            self._refuse_closed()
            await self._news.wait()
        return self._status

    def _set_status(self, status: CameraStatus) -> None:
        self._status = status
        self._announce()

    # -- frames --

    def latest(self) -> RawFrame | None:
        """The newest frame, however old it is; see its exposed_ns."""
        return self._ring.newest()

    def captured_after(self, sequence: int) -> int:
        """How many frames the camera captured after that one, sent to us or not."""
        if not 0 <= sequence <= self._counters.captured:
            raise ValueError(
                f"camera {self.name}: sequence {sequence} is not of 0..{self._counters.captured}"
            )
        return self._counters.captured - sequence

    def captured_between(self, sequence: int, until_ns: int) -> int:
        """How many frames the camera captured after that one and exposed no later than `until_ns`.

        To be asked a moment after `until_ns`: frames exposed by then may still be on their way. Frames that
        were dropped unsent count with those before them, for their exposure is not known.
        """
        later = self._ring.first_after(sequence, until_ns)
        return self.captured_after(sequence) if later is None else later.sequence - sequence - 1

    def frame_numbered(self, sequence: int) -> RawFrame | None:
        """The frame of that sequence, while it is kept."""
        return next((frame for frame in self._ring if frame.sequence == sequence), None)

    async def frame_after(self, t_ns: int, timeout_s: float) -> RawFrame:
        """The newest frame whose exposure began after `t_ns` (CLOCK_MONOTONIC); waits for one where there
        is none.

        Raises FrameTimeout, whose text carries the camera's status, or CameraClosed. Cancelling loses
        nothing.
        """
        with trio.move_on_after(timeout_s):
            await self._until(lambda: self._is_after(self._ring.newest(), t_ns))
        frame = self._ring.newest()
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
        with trio.move_on_after(timeout_s):
            while verdict.state != "still":
                frame = await self._next_frame(sequence, begin_ns)
                sequence = frame.sequence
                if self._live and frame.crc32 == crc32:
                    # No evidence: a stuck driver's picture looks as still as can be.
                    repeated += 1
                    continue
                crc32 = frame.crc32
                verdict = await trio.to_thread.run_sync(detector.feed_jpeg, frame.jpeg, frame.exposed_ns)
                verdict = replace(verdict, sequence=sequence)
        if verdict.state == "still":
            return verdict
        return self._timed_out(verdict, timeout_s, repeated)

    async def _next_frame(self, sequence: int, exposed_ns: int) -> RawFrame:
        frame = None

        def found() -> bool:
            nonlocal frame
            frame = self._ring.first_after(sequence, exposed_ns)
            return frame is not None

        await self._until(found)
        assert frame is not None
        return frame

    def _timed_out(self, verdict: SettleVerdict, timeout_s: float, repeated: int) -> SettleVerdict:
        reason = f"not still within {timeout_s:g} s: {verdict.reason}"
        # Not having seen the screen move is no knowledge that it moved.
        if verdict.frames == 0 or isinstance(self._status, CameraOffline):
            return replace(
                verdict, state="unreliable", reason=f"{reason} ({self._status_in_words()})", timed_out=True
            )
        if repeated >= verdict.frames:
            reason = f"{reason}; {repeated} pictures were repetitions of the one before: the camera is stuck"
            return replace(verdict, state="unreliable", reason=reason, timed_out=True)
        return replace(verdict, reason=reason, timed_out=True)

    async def _until(self, holds: Callable[[], bool]) -> None:
        await trio.lowlevel.checkpoint()
        while not holds():
            self._refuse_closed()
            await self._news.wait()

    def _announce(self) -> None:
        self._news.set()
        self._news = trio.Event()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise CameraClosed(f"camera {self.name} is closed")

    def _status_in_words(self) -> str:
        if isinstance(self._status, CameraOffline):
            return f"offline: {self._status.reason}"
        newest = self._ring.newest()
        age_ms = math.inf if newest is None else (monotonic_ns() - newest.exposed_ns) / 1e6
        return f"online, newest picture {age_ms:.0f} ms old"

    @staticmethod
    def _is_after(frame: RawFrame | None, t_ns: int) -> bool:
        return frame is not None and frame.exposed_ns > t_ns
