"""What a camera says of itself, and how that follows from what it delivers. Sans-IO."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from edge_daemon.cameras import pipe
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.health import Degradation, Outline, RateCheck, StuckCheck
from edge_daemon.cameras.sources import CameraSource, CsiSource, FilesSource, HttpMjpegSource, V4l2Source


@dataclass(frozen=True)
class CameraOnline:
    """Frames come. `degraded`: what is wrong all the same (the picture is black, a rate not kept)."""

    width: int
    height: int
    since_ns: int
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True)
class CameraOffline:
    """No frames come, since `since_ns`. `fault`: the name of the reason; None while nothing is known to be wrong:
    not started, being opened for the first time, closed."""

    reason: str
    since_ns: int
    fault: CameraFault | None = None

    @property
    def words(self) -> str:
        """The fault's name and the reason, for people."""
        return self.reason if self.fault is None else f"{self.fault}: {self.reason}"


CameraStatus = CameraOnline | CameraOffline


@dataclass(frozen=True)
class CameraCounters:
    """Since the daemon started. dropped: captured, counted, but too late to be sent; broken: no whole
    picture; missed: captured, counted, but never handed over by the driver; restarts: capture processes that
    ended; failures: openings in a row that led to no picture."""

    captured: int = 0
    dropped: int = 0
    broken: int = 0
    missed: int = 0
    restarts: int = 0
    failures: int = 0


def expected_fps(source: CameraSource) -> float | None:
    """The rate that should come; None where nobody configured one. A recording may play as slowly as it likes."""
    match source:
        case V4l2Source() | CsiSource() | HttpMjpegSource():
            return source.fps
        case FilesSource():
            return None


class Condition:
    """Status and counters of one camera, from the records of its capture processes and the looks at its pictures.

    Every time is handed in, CLOCK_MONOTONIC. stuck_after_ns: how long one picture may come under new timestamps.
    """

    def __init__(self, source: CameraSource, now_ns: int, stuck_after_ns: int) -> None:
        self.status: CameraStatus = CameraOffline("not started", now_ns)
        self.captured = 0
        """Frames since the daemon started."""
        self.screens: dict[str, Outline] = {}
        # A recording may hold equal pictures, a sensor never gives two.
        self.live = not isinstance(source, FilesSource)
        self._notes: tuple[Degradation, ...] = ()
        self._before = CameraCounters()
        self._frame: pipe.Frame | None = None
        self._last: tuple[int, int] | None = None
        self._failures = 0
        self._size: tuple[int, int] | None = None
        self._stuck_after_ns = stuck_after_ns
        self._stuck = StuckCheck(stuck_after_ns)
        self._rate = RateCheck(expected_fps(source))
        self.seen: tuple[Degradation, ...] = ()
        """What the last look found."""

    def opening(self) -> None:
        """The camera is being opened and says nothing yet."""
        known = self.status
        if not isinstance(known, CameraOffline):
            return
        if known.fault is None:
            self.status = replace(known, reason="the camera is being opened")
        elif not known.reason.startswith(_AGAIN):
            self.status = replace(known, reason=f"{_AGAIN}{known.reason}")

    def opened(self, notes: tuple[str, ...]) -> None:
        """It is open. Online it is with its first picture."""
        self._notes = tuple(Degradation(CameraFault.NOT_AS_ASKED, note) for note in notes)
        self.seen = ()
        self._stuck = StuckCheck(self._stuck_after_ns)
        self._rate.begin()

    def failed(self, fault: CameraFault | None, reason: str, now_ns: int) -> None:
        """No frames come any more, or still not."""
        known = self.status
        since_ns = known.since_ns if isinstance(known, CameraOffline) else now_ns
        self.status = CameraOffline(reason, since_ns, fault)
        self._failures += 1

    def process_ended(self) -> None:
        """The next process counts from 1 again."""
        self._last = self.last
        self._before = replace(self.counters, restarts=self._before.restarts + 1)
        self._frame = None

    def closed(self, now_ns: int) -> None:
        self.status = CameraOffline("closed", now_ns)

    def took(self, frame: pipe.Frame, now_ns: int) -> None:
        """One more frame has come."""
        self._frame, self._failures = frame, 0
        self.captured = self._before.captured + frame.sequence
        size = (frame.width, frame.height)
        self._size = self._size or size
        degraded = self._degraded(frame)
        known = self.status
        if isinstance(known, CameraOnline):
            # Thirty times a second nothing has changed.
            if known.degraded == degraded and (known.width, known.height) == size:
                return
            now_ns = known.since_ns
        self.status = CameraOnline(frame.width, frame.height, now_ns, degraded)

    @property
    def counters(self) -> CameraCounters:
        before, frame = self._before, self._frame
        if frame is None:
            return replace(before, failures=self._failures)
        return CameraCounters(
            captured=before.captured + frame.sequence,
            dropped=before.dropped + frame.dropped,
            broken=before.broken + frame.broken,
            missed=before.missed + frame.missed,
            restarts=before.restarts,
            failures=self._failures,
        )

    @property
    def last(self) -> tuple[int, int] | None:
        """Stamp and CRC of the newest picture, also of a process that has ended."""
        return self._last if self._frame is None else (self._frame.stamp_ns, self._frame.crc32)

    def looked(self, seen: tuple[Degradation, ...]) -> None:
        """What a look at one of its pictures found."""
        known = self.status
        if not isinstance(known, CameraOnline):
            return
        others = tuple(one for one in known.degraded if one not in self.seen)
        self.seen = seen
        self.status = replace(known, degraded=(*others, *seen))

    def _degraded(self, frame: pipe.Frame) -> tuple[Degradation, ...]:
        found = list(self._notes)
        if self._size != (frame.width, frame.height):
            assert self._size is not None
            words = (
                f"gives pictures of {frame.width}x{frame.height}, gave {self._size[0]}x{self._size[1]} before: a "
                "calibration holds for one size only; set the camera back or calibrate again"
            )
            found.append(Degradation(CameraFault.SIZE_CHANGED, words))
        if self.live:
            starved = self._rate.take(frame.exposed_ns, frame.sequence - frame.missed, frame.broken)
            if starved is not None:
                found.append(Degradation(CameraFault.STARVED, starved))
        stuck = self._stuck.take(frame.crc32, frame.exposed_ns)
        if stuck is not None:
            found.append(Degradation(CameraFault.STUCK, stuck))
        return (*found, *self.seen)


_AGAIN = "being opened again, after: "


def said(name: str, status: CameraStatus, counters: CameraCounters) -> Mapping[str, object]:
    """What stands about a camera in a device's metadata."""
    base = {
        "name": name,
        "restarts": counters.restarts,
        "dropped": counters.dropped,
        "broken": counters.broken,
        "missed": counters.missed,
    }
    if isinstance(status, CameraOffline):
        fault = None if status.fault is None else str(status.fault)
        return base | {"status": "offline", "fault": fault, "reason": status.reason}
    degraded = [{"fault": str(one.fault), "words": one.words} for one in status.degraded]
    return base | {"status": "online", "degraded": degraded}
