"""The records a capture process sends to the daemon, over a SOCK_SEQPACKET socket.

One message is one record: a MessagePack header, and with a frame the descriptor of an anonymous file (memfd_create)
that begins with the JPEG. A picture pressed through the socket itself would come in pieces and wake the daemon for
each. Once the daemon has its copy it writes `TAKEN` at `TAKEN_AT`, behind every picture: then the file may take another
one. To have the kernel find and free fifty pages for each picture costs more than to copy it.
Both ends run the same release from the same disk, so the format has no version of its own.
"""

import mmap
import os
import socket
from array import array
from collections.abc import Sequence

import msgspec

from edge_daemon.cameras.errors import PipeError
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES

MAX_HEADER_BYTES = 8192
"""Of a message. Reasons and notes are sentences."""


class _Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    pass


class Opened(_Header, frozen=True, kw_only=True, tag="opened"):
    """The camera is open. `notes`: what it gives other than what was asked, in words for a person."""

    notes: tuple[str, ...] = ()


class Frame(_Header, frozen=True, kw_only=True, tag="frame"):
    """One captured picture; its JPEG comes with the message. Counts of this process so far: `sequence` of captures,
    `dropped` of those that were not sent because the daemon did not read fast enough, `broken` of those that were no
    whole picture, `missed` of those which the camera took and its driver never handed over."""

    sequence: int
    stamp_ns: int
    exposed_ns: int
    exposed_about_ns: int
    captured_about_ns: int
    received_ns: int
    width: int
    height: int
    crc32: int
    dropped: int
    broken: int
    jpeg_bytes: int
    missed: int = 0


class Fault(_Header, frozen=True, kw_only=True, tag="fault"):
    """The camera cannot be used as it is. The process opens it again, or ends when that was in vain too often."""

    fault: CameraFault
    reason: str


Header = Opened | Frame | Fault

TAKEN_AT = MAX_JPEG_BYTES
TAKEN, _NOT_TAKEN = b"\x01", 0
MOST_SHEETS = 4
"""Files kept for use again. One is enough while the daemon keeps up."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Header)


def encode(header: Header) -> bytes:
    """One message."""
    return _encoder.encode(header)


def decode(message: bytes) -> Header:
    """Raises PipeError on bytes that are no header, or one that announces a picture of an impossible size."""
    try:
        header = _decoder.decode(message)
    except msgspec.MsgspecError as error:
        raise PipeError(f"a record from the capture process cannot be read: {error}") from error
    if isinstance(header, Frame) and not 0 < header.jpeg_bytes <= MAX_JPEG_BYTES:
        raise PipeError(
            f"a picture of {header.jpeg_bytes} bytes from the capture process, which is not 1..{MAX_JPEG_BYTES}"
        )
    return header


class _Sheet:
    """A file for one picture after the other, mapped. Takes memory only for what was written to it."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("frame", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, TAKEN_AT + 1)
        self.bytes = mmap.mmap(self.descriptor, TAKEN_AT + 1)
        self.rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [self.descriptor]))]

    @property
    def is_free(self) -> bool:
        return self.bytes[TAKEN_AT] != _NOT_TAKEN

    def close(self) -> None:
        """The record on its way keeps what the daemon has not read yet."""
        self.bytes.close()
        os.close(self.descriptor)


class Sender:
    """The capture process's end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sheets: list[_Sheet] = []

    def send(self, header: Header, jpeg: bytes | bytearray = b"") -> None:
        """Send one record without waiting. Raises BlockingIOError when the other end has to read first, and OSError
        when there is no other end any more; nothing was sent then."""
        if not jpeg:
            self._sock.send(encode(header), socket.MSG_DONTWAIT)
            return
        sheet = self._free_sheet()
        sheet.bytes[: len(jpeg)] = jpeg
        sheet.bytes[TAKEN_AT] = _NOT_TAKEN
        try:
            self._sock.sendmsg((encode(header),), sheet.rights, socket.MSG_DONTWAIT)
        except OSError:
            sheet.bytes[TAKEN_AT : TAKEN_AT + 1] = TAKEN
            raise

    def close(self) -> None:
        """Let go of the files; the socket stays open."""
        while self._sheets:
            self._sheets.pop().close()

    def _free_sheet(self) -> _Sheet:
        """Always the first one free: its memory is the warmest. Where none is, the daemon is late, and the oldest
        is left to it."""
        for sheet in self._sheets:
            if sheet.is_free:
                return sheet
        if len(self._sheets) == MOST_SHEETS:
            self._sheets.pop(0).close()
        sheet = _Sheet()
        self._sheets.append(sheet)
        return sheet


RIGHTS_BYTES = socket.CMSG_SPACE(array("i").itemsize)
RECEIVE_FLAGS = int(socket.MSG_CMSG_CLOEXEC)


def take_record(message: bytes, rights: Sequence[tuple[int, int, bytes]]) -> tuple[Header, bytes]:
    """What `recvmsg` gave for one record, with its picture. Raises PipeError; the descriptor is closed in any case."""
    pictures = array("i")
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            pictures.frombytes(data[: len(data) - len(data) % pictures.itemsize])
    try:
        header = decode(message)
        if not isinstance(header, Frame):
            return header, b""
        if len(pictures) != 1:
            raise PipeError(f"a frame with {len(pictures)} pictures from the capture process")
        jpeg = os.pread(pictures[0], header.jpeg_bytes, 0)
        os.pwrite(pictures[0], TAKEN, TAKEN_AT)
    finally:
        for picture in pictures:
            os.close(picture)
    if len(jpeg) != header.jpeg_bytes:
        raise PipeError(
            f"a picture of {len(jpeg)} bytes from the capture process, announced as {header.jpeg_bytes}"
        )
    return header, jpeg
