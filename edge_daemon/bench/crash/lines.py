"""A board, its serial line and the daemon's end of it, in virtual time: real firmware, bytes that take a moment."""

import math
import random
from collections.abc import Callable
from functools import partial

import numpy as np
import trio

from edge_daemon.bench.crash.firmwares import Firmware, HandStart, HidStart
from edge_daemon.bench.crash.notes import AboutBoard, Schedule, What
from edge_daemon.bench.crash.phones import Glass, Phone
from edge_daemon.bench.crash.points import Points
from edge_daemon.bench.crash.rooms import BoardPlace
from edge_daemon.bench.crash.streams import Hands
from edge_daemon.bench.crash.virtual_clock import Alarm
from edge_daemon.bench.link.presses import PressLog, Watches
from edge_daemon.bench.link.proxy import NS_PER_MS, Way
from edge_daemon.bench.link.virtual import MemoryPort
from edge_daemon.bench.twin.boards import ROM_TEXT
from edge_daemon.boards import PortBusy, PortGone, PortMissing
from firmware import wire

LATENCY_MS = 1
BOOT_MS = 150
"""From reset to the first instruction of main.py on an ESP32-S3."""

Meddle = Callable[[bytes], bytes]


class SimPort(MemoryPort):
    """A `Port` of one daemon process; each write and each read is a point at which something may happen."""

    def __init__(self, line: "Line", hands: Hands, points: Points) -> None:
        super().__init__(line.from_host)
        self._line = line
        self._hands = hands
        self._points = points

    async def read(self) -> bytes:
        while True:
            data = await super().read()
            self._check()
            self._points.before("serial read", self._line)
            self._check()
            data = self._line.meddled(data)
            self._points.behind("serial read", self._line)
            self._check()
            if data:
                return data

    def write_now(self, data: bytes | memoryview) -> int:
        if self.may_write:
            self._points.before("serial write", self._line)
        written = super().write_now(bytes(data))
        self._points.behind("serial write", self._line)
        return written

    def _check(self) -> None:
        if self._hands.tied:
            raise PortGone("this process is dead")
        super()._check()

    async def aclose(self) -> None:
        self._line.closed(self)
        await super().aclose()


