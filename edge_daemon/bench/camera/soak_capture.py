"""A camera, its server and its capture process in virtual time: all that is the product's runs as it is, only the
kernel's clock, the network and the process are made up.

What is real: the multipart parser, the intake with all its checks, the records with their pictures in anonymous files
through a real socket pair. What is played: the pictures, and what goes wrong with them.
"""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import cv2
import numpy as np
import trio

from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import CaptureOrder, frame_header, pause_s
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Grabbed, Intake
from edge_daemon.cameras.multipart import MultipartParser

FPS = 30
BATCH = 15
"""Pictures in one step of virtual time: a daemon that reads half a second late."""
BASE_NS = 1_000_000 * 10**9
WIDTH, HEIGHT = 160, 120
_INTERVAL_NS = 10**9 // FPS
_MAX_PART_BYTES = 1 << 20


class Ill(Enum):
    """What is wrong, and what the camera must call it meanwhile."""

    CRASH = CameraFault.CAPTURE_DIED, "crash"
    GONE = CameraFault.SERVER_GONE, "gone"
    NO_SIGNAL = CameraFault.UNPLUGGED, "no signal"
    SILENT = CameraFault.BLOCKED, "silent"
    FROZEN = CameraFault.FROZEN, "frozen"
    STUCK = CameraFault.STUCK, "stuck"
    CUT = CameraFault.BROKEN_STREAM, "cut"
    FUTURE = CameraFault.NO_CLOCK, "future"
    STANDSTILL = CameraFault.NO_CLOCK, "standstill"
    HALF_RATE = CameraFault.STARVED, "half rate"
    BLACK = CameraFault.BLACK, "black"
    OTHER_SIZE = CameraFault.SIZE_CHANGED, "other size"

    @property
    def fault(self) -> CameraFault:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


def now_ns() -> int:
    """CLOCK_MONOTONIC of the simulation."""
    return BASE_NS + round(trio.current_time() * 1e9)


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """For `Camera`'s in_thread: virtual time would run ahead of a real thread."""
    await trio.lowlevel.checkpoint()
    return function(*arguments)


