"""Motion-JPEG over HTTP with µStreamer's timestamps.

µStreamer sends with each part, when the URL has `?extra_headers=1` (src/ustreamer/http/server.c):
`X-UStreamer-Grab-Time` (since 6.x `X-UStreamer-Grab-Begin-Time`), the V4L2 buffer's timestamp in
CLOCK_MONOTONIC seconds, cut to milliseconds. That is the one to use. `X-Timestamp` is the wall clock at
sending; `X-UStreamer-Expose-Begin-Time` is when the HTTP server began to publish the picture and has
nothing to do with the sensor's exposure. While no new picture comes, the last one is sent again each second
with the same Grab-Time; `X-UStreamer-Online: false` marks its NO SIGNAL placeholder.
"""

import http.client
import time
from collections import deque
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address
from urllib.parse import urlsplit

from edge_daemon.cameras.errors import SourceFault
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
_READ_BYTES = 65536
_MAX_TIME_TEXT = 32


def on_one_machine(here: str, there: str) -> bool:
    """Whether a connection with these addresses at its two ends stays on this machine."""
    return here == there or ip_address(there).is_loopback


class HttpMjpegBackend:
    """One GET that never ends."""

    def __init__(self, source: HttpMjpegSource) -> None:
        self._source = source
        self._connection: http.client.HTTPConnection | None = None
        self._response: http.client.HTTPResponse | None = None
        self._parser: MultipartParser | None = None
        self._ready: deque[Grabbed] = deque()
        parts = urlsplit(source.url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def lag_ns(self) -> int:
        return self._source.stamp_lag_ns

    def open(self) -> tuple[str, ...]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=READ_TIMEOUT_S)
        self._connection = connection
        try:
            connection.connect()
            self._refuse_foreign_clock(connection)
            connection.request("GET", self._target)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise SourceFault(
                f"no camera stream at {self._where}: {error or type(error).__name__}"
            ) from error
        if response.status != 200:
            raise SourceFault(f"{self._where} answers {response.status} {response.reason}")
        self._response = response
        self._parser = MultipartParser(
            boundary_of(response.getheader("Content-Type", "")), max_part_bytes=MAX_JPEG_BYTES
        )
        if self._source.timestamp == "arrival":
            return (f"times are arrival less {self.lag_ns / 1e6:.0f} ms, not the camera's own",)
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

    def _refuse_foreign_clock(self, connection: http.client.HTTPConnection) -> None:
        """CLOCK_MONOTONIC means nothing on another machine."""
        if self._source.timestamp != "header":
            return
        here, there = connection.sock.getsockname()[0], connection.sock.getpeername()[0]
        if not on_one_machine(here, there):
            raise SourceFault(
                f"the camera server {there} is another machine, whose CLOCK_MONOTONIC says nothing here: "
                'configure timestamp = "arrival" with a measured stamp_lag_ms, or run the server here'
            )

    def _read(self) -> list[Part]:
        assert self._response is not None
        assert self._parser is not None
        try:
            data = self._response.read1(_READ_BYTES)
        except TimeoutError as error:
            raise SourceFault(f"{self._where} sent nothing for {READ_TIMEOUT_S:.0f} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise SourceFault(
                f"the stream of {self._where} broke off: {error or type(error).__name__}"
            ) from error
        if not data:
            raise SourceFault(f"{self._where} ended its stream")
        parts = self._parser.feed(data)
        if self._parser.ended and not parts:
            raise SourceFault(f"{self._where} closed its stream")
        return parts

    def _grabbed(self, part: Part) -> Grabbed:
        received_ns = time.monotonic_ns()
        if part.headers.get(ONLINE_HEADER.lower(), "true") == "false":
            raise SourceFault(f"{self._where} has no signal from its camera ({ONLINE_HEADER}: false)")
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
                'µStreamer add ?extra_headers=1 to the URL, for others configure timestamp = "arrival"'
            )
        name, text = found[0]
        try:
            # A float of seconds since the boot keeps only about a microsecond after a year; Decimal keeps
            # the text.
            seconds = Decimal(text[:_MAX_TIME_TEXT])
            return int(seconds * 1_000_000_000)
        except (InvalidOperation, ValueError, OverflowError) as error:
            raise SourceFault(f"{self._where} sends {name} {text[:40]!r}, which is no time") from error
