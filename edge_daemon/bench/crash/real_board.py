"""One board for the real kills: its firmware in a process of its own, behind a real pty."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import numpy as np
import trio

from edge_daemon.bench.crash.real_notes import BoardKind, Flap
from edge_daemon.bench.twin.boards import ROM_TEXT, BoardProcess, BoardSpec, ResetCause, Runtime
from edge_daemon.bench.twin.line import SerialLine


class RealBoard(ABC):
    """`port` is what the daemon's configuration names. What is behind the board's other wires a subclass says."""

    def __init__(self, kind: BoardKind, name: str, uid: str, directory: Path, runtime: Runtime) -> None:
        self.name = name
        self.flaps: list[Flap] = []
        self._line = SerialLine(directory / "by-id" / f"usb-{name}", np.random.default_rng(0))
        self._line.listener = self._heard
        self._wire_path = directory / f"{name}.wire"
        # The board's counter of boots and its log are named after its kind: a folder for each board.
        folder = directory / name
        folder.mkdir()
        self._board = BoardProcess(BoardSpec(kind, uid), self._line, self._wire_path, folder, runtime)
        self._nursery: trio.Nursery | None = None

    @property
    def port(self) -> Path:
        return self._line.port

    @abstractmethod
    async def serve(self, stream: trio.SocketStream) -> None:
        """Its wires, from one start of the board to its end. Raises trio.BrokenResourceError at will."""

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Plugged in and powered until cancelled; its process and its pty are then gone."""
        with self._listening() as listener, self._plugged():
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._take_wires, listener)
                nursery.start_soon(self._carry, self._line.fds()[0])
                try:
                    await self._power_on("power_on")
                    task_status.started()
                    await trio.sleep_forever()
                finally:
                    await self._board.kill()

    async def reset(self) -> None:
        """The chip restarts, also in the middle of what it does; drives keep their last setpoint."""
        await self._board.kill()
        await self._power_on("watchdog")

    async def flap(self, away_s: float) -> None:
        """The cable goes, and comes back after so long; the board goes on."""
        assert self._nursery is not None
        trio.lowlevel.notify_closing(self._line.fds()[0])
        self._line.unplug()
        flap = Flap(time.monotonic_ns())
        await trio.sleep(away_s)
        self._line.plug()
        self.flaps.append(flap)
        self._nursery.start_soon(self._carry, self._line.fds()[0])

    def _heard(self, direction: Literal["to_board", "to_host"], data: bytes) -> None:
        if direction == "to_board" and self.flaps and not self.flaps[-1].opened_ns:
            self.flaps[-1].opened_ns = time.monotonic_ns()

    async def _power_on(self, cause: ResetCause) -> None:
        assert self._nursery is not None
        for fd in self._line.fds()[1:]:
            # The former board's end, whose number the next one may get.
            trio.lowlevel.notify_closing(fd)
        end = self._line.attach_board()
        self._line.send_as_board(ROM_TEXT)
        self._nursery.start_soon(self._carry, self._line.fds()[1])
        await self._board.start(end, cause, self._nursery)

    async def _carry(self, fd: int) -> None:
        """Bytes from one end of the line to the other, until that end is closed."""
        while fd in self._line.fds():
            try:
                await trio.lowlevel.wait_readable(fd)
            except trio.ClosedResourceError:
                return
            if fd in self._line.fds():
                self._line.pump(fd)

    @contextmanager
    def _plugged(self) -> Iterator[None]:
        self._line.plug()
        try:
            yield
        finally:
            self._line.close()

    @contextmanager
    def _listening(self) -> Iterator[trio.SocketListener]:
        with socket.socket(socket.AF_UNIX) as plain:
            plain.bind(str(self._wire_path))
            plain.listen(2)
            plain.setblocking(False)
            yield trio.SocketListener(trio.socket.from_stdlib_socket(plain))

    async def _take_wires(self, listener: trio.SocketListener) -> None:
        """One start after the other: what the last one did is all taken before the next one's."""
        async with listener:
            while True:
                stream = await listener.accept()
                async with stream:
                    with suppress(trio.BrokenResourceError):
                        await self.serve(stream)
