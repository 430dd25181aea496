"""A toy board, and a line between both ends of the link that goes wrong where a test says so."""

import math
import os
import termios
import tty
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from edge_daemon.boards.board import Board
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import (
    CommandDone,
    CommandFaulted,
    LinkEvent,
    Lost,
    Online,
    QueryAnswered,
)
from edge_daemon.boards.port import SerialPort
from firmware import wire
from firmware.link import BoardLink, Core

UID = bytes.fromhex("00112233aabbccdd")
BOOT = 0xB0070001
STEP_NS = 5_000_000


class ToyCore(Core):
    """Takes any operation; its argument bytes say which one it was. Contact halfway, done at the end."""

    def __init__(self, duration_ms: int = 60) -> None:
        self.duration_us = duration_ms * 1000
        self.started: list[bytes] = []
        self.finished: list[bytes] = []
        self.loaded = bytearray()
        self.refuse_with = 0
        self.safe_calls: list[str] = []
        self._running: bytes | None = None
        self._started_us = 0

    def caps(self) -> int:
        return wire.CAP_HAND_TAP

    def hello_tail(self) -> bytes:
        return wire.pack_hand_tail(0, 100_000, 0, 200_000, -5_000, 20_000, 200, 3000)

    def flags(self) -> int:
        return wire.FLAG_HOMED | (wire.FLAG_MOVING if self._running is not None else 0)

    def start(self, op: int, args: bytes | memoryview, now_us: int) -> int:
        if self.refuse_with:
            return self.refuse_with
        self._running = bytes(args)
        self._started_us = now_us
        self.started.append(self._running)
        return 0

    def data(self, op: int, args: bytes | memoryview) -> int:
        if self.refuse_with:
            return self.refuse_with
        self.loaded += bytes(args)
        return 0

    def poll(self, now_us: int) -> None:
        if self._running is None:
            return
        if now_us - self._started_us >= self.duration_us // 2:
            self.link.contact(now_us)
        if now_us - self._started_us >= self.duration_us:
            self.finished.append(self._running)
            self._running = None
            self.link.done(now_us, b"toy")

    def deadman(self, now_us: int) -> None:
        self.safe_calls.append("deadman")
        self._running = None

    def estop(self, now_us: int) -> None:
        self.safe_calls.append("estop")
        self._running = None

    def clear_estop(self, now_us: int) -> None:
        self.safe_calls.append("clear_estop")


