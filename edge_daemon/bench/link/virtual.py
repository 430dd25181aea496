"""The exhaustive part: the daemon's real Board, the board's real link and hand core, on a virtual clock.

No process and no pty: a port in memory, and time that passes at once when nobody works. So every fault can
strike every frame, from the first HELLO on.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import trio
from trio.testing import MockClock

from edge_daemon.bench.link import faults
from edge_daemon.bench.link.presses import PressLog, Watches
from edge_daemon.bench.link.proxy import DIRECTIONS, NS_PER_MS, Direction, Proxy
from edge_daemon.bench.link.scenario import Counting, Run, make_ready, play, tap
from edge_daemon.bench.twin.boards import ROM_TEXT
from edge_daemon.boards import Board, HandClient, PortGone, PortMissing
from firmware import wire
from firmware.hand.core import Drives, HandCore, HandLimits
from firmware.link import BoardLink
from firmware.ports.unix.main import IDLE_MS
from firmware.ports.unix.options import DEFAULT_LIMITS

UID = bytes.fromhex("4c4e4b0000000001")
# From reset to the first instruction of main.py on an ESP32-S3.
BOOT_MS = 150
CONVERSATIONS = 8


def now_ns() -> int:
    """Monotonic nanoseconds of the run's own clock."""
    return int(trio.current_time() * 1e9)


class LoggedDrives(Drives):
    """Drives that write down each setpoint, and hold the last one over a restart of the board."""

    def __init__(self, presses: PressLog, held: tuple[int, int, int] | None) -> None:
        self._presses = presses
        self.held = held

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self.held = (x_um, y_um, z_um)
        self._presses.setpoint(x_um, y_um, z_um)

    def retained(self) -> tuple[int, int, int] | None:
        return self.held


class MemoryPort:
    """The daemon's end of the line, in memory."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._received = bytearray()
        self._stir = trio.Event()
        self._stopped = False
        self.gone = False
        self.bytes_written = 0

    def deliver(self, data: bytes) -> None:
        self._received += data
        self._stir.set()

    def hang_up(self) -> None:
        self.gone = True
        self._stir.set()

    async def read(self) -> bytes:
        while not self._received:
            self._check()
            await self._stir.wait()
            self._stir = trio.Event()
        data = bytes(self._received)
        self._received.clear()
        return data

    async def write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.write_now(data)

    def write_now(self, data: bytes) -> int:
        self._check()
        if self._stopped:
            raise PortGone("writing was stopped here")
        self.bytes_written += len(data)
        self._send(data)
        return len(data)

    def _check(self) -> None:
        if self.gone:
            raise PortGone("the port is gone")

    @property
    def may_write(self) -> bool:
        """Nobody has stopped writing, and the other end is there."""
        return not (self._stopped or self.gone)

    def stop_writing(self) -> None:
        self._stopped = True

    def resume_writing(self) -> None:
        self._stopped = False

    async def aclose(self) -> None:
        self.hang_up()
        await trio.lowlevel.checkpoint()


class BoardStart:
    """One start of a board's firmware: its link, and a clock that counts from the start."""

    def __init__(self, link: BoardLink, started_ns: int) -> None:
        self._link = link
        self._started_ns = started_ns

    def turn(self, data: bytes, now_ns: int) -> bytes:
        """One round of the main loop, as firmware/ports/unix/main.py turns it."""
        now_us = self._lived_us(now_ns)
        if data:
            self._link.receive(data, now_us)
        self._link.poll(now_us)
        return self._link.take_output()

    def _lived_us(self, now_ns: int) -> int:
        return (now_ns - self._started_ns) // 1000


class VirtualBoard(BoardStart):
    """A hand's, polled as often as on the board."""

    def __init__(self, drives: LoggedDrives, boot_id: int, cause: int, started_ns: int) -> None:
        limits = HandLimits(*(int(part) for part in DEFAULT_LIMITS.split(",")))
        self._core = HandCore(drives, limits)
        super().__init__(BoardLink(self._core, UID, wire.KIND_HAND, boot_id, cause), started_ns)

    def due_ns(self, now_ns: int) -> int:
        due_us = self._core.due_us(self._lived_us(now_ns))
        wait_ms = IDLE_MS if due_us < 0 else min(IDLE_MS, math.ceil(due_us / 1000))
        return now_ns + max(1, wait_ms) * NS_PER_MS


