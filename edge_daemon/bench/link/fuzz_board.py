"""Spoiled frames into the hand's real firmware, in whatever interpreter runs this:

    micropython -X heapsize=160k fuzz_board.py ROOT COUNT SEED

Prints one line of JSON: frames, crashes, executions, wrong (frames taken from noise, or intact ones missed),
heap_growth_bytes (MicroPython) and the first crash in words.
"""

import gc
import json
import sys

sys.path.insert(0, sys.argv[1])

from edge_daemon.bench.link.mutations import Forger, Mutator
from firmware import wire
from firmware.hand.core import Drives, HandCore, HandLimits
from firmware.link import BoardLink

BOOT, SESSION = 0x1B00713D, 0x2A5E5510
WARM_UP = 2000
# Between two intact frames, which must come through; often enough to keep the session open.
INTACT_EACH = 50
FORGED_EACH = 5
FRAME_US = 1000


class CountedDrives(Drives):
    def __init__(self) -> None:
        self.writes = 0

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self.writes += 1


class Bench:
    """A homed hand in a session, waiting for its second command."""

    def __init__(self) -> None:
        self.drives = CountedDrives()
        limits = HandLimits(0, 200000, 0, 130000, -3000, 30000, 300, 4000)
        self.core = HandCore(self.drives, limits)
        self.link = BoardLink(self.core, b"fuzzfuzz", wire.KIND_HAND, BOOT, wire.RESET_POWER_ON)
        self.now_us = 1000
        self.crashes = 0
        self.first_crash = ""
        self.wrong = 0
        self.feed(self.frame(wire.OPEN))
        self.feed(self.command(0, 1, wire.OP_HOME))
        self.run(2000)
        assert self.core.flags() & wire.FLAG_HOMED, "the bench's hand does not home"

    def frame(self, frame_type: int, seq: int = 0, body: bytes = b"") -> bytes:
        return wire.encode_frame(frame_type, BOOT, SESSION, seq, body)

    def command(self, seq: int, cmd_id: int, op: int, *args: int) -> bytes:
        body = wire.pack_body(wire.CMD, cmd_id, op, tail=wire.pack_args(op, *args))
        return self.frame(wire.CMD, seq, body)

    def heartbeat(self) -> bytes:
        return self.frame(wire.HOST_HEARTBEAT, 1, wire.pack_body(wire.HOST_HEARTBEAT, 0))

    def feed(self, data: bytes) -> None:
        self.now_us += FRAME_US
        try:
            self.link.receive(data, self.now_us)
            self.link.poll(self.now_us)
            self.link.take_output()
        except Exception as err:  # noqa: BLE001 – whatever it is, it would have restarted the board
            self.crashes += 1
            self.first_crash = self.first_crash or repr(err)

    def run(self, ms: int) -> None:
        for _ in range(ms // 4):
            self.now_us += 3000
            self.feed(self.heartbeat())
        for seq in range(8):
            self.feed(self.frame(wire.EVENT_ACK, seq))


def main(count: int, seed: int) -> None:
    bench = Bench()
    tap = bench.command(1, 2, wire.OP_TAP, 60000, 40000, 3000, -500, 30)
    others = [
        bench.frame(wire.OPEN),
        bench.heartbeat(),
        bench.frame(wire.QUERY, 3, wire.pack_body(wire.QUERY, 1 << 40)),
        bench.frame(wire.ESTOP),
        bench.frame(wire.CLEAR, 0, wire.pack_body(wire.CLEAR, 77)),
        bench.frame(wire.EVENT_ACK, 9),
    ]
    mutator = Mutator(3 * [tap] + others, seed)
    forger = Forger(BOOT, SESSION, seed + 1)
    decoder = bench.link._decoder
    writes = bench.drives.writes
    heap_before = 0
    for n in range(count):
        if n == WARM_UP:
            heap_before = heap_in_use()
        frames = decoder.frames
        if n % FORGED_EACH == 0:
            bench.feed(forger.next())
            frames += 1
        else:
            bench.feed(mutator.next())
        if n % INTACT_EACH == 0:
            bench.feed(bench.heartbeat())
            frames += 1
        if decoder.frames != frames:
            bench.wrong += 1
    heap_growth = heap_in_use() - heap_before if count > WARM_UP else 0
    executions = bench.drives.writes - writes
    # The command that all this was made of would have moved the hand.
    bench.feed(tap)
    bench.run(2000)
    if bench.drives.writes == writes:
        bench.wrong += 1
    result = {
        "frames": count,
        "crashes": bench.crashes,
        "executions": executions,
        "wrong": bench.wrong,
        "heap_growth_bytes": heap_growth,
        "first_crash": bench.first_crash,
    }
    sys.stdout.write(json.dumps(result) + "\n")


def heap_in_use() -> int:
    """Bytes that live objects take; 0 where the interpreter does not say."""
    gc.collect()
    mem_alloc = getattr(gc, "mem_alloc", None)
    return mem_alloc() if mem_alloc is not None else 0


if __name__ == "__main__":
    main(int(sys.argv[2]), int(sys.argv[3]))
