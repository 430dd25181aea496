"""A line between daemon and board that understands frames, so that a fault can strike at exactly one of them.

Sans-IO: bytes and a time in, bytes and due times out. The same proxy sits between real ptys and a MicroPython
process, and on a virtual clock.
"""

import heapq
from collections.abc import Callable
from typing import Literal

import numpy as np

from firmware import wire

NS_PER_MS = 1_000_000
Direction = Literal["to_board", "to_host"]
DIRECTIONS: tuple[Direction, Direction] = ("to_board", "to_host")

Glue = Callable[[bytes, bytes], bytes]
Strike = Callable[[bytes, wire.Frame, int], None]
"""Called with a block, the frame that it is, and the time, in place of the line delivering it."""


def other(direction: Direction) -> Direction:
    return "to_host" if direction == "to_board" else "to_board"


class Blocks:
    """Cuts a byte stream at its delimiters; what lies between two of them comes out with both."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bytes]:
        *whole, self._held = (self._held + data).split(b"\x00")
        return [b"\x00" + content + b"\x00" for content in whole if content]


def frame_of(block: bytes) -> wire.Frame | None:
    """The frame that a block is, None for anything else."""
    frames = wire.Decoder().feed(block)
    return frames[0] if frames else None


class Way:
    """One direction: bytes wait here until they are due, in order unless something overtakes them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._queue: list[tuple[int, int, bytes]] = []
        self._order = 0
        self._through_ns = 0
        self.heal()

    def heal(self) -> None:
        """Nothing is wrong any more; what waits still arrives."""
        self.held_until_ns = 0
        self.dead_until_ns = 0
        self.noise_until_ns = 0
        self.noise_per_byte = 0.0
        self.slow_until_ns = 0
        self.byte_ns = 0
        self.frames_to_lose = 0
        self.glue: Glue | None = None
        self._glued = b""

    def clear(self) -> None:
        """The cable is pulled: what was on the line is gone."""
        self._queue.clear()

    def hold_for_glue(self, block: bytes, glue: Glue) -> None:
        """Keep a block back until the next one comes, and send what glue() makes of both."""
        self.glue, self._glued = glue, block

    def pass_block(self, block: bytes, now_ns: int) -> None:
        """A block that no fault strikes itself, with what is wrong with the line as a whole."""
        if self.frames_to_lose:
            self.frames_to_lose -= 1
            return
        if self.glue is not None:
            block, self.glue = self.glue(self._glued, block), None
        self.put(block, now_ns)

    def put(self, data: bytes, now_ns: int, *, after_ms: float = 0, overtaken: bool = False) -> None:
        """Send bytes off, `after_ms` from now. Later ones queue behind them unless these are `overtaken`."""
        if now_ns < self.dead_until_ns:
            return
        if now_ns < self.noise_until_ns:
            data = self._noisy(data)
        due_ns = max(now_ns + int(after_ms * NS_PER_MS), self._through_ns, self.held_until_ns)
        if now_ns < self.slow_until_ns:
            due_ns += len(data) * self.byte_ns
        if not overtaken:
            self._through_ns = due_ns
        self._order += 1
        heapq.heappush(self._queue, (due_ns, self._order, data))

    def _noisy(self, data: bytes) -> bytes:
        struck = self._rng.random(len(data)) < self.noise_per_byte
        bits = 1 << self._rng.integers(0, 8, len(data))
        return bytes(
            byte ^ int(bit) if hit else byte for byte, bit, hit in zip(data, bits, struck, strict=True)
        )

    def busy(self, now_ns: int) -> bool:
        """Whether what is sent now would have to wait for something before it."""
        return now_ns < self._through_ns

    def due_ns(self) -> int | None:
        """When take() has something; None while nothing waits."""
        return self._queue[0][0] if self._queue else None

    def take(self, now_ns: int) -> bytes:
        """What has arrived by now."""
        arrived = []
        while self._queue and self._queue[0][0] <= now_ns:
            arrived.append(heapq.heappop(self._queue)[2])
        return b"".join(arrived)


class Proxy:
    """Both ways, and the one fault that is armed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.ways: dict[Direction, Way] = {direction: Way(rng) for direction in DIRECTIONS}
        self._blocks: dict[Direction, Blocks] = {direction: Blocks() for direction in DIRECTIONS}
        self.frames: dict[Direction, int] = dict.fromkeys(DIRECTIONS, 0)
        self._armed: tuple[Direction, int, Strike] | None = None
        self._late: list[tuple[Direction, bytes]] = []
        self._last_command: bytes | None = None
        self.struck = False
        self.boot_id: int | None = None
        """Of the board's present start, from its own HELLO; None until it has said one."""

    def arm(self, direction: Direction, index: int, strike: Strike) -> None:
        """Let a fault strike the index-th frame from now on that passes in this direction."""
        self.count_from_here()
        self._armed = (direction, index, strike)
        self.struck = False

    def count_from_here(self) -> None:
        self.frames = dict.fromkeys(DIRECTIONS, 0)

    def heal(self) -> None:
        """From now on the line is a good one; a fault that has not struck will not any more."""
        self._armed = None
        for way in self.ways.values():
            way.heal()
        self._late.clear()

    def busy(self, now_ns: int) -> bool:
        """Whether a frame sent now would not pass at once."""
        return any(way.busy(now_ns) for way in self.ways.values())

    def keep_for_next_command(self, direction: Direction, block: bytes) -> None:
        """Hold a block until the next new command is on its way, and let it arrive right after that."""
        self._late.append((direction, block))

    def pull(self) -> None:
        """The cable is out: nothing of what was on the line arrives."""
        for direction in DIRECTIONS:
            self.ways[direction].clear()
            self._blocks[direction] = Blocks()

    def pass_bytes(self, direction: Direction, data: bytes, now_ns: int) -> None:
        """Bytes have come in on one side."""
        for block in self._blocks[direction].feed(data):
            frame = frame_of(block)
            if frame is None:
                self.ways[direction].pass_block(block, now_ns)
                continue
            if frame.type == wire.HELLO and direction == "to_host":
                self.boot_id = frame.boot_id
            index = self.frames[direction]
            self.frames[direction] += 1
            if self._armed is not None and self._armed[:2] == (direction, index):
                strike = self._armed[2]
                self._armed = None
                self.struck = True
                strike(block, frame, now_ns)
            else:
                self.ways[direction].pass_block(block, now_ns)
            if frame.type == wire.CMD:
                self._release_late(block, now_ns)

    def _release_late(self, command: bytes, now_ns: int) -> None:
        if command == self._last_command:
            return
        self._last_command = command
        for direction, block in self._late:
            if block != command:
                self.ways[direction].put(block, now_ns, after_ms=2, overtaken=True)
        self._late = [late for late in self._late if late[1] == command]