class VirtualWorld(Counting):
    """Everything between the daemon's port and the drives."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.proxy = Proxy(rng)
        self.presses = PressLog()
        self.boots = 0
        self.board = Board(
            "hand",
            "port",
            UID.hex(),
            "hand",
            now_ns=now_ns,
            open_port=self._open_port,
        )
        self.hand = HandClient(self.board)
        self._port: MemoryPort | None = None
        self._kick = trio.Event()
        self._drives = LoggedDrives(self.presses, None)
        self._firmware: VirtualBoard | None = None
        self._starts_ns: int | None = 0
        self._cause = wire.RESET_POWER_ON
        self._asleep_until_ns = 0
        self._plugged_in_ns: int | None = None
        self._watches = Watches(self.presses)

    # -- what a fault can do ---------------------------------------------------------------------------------

    def reset_board(self) -> None:
        self._stop_board(now_ns() + BOOT_MS * NS_PER_MS, wire.RESET_WATCHDOG)
        self.proxy.ways["to_host"].put(ROM_TEXT, now_ns())

    def pull_cable(self, away_ms: int, *, power: bool) -> None:
        back_ns = now_ns() + away_ms * NS_PER_MS
        self._plugged_in_ns = back_ns
        if self._port is not None:
            self._port.hang_up()
        self.proxy.pull()
        if power:
            self._drives = LoggedDrives(self.presses, None)
            self._stop_board(back_ns + BOOT_MS * NS_PER_MS, wire.RESET_POWER_ON)

    def hang_board(self, for_ms: int) -> None:
        self._asleep_until_ns = now_ns() + for_ms * NS_PER_MS

    def when_pressed(self, pressed: bool, action: Callable[[], None]) -> None:
        self._watches.when_pressed(pressed, now_ns(), action)

    def later(self, ms: int, action: Callable[[], None]) -> None:
        self._watches.later(now_ns() + ms * NS_PER_MS, action)

    def _stop_board(self, starts_again_ns: int, cause: int) -> None:
        self._firmware = None
        self.proxy.boot_id = None
        self._starts_ns = starts_again_ns
        self._cause = cause

    @property
    def pending(self) -> bool:
        if self._firmware is None or self._plugged_in_ns is not None or self._watches:
            return True
        return now_ns() < self._asleep_until_ns or self.proxy.busy(now_ns())

    # -- the world's loop ------------------------------------------------------------------------------------

    async def _open_port(self, path: str, _baudrate: int) -> MemoryPort:
        await trio.lowlevel.checkpoint()
        if self._plugged_in_ns is not None:
            raise PortMissing(f"there is no port {path}")
        self._port = MemoryPort(self._from_host)
        return self._port

    def _from_host(self, data: bytes) -> None:
        self.proxy.pass_bytes("to_board", data, now_ns())
        self._kick.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due_ns = self._turn(now_ns())
            with trio.move_on_after(max(0, due_ns - now_ns()) / 1e9):
                await self._kick.wait()
            self._kick = trio.Event()

    def _turn(self, at_ns: int) -> int:
        """Everything that is due; returns when something is next."""
        if self._plugged_in_ns is not None and at_ns >= self._plugged_in_ns:
            self._plugged_in_ns = None
        due = [] if self._plugged_in_ns is None else [self._plugged_in_ns]
        self._start_if_due(at_ns)
        if self._firmware is None:
            self.proxy.ways["to_board"].take(at_ns)
            assert self._starts_ns is not None
            due.append(self._starts_ns)
        elif at_ns < self._asleep_until_ns:
            due.append(self._asleep_until_ns)
        else:
            output = self._firmware.turn(self.proxy.ways["to_board"].take(at_ns), at_ns)
            due.append(self._firmware.due_ns(at_ns))
            if self._plugged_in_ns is None:
                self.proxy.pass_bytes("to_host", output, at_ns)
        arrived = self.proxy.ways["to_host"].take(at_ns)
        if arrived and self._port is not None:
            self._port.deliver(arrived)
        due += self._watches.look(at_ns)
        ways = self.proxy.ways if at_ns >= self._asleep_until_ns else {"to_host": self.proxy.ways["to_host"]}
        due += [way_due for way in ways.values() if (way_due := way.due_ns()) is not None]
        # A microsecond at least: seconds as floats may round a due time down to now.
        return max(min(due), at_ns + 1000)

    def _start_if_due(self, at_ns: int) -> None:
        if self._starts_ns is not None and at_ns >= self._starts_ns:
            self._starts_ns = None
            self.boots += 1
            self._drives = LoggedDrives(self.presses, self._drives.held)
            self._firmware = VirtualBoard(self._drives, self.boots, self._cause, at_ns)


def play_virtual(fault: str, direction: Direction, index: int, seed: tuple[int, ...]) -> Run:
    """One run in a world of its own; the fault may strike from the first frame on."""

    async def main() -> Run:
        rng = np.random.default_rng(seed)
        world = VirtualWorld(rng)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run)
            nursery.start_soon(world.board.run)
            run = await play(
                world,
                fault,
                partial(faults.arm, fault, direction, index, world.proxy, world, rng),
                armed_first=True,
            )
            nursery.cancel_scope.cancel()
        return run

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def count_positions() -> dict[Direction, int]:
    """How many frames pass each way from the first HELLO to the end of the second tap on a good line.

    The most of several conversations: two that are due at the same moment go in any order, and a heartbeat more
    or less depends on it.
    """

    async def main() -> dict[Direction, int]:
        world = VirtualWorld(np.random.default_rng(0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.run)
            nursery.start_soon(world.board.run)
            await make_ready(world)
            for _ in range(2):
                await tap(world)
            nursery.cancel_scope.cancel()
        return world.proxy.frames

    counts = [trio.run(main, clock=MockClock(autojump_threshold=0)) for _ in range(CONVERSATIONS)]
    return {direction: max(count[direction] for count in counts) for direction in DIRECTIONS}
