"""Boards outside the virtual machine: the firmware as processes, their serial wires, and what their drives did.

The machine's USB serial adapters have unix sockets as wires. A board's end of its line outlives them, as a
board with a power supply of its own does: while the adapter is unplugged its bytes fall off the line.
"""

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

import firmware
from edge_daemon.bench.twin.boards import HEAP, available_runtime

SOURCE_ROOT = Path(firmware.__path__[0]).parent
READ_SIZE = 4096
_JOINTS = 0x01  # a wiring record of the simulated board: '<iii' setpoint in µm


class HandBoard:
    """A hand board that can be power-cycled. ``presses`` is where its drives went through z 0, in order."""

    def __init__(self, name: str, uid: str, folder: Path) -> None:
        self.name = name
        self.uid = uid
        self.wire_path = folder / f"{name}.wire"
        self.presses: list[tuple[int, int]] = []
        self.z_um: int | None = None
        self.starts = 0
        self._folder = folder
        self._wiring_path = folder / f"{name}.wiring"
        self._adapter: trio.SocketStream | None = None
        self._line: trio.SocketStream | None = None
        self._process: trio.Process | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the wires and keep the board running; ready when the machine may plug it in."""
        async with trio.open_nursery() as nursery:
            adapters = await _listen(self.wire_path)
            wirings = await _listen(self._wiring_path)
            nursery.start_soon(trio.serve_listeners, self._serve_adapter, [adapters])
            nursery.start_soon(trio.serve_listeners, self._record_drives, [wirings])
            task_status.started()
            while True:
                await self._run_once()

    def power_cycle(self) -> None:
        """Off and on again: motion stops where it was, the memory is gone."""
        if self._process is not None:
            self._process.kill()

    def report(self) -> dict[str, object]:
        return {"presses": self.presses, "z_um": self.z_um, "starts": self.starts}

    async def _run_once(self) -> None:
        board_end, our_end = socket.socketpair()
        board_end.setblocking(False)
        log_path = self._folder / f"{self.name}.log"
        with board_end, log_path.open("ab") as log:
            self._process = await trio.lowlevel.open_process(
                self._command(board_end.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(board_end.fileno(),),
                cwd=SOURCE_ROOT,
            )
        self.starts += 1
        self._line = trio.SocketStream(trio.socket.from_stdlib_socket(our_end))
        try:
            async with self._line:
                while data := await self._line.receive_some(READ_SIZE):
                    await self._to_adapter(data)
        except trio.BrokenResourceError:
            pass
        finally:
            self._process.kill()
            with trio.CancelScope(shield=True):
                code = await self._process.wait()
        if code >= 0:
            raise RuntimeError(f"board {self.name} ended with {code}: {log_path.read_text()[-2000:]}")

    def _command(self, fd: int) -> Sequence[str]:
        interpreter = [sys.executable]
        if available_runtime() == "micropython":
            interpreter = [str(Path(sys.executable).parent / "micropython"), "-X", f"heapsize={HEAP}"]
        return [
            *interpreter,
            "firmware/ports/unix/main.py",
            "hand",
            "--serial",
            str(fd),
            "--wiring",
            str(self._wiring_path),
            "--uid",
            self.uid,
            "--state",
            str(self._folder / f"{self.name}.nvs"),
        ]

    async def _to_adapter(self, data: bytes) -> None:
        adapter = self._adapter
        if adapter is not None:
            try:
                await adapter.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

    async def _serve_adapter(self, adapter: trio.SocketStream) -> None:
        """From plug to unplug."""
        self._adapter = adapter
        try:
            while data := await adapter.receive_some(READ_SIZE):
                line = self._line
                if line is not None:
                    try:
                        await line.send_all(data)
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        pass
        except trio.BrokenResourceError:
            pass
        finally:
            if self._adapter is adapter:
                self._adapter = None

    async def _record_drives(self, wiring: trio.SocketStream) -> None:
        """Records are kind u8, length u8, payload."""
        held = bytearray()
        try:
            while data := await wiring.receive_some(READ_SIZE):
                held += data
                while len(held) >= 2 and len(held) >= 2 + held[1]:
                    kind, payload = held[0], bytes(held[2 : 2 + held[1]])
                    del held[: 2 + held[1]]
                    if kind == _JOINTS:
                        self._moved(*struct.unpack("<iii", payload))
        except trio.BrokenResourceError:
            pass

    def _moved(self, x_um: int, y_um: int, z_um: int) -> None:
        if z_um < 0 and (self.z_um is None or self.z_um >= 0):
            self.presses.append((x_um, y_um))
        self.z_um = z_um


class Observer:
    """Answers the tests' questions about the boards over a serial line of its own: a line each, JSON back.

    ``report NAME`` gives that board's report(); ``power-cycle NAME`` gives it afterwards.
    """

    def __init__(self, boards: dict[str, HandBoard], folder: Path) -> None:
        self.wire_path = folder / "observer.wire"
        self._boards = boards

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listener = await _listen(self.wire_path)
        task_status.started()
        await trio.serve_listeners(self._serve, [listener])

    async def _serve(self, stream: trio.SocketStream) -> None:
        held = b""
        try:
            while data := await stream.receive_some(READ_SIZE):
                *lines, held = (held + data).split(b"\n")
                for line in lines:
                    await stream.send_all(json.dumps(await self._answer(line.decode())).encode() + b"\n")
        except trio.BrokenResourceError:
            pass

    async def _answer(self, line: str) -> dict[str, object]:
        verb, name = line.split()
        board = self._boards[name]
        if verb == "power-cycle":
            starts = board.starts
            board.power_cycle()
            while board.starts == starts:
                await trio.sleep(0.01)
        return board.report()


async def _listen(path: Path) -> trio.SocketListener:
    listening = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await listening.bind(str(path))
    listening.listen(1)
    return trio.SocketListener(listening)
