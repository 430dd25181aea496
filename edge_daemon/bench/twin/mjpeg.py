"""An MJPEG server on loopback that speaks as µStreamer does.

Names and meaning of the part headers: pikvm/ustreamer, src/ustreamer/http/server.c (5.x names; 6.x renames
Grab-Time to Grab-Begin-Time). Grab-Time is the V4L2 buffer's timestamp, CLOCK_MONOTONIC seconds cut to
milliseconds, and 0 on the NO SIGNAL picture. The last picture is sent again each second while no new one comes.
"""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX

BOUNDARY = "boundarydonotcross"
REPEAT_S = 1.0
STREAM_PATHS = ("/stream", "/")
_HEAD = (
    "HTTP/1.0 200 OK\r\n"
    "Cache-Control: no-store, no-cache, must-revalidate, proxy-revalidate\r\n"
    "Pragma: no-cache\r\n"
)


@dataclass(frozen=True)
class Part:
    """A picture to publish: not before available_ns (its way through the camera and the encoder)."""

    jpeg: bytes
    grab_ns: int
    available_ns: int
    online: bool = True


class MjpegServer:
    """Serves the newest part to any number of clients, each in a thread of its own; a slow one skips parts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._parts: list[Part] = []
        self._count = 0
        self._silent = False
        self._listener: socket.socket | None = None
        self._port = 0
        self._acceptor: threading.Thread | None = None
        self._clients: list[threading.Thread] = []
        self._connections: set[socket.socket] = set()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; it stays the same over close() and open()."""
        return self._port

    @property
    def is_open(self) -> bool:
        return self._listener is not None

    def open(self) -> None:
        """Listen and serve."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            listener.listen(8)
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), name="mjpeg", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Drop all clients and stop listening, as when the server process is killed."""
        with self._changed:
            listener, self._listener = self._listener, None
            self._changed.notify_all()
        if listener is None or self._acceptor is None:
            return
        # Wakes the thread in accept(); close() alone would not.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        self._acceptor.join()
        with self._changed:
            for connection in self._connections:
                # It may have been closed by its client's leaving a moment ago.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for client in self._clients:
            client.join()
        self._clients.clear()

    def publish(self, part: Part) -> None:
        """Offer a new part to all clients."""
        with self._changed:
            self._parts = [*self._parts[-3:], part]
            self._count += 1
            self._changed.notify_all()

    def set_silent(self, silent: bool) -> None:
        """Keep the connections but send nothing more, as a server whose encoder hangs."""
        with self._changed:
            self._silent = silent
            self._changed.notify_all()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._changed:
                self._connections.add(connection)
            client = threading.Thread(
                target=self._serve, args=(connection,), name="mjpeg client", daemon=True
            )
            self._clients = [*(other for other in self._clients if other.is_alive()), client]
            client.start()

    def _serve(self, connection: socket.socket) -> None:
        # A client may leave at any byte; that ends its thread and nothing else.
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._answer(connection)
        with self._changed:
            self._connections.discard(connection)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request and len(request) < 8192:
            data = connection.recv(2048)
            if not data:
                return
            request += data
        words = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        target = urlsplit(words[1] if len(words) == 3 else "/nothing")
        query = parse_qs(target.query)
        if target.path in STREAM_PATHS and (target.path != "/" or query.get("action") == ["stream"]):
            self._stream(connection, query.get("extra_headers", ["0"])[0] in ("1", "true", "yes"))
        else:
            connection.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _stream(self, connection: socket.socket, extra_headers: bool) -> None:
        content_type = f"Content-Type: multipart/x-mixed-replace;boundary={BOUNDARY}\r\n\r\n"
        connection.sendall(f"{_HEAD}{content_type}--{BOUNDARY}\r\n".encode())
        sent = 0
        while (found := self._next_part(sent)) is not None:
            sent, part = found
            headers = _part_headers(part, extra_headers)
            connection.sendall(headers + part.jpeg + f"\r\n--{BOUNDARY}\r\n".encode())

    def _next_part(self, sent: int) -> tuple[int, Part] | None:
        """The newest part that is out and not sent yet, or after REPEAT_S the last again; None at the end."""
        repeat_at = time.monotonic() + REPEAT_S
        with self._changed:
            while self._listener is not None:
                now_ns = time.monotonic_ns()
                ready = [
                    (self._count - back, part)
                    for back, part in enumerate(reversed(self._parts))
                    if part.available_ns <= now_ns
                ]
                if ready and not self._silent and (ready[0][0] > sent or time.monotonic() >= repeat_at):
                    return ready[0]
                waiting = [part.available_ns for part in self._parts if part.available_ns > now_ns]
                until_s = (min(waiting) - now_ns) / 1e9 if waiting else repeat_at - time.monotonic()
                # Silent, or with nothing to repeat, the deadline passes: look again each REPEAT_S.
                self._changed.wait(until_s if until_s > 0 else REPEAT_S)
        return None


def _part_headers(part: Part, extra_headers: bool) -> bytes:
    headers = (
        f"Content-Type: image/jpeg\r\nContent-Length: {len(part.jpeg)}\r\nX-Timestamp: {time.time():.6f}\r\n"
    )
    if extra_headers:
        now_s = time.monotonic_ns() / 1e9
        available_s = part.available_ns / 1e9
        grab_s = part.grab_ns // 1_000_000 / 1000
        headers += (
            f"X-UStreamer-Online: {'true' if part.online else 'false'}\r\n"
            "X-UStreamer-Dropped: 0\r\n"
            f"X-UStreamer-Width: {PICTURE_WIDTH_PX}\r\n"
            f"X-UStreamer-Height: {PICTURE_HEIGHT_PX}\r\n"
            "X-UStreamer-Client-FPS: 15\r\n"
            f"X-UStreamer-Grab-Time: {grab_s:.6f}\r\n"
            f"X-UStreamer-Encode-Begin-Time: {available_s:.6f}\r\n"
            f"X-UStreamer-Encode-End-Time: {available_s:.6f}\r\n"
            f"X-UStreamer-Expose-Begin-Time: {available_s:.6f}\r\n"
            f"X-UStreamer-Expose-Cmp-Time: {available_s:.6f}\r\n"
            f"X-UStreamer-Expose-End-Time: {available_s:.6f}\r\n"
            f"X-UStreamer-Send-Time: {now_s:.6f}\r\n"
            f"X-UStreamer-Latency: {now_s - grab_s:.6f}\r\n"
        )
    return (headers + "\r\n").encode()
