"""The sampled part: the daemon's Board on a real pty, the hand's firmware in a process of its own, real time."""

import os
import signal
import socket
import subprocess
import sys
import time
import tty
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from struct import unpack

import numpy as np
import trio

from edge_daemon.bench.link.presses import PressLog, Watches
from edge_daemon.bench.link.proxy import NS_PER_MS, Direction, Proxy
from edge_daemon.bench.link.scenario import Counting
from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.boards import HEAP, ROM_TEXT, SOURCE_ROOT, ResetCause, available_runtime
from edge_daemon.boards import Board, HandClient

UID = "4c4e4b0000000002"


class FirmwareDied(RuntimeError):
    """A board's process ended by itself; the message has what it printed."""


def interpreter() -> list[str]:
    """MicroPython with an ESP32's heap, or this interpreter where there is none."""
    if available_runtime() == "micropython":
        return [str(Path(sys.executable).parent / "micropython"), "-X", f"heapsize={HEAP}"]
    return [sys.executable]


class Firmware:
    """The hand's firmware as a process that can be started, killed and stopped for a while."""

    def __init__(self, directory: Path, wire_path: Path) -> None:
        self._directory = directory
        self._wire_path = wire_path
        self._process: trio.Process | None = None
        self.log_path = directory / "firmware.log"
        self.starts = 0

    async def start(self, line_fd: int, cause: ResetCause, nursery: trio.Nursery) -> None:
        """Start it on its end of the line, which the caller closes afterwards."""
        command = [*interpreter(), "firmware/ports/unix/main.py", "hand", "--serial", str(line_fd)]
        command += ["--wiring", str(self._wire_path), "--uid", UID, "--reset-cause", cause]
        command += ["--state", str(self._directory / "hand.nvs")]
        with self.log_path.open("ab") as log:
            self._process = await trio.lowlevel.open_process(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(line_fd,),
                cwd=SOURCE_ROOT,
            )
        self.starts += 1
        nursery.start_soon(self._watch, self._process)

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        """As a reset or a power cut ends it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    async def _watch(self, process: trio.Process) -> None:
        code = await process.wait()
        if self._process is process:
            self._process = None
            said = self.log_path.read_text(errors="replace")[-2000:].strip() or "nothing"
            raise FirmwareDied(f"the board ended with status {code}; it printed: {said}")


class ProcessWorld(Counting):
    """The proxy between a pty and a socket to the board's process, and the wiring that tells the setpoints."""

    def __init__(self, directory: Path, rng: np.random.Generator, nursery: trio.Nursery) -> None:
        super().__init__()
        self.proxy = Proxy(rng)
        self.presses = PressLog()
        self._nursery = nursery
        self._watches = Watches(self.presses)
        self._wire_path = directory / "hand.wire"
        self._port = directory / "by-id" / "usb-Hand"
        self._port.parent.mkdir()
        self._firmware = Firmware(directory, self._wire_path)
        self._line: trio.socket.SocketType | None = None
        self._master = self._slave = -1
        self._under_way = 0
        self._kick = trio.Event()
        self.board = Board("hand", str(self._port), UID, "hand")
        self.hand = HandClient(self.board)

    @property
    def boots(self) -> int:
        return self._firmware.starts

    @property
    def pending(self) -> bool:
        return self._under_way > 0 or bool(self._watches) or self.proxy.busy(time.monotonic_ns())

    # -- what a fault can do ---------------------------------------------------------------------------------

    def reset_board(self) -> None:
        self._do(lambda: self._restart("watchdog"))

    def pull_cable(self, away_ms: int, *, power: bool) -> None:
        # Another pty before the old one is given back, so that it has another name.
        ends = os.openpty()
        self._unplug()
        self._do(lambda: self._plug_again(away_ms, ends, power))

    def hang_board(self, for_ms: int) -> None:
        self._do(lambda: self._hang(for_ms))

    def when_pressed(self, pressed: bool, action: Callable[[], None]) -> None:
        self._watches.when_pressed(pressed, time.monotonic_ns(), action)
        self._kick.set()

    def later(self, ms: int, action: Callable[[], None]) -> None:
        self._watches.later(time.monotonic_ns() + ms * NS_PER_MS, action)
        self._kick.set()

    def _do(self, work: Callable[[], Awaitable[None]]) -> None:
        """Let a fault's work go on in the world's own task."""
        self._under_way += 1

        async def run() -> None:
            try:
                await work()
            finally:
                self._under_way -= 1

        self._nursery.start_soon(run)

    async def _restart(self, cause: ResetCause) -> None:
        await self._firmware.kill()
        self.proxy.ways["to_host"].put(ROM_TEXT, time.monotonic_ns())
        await self._start(cause)

    async def _plug_again(self, away_ms: int, ends: tuple[int, int], power: bool) -> None:
        if power:
            await self._firmware.kill()
        await trio.sleep(away_ms / 1000)
        self._plug(ends)
        if power:
            await self._start("power_on")

    async def _hang(self, for_ms: int) -> None:
        self._firmware.signal(signal.SIGSTOP)
        await trio.sleep(for_ms / 1000)
        self._firmware.signal(signal.SIGCONT)

    async def _start(self, cause: ResetCause) -> None:
        self.proxy.boot_id = None
        if self._line is not None:
            self._line.close()
        ours, boards = socket.socketpair()
        boards.setblocking(False)
        self._line = trio.socket.from_stdlib_socket(ours)
        self._nursery.start_soon(self._carry_from_board, self._line)
        with boards:
            await self._firmware.start(boards.fileno(), cause, self._nursery)

    # -- the port ----------------------------------------------------------------------------------------------

    def _plug(self, ends: tuple[int, int]) -> None:
        """A port appears, under the stable name and a number of its own."""
        self._master, self._slave = ends
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._port.symlink_to(os.ttyname(self._slave))
        self._nursery.start_soon(self._carry_from_host, self._master)

    def _unplug(self) -> None:
        if self._master < 0:
            return
        self._port.unlink()
        trio.lowlevel.notify_closing(self._master)
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1
        self.proxy.pull()

    # -- bytes and time ----------------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Everything of it, until cancelled; started when the firmware is."""
        listener = trio.socket.socket(socket.AF_UNIX)
        with listener:
            await listener.bind(str(self._wire_path))
            listener.listen(2)
            self._nursery.start_soon(self._take_wiring, listener)
            self._plug(os.openpty())
            try:
                await self._start("power_on")
                task_status.started()
                await self._keep_time()
            finally:
                await self._firmware.kill()
                self._unplug()
                if self._line is not None:
                    self._line.close()

    async def _keep_time(self) -> None:
        while True:
            now_ns = time.monotonic_ns()
            due = self._watches.look(now_ns)
            self._deliver(now_ns)
            due += [due_ns for way in self.proxy.ways.values() if (due_ns := way.due_ns()) is not None]
            wait_s = max(0, min(due) - now_ns) / 1e9 if due else float("inf")
            with trio.move_on_after(wait_s):
                await self._kick.wait()
            self._kick = trio.Event()

    def _deliver(self, now_ns: int) -> None:
        """What is due goes on; what does not fit at its end is lost, as on a real line."""
        data = self.proxy.ways["to_board"].take(now_ns)
        if data and self._line is not None:
            with suppress(OSError):
                os.write(self._line.fileno(), data)
        data = self.proxy.ways["to_host"].take(now_ns)
        if data and self._master >= 0:
            with suppress(BlockingIOError):
                os.write(self._master, data)

    async def _carry_from_host(self, master: int) -> None:
        with suppress(trio.ClosedResourceError):
            while self._master == master:
                await trio.lowlevel.wait_readable(master)
                with suppress(BlockingIOError):
                    self._pass("to_board", os.read(master, 4096))

    async def _carry_from_board(self, line: trio.socket.SocketType) -> None:
        with suppress(trio.ClosedResourceError, ConnectionResetError):
            while data := await line.recv(4096):
                if self._master >= 0:
                    self._pass("to_host", data)

    def _pass(self, direction: Direction, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self.proxy.pass_bytes(direction, data, now_ns)
        self._deliver(now_ns)
        self._kick.set()

    async def _take_wiring(self, listener: trio.socket.SocketType) -> None:
        while True:
            wires, _ = await listener.accept()
            self._nursery.start_soon(self._take_setpoints, wires)

    async def _take_setpoints(self, wires: trio.socket.SocketType) -> None:
        records = wiring.Records()
        with wires, suppress(ConnectionResetError):
            while data := await wires.recv(4096):
                for kind, payload in records.feed(data):
                    if kind == wiring.JOINTS:
                        self.presses.setpoint(*unpack("<iii", payload))
                        if self._watches:
                            self._watches.look(time.monotonic_ns())


@asynccontextmanager
async def open_process_world(directory: Path, rng: np.random.Generator) -> AsyncIterator[ProcessWorld]:
    """Firmware, line and daemon's board, all running; gone at the end."""
    async with trio.open_nursery() as nursery:
        world = ProcessWorld(directory, rng, nursery)
        await nursery.start(world.run)
        nursery.start_soon(world.board.run)
        yield world
        nursery.cancel_scope.cancel()