@dataclass
class FaultPipe:
    """One direction of a line. ``faults`` maps the index of a frame, as sent, to what becomes of its bytes."""

    faults: dict[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    sent: int = 0
    cut: bool = False

    def carry(self, data: bytes) -> bytes:
        carried = b""
        for frame in split_frames(data):
            spoil = self.faults.get(self.sent)
            self.sent += 1
            if not self.cut:
                carried += spoil(frame) if spoil else frame
        return carried


def split_frames(data: bytes) -> list[bytes]:
    """Whole frames with both delimiters, as encode_frame() made them."""
    return [b"\x00" + part + b"\x00" for part in data.split(b"\x00") if part]


@dataclass
class Story:
    """What the host knows in the end about one command."""

    verdict: str
    stages: list[LinkEvent]


class Line:
    """A HostLink and a BoardLink on one clock, joined by two fault pipes."""

    def __init__(self, core: ToyCore | None = None) -> None:
        self.core = core or ToyCore()
        self.board = self._boot(BOOT)
        self.to_board = FaultPipe()
        self.to_host = FaultPipe()
        self.now_ns = 1_000_000_000
        self.session = 0
        self.events: list[LinkEvent] = []
        self.host = self.new_session()

    def _boot(self, boot_id: int) -> BoardLink:
        return BoardLink(self.core, UID, wire.KIND_HAND, boot_id, wire.RESET_POWER_ON)

    def new_session(self) -> HostLink:
        """What the daemon does after a lost link."""
        self.session += 1
        self.host = HostLink(self.session, self.now_ns)
        return self.host

    def reset_board(self) -> None:
        """Power-cycle: memory gone, a new boot id, motion stopped where it was."""
        self.core.deadman(0)
        self.board = self._boot(self.board._boot_id + 1)

    def step(self) -> list[LinkEvent]:
        """Advance both ends by STEP_NS; returns the host's new events."""
        self.now_ns += STEP_NS
        deadline = self.host.next_deadline()
        if deadline is not None and self.now_ns >= deadline:
            self.host.poll(self.now_ns)
        now_us = self.now_ns // 1000
        self.board.receive(self.to_board.carry(self.host.take_output()), now_us)
        self.board.poll(now_us)
        self.host.receive(self.to_host.carry(self.board.take_output()), self.now_ns)
        new = self.host.take_events()
        self.events += new
        return new

    def until(self, *kinds: type, steps: int = 1500) -> LinkEvent:
        """Step until an event of one of these kinds, or Lost; fails when none comes."""
        for _ in range(steps):
            for event in self.step():
                if isinstance(event, (*kinds, Lost)):
                    return event
        raise AssertionError(f"no {kinds} within {steps} steps; last frames:\n{self.host.log.dump()}")

    def go_online(self) -> None:
        """Open sessions until one is online."""
        while not isinstance(self.until(Online), Online):
            self.new_session()

    def carry_out(self, cmd_id: int, args: bytes) -> Story:
        """One command as the daemon does it: send, and after a lost link ask in a new session."""
        mark = len(self.events)
        self.host.command(cmd_id, wire.OP_TAP, args, self.now_ns)
        boot_id = self.board._boot_id
        end = self.until(CommandDone, CommandFaulted)
        verdict = verdict_of(end) if not isinstance(end, Lost) else self.ask(cmd_id, boot_id)
        return Story(verdict, self.events[mark:])

    def ask(self, cmd_id: int, boot_id: int) -> str:
        """done, refused, aborted, absent, forgotten – or restarted, which is unknown."""
        for _ in range(400):
            if not self.host.online:
                self.new_session()
                self.go_online()
            assert self.host.info is not None
            if self.host.info.boot_id != boot_id:
                return "restarted"
            self.host.query(cmd_id, self.now_ns)
            answer = self.until(QueryAnswered)
            if isinstance(answer, QueryAnswered):
                if answer.outcome is not None:
                    return verdict_of(answer.outcome)
                if answer.state != wire.STATE_RUNNING:
                    return {wire.STATE_ABSENT: "absent", wire.STATE_FORGOTTEN: "forgotten"}[answer.state]
        raise AssertionError(f"command {cmd_id} is still running after 400 questions")


def verdict_of(outcome: LinkEvent) -> str:
    if isinstance(outcome, CommandDone):
        return "done"
    assert isinstance(outcome, CommandFaulted)
    return "refused" if outcome.refused else "aborted"


@pytest.fixture
def make_line() -> Callable[..., Line]:
    """make_line(duration_ms=60): both ends joined, not yet online."""

    def make(duration_ms: int = 60) -> Line:
        return Line(ToyCore(duration_ms))

    return make


@pytest.fixture
def line() -> Line:
    """Both ends joined and online."""
    line = Line()
    line.go_online()
    return line


class HidToyCore(ToyCore):
    """The toy as a HID board with a German layout and three keys."""

    def hello_tail(self) -> bytes:
        keys = 0b0000_0111
        return wire.pack_hid_tail(wire.PROFILE_ANDROID, wire.LAYOUT_DE, keys, 400)


class PtyBoard:
    """A toy board behind a pseudo terminal: to be plugged, unplugged, restarted and silenced.

    ``path`` is a symlink as udev would make it, there while the board is plugged. The board itself keeps
    its power, and so its boot, while it is unplugged.
    """

    def __init__(self, path: Path, core: ToyCore, kind: int = wire.KIND_HAND) -> None:
        self.path = path
        self.core = core
        self.kind = kind
        self.boot_id = BOOT
        self.greeting = b""
        self.deaf = False
        self.command_started = trio.Event()
        self.link = BoardLink(core, UID, kind, BOOT, wire.RESET_POWER_ON)
        self._master = -1
        self._slave = -1

    def plug(self) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path.symlink_to(os.ttyname(self._slave))

    def unplug(self) -> None:
        if self._master < 0:
            return
        trio.lowlevel.notify_closing(self._master)
        os.close(self._master)
        os.close(self._slave)
        self._master = self._slave = -1
        self.path.unlink()

    def stick(self) -> None:
        """The board falls silent, and the line to it takes no further byte."""
        self.deaf = True
        termios.tcflow(self._slave, termios.TCOOFF)

    def restart(self) -> None:
        """As after a brownout: memory and motion gone, a new boot id."""
        self.core.deadman(0)
        self.boot_id += 1
        self.link = BoardLink(self.core, UID, self.kind, self.boot_id, wire.RESET_BROWNOUT)

    async def run(self) -> None:
        """The port's main loop."""
        while True:
            if self._master < 0 or self.deaf:
                await trio.sleep(0.01)
            else:
                with trio.move_on_after(0.01):
                    await self._receive()
            if self.core.started:
                self.command_started.set()
            now_us = int(trio.current_time() * 1e6)
            self.link.poll(now_us)
            output = self.link.take_output()
            if output and not self.link.session_open:
                output = self.greeting + output
            if self._master >= 0 and not self.deaf:
                os.write(self._master, output)

    async def _receive(self) -> None:
        try:
            await trio.lowlevel.wait_readable(self._master)
            if self.deaf:
                return
            data = os.read(self._master, 4096)
        except (OSError, trio.ClosedResourceError):
            await trio.sleep(0.01)
            return
        self.link.receive(data, int(trio.current_time() * 1e6))


def mock_now_ns() -> int:
    """Monotonic nanoseconds of the test's own clock."""
    return int(trio.current_time() * 1e9)


@pytest.fixture
def clock() -> MockClock:
    """Time that passes at once when nobody works; 0 would not wait for the kernel to carry a pty's bytes.

    It counts only where the test itself asks for it.
    """
    return MockClock(autojump_threshold=0.001)


@pytest.fixture
async def pty_board(tmp_path) -> AsyncIterator[PtyBoard]:
    """A hand board, plugged in."""
    board = PtyBoard(tmp_path / "ttyHAND", ToyCore())
    board.plug()
    yield board
    board.unplug()


@pytest.fixture
async def hid_pty_board(tmp_path) -> AsyncIterator[PtyBoard]:
    """A HID board, plugged in."""
    board = PtyBoard(tmp_path / "ttyHID", HidToyCore(), wire.KIND_HID)
    board.plug()
    yield board
    board.unplug()


async def open_port(path: str, baudrate: int) -> SerialPort:
    """As a Board opens its port, but a virtual clock stands still meanwhile: trio lets it run while a thread works."""
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        return await SerialPort.open(path, baudrate)
    threshold, clock.autojump_threshold = clock.autojump_threshold, math.inf
    try:
        return await SerialPort.open(path, baudrate)
    finally:
        clock.autojump_threshold = threshold


@pytest.fixture
def board_of() -> Callable[..., Board]:
    """board_of(pty_board, **options): a Board on that port and on the test's clock, not yet running."""

    def make(pty_board: PtyBoard, **options: Any) -> Board:
        options = {"expected_uid": UID.hex(), "kind": "hand", "open_port": open_port, **options}
        return Board("toy", str(pty_board.path), now_ns=mock_now_ns, **options)

    return make


@pytest.fixture
def supervised(board_of):
    """``async with supervised(pty_board) as board``: both ends running, the board online."""

    @asynccontextmanager
    async def run(pty_board: PtyBoard, **options: Any) -> AsyncIterator[Board]:
        board = board_of(pty_board, **options)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pty_board.run)
            nursery.start_soon(board.run)
            with trio.fail_after(3600):
                await board.wait_online()
                yield board
            nursery.cancel_scope.cancel()

    return run
