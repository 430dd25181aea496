"""Motion-JPEG over HTTP with µStreamer's timestamps.

µStreamer sends with each part, when the URL has `?extra_headers=1` (src/ustreamer/http/server.c):
`X-UStreamer-Grab-Time` (since 6.x `X-UStreamer-Grab-Begin-Time`), the V4L2 buffer's timestamp in
CLOCK_MONOTONIC seconds, cut to milliseconds. That is the one to use. `X-Timestamp` is the wall clock at
sending; `X-UStreamer-Expose-Begin-Time` is when the HTTP server began to publish the picture and has
nothing to do with the sensor's exposure. While no new picture comes, the last one is sent again each second
with the same Grab-Time; `X-UStreamer-Online: false` marks its NO SIGNAL placeholder.
"""

import http.client
import socket
import struct
import time
from collections import deque
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address
from urllib.parse import urlsplit

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Grabbed
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES
from edge_daemon.cameras.multipart import MultipartParser, Part, boundary_of
from edge_daemon.cameras.sources import HttpMjpegSource

GRAB_TIME_HEADERS = ("X-UStreamer-Grab-Begin-Time", "X-UStreamer-Grab-Time")
"""Of µStreamer 6.x and before; the same time."""
ONLINE_HEADER = "X-UStreamer-Online"

READ_TIMEOUT_S = 2.0
"""Shorter than the daemon's patience with a silent process, so that the reason comes from the one who knows
it."""
_HEADER_READ_BYTES = 4096
_RECEIVE_BUFFER_BYTES = 1 << 20
"""Several pictures: one is then read in one go."""
_MAX_TIME_TEXT = 32


def on_one_machine(here: str, there: str) -> bool:
    """Whether a connection with these addresses at its two ends stays on this machine."""
    return here == there or ip_address(there).is_loopback