class Line:
    """One board and its line; it lives on over every daemon."""

    def __init__(
        self,
        place: BoardPlace,
        phone: Phone,
        points: Points,
        schedule: Schedule,
        now_ns: Callable[[], int],
        seed: str,
    ) -> None:
        self.place = place
        self._phone = phone
        self._points = points
        self._schedule = schedule
        self._now_ns = now_ns
        self._rng = random.Random(f"{seed}:{place.name}")
        noise = np.random.default_rng(self._rng.getrandbits(64))
        self._to_board, self._to_host = Way(noise), Way(noise)
        self._pressed: PressLog = Glass(phone) if place.kind == "hand" else PressLog()
        self._held: tuple[int, int, int] | None = None
        self._watches = Watches(self._pressed)
        self._kick = Alarm()
        self._port: SimPort | None = None
        self._firmware: Firmware | None = None
        self._starts_ns: int | None = 0
        self._cause = wire.RESET_POWER_ON
        self._boots = self._rng.getrandbits(16)
        self._asleep_until_ns = 0
        self._plugged_in_ns: int | None = None
        self._meddle: Meddle | None = None
        self._decoder = wire.Decoder()
        self._commands: set[int] = set()

    # -- the daemon's end --------------------------------------------------------------------------------------

    async def open_port(self, hands: Hands) -> SimPort:
        await trio.lowlevel.checkpoint()
        if hands.tied:
            raise PortGone("this process is dead")
        if self._plugged_in_ns is not None:
            raise PortMissing(f"there is no port /dev/{self.place.name}")
        if self._port is not None:
            raise PortBusy(f"the port /dev/{self.place.name} is in use")
        self._port = SimPort(self, hands, self._points)
        self._decoder = wire.Decoder()
        return self._port

    def closed(self, port: SimPort) -> None:
        if self._port is port:
            self._port = None

    def let_go(self) -> None:
        """Whoever had the port open is dead: the kernel closes it. What it had written is on its way."""
        self._port = None

    def from_host(self, data: bytes) -> None:
        """What the daemon writes goes off. The first time a command's first byte leaves is written down."""
        for frame in self._decoder.feed(data):
            if frame.type == wire.CMD:
                self._note_command(frame.body)
        data = self.meddled(data)
        if data:
            self._to_board.put(data, self._now_ns(), after_ms=LATENCY_MS)
        self._kick.ring()

    def meddled(self, data: bytes) -> bytes:
        """What a fault makes of the bytes that pass."""
        meddle, self._meddle = self._meddle, None
        if meddle is None:
            return data
        self._schedule.signs["bytes meddled with"] += 1
        return meddle(data)

    def _note_command(self, body: bytes) -> None:
        cmd_id, op = wire.unpack_body(wire.CMD, body)
        if cmd_id in self._commands or op >= wire.OP_DATA_FIRST:
            return
        self._commands.add(cmd_id)
        args = wire.unpack_args(op, wire.body_tail(wire.CMD, body))
        self._schedule.first_byte(self._now_ns(), self.place.device, self.place.name, cmd_id, op, args)

    # -- what a fault can do -----------------------------------------------------------------------------------

    def lose_next(self) -> None:
        self._meddle = lambda data: b""

    def spoil_next(self) -> None:
        def spoil(data: bytes) -> bytes:
            spoiled = bytearray(data)
            spoiled[self._rng.randrange(len(data))] ^= 1 << self._rng.randrange(8)
            return bytes(spoiled)

        self._meddle = spoil

    def double_next(self) -> None:
        self._meddle = lambda data: data + data

    def fall_silent(self, for_ms: int) -> None:
        """Nothing passes either way."""
        for way in (self._to_board, self._to_host):
            way.dead_until_ns = self._now_ns() + for_ms * NS_PER_MS

    def stutter(self, for_ms: int) -> None:
        """Nothing passes for a while, then everything that was sent meanwhile arrives."""
        for way in (self._to_board, self._to_host):
            way.held_until_ns = self._now_ns() + for_ms * NS_PER_MS

    def hang(self, for_ms: int) -> None:
        """The firmware stands still, the stylus wherever it is."""
        self._asleep_until_ns = self._now_ns() + for_ms * NS_PER_MS
        self._kick.ring()

    def reset(self) -> None:
        self._stop(self._now_ns() + BOOT_MS * NS_PER_MS, wire.RESET_WATCHDOG)
        self._to_host.put(ROM_TEXT, self._now_ns())

    def lose_power(self, for_ms: int) -> None:
        """The drives forget where they stand."""
        self._held = None
        self._pressed.pressed = False
        self._to_board.clear()
        self._to_host.clear()
        self._stop(self._now_ns() + (for_ms + BOOT_MS) * NS_PER_MS, wire.RESET_POWER_ON)

    def pull(self, away_ms: int, *, power: bool) -> None:
        """The port vanishes and comes back; with `power` the board loses its power too."""
        self._plugged_in_ns = self._now_ns() + away_ms * NS_PER_MS
        if self._port is not None:
            self._port.hang_up()
            self._port = None
        self._to_board.clear()
        self._to_host.clear()
        if power:
            self.lose_power(away_ms)
        self._about("away")
        self._kick.ring()

    def when_pressed(self, pressed: bool, action: Callable[[], None]) -> None:
        """Once, when the phone is next touched (or let go); after a while even if it is not."""
        self._watches.when_pressed(pressed, self._now_ns(), action)
        self._kick.ring()

    def heal(self) -> None:
        """Nothing is wrong with the line any more."""
        for way in (self._to_board, self._to_host):
            way.heal()
        self._meddle = None
        self._asleep_until_ns = 0
        self._kick.ring()

    def _stop(self, starts_again_ns: int, cause: int) -> None:
        if isinstance(self._firmware, HandStart) and cause != wire.RESET_POWER_ON:
            self._held = self._firmware.held
        if self.place.kind == "hid":
            self._pressed.pressed = False
        self._firmware = None
        self._starts_ns = starts_again_ns
        self._cause = cause
        self._about("stopped")
        self._kick.ring()

    # -- time --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due_ns = self._turn(self._now_ns())
            await self._kick.wait_until(trio.current_time() + max(0, due_ns - self._now_ns()) / 1e9)

    def _turn(self, at_ns: int) -> float:
        """Everything that is due; returns when something is next."""
        due: list[float] = []
        if self._plugged_in_ns is not None:
            if at_ns >= self._plugged_in_ns:
                self._plugged_in_ns = None
                self._about("back")
            else:
                due.append(self._plugged_in_ns)
        if self._starts_ns is not None and at_ns >= self._starts_ns:
            self._start(at_ns)
        if self._firmware is None:
            self._to_board.take(at_ns)
            due.append(math.inf if self._starts_ns is None else self._starts_ns)
        elif at_ns < self._asleep_until_ns:
            due.append(self._asleep_until_ns)
        else:
            output = self._firmware.turn(self._to_board.take(at_ns), at_ns)
            due.append(self._firmware.due_ns(at_ns))
            if output and self._plugged_in_ns is None:
                self._to_host.put(output, at_ns, after_ms=LATENCY_MS)
            due.append(self._to_board.due_ns() or math.inf)
        arrived = self._to_host.take(at_ns)
        if arrived and self._port is not None:
            self._port.deliver(arrived)
        due.append(self._to_host.due_ns() or math.inf)
        due += self._watches.look(at_ns)
        # A microsecond at least: seconds as floats may round a due time down to now.
        return max(min(due), at_ns + 1000)

    def _start(self, at_ns: int) -> None:
        self._starts_ns = None
        self._boots += 1
        broken = partial(self._note_broken, self._boots)
        if isinstance(self._pressed, Glass):
            self._firmware = HandStart(
                self.place, self._boots, self._cause, at_ns, broken, self._pressed, self._held
            )
        else:
            self._firmware = HidStart(
                self.place, self._boots, self._cause, at_ns, broken, self._phone, self._pressed, self._now_ns
            )
        if not at_ns:
            self._firmware.served_before()
        self._about("started", boot_id=self._boots)

    def _note_broken(self, boot_id: int, cmd_id: int, pressing: bool) -> None:
        self._about("broken off", boot_id=boot_id, cmd_id=cmd_id, pressing=pressing)

    def _about(self, what: What, *, boot_id: int = 0, cmd_id: int = 0, pressing: bool = False) -> None:
        place = self.place
        self._schedule.board(
            AboutBoard(self._now_ns(), place.device, what, boot_id, cmd_id, pressing, place.name)
        )
