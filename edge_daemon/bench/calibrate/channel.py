"""Messages between the processes of one seed: msgpack maps behind a 4-byte length, over an inherited socket."""

import socket
import struct
from typing import Any

import msgpack  # type: ignore[import-untyped]

# A picture is some 200 kB.
MESSAGE_MAX = 8_000_000
_LENGTH = struct.Struct(">I")


class ChannelClosed(Exception):
    """The process at the other end has ended."""


class Channel:
    """Blocking; each side owns one end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    def inherited(cls, fd: int) -> "Channel":
        """The end whose descriptor this process was started with."""
        return cls(socket.socket(fileno=fd))

    def send(self, message: dict[str, Any]) -> None:
        body = msgpack.packb(message)
        try:
            self._sock.sendall(_LENGTH.pack(len(body)) + body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChannelClosed from error

    def receive(self) -> dict[str, Any]:
        """The next message. Raises ChannelClosed at the end."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MESSAGE_MAX:
            raise ChannelClosed(f"a message of {length} bytes is none of ours")
        message: dict[str, Any] = msgpack.unpackb(self._exactly(length))
        return message

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            try:
                part = self._sock.recv(min(count, 1 << 20))
            except ConnectionResetError as error:
                raise ChannelClosed from error
            if not part:
                raise ChannelClosed
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._sock.close()