class _ChunkedBody:
    """The body of a response in HTTP/1.1's chunks."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def some(self, most: int) -> bytes:
        return self._response.read1(most)

    def into(self, room: memoryview) -> int:
        return self._response.readinto(room)


class _PlainBody:
    """A body that goes on until the connection ends, read straight from the socket: thirty times a second it matters
    that each picture takes one call into the kernel. `response` has read its head, and maybe a little more."""

    def __init__(self, response: http.client.HTTPResponse, sock: socket.socket) -> None:
        # Held: the socket is closed with it.
        self._response = response
        self._sock = sock
        sock.settimeout(0)
        # What is in the response's own buffer would be missed; without waiting for more.
        self._ahead = response.fp.peek()
        # The kernel's own timeout; Python's would ask for each read first whether there is anything.
        sock.setblocking(True)
        seconds, rest = divmod(READ_TIMEOUT_S, 1)
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), int(rest * 1e6))
        )

    def some(self, most: int) -> bytes:
        ahead, self._ahead = self._ahead, b""
        return ahead or self._sock.recv(most)

    def into(self, room: memoryview) -> int:
        """Waits until all of it is there, or the stream ends."""
        return self._sock.recv_into(room, len(room), socket.MSG_WAITALL)


class HttpMjpegBackend:
    """One GET that never ends."""

    def __init__(self, source: HttpMjpegSource) -> None:
        self._source = source
        self._connection: http.client.HTTPConnection | None = None
        self._body: _ChunkedBody | _PlainBody | None = None
        self._parser: MultipartParser | None = None
        self._ready: deque[Grabbed] = deque()
        parts = urlsplit(source.url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def open(self) -> tuple[str, ...]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=READ_TIMEOUT_S)
        self._connection = connection
        try:
            connection.connect()
            sock = connection.sock
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            self._refuse_foreign_clock(sock)
            connection.request("GET", self._target)
            response = connection.getresponse()
        except TimeoutError as error:
            raise SourceFault(
                f"{self._where} did not answer within {READ_TIMEOUT_S:.0f} s", CameraFault.BLOCKED
            ) from error
        except OSError as error:
            raise SourceFault(
                f"no camera stream at {self._where}: {error or type(error).__name__}", CameraFault.SERVER_GONE
            ) from error
        except http.client.HTTPException as error:
            raise SourceFault(
                f"no camera stream at {self._where}: {error or type(error).__name__}", _no_http(error)
            ) from error
        if response.status != 200:
            # A server in front of a camera that it has lost says so with a 5xx.
            fault = CameraFault.UNPLUGGED if response.status >= 500 else CameraFault.NOT_MJPEG
            raise SourceFault(f"{self._where} answers {response.status} {response.reason}", fault)
        self._body = _ChunkedBody(response) if response.chunked else _PlainBody(response, sock)
        self._parser = MultipartParser(
            boundary_of(response.getheader("Content-Type", "")), max_part_bytes=MAX_JPEG_BYTES
        )
        if self._source.timestamp == "arrival":
            return (f"times are arrival less {self._source.stamp_lag_ns / 1e6:.0f} ms, not the camera's own",)
        return ()

    def grab(self) -> Grabbed:
        while not self._ready:
            self._ready.extend(self._grabbed(part) for part in self._read())
        return self._ready.popleft()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def _where(self) -> str:
        return f"http://{self._host}:{self._port}{self._target}"

    def _refuse_foreign_clock(self, sock: socket.socket) -> None:
        """CLOCK_MONOTONIC means nothing on another machine."""
        if self._source.timestamp != "header":
            return
        here, there = sock.getsockname()[0], sock.getpeername()[0]
        if not on_one_machine(here, there):
            raise SourceFault(
                f"the camera server {there} is another machine, whose CLOCK_MONOTONIC says nothing here: "
                'configure timestamp = "arrival" with a measured stamp_lag_ms, or run the server here',
                CameraFault.NO_CLOCK,
            )

    def _read(self) -> list[Part]:
        assert self._body is not None
        assert self._parser is not None
        try:
            room = self._parser.room()
            if room is None:
                # A little: headers, and what comes with them; the picture itself has its place by then.
                data, count = self._body.some(_HEADER_READ_BYTES), 0
            else:
                data, count = b"", self._body.into(room)
        except (TimeoutError, BlockingIOError) as error:
            raise SourceFault(
                f"{self._where} sent nothing for {READ_TIMEOUT_S:.0f} s", CameraFault.BLOCKED
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SourceFault(
                f"the stream of {self._where} broke off: {error or type(error).__name__}",
                CameraFault.SERVER_GONE,
            ) from error
        if not data and not count:
            raise SourceFault(f"{self._where} ended its stream", CameraFault.SERVER_GONE)
        parts = self._parser.received(count) if count else self._parser.feed(data)
        if self._parser.ended and not parts:
            raise SourceFault(f"{self._where} closed its stream", CameraFault.SERVER_GONE)
        return parts

    def _grabbed(self, part: Part) -> Grabbed:
        received_ns = time.monotonic_ns()
        if part.headers.get(ONLINE_HEADER.lower(), "true") == "false":
            raise SourceFault(
                f"{self._where} has no signal from its camera ({ONLINE_HEADER}: false)", CameraFault.UNPLUGGED
            )
        if self._source.timestamp == "arrival":
            return Grabbed(part.body, received_ns, received_ns)
        return Grabbed(part.body, self._grab_time_ns(part), received_ns)

    def _grab_time_ns(self, part: Part) -> int:
        found = [
            (name, part.headers[name.lower()]) for name in GRAB_TIME_HEADERS if name.lower() in part.headers
        ]
        if not found:
            raise SourceFault(
                f"{self._where} sends no {GRAB_TIME_HEADERS[-1]}, so nobody can say when a picture was "
                "taken: for "
                'µStreamer add ?extra_headers=1 to the URL, for others configure timestamp = "arrival"',
                CameraFault.NO_CLOCK,
            )
        name, text = found[0]
        try:
            # A float of seconds since the boot keeps only about a microsecond after a year; Decimal keeps
            # the text.
            seconds = Decimal(text[:_MAX_TIME_TEXT])
            return int(seconds * 1_000_000_000)
        except (InvalidOperation, ValueError, OverflowError) as error:
            raise SourceFault(
                f"{self._where} sends {name} {text[:40]!r}, which is no time", CameraFault.NO_CLOCK
            ) from error


def _no_http(error: http.client.HTTPException) -> CameraFault:
    """Hung up before its answer, or answered in another language."""
    gone = isinstance(error, http.client.RemoteDisconnected)
    return CameraFault.SERVER_GONE if gone else CameraFault.NOT_MJPEG
