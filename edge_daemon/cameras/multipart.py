"""multipart/x-mixed-replace, sans-IO: bytes in, whole parts out, memory bounded.

There is no standard for Motion-JPEG over HTTP. What servers do (µStreamer, mjpg-streamer, IP cameras): each
part has headers and mostly a Content-Length; the `boundary` parameter comes with or without the two dashes
that belong to the delimiter line, quoted or bare.
"""

from dataclasses import dataclass

from edge_daemon.cameras.errors import SourceFault

MAX_HEADER_BYTES = 8 * 1024
"""µStreamer's fifteen headers take about 600 bytes."""


@dataclass(frozen=True)
class Part:
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


def boundary_of(content_type: str) -> str:
    """The boundary named by a Content-Type. Raises SourceFault when it is no multipart stream."""
    kind, *parameters = content_type.split(";")
    if kind.strip().lower() != "multipart/x-mixed-replace":
        raise SourceFault(
            f"the camera answers with {content_type or 'no content type'!r}, not with "
            "multipart/x-mixed-replace: "
            "give the URL of the stream, not of a page or a single snapshot"
        )
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        boundary = value.strip().strip('"')
        if name.strip().lower() == "boundary" and boundary:
            return boundary
    raise SourceFault(f"the camera's stream names no boundary: {content_type!r}")


class MultipartParser:
    """Feed it the body of the response in pieces of any size; it hands back each part when it is whole."""

    def __init__(self, boundary: str, *, max_part_bytes: int) -> None:
        self._delimiter = b"--" + boundary.removeprefix("--").encode("latin-1")
        self._max_part_bytes = max_part_bytes
        self._buffer = bytearray()
        self._headers: dict[str, str] | None = None
        self._length: int | None = None
        self._scanned = 0
        self._ended = False

    def feed(self, data: bytes) -> list[Part]:
        """Parts completed by `data`. Raises SourceFault on anything that is not this stream; it is unusable
        then."""
        if self._ended:
            raise SourceFault("the camera sent more after the closing boundary")
        self._buffer += data
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
            raise SourceFault(
                f"the camera's boundary line goes on with {lines[0][:40]!r}: another boundary is in use"
            )
        self._headers = _headers(lines[1:])
        self._length = self._content_length(self._headers)
        self._scanned = 0
        del self._buffer[: end + 4]
        return True

    def _skip_to_delimiter(self) -> int | None:
        at = self._buffer.find(self._delimiter)
        if at < 0:
            self._bound(len(self._buffer), MAX_HEADER_BYTES, "bytes before a boundary")
            return None
        if self._buffer[:at].strip(b"\r\n"):
            raise SourceFault(
                f"{at} bytes between two parts of the camera's stream: a part is longer than its "
                "Content-Length says"
            )
        return at

    def _content_length(self, headers: dict[str, str]) -> int | None:
        text = headers.get("content-length")
        if text is None:
            return None
        # str.isdigit() alone would let through superscripts, which int() refuses.
        if not (text.isascii() and text.isdigit()):
            raise SourceFault(f"the camera's stream has Content-Length {text[:40]!r}, which is no number")
        self._bound(int(text), self._max_part_bytes, "part")
        return int(text)

    def _take_body(self) -> bytes | None:
        if self._length is not None:
            return self._take_measured(self._length)
        return self._take_delimited()

    def _take_measured(self, length: int) -> bytes | None:
        # The delimiter after the part is looked at as soon as its first bytes are there, not waited for:
        # the server may send it only with the next picture, and this picture is wanted now.
        tail = bytes(self._buffer[length : length + 2 + len(self._delimiter)])
        # Some cameras leave out the line break before the delimiter.
        if not (
            (b"\r\n" + self._delimiter).startswith(tail) or tail.startswith(self._delimiter[: len(tail)])
        ):
            raise SourceFault(
                f"the camera's part of {length} bytes is not followed by the boundary but by "
                f"{tail[:8].hex(' ')}: "
                "its Content-Length is wrong or the part was cut"
            )
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _take_delimited(self) -> bytes | None:
        mark = b"\r\n" + self._delimiter
        at = self._buffer.find(mark, self._scanned)
        if at < 0:
            self._bound(len(self._buffer), self._max_part_bytes + len(mark), "part")
            self._scanned = max(0, len(self._buffer) - len(mark) + 1)
            return None
        self._bound(at, self._max_part_bytes, "part")
        body = bytes(self._buffer[:at])
        del self._buffer[:at]
        return body

    @staticmethod
    def _bound(size: int, limit: int, what: str) -> None:
        if size > limit:
            raise SourceFault(f"{what} of {size} bytes in the camera's stream, more than the {limit} allowed")


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise SourceFault(f"a part header without a colon in the camera's stream: {line[:40]!r}")
        headers[name.strip().lower()] = value.strip()
    return headers
