"""What can go wrong between daemon and board, by name.

Each fault strikes one frame, or begins at one: it is handed the frame (`hit`) instead of the line delivering it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edge_daemon.bench.link.proxy import DIRECTIONS, NS_PER_MS, Direction, Proxy, other
from edge_daemon.bench.twin.boards import ROM_TEXT
from firmware import wire

# A pty's buffers hold 4 kB; a burst is noise that lasts some ms.
BURST_MAX = 300
OTHER_SESSION = 0x0BADF00D


class World(Protocol):
    """What a fault can do beside the line. All of it is asked for, and happens soon."""

    def reset_board(self) -> None:
        """The chip restarts; the drives keep their setpoint."""

    def pull_cable(self, away_ms: int, *, power: bool) -> None:
        """The port vanishes and comes back under another name; with `power` the board loses its power too."""

    def hang_board(self, for_ms: int) -> None:
        """The firmware does nothing for a while."""

    def when_pressed(self, pressed: bool, action: Callable[[], None]) -> None:
        """Once, when the stylus next comes down (or has come up); after a while even if it does not."""

    def later(self, ms: int, action: Callable[[], None]) -> None:
        """Once, after so long."""

    def next_cmd_id(self) -> int:
        """An id above all used before."""


@dataclass(frozen=True)
class Hit:
    """The frame that is struck, and what the fault may use."""

    block: bytes
    """With both delimiters."""
    frame: wire.Frame
    direction: Direction
    proxy: Proxy
    world: World
    rng: np.random.Generator
    now_ns: int

    def send(self, data: bytes, *, after_ms: float = 0, overtaken: bool = False) -> None:
        self.proxy.ways[self.direction].put(data, self.now_ns, after_ms=after_ms, overtaken=overtaken)

    def inside(self) -> int:
        """An index of a byte between the delimiters."""
        return int(self.rng.integers(1, len(self.block) - 1))

    def ms(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def until_ns(self, ms: int) -> int:
        return self.now_ns + ms * NS_PER_MS


Fault = Callable[[Hit], None]
FAULTS: dict[str, Fault] = {}


# Spoil one frame at a byte that the dice choose: they need more throws for all parts of a frame to be met.
SPOILERS = ("truncate", "bit_flip", "byte_lost", "byte_inserted", "delimiter_inside")


def _fault(strike: Fault) -> Fault:
    FAULTS[strike.__name__] = strike
    return strike


# -- one frame ----------------------------------------------------------------------------------------------


@_fault
def drop(hit: Hit) -> None:
    """The frame is lost."""


@_fault
def duplicate(hit: Hit) -> None:
    """The frame arrives twice."""
    hit.send(hit.block)
    hit.send(hit.block)


@_fault
def truncate(hit: Hit) -> None:
    """The frame breaks off."""
    hit.send(hit.block[: hit.inside()])


@_fault
def bit_flip(hit: Hit) -> None:
    """One bit is turned over."""
    spoiled = bytearray(hit.block)
    spoiled[hit.inside()] ^= 1 << hit.ms(0, 7)
    hit.send(bytes(spoiled))


@_fault
def byte_lost(hit: Hit) -> None:
    """One byte is missing."""
    at = hit.inside()
    hit.send(hit.block[:at] + hit.block[at + 1 :])


@_fault
def byte_inserted(hit: Hit) -> None:
    """One byte too many."""
    at = hit.inside()
    hit.send(hit.block[:at] + bytes([hit.ms(1, 255)]) + hit.block[at:])


@_fault
def delimiter_inside(hit: Hit) -> None:
    """A zero cuts the frame in two."""
    at = hit.inside()
    hit.send(hit.block[:at] + b"\x00" + hit.block[at:])


@_fault
def delay(hit: Hit) -> None:
    """The line holds from here on for longer than the first retransmissions take."""
    hit.send(hit.block, after_ms=hit.ms(60, 450))


@_fault
def fragment(hit: Hit) -> None:
    """Byte by byte, with pauses."""
    for n, byte in enumerate(hit.block):
        hit.send(bytes([byte]), after_ms=2 * n)


@_fault
def merge(hit: Hit) -> None:
    """This frame and the next come at once with one delimiter between them."""
    hit.proxy.ways[hit.direction].hold_for_glue(hit.block, lambda first, second: first[:-1] + second)


@_fault
def run_together(hit: Hit) -> None:
    """The delimiters between this frame and the next are lost."""
    hit.proxy.ways[hit.direction].hold_for_glue(hit.block, lambda first, second: first[:-1] + second[1:])


@_fault
def swap(hit: Hit) -> None:
    """The next frame overtakes this one."""
    hit.proxy.ways[hit.direction].hold_for_glue(hit.block, lambda first, second: second + first)


@_fault
def late_reply(hit: Hit) -> None:
    """The frame arrives when the next command is already on its way."""
    hit.proxy.keep_for_next_command(hit.direction, hit.block)


@_fault
def replay(hit: Hit) -> None:
    """The frame arrives, and again and again later, into the commands after it."""
    hit.send(hit.block)
    for after_ms in (120, 400, 900, 2500):
        hit.send(hit.block, after_ms=after_ms, overtaken=True)


@_fault
def echo(hit: Hit) -> None:
    """The frame arrives, and its sender hears it too, as on a line whose echo is on."""
    hit.send(hit.block)
    hit.proxy.ways[other(hit.direction)].put(hit.block, hit.now_ns)


@_fault
def garbage_burst(hit: Hit) -> None:
    """Noise of all byte values in front of the frame."""
    hit.send(hit.rng.bytes(hit.ms(20, BURST_MAX)) + hit.block)


@_fault
def boot_rom_text(hit: Hit) -> None:
    """What an ESP32 prints at another baud rate, in front of the frame."""
    hit.send(ROM_TEXT + hit.block)


# -- the line for a while ---------------------------------------------------------------------------------------


@_fault
def burst_loss(hit: Hit) -> None:
    """This frame and the next three are lost."""
    hit.proxy.ways[hit.direction].frames_to_lose = 3


@_fault
def one_way(hit: Hit) -> None:
    """Nothing passes in this direction for a while."""
    hit.proxy.ways[hit.direction].dead_until_ns = hit.until_ns(hit.ms(200, 1800))


@_fault
def freeze(hit: Hit) -> None:
    """Nothing passes either way for a while, then everything that was sent meanwhile arrives."""
    until_ns = hit.until_ns(hit.ms(100, 1800))
    for direction in DIRECTIONS:
        hit.proxy.ways[direction].held_until_ns = until_ns
    hit.send(hit.block)


@_fault
def slow(hit: Hit) -> None:
    """2400 baud both ways for a while: a heartbeat takes an eighth of a second."""
    for direction in DIRECTIONS:
        way = hit.proxy.ways[direction]
        way.slow_until_ns, way.byte_ns = hit.until_ns(1500), 4_166_667
    hit.send(hit.block)


@_fault
def baud_noise(hit: Hit) -> None:
    """Every twentieth byte is damaged both ways for a while."""
    for direction in DIRECTIONS:
        way = hit.proxy.ways[direction]
        way.noise_until_ns, way.noise_per_byte = hit.until_ns(hit.ms(200, 1500)), 0.05
    hit.send(hit.block)


# -- the board and its cable ---------------------------------------------------------------------------------------


@_fault
def reset_before(hit: Hit) -> None:
    """The board restarts before the frame arrives."""
    hit.world.reset_board()


@_fault
def reset_during(hit: Hit) -> None:
    """The frame arrives; the board restarts when the stylus next comes down."""
    hit.send(hit.block)
    hit.world.when_pressed(True, hit.world.reset_board)


@_fault
def reset_after(hit: Hit) -> None:
    """The frame arrives; the board restarts when the stylus is back up, or a little later."""
    hit.send(hit.block)
    after_ms = hit.ms(0, 120)

    def when_up() -> None:
        hit.world.later(after_ms, hit.world.reset_board)

    hit.world.when_pressed(True, lambda: hit.world.when_pressed(False, when_up))


@_fault
def vanish(hit: Hit) -> None:
    """The port is gone and comes back under another name; the board kept its power."""
    hit.world.pull_cable(hit.ms(50, 900), power=False)


@_fault
def vanish_with_power(hit: Hit) -> None:
    """The same, and the board lost its power with the cable."""
    hit.world.pull_cable(hit.ms(50, 500), power=True)


@_fault
def board_hangs(hit: Hit) -> None:
    """The firmware stands still for a while, the stylus wherever it is."""
    hit.send(hit.block)
    hit.world.hang_board(hit.ms(100, 1500))


@_fault
def another_host(hit: Hit) -> None:
    """Another daemon opens the board and gives it more commands than it remembers, all of them refused."""
    boot_id = hit.frame.boot_id

    def frame(frame_type: int, seq: int, body: bytes = b"") -> bytes:
        return wire.encode_frame(frame_type, boot_id, OTHER_SESSION, seq, body)

    stream = [frame(wire.OPEN, 0)]
    far_away = wire.pack_args(wire.OP_MOVE, 2_000_000_000, 0, 0)
    for seq in range(wire.RESULTS_KEPT + 1):
        body = wire.pack_body(wire.CMD, hit.world.next_cmd_id(), wire.OP_MOVE, tail=far_away)
        stream.append(frame(wire.CMD, seq, body))
        # It takes whatever events there are without reading them.
        stream += [frame(wire.EVENT_ACK, event) for event in range(2 * wire.RESULTS_KEPT)]
    hit.proxy.ways["to_board"].put(b"".join(stream), hit.now_ns)


def arm(
    name: str, direction: Direction, index: int, proxy: Proxy, world: World, rng: np.random.Generator
) -> None:
    """Let the fault of that name strike the index-th frame from now on in that direction."""
    fault = FAULTS[name]
    proxy.arm(
        direction,
        index,
        lambda block, frame, now_ns: fault(Hit(block, frame, direction, proxy, world, rng, now_ns)),
    )
