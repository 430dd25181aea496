"""The capture process: `python -m edge_daemon.cameras.capture --fd N`.

Standard input: one line of JSON (`CaptureOrder`), then nothing; its end means that the daemon is gone.
Descriptor N: the socket on which the records of `pipe` go out. A process of its own because a blocked
camera read cannot be cancelled, and a process can be killed.
"""

import os
import signal
import socket
import sys
import threading
from collections import deque
from contextlib import closing

import msgspec

from edge_daemon.cameras import pipe
from edge_daemon.cameras.backend import Backend, backend_for
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.intake import Accepted, Intake
from edge_daemon.cameras.sources import CameraSource

MAX_ORDER_BYTES = 65536
QUEUED_FRAMES = 16
"""Frames that wait for the daemon to read: half a second at 30 fps, the burst of a driver that had
stalled."""


class CaptureOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the daemon wants captured."""

    source: CameraSource
    frozen_after_ms: int


class Outbox:
    """Between the camera, which must always be drained, and the daemon, which may be slow.

    The capture loop never waits here: when the daemon does not read, the oldest waiting frame is dropped
    and counted.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._waiting: deque[Accepted] = deque()
        self._dropped = 0
        self._ended = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._send_frames, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, frame: Accepted) -> None:
        with self._change:
            if len(self._waiting) == QUEUED_FRAMES:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(frame)
            self._change.notify()

    def finish(self) -> None:
        """Send what waits and stop. Bounded by the daemon, which kills a process that outstays its fault."""
        with self._change:
            self._ended = True
            self._change.notify()
        self._thread.join()

    def _send_frames(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                frame = self._waiting.popleft()
                dropped = self._dropped
            try:
                self._sock.sendall(pipe.encode(_header(frame, dropped), frame.jpeg))
            except OSError:
                # The daemon has closed its end: there is nobody left to tell.
                os._exit(0)


def _header(frame: Accepted, dropped: int) -> pipe.Frame:
    return pipe.Frame(
        sequence=frame.sequence,
        exposed_ns=frame.exposed_ns,
        received_ns=frame.received_ns,
        width=frame.width,
        height=frame.height,
        crc32=frame.crc32,
        dropped=dropped,
        broken=frame.broken,
    )


def _capture(backend: Backend, intake: Intake, outbox: Outbox) -> None:
    """Grab without end. Returns only by raising SourceFault."""
    while True:
        frame = intake.take(backend.grab())
        if frame is not None:
            outbox.put(frame)


def run(order: CaptureOrder, sock: socket.socket) -> None:
    """Capture until the camera fails; the reason is the last record sent."""
    try:
        with closing(backend_for(order.source)) as backend:
            notes = backend.open()
            sock.sendall(pipe.encode(pipe.Opened(notes=notes)))
            outbox = Outbox(sock)
            outbox.start()
            try:
                _capture(
                    backend,
                    Intake(lag_ns=backend.lag_ns, frozen_after_ns=order.frozen_after_ms * 1_000_000),
                    outbox,
                )
            finally:
                outbox.finish()
    except SourceFault as fault:
        sock.sendall(pipe.encode(pipe.Fault(reason=str(fault))))


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
        run(order, sock)


if __name__ == "__main__":
    main()
