"""Frames on the line: COBS, checksum, an encoder and an incremental decoder.

A frame is ``00 COBS(header | body | crc32) 00``, at most FRAME_MAX bytes. The header is HEADER (protocol,
type, boot id, session id, seq), the checksum is CRC-32 as in zlib, little endian, over header and body.
COBS: Cheshire & Baker, "Consistent Overhead Byte Stuffing", IEEE/ACM Transactions on Networking, 1999.

Runs on CPython and on MicroPython >= 1.27: no typing, no dataclasses, no growing buffers.
"""

import binascii
import struct

PROTOCOL = 1

HEADER = "<BBIIH"
HEADER_SIZE = 12
CRC_SIZE = 4
# 17 ms at 115200 baud: short enough that an ESTOP never waits long behind another frame.
FRAME_MAX = 192
# Two delimiters and one COBS overhead byte (frames stay below 254 bytes, so it is always one).
FRAME_OVERHEAD = 2 + 1 + HEADER_SIZE + CRC_SIZE
BODY_MAX = FRAME_MAX - FRAME_OVERHEAD
# What CRC-32 makes of anything that is followed by its own CRC-32, little endian, and of nothing else.
_CRC_RESIDUE = 0x2144DF1C


class BodyError(ValueError):
    """A body, an argument list or a field that does not have the shape its type asks for."""


def cobs_encode(buffer: bytearray, at: int, end: int) -> None:
    """COBS in place: buffer[at + 1:end], shorter than 254 bytes, becomes buffer[at:end]; buffer[end] must be zero.

    Only the places of the zeros change, and buffer.find() goes from one to the next without a loop in Python
    over the bytes between them.
    """
    while at < end:
        zero = buffer.find(b"\x00", at + 1)
        buffer[at] = zero - at
        at = zero


def cobs_decode(buffer: bytearray, n: int) -> bool:
    """Undo it in place: buffer[:n], without a delimiter, becomes buffer[1:n]. False if that was no COBS."""
    at = buffer[0]
    while at < n:
        step = buffer[at]
        if not step:
            return False
        buffer[at] = 0
        at += step
    return at == n


def encode_frame_into(
    out: bytearray,
    at: int,
    frame_type: int,
    boot_id: int,
    session_id: int,
    seq: int,
    body: "bytes | bytearray | memoryview",
) -> int:
    """Write one whole frame with both delimiters into out from index at; returns the index after it.

    The caller has made sure of FRAME_OVERHEAD + len(body) bytes of room. Raises BodyError as encode_frame() does.
    """
    if len(body) > BODY_MAX:
        raise BodyError("frame 0x%02x: body of %d bytes, at most %d" % (frame_type, len(body), BODY_MAX))
    # The content is put where COBS leaves it: behind the delimiter and the first code.
    begin = at + 2
    end = begin + HEADER_SIZE + len(body)
    struct.pack_into(HEADER, out, begin, PROTOCOL, frame_type, boot_id, session_id, seq)
    out[begin + HEADER_SIZE : end] = body
    struct.pack_into("<I", out, end, binascii.crc32(memoryview(out)[begin:end]))
    end += CRC_SIZE
    out[at] = 0
    out[end] = 0
    cobs_encode(out, at + 1, end)
    return end + 1


def encode_frame(
    frame_type: int, boot_id: int, session_id: int, seq: int, body: "bytes | bytearray | memoryview" = b""
) -> bytes:
    """One whole frame with both delimiters. Raises BodyError when the body is longer than BODY_MAX."""
    out = bytearray(FRAME_OVERHEAD + len(body))
    encode_frame_into(out, 0, frame_type, boot_id, session_id, seq, body)
    return bytes(out)


class Frame:
    """One valid frame: header fields and body."""

    __slots__ = ("body", "boot_id", "seq", "session_id", "type")

    def __init__(self, frame_type: int, boot_id: int, session_id: int, seq: int, body: bytes) -> None:
        self.type = frame_type
        self.boot_id = boot_id
        self.session_id = session_id
        self.seq = seq
        self.body = body


class Decoder:
    """Bytes in, valid frames out; resynchronises at every delimiter and never grows.

    Counters say what the line is like: frames, garbage_bytes (in blocks that were no frame), crc_errors,
    oversize (blocks longer than a frame), other_protocol (valid blocks of another protocol number, the
    last of which is in other_protocol_seen).
    """

    def __init__(self) -> None:
        self._block = bytearray(FRAME_MAX - 2)
        self._view = memoryview(self._block)
        self._n = 0
        self._skipping = False
        self.frames = 0
        self.garbage_bytes = 0
        self.crc_errors = 0
        self.oversize = 0
        self.other_protocol = 0
        self.other_protocol_seen = 0

    def feed(self, data: "bytes | bytearray") -> "list[Frame]":
        """Take bytes as they come from the line; returns the frames that they completed, in order."""
        found: list[Frame] = []
        at = 0
        while True:
            stop = data.find(b"\x00", at)
            if stop < 0:
                self._keep(data, at, len(data))
                return found
            if stop > at:
                self._keep(data, at, stop)
            at = stop + 1
            self._skipping = False
            if self._n:
                frame = self._close_block()
                if frame is not None:
                    found.append(frame)

    def _keep(self, data: "bytes | bytearray", at: int, stop: int) -> None:
        n = self._n + stop - at
        if self._skipping:
            self.garbage_bytes += stop - at
        elif n > len(self._block):
            self.oversize += 1
            self.garbage_bytes += n
            self._skipping = True
            self._n = 0
        else:
            self._block[self._n : n] = data[at:stop]
            self._n = n

    def _close_block(self) -> "Frame | None":
        n = self._n
        self._n = 0
        # The first byte is COBS' own.
        if n <= HEADER_SIZE + CRC_SIZE or not cobs_decode(self._block, n):
            self.garbage_bytes += n
            return None
        if binascii.crc32(self._view[1:n]) != _CRC_RESIDUE:
            self.crc_errors += 1
            self.garbage_bytes += n
            return None
        protocol, frame_type, boot_id, session_id, seq = struct.unpack_from(HEADER, self._block, 1)
        if protocol != PROTOCOL:
            self.other_protocol += 1
            self.other_protocol_seen = protocol
            return None
        self.frames += 1
        body = bytes(self._view[1 + HEADER_SIZE : n - CRC_SIZE])
        return Frame(frame_type, boot_id, session_id, seq, body)
