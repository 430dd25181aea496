"""The simulated board's wires: what a real one has as PWM pins and a USB plug is a unix socket here.

Records on the socket: kind u8, length u8, payload. The other end is the bench's simulated rig.
"""

import errno
import socket
import struct
import sys

# board to rig
JOINTS = 0x01  # '<iii' setpoint in um
HID_REPORT = 0x02  # report id and bytes
HID_DESCRIPTOR = 0x03  # '<HB' offset, 1 for the last part, then bytes of the report descriptor
SENSE = 0x04  # what does z feel?
# rig to board
HID_COMPLETE = 0x81  # u8: so many reports have been taken
HID_LEDS = 0x82  # u8
HID_STATE = 0x83  # u8: 0 detached, 1 configured, 2 suspended
PUSHED = 0x84  # '<iii' displacement in um
SENSED = 0x85  # '<ih' where z really is in um, load of its drive in 1/1000

_AF_UNIX = getattr(socket, "AF_UNIX", 1)


class Handler:
    """Takes the records of the kinds it is registered for."""

    def take(self, kind: int, payload: bytes) -> None:
        raise NotImplementedError


class WiringGone(Exception):
    """The rig has closed the socket: there is nothing left to drive."""


class Wiring:
    """Sends records and takes those that come in; one record kind goes to one handler."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(_AF_UNIX, socket.SOCK_STREAM)
        if sys.implementation.name == "micropython":
            # Its unix port takes the raw sockaddr_un only.
            self._socket.connect(struct.pack("<H", _AF_UNIX) + path.encode() + b"\x00")
        else:
            self._socket.connect(path)
        self._received = b""
        self._handlers: dict[int, "Handler"] = {}

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def stream(self) -> socket.socket:
        """What select.poll takes on both interpreters."""
        return self._socket

    def handle(self, kind: int, handler: "Handler") -> None:
        """Records of this kind go to handler.take(kind, payload)."""
        self._handlers[kind] = handler

    def send(self, kind: int, payload: "bytes | bytearray | memoryview") -> None:
        """Send one record. Raises WiringGone when the rig has closed the socket."""
        try:
            self._socket.sendall(bytes((kind, len(payload))) + bytes(payload))
        except OSError as err:
            raise _as_gone(err)

    def receive(self) -> None:
        """Take what has come; call when the socket is readable. Raises WiringGone at its end."""
        try:
            data = self._socket.recv(512)
        except OSError as err:
            raise _as_gone(err)
        if not data:
            raise WiringGone()
        data = self._received + data
        at = 0
        while len(data) - at >= 2 and len(data) - at >= 2 + data[at + 1]:
            end = at + 2 + data[at + 1]
            handler = self._handlers.get(data[at])
            if handler is not None:
                handler.take(data[at], data[at + 2 : end])
            at = end
        self._received = data[at:]


def _as_gone(err: OSError) -> Exception:
    # 32 is Linux' EPIPE, which MicroPython's errno does not name.
    return WiringGone() if err.errno in (errno.ECONNRESET, 32) else err
