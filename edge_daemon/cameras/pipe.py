"""The records a capture process sends to the daemon, sans-IO.

On the socket: u32 header length, u32 picture length (both big-endian), MessagePack header, JPEG bytes.
Both ends run the same release from the same disk, so the format has no version of its own.
"""

import struct

import msgspec

from edge_daemon.cameras.errors import PipeError
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES

MAX_HEADER_BYTES = 4096
_LENGTHS = struct.Struct(">II")


class _Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    pass


class Opened(_Header, frozen=True, kw_only=True, tag="opened"):
    """The camera is open. `notes`: what it gives other than what was asked, in words for a person."""

    notes: tuple[str, ...] = ()


class Frame(_Header, frozen=True, kw_only=True, tag="frame"):
    """One captured picture; the JPEG follows. `sequence` counts captures of this process, `dropped` those
    which were captured but not sent because the daemon did not read fast enough, `broken` those that were
    no whole picture."""

    sequence: int
    exposed_ns: int
    received_ns: int
    width: int
    height: int
    crc32: int
    dropped: int
    broken: int


class Fault(_Header, frozen=True, kw_only=True, tag="fault"):
    """The last record: why the process ends."""

    reason: str


Header = Opened | Frame | Fault

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Header)


def encode(header: Header, jpeg: bytes = b"") -> bytes:
    """One record."""
    packed = _encoder.encode(header)
    return _LENGTHS.pack(len(packed), len(jpeg)) + packed + jpeg


class RecordReader:
    """Bytes of the socket in, whole records out. Holds at most one record and one read."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Header, bytes]]:
        """Records completed by `data`. Raises PipeError on bytes that are no record."""
        self._buffer += data
        records = []
        while len(self._buffer) >= _LENGTHS.size:
            header_length, jpeg_length = _LENGTHS.unpack_from(self._buffer)
            if header_length > MAX_HEADER_BYTES or jpeg_length > MAX_JPEG_BYTES:
                raise PipeError(
                    f"a record of {header_length} + {jpeg_length} bytes from the capture process, more than "
                    f"{MAX_HEADER_BYTES} + {MAX_JPEG_BYTES}"
                )
            picture = _LENGTHS.size + header_length
            end = picture + jpeg_length
            if len(self._buffer) < end:
                break
            try:
                header = _decoder.decode(self._buffer[_LENGTHS.size : picture])
            except msgspec.MsgspecError as error:
                raise PipeError(
                    f"a record header from the capture process cannot be read: {error}"
                ) from error
            records.append((header, bytes(self._buffer[picture:end])))
            del self._buffer[:end]
        return records
