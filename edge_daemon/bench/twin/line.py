"""The serial line between the daemon and a board: a pty on one side, the board's process on the other.

Bytes pass through here, so that a cable can be bad: lose bytes, turn them over, break after the n-th, or be
pulled and plugged into another port.
"""

import os
import socket
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from edge_daemon.bench.twin.line_loss import FrameLoss


class Direction:
    """One way along the line, and what is wrong with it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.passed = 0
        self.lost = 0
        self._cut_after: int | None = None
        self._drop = 0
        self._corrupt = 0
        self._noise = 0.0
        self._loss: FrameLoss | None = None

    def heal(self) -> None:
        """Nothing is wrong any more."""
        self._loss = None
        self._cut_after = None
        self._drop = self._corrupt = 0
        self._noise = 0.0

    def cut_after(self, count: int) -> None:
        """Let `count` more bytes through, then nothing until heal()."""
        self._cut_after = count

    def drop_next(self, count: int) -> None:
        """Lose the next `count` bytes."""
        self._drop = count

    def corrupt_next(self, count: int) -> None:
        """Turn over one bit in each of the next `count` bytes."""
        self._corrupt = count

    def set_noise(self, rate: float) -> None:
        """From now on damage each byte with this probability."""
        self._noise = rate

    def lose_frames(self, rate: float) -> FrameLoss:
        """From now on lose each frame with this probability; the answer counts them."""
        self._loss = FrameLoss(self._rng, rate)
        return self._loss

    def carry(self, data: bytes) -> bytes:
        """What arrives of `data`."""
        if self._loss is not None:
            data = self._loss.carry(data)
        dropped = min(self._drop, len(data))
        self._drop -= dropped
        arrived = bytearray(data[dropped:])
        if self._cut_after is not None:
            arrived = arrived[: self._cut_after]
            self._cut_after -= len(arrived)
        for index in range(len(arrived)):
            if self._corrupt > 0 or (self._noise and self._rng.random() < self._noise):
                self._corrupt = max(0, self._corrupt - 1)
                arrived[index] ^= 1 << int(self._rng.integers(8))
        self.passed += len(arrived)
        self.lost += len(data) - len(arrived)
        return bytes(arrived)


class SerialLine:
    """A line with a stable name, as /dev/serial/by-id gives one: `port` is a link to the pty of the moment."""

    def __init__(self, port: Path, rng: np.random.Generator) -> None:
        self.port = port
        self.to_board = Direction(rng)
        self.to_host = Direction(rng)
        self.listener: Callable[[Literal["to_board", "to_host"], bytes], None] | None = None
        """Hears what arrives at either end, on the world's thread."""
        self._master = -1
        self._slave = -1
        self._board: socket.socket | None = None

    @property
    def plugged(self) -> bool:
        return self._master >= 0

    def fds(self) -> list[int]:
        """File descriptors to watch for bytes."""
        watched = [self._master] if self.plugged else []
        return [*watched, self._board.fileno()] if self._board is not None else watched

    def plug(self) -> None:
        """A new port appears under the old name."""
        if self.plugged:
            return
        self._master, self._slave = os.openpty()
        # The line itself never echoes; whoever opens the port sets it up as it likes.
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.port.parent.mkdir(parents=True, exist_ok=True)
        self.port.unlink(missing_ok=True)
        self.port.symlink_to(os.ttyname(self._slave))

    def unplug(self) -> None:
        """The port is gone; whoever has it open gets a hang-up."""
        if not self.plugged:
            return
        self.port.unlink()
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    def attach_board(self) -> socket.socket:
        """A new board process takes the other end. The caller hands the socket on and closes its own copy."""
        self.detach_board()
        ours, boards = socket.socketpair()
        ours.setblocking(False)
        boards.setblocking(False)
        self._board = ours
        return boards

    def detach_board(self) -> None:
        """The board's process is gone."""
        if self._board is not None:
            self._board.close()
            self._board = None

    def close(self) -> None:
        self.unplug()
        self.detach_board()

    def send_as_board(self, data: bytes) -> None:
        """Put bytes on the line that the board's firmware did not send: boot ROM text, garbage."""
        self._to_host(data)

    def pump(self, fd: int) -> None:
        """Move what has come at `fd`, if anything, to the other end; what does not fit there is lost.

        A descriptor's number may have passed to another end since it was seen to be readable.
        """
        data = _read(fd)
        if fd == self._master:
            self._to_board(data or b"")
        elif self._board is not None and fd == self._board.fileno():
            if data == b"":
                self.detach_board()
            else:
                self._to_host(data or b"")

    def _to_board(self, data: bytes) -> None:
        arrived = self.to_board.carry(data)
        if arrived and self.listener is not None:
            self.listener("to_board", arrived)
        if arrived and self._board is not None:
            try:
                self._board.send(arrived)
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                self.to_board.lost += len(arrived)

    def _to_host(self, data: bytes) -> None:
        arrived = self.to_host.carry(data)
        if not arrived:
            return
        if self.listener is not None:
            self.listener("to_host", arrived)
        written = 0
        if self.plugged:
            try:
                written = os.write(self._master, arrived)
            except BlockingIOError:
                written = 0
        self.to_host.lost += len(arrived) - written


def _read(fd: int) -> bytes | None:
    """What is there, None for nothing, b"" at the end of a board's socket."""
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""
