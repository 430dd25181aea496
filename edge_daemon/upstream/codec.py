"""Frames and bodies: u32 big-endian length, then one MessagePack map; decoded strictly, refused by field."""

import math
import re
import struct
from typing import Any, Final, TypeVar

import msgspec

from edge_daemon.contract import ErrorInfo, error_info
from edge_daemon.upstream.messages import PROTOCOL, FromEdge, RequestId, ToEdge
from edge_daemon.upstream.shape import BadShape, NotMessagePack, check_shape

MAX_BYTES_TO_EDGE: Final = 64 * 1024
"""Room for 4096 characters of 4 UTF-8 bytes four times over."""
MAX_BYTES_FROM_EDGE: Final = 8 * 1024 * 1024
"""Room for a full-HD PNG."""
MAX_COMPLAINT: Final = 300
"""msgspec repeats a wrong enumeration value whole."""
MAX_VALUES_TO_EDGE: Final = 1024
MAX_VALUES_FROM_EDGE: Final = 65536

_T = TypeVar("_T")
_LENGTH: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()


class UpstreamError(Exception):
    """Base of what can be wrong with received bytes. `info` is the answer to whoever sent them."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


class Unframeable(UpstreamError):
    """The stream cannot be trusted any further; the connection ends."""


class BadMessage(UpstreamError):
    """One well-framed message is refused; the stream goes on. `reply_to` is its id, if it could be read."""

    def __init__(self, info: ErrorInfo, reply_to: RequestId | None) -> None:
        super().__init__(info)
        self.reply_to = reply_to


class MessageTooLong(Exception):
    """A message of ours is over the cap; it was not sent."""


class FrameReader:
    """Cuts a byte stream into bodies. Holds at most one frame and what came with it in one read."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes | bytearray) -> None:
        self._buffer += data

    def next_body(self) -> bytes | None:
        """The next whole body, or None until more bytes come.

        Raises:
            Unframeable: the announced length is over the cap (known before the body is there).
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > self._max_bytes:
            raise Unframeable(
                error_info(
                    "protocol_error",
                    f"a frame of {length} bytes is over the cap of {self._max_bytes}; send smaller messages",
                )
            )
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return body


def frame(body: bytes, max_bytes: int) -> bytes:
    if len(body) > max_bytes:
        raise MessageTooLong(f"a message of {len(body)} bytes is over the cap of {max_bytes}")
    return _LENGTH.pack(len(body)) + body


def encode_from_edge(message: msgspec.Struct) -> bytes:
    """The framed bytes of a message towards the plane. Raises MessageTooLong."""
    return frame(_encode(message), MAX_BYTES_FROM_EDGE)


def encode_to_edge(message: msgspec.Struct) -> bytes:
    """The framed bytes of a message towards the edge. Raises MessageTooLong."""
    return frame(_encode(message), MAX_BYTES_TO_EDGE)


def _encode(message: msgspec.Struct) -> bytes:
    # Not the struct itself: msgspec sizes a map's header by all of a struct's fields, also those it omits, so
    # a receipt with 12 of 21 fields would get a longer header than every other MessagePack codec writes.
    return _ENCODER.encode(msgspec.to_builtins(message, builtin_types=(bytes,)))


def decode_to_edge(body: bytes) -> ToEdge:
    """One message from the plane or from staff. Raises: Unframeable, BadMessage."""
    return _decode(body, _TO_EDGE, MAX_VALUES_TO_EDGE)


def decode_from_edge(body: bytes) -> FromEdge:
    """One message from the edge. Raises: Unframeable, BadMessage."""
    return _decode(body, _FROM_EDGE, MAX_VALUES_FROM_EDGE)


_TO_EDGE: Final = msgspec.msgpack.Decoder(ToEdge)
_FROM_EDGE: Final = msgspec.msgpack.Decoder(FromEdge)


class _Head(msgspec.Struct):
    """The two fields by which even a wrong message may be answered."""

    type: Any = None
    id: Any = None


_HEAD: Final = msgspec.msgpack.Decoder(_Head)
_REQUEST_ID: Final[Any] = RequestId


def _decode(body: bytes, decoder: "msgspec.msgpack.Decoder[_T]", max_values: int) -> _T:
    try:
        check_shape(body, max_values)
    except NotMessagePack as e:
        raise Unframeable(
            error_info("protocol_error", f"the frame does not hold one MessagePack map: {e}")
        ) from None
    except BadShape as e:
        info = error_info("protocol_error", _sentence(e.path, str(e)), field=e.path or None)
        raise BadMessage(info, None) from None
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as e:
        raise BadMessage(_explain(str(e), body), _readable_id(body)) from None


def _readable_id(body: bytes) -> RequestId | None:
    try:
        request_id: RequestId = msgspec.convert(_HEAD.decode(body).id, _REQUEST_ID)
    except msgspec.ValidationError:
        return None
    return request_id


_AT: Final = re.compile(r" - at `\$(?P<path>[^`]*)`\Z")
_NAMED_FIELD: Final = re.compile(r"^Object (?:missing required|contains unknown) field `(?P<name>[^`]*)`")


def _explain(complaint: str, body: bytes) -> ErrorInfo:
    """msgspec's complaint, turned into an error that names the field by its path from the message's top."""
    at = _AT.search(complaint)
    path = at["path"].removeprefix(".") if at else ""
    said = (complaint[: at.start()] if at else complaint)[:MAX_COMPLAINT]
    if named := _NAMED_FIELD.match(said):
        path = f"{path}.{named['name']}" if path else named["name"]
    elif "got `" not in said and (value := _value_at(body, path)) is not None:
        said += f", got {value}"
    if path == "type":
        return error_info(
            "protocol_error",
            f"type: protocol {PROTOCOL} has no such message ({said[0].lower()}{said[1:]})",
            field="type",
        )
    return error_info("invalid_argument", _sentence(path, said), field=path or None)


def _sentence(path: str, said: str) -> str:
    return f"{path}: {said[0].lower()}{said[1:]}" if path else said


def _value_at(body: bytes, path: str) -> str | None:
    """The offending number, where it is one. A string is never repeated: it may be what somebody typed."""
    value: Any = msgspec.msgpack.decode(body)
    for step in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    if isinstance(value, str):
        return f"{len(value)} characters"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return repr(value) if isinstance(value, int | float) else None


def tag_of(message: msgspec.Struct) -> str:
    """The message's `type` as it goes over the wire."""
    return str(message.__struct_config__.tag)
