"""multipart/x-mixed-replace, sans-IO: bytes in, whole parts out, memory bounded.

There is no standard for Motion-JPEG over HTTP. What servers do (µStreamer, mjpg-streamer, IP cameras): each
part has headers and mostly a Content-Length; the `boundary` parameter comes with or without the two dashes
that belong to the delimiter line, quoted or bare.
"""

from typing import NamedTuple

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault

MAX_HEADER_BYTES = 8 * 1024
"""µStreamer's fifteen headers take about 600 bytes."""


class Part(NamedTuple):
    """headers: names in lower case."""

    headers: dict[str, str]
    body: bytes | bytearray


def boundary_of(content_type: str) -> str:
    """The boundary named by a Content-Type. Raises SourceFault when it is no multipart stream."""
    kind, *parameters = content_type.split(";")
    if kind.strip().lower() != "multipart/x-mixed-replace":
        raise SourceFault(
            f"the camera answers with {content_type or 'no content type'!r}, not with "
            "multipart/x-mixed-replace: "
            "give the URL of the stream, not of a page or a single snapshot",
            CameraFault.NOT_MJPEG,
        )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        boundary = value.strip().strip('"')
        if name.strip().lower() == "boundary" and boundary:
            return boundary
    raise SourceFault(f"the camera's stream names no boundary: {content_type!r}", CameraFault.NOT_MJPEG)


class MultipartParser:
    """Feed it the body of the response in pieces of any size; it hands back each part when it is whole.

    A part whose length is known can be received straight into its place: fill `room()`, then say `received(count)`.
    """

    def __init__(self, boundary: str, *, max_part_bytes: int) -> None:
        self._delimiter = b"--" + boundary.removeprefix("--").encode("latin-1")
        self._max_part_bytes = max_part_bytes
        self._buffer = bytearray()
        self._headers: dict[str, str] | None = None
        self._body: bytearray | None = None
        self._filled = 0
        self._behind_part: int | None = None
        self._scanned = 0
        self._ended = False

    def feed(self, data: bytes) -> list[Part]:
        """Parts completed by `data`. Raises SourceFault on anything that is not this stream; it is unusable
        then."""
        if self._ended:
            raise _broken("the camera sent more after the closing boundary")
        self._buffer += data
        return self._take_parts()

    def room(self) -> memoryview | None:
        """Where the rest of the part at hand belongs; None when something else comes next, which is for `feed`."""
        return None if self._body is None else memoryview(self._body)[self._filled :]

    def received(self, count: int) -> list[Part]:
        """Parts completed by the `count` bytes now in `room()`. Raises as `feed` does."""
        self._filled += count
        return self._take_parts()

    def _take_parts(self) -> list[Part]:
        parts = []
        while not self._ended:
            if self._headers is None and not self._take_headers():
                break
            body = self._take_body()
            if body is None:
                break
            assert self._headers is not None
            parts.append(Part(self._headers, body))
            self._headers = None
        return parts

    @property
    def ended(self) -> bool:
        """The closing boundary was seen."""
        return self._ended

    def _take_headers(self) -> bool:
        """Take `--boundary CRLF headers CRLF CRLF` off the buffer, once it is there in whole."""
        start = self._skip_to_delimiter()
        if start is None:
            return False
        after = start + len(self._delimiter)
        if self._buffer[after : after + 2] == b"--":
            self._ended = True
            return False
        end = self._buffer.find(b"\r\n\r\n", after)
        if end < 0:
            self._bound(len(self._buffer) - start, MAX_HEADER_BYTES, "part headers")
            return False
        self._bound(end - start, MAX_HEADER_BYTES, "part headers")
        lines = bytes(self._buffer[after:end]).decode("latin-1").split("\r\n")
        if lines[0].strip():
            raise _broken(
                f"the camera's boundary line goes on with {lines[0][:40]!r}: another boundary is in use"
            )
        self._headers = _headers(lines[1:])
        length = self._content_length(self._headers)
        self._body = None if length is None else bytearray(length)
        self._filled = self._scanned = 0
        del self._buffer[: end + 4]
        return True

    def _skip_to_delimiter(self) -> int | None:
        if self._behind_part is not None:
            self._refuse_unbounded(self._behind_part)
        at = self._buffer.find(self._delimiter)
        if at < 0:
            self._bound(len(self._buffer), MAX_HEADER_BYTES, "bytes before a boundary")
            return None
        if self._buffer[:at].strip(b"\r\n"):
            raise _broken(f"{at} bytes before a boundary of the camera's stream that belong to no part")
        self._behind_part = None
        return at

    def _content_length(self, headers: dict[str, str]) -> int | None:
        text = headers.get("content-length")
        if text is None:
            return None
        # str.isdigit() alone would let through superscripts, which int() refuses.
        if not (text.isascii() and text.isdigit()):
            raise _broken(f"the camera's stream has Content-Length {text[:40]!r}, which is no number")
        self._bound(int(text), self._max_part_bytes, "part")
        return int(text)

    def _take_body(self) -> bytes | bytearray | None:
        body = self._body
        if body is None:
            return self._take_delimited()
        count = min(len(self._buffer), len(body) - self._filled)
        body[self._filled : self._filled + count] = memoryview(self._buffer)[:count]
        del self._buffer[:count]
        self._filled += count
        if self._filled < len(body):
            return None
        self._body = None
        self._behind_part = len(body)
        # Looked at as soon as it is there, not waited for: the server may send it only with the next picture, and
        # this picture is wanted now.
        self._refuse_unbounded(len(body))
        return body

    def _refuse_unbounded(self, length: int) -> None:
        """Behind a part of a given length comes a boundary, of which the first bytes may be there."""
        tail = bytes(self._buffer[: 2 + len(self._delimiter)])
        # Some cameras leave out the line break before the delimiter.
        if (b"\r\n" + self._delimiter).startswith(tail) or self._delimiter.startswith(
            tail[: len(self._delimiter)]
        ):
            return
        raise _broken(
            f"the camera's part of {length} bytes is not followed by the boundary but by {tail[:8].hex(' ')}: its "
            "Content-Length is wrong or the part was cut"
        )

    def _take_delimited(self) -> bytes | None:
        mark = b"\r\n" + self._delimiter
        at = self._buffer.find(mark, self._scanned)
        if at < 0:
            self._bound(len(self._buffer), self._max_part_bytes + len(mark), "part")
            self._scanned = max(0, len(self._buffer) - len(mark) + 1)
            return None
        self._bound(at, self._max_part_bytes, "part")
        with memoryview(self._buffer) as view:
            body = bytes(view[:at])
        del self._buffer[:at]
        return body

    @staticmethod
    def _bound(size: int, limit: int, what: str) -> None:
        if size > limit:
            raise _broken(f"{what} of {size} bytes in the camera's stream, more than the {limit} allowed")


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise _broken(f"a part header without a colon in the camera's stream: {line[:40]!r}")
        headers[name.strip().lower()] = value.strip()
    return headers


def _broken(words: str) -> SourceFault:
    return SourceFault(words, CameraFault.BROKEN_STREAM)