@dataclass
class World:
    """What is wrong now, and the pictures there are."""

    ill: Ill | None = None
    delivered: int = 0
    change: trio.Event = field(default_factory=trio.Event)

    def fall_ill(self, ill: Ill | None) -> None:
        """From now on this is wrong, or nothing."""
        self.ill = ill
        self.change.set()
        self.change = trio.Event()

    def __post_init__(self) -> None:
        random = np.random.default_rng(5)
        lit = random.integers(60, 220, (16, HEIGHT // 8, WIDTH // 8), np.uint8)
        self._jpegs = [_jpeg(cv2.resize(view, (WIDTH, HEIGHT))) for view in lit]
        self._black = [_jpeg(random.integers(0, 6, (HEIGHT, WIDTH), np.uint8)) for _ in range(4)]
        self._small = [_jpeg(cv2.resize(view, (WIDTH // 2, HEIGHT // 2))) for view in lit]
        self._last_ns = 0

    def shoot(self, number: int, stamp_ns: int) -> tuple[bytes, int]:
        """The picture of that number, as it is delivered, and its stamp."""
        jpeg = self._jpegs[number % 16]
        match self.ill:
            case Ill.FROZEN:
                return self._jpegs[0], self._last_ns
            case Ill.STUCK:
                return self._jpegs[0], stamp_ns
            case Ill.CUT:
                return jpeg[: len(jpeg) // 2], stamp_ns
            case Ill.FUTURE:
                return jpeg, stamp_ns + 10**9
            case Ill.STANDSTILL:
                return jpeg, self._last_ns
            case Ill.BLACK:
                return self._black[number % 4], stamp_ns
            case Ill.OTHER_SIZE:
                return self._small[number % 16], stamp_ns
            case _:
                self._last_ns = stamp_ns
                return jpeg, stamp_ns


def _jpeg(view: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", view)[1].tobytes()


class SimulatedCapture:
    """One run of the capture process."""

    pid = 1

    def __init__(self, world: World, order: CaptureOrder, ours: socket.socket, sender: pipe.Sender) -> None:
        self._world = world
        self._order = order
        self._ours, self._sender = ours, sender
        self._intake = Intake(
            order.source.exposure, frozen_after_ns=order.frozen_after_ms * 1_000_000, last=order.last
        )
        self._parser = MultipartParser("b", max_part_bytes=_MAX_PART_BYTES)
        self._open = False
        self._failures = 0
        self._number = 0
        self._pause_s = 0.0

    async def receive(self) -> list[tuple[pipe.Header, bytes]] | None:
        """What `CaptureProcess.receive` gives, a batch at once."""
        await trio.sleep(self._pause_s)
        self._pause_s = BATCH / FPS
        world = self._world
        if world.ill is Ill.CRASH or self._failures >= self._order.attempts:
            return None
        while world.ill is Ill.SILENT:
            # A read that blocks returns once there is something to be read again.
            await world.change.wait()
        records: list[tuple[pipe.Header, bytes]] = []
        try:
            for record in self._records():
                records.append(record)
        except SourceFault as fault:
            self._open = False
            self._failures += 1
            self._pause_s = pause_s(self._failures)
            records.append(self._through(pipe.Fault(fault=fault.fault, reason=str(fault))))
        return records

    async def why_it_ended(self) -> str | None:
        return "the capture process was ended by SIGKILL" if self._world.ill is Ill.CRASH else None

    def _records(self) -> Iterator[tuple[pipe.Header, bytes]]:
        world = self._world
        if world.ill is Ill.GONE:
            raise SourceFault("no camera stream", CameraFault.SERVER_GONE)
        if world.ill is Ill.NO_SIGNAL:
            raise SourceFault("the server has no signal from its camera", CameraFault.UNPLUGGED)
        if not self._open:
            self._open = True
            self._intake.begin()
            self._parser = MultipartParser("b", max_part_bytes=_MAX_PART_BYTES)
            yield self._through(pipe.Opened())
        arrived_ns = now_ns()
        for back in range(BATCH, 0, -1):
            self._number += 1
            if world.ill is Ill.HALF_RATE and self._number % 2:
                continue
            received_ns = arrived_ns - (back - 1) * _INTERVAL_NS
            record = self._frame(received_ns)
            if record is not None:
                self._failures = 0
                yield record

    def _frame(self, received_ns: int) -> tuple[pipe.Header, bytes] | None:
        jpeg, stamp_ns = self._world.shoot(self._number, received_ns - 5_000_000)
        parts = self._parser.feed(
            b"--b\r\nContent-Length: %d\r\nX-Stamp: %d\r\n\r\n%s\r\n" % (len(jpeg), stamp_ns, jpeg)
        )
        frame = self._intake.take(Grabbed(parts[0].body, int(parts[0].headers["x-stamp"]), received_ns))
        if frame is None:
            return None
        self._world.delivered += 1
        return self._through(frame_header(frame, 0), frame.jpeg)

    def _through(self, header: pipe.Header, jpeg: bytes | bytearray = b"") -> tuple[pipe.Header, bytes]:
        self._sender.send(header, jpeg)
        message, rights, _, _ = self._ours.recvmsg(
            pipe.MAX_HEADER_BYTES, pipe.RIGHTS_BYTES, pipe.RECEIVE_FLAGS
        )
        return pipe.take_record(message, rights)


class SimulatedCaptures:
    """Starts them, as `capture_process` does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.started = 0

    @asynccontextmanager
    async def __call__(self, order: CaptureOrder) -> AsyncIterator[SimulatedCapture]:
        self.started += 1
        await trio.lowlevel.checkpoint()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs, closing(pipe.Sender(theirs)) as sender:
            yield SimulatedCapture(self._world, order, ours, sender)
