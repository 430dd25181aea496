"""One phone's hardware for the real kills: a hand's firmware in a process of its own, behind a real pty.

The phone's touch log is made of the setpoints that the board gives its drives, whatever anybody says on the link; it
goes on over restarts of the board and of the daemon.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from struct import unpack

import numpy as np
import trio

from edge_daemon.bench.link.presses import GLASS_Z_UM
from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.boards import ROM_TEXT, BoardProcess, BoardSpec, ResetCause, Runtime
from edge_daemon.bench.twin.line import SerialLine


@dataclass(frozen=True)
class Press:
    """One contact with the glass: when it began, and where, in hand µm."""

    at_ns: int
    x_um: int
    y_um: int


class Glass:
    """Setpoints of the drives in, presses out."""

    def __init__(self) -> None:
        self.presses: list[Press] = []
        self._pressed = False

    def setpoint(self, x_um: int, y_um: int, z_um: int) -> None:
        pressed = z_um < GLASS_Z_UM
        if pressed and not self._pressed:
            self.presses.append(Press(time.monotonic_ns(), x_um, y_um))
        self._pressed = pressed


class RealHand:
    """`open_real_hand` makes one; `port` is what the daemon's configuration names."""

    def __init__(self, name: str, uid: str, directory: Path, runtime: Runtime) -> None:
        self.name = name
        self.uid = uid
        self.glass = Glass()
        self.boots = 0
        self._line = SerialLine(directory / "by-id" / f"usb-{name}", np.random.default_rng(0))
        self._wire_path = directory / f"{name}.wire"
        spec = BoardSpec("hand", uid)
        # The board's counter of boots and its log are named after its kind: a folder for each board.
        folder = directory / name
        folder.mkdir()
        self._board = BoardProcess(spec, self._line, self._wire_path, folder, runtime)
        self._nursery: trio.Nursery | None = None

    @property
    def port(self) -> Path:
        return self._line.port

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
        """The chip restarts, also in the middle of a motion; its drives keep their last setpoint."""
        await self._board.kill()
        await self._power_on("watchdog")

    async def _power_on(self, cause: ResetCause) -> None:
        assert self._nursery is not None
        for fd in self._line.fds()[1:]:
            # The former board's end, whose number the next one may get.
            trio.lowlevel.notify_closing(fd)
        end = self._line.attach_board()
        self._line.send_as_board(ROM_TEXT)
        self._nursery.start_soon(self._carry, self._line.fds()[1])
        self.boots += 1
        await self._board.start(end, cause, self._nursery)

    async def _carry(self, fd: int) -> None:
        """Bytes from one end of the line to the other, until that end is closed."""
        while fd in self._line.fds():
            try:
                await trio.lowlevel.wait_readable(fd)
            except trio.ClosedResourceError:
                return
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
        async with listener:
            while True:
                stream = await listener.accept()
                assert self._nursery is not None
                self._nursery.start_soon(self._take_setpoints, stream)

    async def _take_setpoints(self, stream: trio.SocketStream) -> None:
        records = wiring.Records()
        async with stream:
            with suppress(trio.BrokenResourceError):
                async for data in stream:
                    for kind, payload in records.feed(bytes(data)):
                        if kind == wiring.JOINTS:
                            self.glass.setpoint(*unpack("<iii", payload))
