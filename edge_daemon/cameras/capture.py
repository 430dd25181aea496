"""The capture process: `python -m edge_daemon.cameras.capture --fd N`.

Standard input: one line of JSON (`CaptureOrder`), then nothing; its end means that the daemon is gone.
Descriptor N: the socket on which the records of `pipe` go out. A process of its own because a blocked
camera read cannot be cancelled, and a process can be killed.
"""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from contextlib import closing

import msgspec

from edge_daemon.cameras import pipe
from edge_daemon.cameras.backend import backend_for
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Accepted, Intake
from edge_daemon.cameras.sources import CameraSource, V4l2Source

MAX_ORDER_BYTES = 65536
QUEUED_FRAMES = 16
"""Frames that wait for the daemon to read: half a second at 30 fps, the burst of a driver that had
stalled."""
QUEUED_NEWS = 16
"""Openings and faults that wait for it."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 0.5
"""A camera that is back is opened within half a second; looking for one that is not there costs under a
millisecond."""
HEALTHY_S = 2.0
"""A camera that gave pictures for this long is opened again at once; one that keeps failing more slowly."""
SEND_BUFFER_BYTES = 8192
"""Some ten records that the daemon has not read yet; what is older must wait here, where it can be dropped."""


class CaptureOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the daemon wants captured.

    attempts: how often in a row the camera is opened in vain before the process ends, at least 1. Opening it again in
    the same process costs next to nothing; a new process gets rid of what hangs inside a library. A V4L2 camera
    that is unplugged does not count: no new process brings it back, and this one has OpenCV loaded when it comes.
    last: stamp and CRC of the newest picture that the daemon has of this camera.
    """

    source: CameraSource
    frozen_after_ms: int
    attempts: int = 1
    last: tuple[int, int] | None = None


class Outbox:
    """Between the camera, which must always be drained, and the daemon, which may be slow.

    The capture loop never waits here: when the daemon does not read, the oldest waiting frame is dropped and counted.
    A thread sends what could not be sent at once; while the daemon keeps up it sleeps.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sender = pipe.Sender(sock)
        self._waiting: deque[Accepted | pipe.Header] = deque()
        self._frames = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._backlog = threading.Event()
        threading.Thread(target=self._send_backlog, daemon=True).start()

    def put(self, frame: Accepted) -> None:
        with self._lock:
            if self._frames == QUEUED_FRAMES:
                oldest = next(waiting for waiting in self._waiting if isinstance(waiting, Accepted))
                self._waiting.remove(oldest)
                self._frames -= 1
                self._dropped += 1
            self._waiting.append(frame)
            self._frames += 1
            self._send_what_goes()

    def tell(self, record: pipe.Opened | pipe.Fault) -> None:
        """In its order among the frames. Of those that the daemon does not read the oldest go first."""
        with self._lock:
            told = [waiting for waiting in self._waiting if not isinstance(waiting, Accepted)]
            if len(told) == QUEUED_NEWS:
                self._waiting.remove(told[0])
            self._waiting.append(record)
            self._send_what_goes()

    def finish(self) -> None:
        """Send all that waits. Bounded by the daemon, which kills a process that outstays its fault."""
        while self._waiting:
            select.select((), (self._sock,), ())
            with self._lock:
                self._send_what_goes()

    def _send_backlog(self) -> None:
        while True:
            self._backlog.wait()
            select.select((), (self._sock,), ())
            with self._lock:
                self._send_what_goes()

    def _send_what_goes(self) -> None:
        while self._waiting:
            record = self._waiting[0]
            try:
                if isinstance(record, Accepted):
                    self._sender.send(frame_header(record, self._dropped), record.jpeg)
                else:
                    self._sender.send(record)
            except BlockingIOError:
                self._backlog.set()
                return
            except OSError:
                # The daemon has closed its end: there is nobody left to tell.
                os._exit(0)
            self._waiting.popleft()
            self._frames -= isinstance(record, Accepted)
        if self._backlog.is_set():
            self._backlog.clear()


def frame_header(frame: Accepted, dropped: int) -> pipe.Frame:
    """The record's header; `dropped`: so many frames of this process were not sent so far."""
    return pipe.Frame(
        sequence=frame.sequence,
        stamp_ns=frame.stamp_ns,
        exposed_ns=frame.exposed_ns,
        exposed_about_ns=frame.exposed_about_ns,
        captured_about_ns=frame.captured_about_ns,
        received_ns=frame.received_ns,
        width=frame.width,
        height=frame.height,
        crc32=frame.crc32,
        dropped=dropped,
        broken=frame.broken,
        missed=frame.missed,
        jpeg_bytes=len(frame.jpeg),
    )


def run(order: CaptureOrder, sock: socket.socket) -> None:
    """Capture; open the camera anew when it fails; return once that was in vain too often."""
    outbox = Outbox(sock)
    intake = Intake(order.source.exposure, frozen_after_ns=order.frozen_after_ms * 1_000_000, last=order.last)
    failures = in_vain = 0
    while in_vain < order.attempts:
        is_missing, captured, began_at = False, intake.captured, time.monotonic()
        try:
            _capture(order.source, intake, outbox)
        except SourceFault as fault:
            outbox.tell(pipe.Fault(fault=fault.fault, reason=str(fault)))
            is_missing = fault.fault is CameraFault.UNPLUGGED and isinstance(order.source, V4l2Source)
        lasted = intake.captured > captured and time.monotonic() - began_at >= HEALTHY_S
        failures = 1 if lasted else failures + 1
        in_vain = (0 if lasted else in_vain) + (0 if is_missing else 1)
        if in_vain < order.attempts:
            time.sleep(pause_s(failures))
    outbox.finish()


def _capture(source: CameraSource, intake: Intake, outbox: Outbox) -> None:
    """Open the camera and grab without end. Returns only by raising SourceFault."""
    with closing(backend_for(source)) as backend:
        outbox.tell(pipe.Opened(notes=backend.open()))
        intake.begin()
        while True:
            frame = intake.take(backend.grab())
            if frame is not None:
                outbox.put(frame)


def pause_s(failures: int) -> float:
    """Before the camera is opened again, after `failures` in a row (1 and more)."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16))


def _exit_with_parent() -> None:
    """Runs beside the capture, which may be stuck in the kernel. PR_SET_PDEATHSIG would not do: it follows
    the thread that forked, and the daemon forks from a worker thread."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def main() -> None:
    # Ctrl-C on a terminal reaches the whole process group; the daemon decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fd = int(sys.argv[sys.argv.index("--fd") + 1])
    line = sys.stdin.buffer.readline(MAX_ORDER_BYTES)
    order = msgspec.json.decode(line, type=CaptureOrder)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with socket.socket(fileno=fd) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        run(order, sock)


if __name__ == "__main__":
    main()
