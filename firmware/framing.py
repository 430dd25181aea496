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
BODY_MAX = FRAME_MAX - 2 - 1 - HEADER_SIZE - CRC_SIZE


class BodyError(ValueError):
    """A body, an argument list or a field that does not have the shape its type asks for."""


def cobs_encode_into(out: bytearray, at: int, raw: "bytes | bytearray | memoryview") -> int:
    """Write COBS(raw), raw shorter than 254 bytes, into out from index at; returns the index after it."""
    code_at = at
    at += 1
    for byte in raw:
        if byte:
            out[at] = byte
        else:
            out[code_at] = at - code_at
            code_at = at
        at += 1
    out[code_at] = at - code_at
    return at


def cobs_decode_into(out: bytearray, coded: "bytes | bytearray | memoryview") -> int:
    """Write the bytes of a COBS block (without delimiter) into out; returns how many, -1 if broken."""
    at = 0
    n = 0
    end = len(coded)
    if end > len(out) + 1:
        return -1
    while at < end:
        stop = at + coded[at]
        if stop == at or stop > end:
            return -1
        at += 1
        while at < stop:
            out[n] = coded[at]
            n += 1
            at += 1
        if at < end:
            out[n] = 0
            n += 1
    return n


def encode_frame(
    frame_type: int, boot_id: int, session_id: int, seq: int, body: "bytes | bytearray | memoryview" = b""
) -> bytes:
    """One whole frame with both delimiters. Raises BodyError when the body is longer than BODY_MAX."""
    if len(body) > BODY_MAX:
        raise BodyError("frame 0x%02x: body of %d bytes, at most %d" % (frame_type, len(body), BODY_MAX))
    raw = bytearray(HEADER_SIZE + len(body) + CRC_SIZE)
    struct.pack_into(HEADER, raw, 0, PROTOCOL, frame_type, boot_id, session_id, seq)
    end = HEADER_SIZE + len(body)
    raw[HEADER_SIZE:end] = body
    struct.pack_into("<I", raw, end, binascii.crc32(memoryview(raw)[:end]))
    out = bytearray(len(raw) + 3)
    cobs_encode_into(out, 1, raw)
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
        self._coded = bytearray(FRAME_MAX - 2)
        self._raw = bytearray(FRAME_MAX - 3)
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
        view = memoryview(data)
        at = 0
        end = len(data)
        while at < end:
            stop = data.find(b"\x00", at)
            if stop < 0:
                self._keep(view[at:end])
                break
            self._keep(view[at:stop])
            at = stop + 1
            frame = self._close_block()
            if frame is not None:
                found.append(frame)
        return found

    def _keep(self, part: memoryview) -> None:
        n = self._n + len(part)
        if self._skipping:
            self.garbage_bytes += len(part)
        elif n > len(self._coded):
            self.oversize += 1
            self.garbage_bytes += n
            self._skipping = True
            self._n = 0
        else:
            self._coded[self._n : n] = part
            self._n = n

    def _close_block(self) -> "Frame | None":
        n = self._n
        self._n = 0
        if self._skipping or n == 0:
            self._skipping = False
            return None
        size = cobs_decode_into(self._raw, memoryview(self._coded)[:n])
        if size < HEADER_SIZE + CRC_SIZE:
            self.garbage_bytes += n
            return None
        end = size - CRC_SIZE
        if struct.unpack_from("<I", self._raw, end)[0] != binascii.crc32(memoryview(self._raw)[:end]):
            self.crc_errors += 1
            self.garbage_bytes += n
            return None
        protocol, frame_type, boot_id, session_id, seq = struct.unpack_from(HEADER, self._raw, 0)
        if protocol != PROTOCOL:
            self.other_protocol += 1
            self.other_protocol_seen = protocol
            return None
        self.frames += 1
        return Frame(frame_type, boot_id, session_id, seq, bytes(self._raw[HEADER_SIZE:end]))
