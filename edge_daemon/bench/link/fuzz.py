"""A million spoiled frames into each receiver: nothing crashes, nothing moves, nothing is taken from noise."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from edge_daemon.bench.link.mutations import Mutator
from edge_daemon.bench.link.process import interpreter
from edge_daemon.bench.twin.boards import SOURCE_ROOT, available_runtime
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import FlagsChanged
from firmware import wire

BOARD = Path(__file__).with_name("fuzz_board.py")
FRAMES_A_PROCESS = 250_000
BOOT, SESSION, CMD_ID = 0x1B00713D, 0x2A5E5510, 41
INTACT_EACH = 50
_MS = 1_000_000


@dataclass
class FuzzResult:
    """One receiver's record. ``wrong``: frames taken from noise, or intact ones missed."""

    receiver: str
    frames: int = 0
    crashes: int = 0
    executions: int = 0
    wrong: int = 0
    heap_growth_bytes: int | None = None
    first_crash: str = ""
    wall_s: float = 0.0

    @property
    def problems(self) -> list[str]:
        found = []
        if self.crashes:
            found.append(f"{self.receiver}: {self.crashes} crashes, the first: {self.first_crash}")
        if self.executions:
            found.append(f"{self.receiver}: {self.executions} actions or outcomes made of spoiled frames")
        if self.wrong:
            found.append(f"{self.receiver}: {self.wrong} times it took noise for a frame, or missed one")
        return found


def fuzz_board(runtime: str, count: int, seed: int) -> FuzzResult:
    """The board's firmware in a process of MicroPython ("micropython") or of this interpreter ("cpython")."""
    command = interpreter() if runtime == "micropython" else [sys.executable]
    result = FuzzResult(f"board firmware in {runtime}")
    begun = time.monotonic()
    for part, first in enumerate(range(0, count, FRAMES_A_PROCESS)):
        size = min(FRAMES_A_PROCESS, count - first)
        process = subprocess.run(
            [*command, str(BOARD), str(SOURCE_ROOT), str(size), str(seed + 1000 * part)],
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            result.crashes += 1
            result.first_crash = result.first_crash or process.stderr.strip()[-500:]
            continue
        said = json.loads(process.stdout)
        result.frames += said["frames"]
        result.crashes += said["crashes"]
        result.executions += said["executions"]
        result.wrong += said["wrong"]
        result.first_crash = result.first_crash or said["first_crash"]
        if runtime == "micropython":
            growths = [result.heap_growth_bytes, said["heap_growth_bytes"]]
            result.heap_growth_bytes = max(growth for growth in growths if growth is not None)
    result.wall_s = time.monotonic() - begun
    return result


def fuzz_host(count: int, seed: int) -> FuzzResult:
    """The daemon's end: no event may come of spoiled frames while a command waits for its outcome."""
    result = FuzzResult("daemon's link in cpython", count)
    begun = time.monotonic()
    link = _waiting_link()
    mutator = Mutator(_board_frames(), seed)
    heartbeat = _frame(wire.BOARD_HEARTBEAT, 0, 1, 0)
    for n in range(count):
        frames = link.line.frames
        try:
            link.receive(mutator.next(), n * _MS)
        except Exception as err:  # noqa: BLE001 – whatever it is, it would have ended the daemon
            result.crashes += 1
            result.first_crash = result.first_crash or repr(err)
        result.wrong += link.line.frames != frames
        if n % INTACT_EACH == 0:
            link.receive(heartbeat, n * _MS)
            result.wrong += link.line.frames != frames + 1
        result.executions += sum(not isinstance(event, FlagsChanged) for event in link.take_events())
        link.take_output()
    # The outcome that all this was made of would have been taken.
    link.receive(_frame(wire.DONE, 0, CMD_ID, 1, 2, 3), count * _MS)
    result.wrong += not link.take_events()
    result.wall_s = time.monotonic() - begun
    return result


def _waiting_link() -> HostLink:
    link = HostLink(SESSION, 0)
    hello = wire.Hello(
        b"fuzzfuzz", wire.KIND_HAND, 0, 1, 1, 15, 1, 0, wire.pack_hand_tail(0, 1, 0, 1, 0, 1, 1, 1)
    )
    link.receive(wire.encode_frame(wire.HELLO, BOOT, 0, 0, hello.pack()), 0)
    link.receive(_frame(wire.OPENED, 0, 0), 0)
    link.receive(_frame(wire.RESULT, 1, wire.CMD_ID_OF_HIGHEST, wire.STATE_FORGOTTEN), 0)
    link.receive(_frame(wire.BOARD_HEARTBEAT, 1, 5000, 0), 0)
    link.command(CMD_ID, wire.OP_HOME, b"", 0)
    link.take_events()
    link.take_output()
    return link


def _frame(frame_type: int, seq: int, *fields: int) -> bytes:
    return wire.encode_frame(frame_type, BOOT, SESSION, seq, wire.pack_body(frame_type, *fields))


def _board_frames() -> list[bytes]:
    return [
        _frame(wire.ACCEPTED, 0, CMD_ID, 1),
        _frame(wire.CONTACT, 0, CMD_ID, 2),
        _frame(wire.DONE, 0, CMD_ID, 1, 2, 3),
        _frame(wire.FAULT, 0, CMD_ID, wire.FAULT_ABORTED, 0, 3),
        _frame(wire.RESULT, 1, CMD_ID, wire.STATE_ABSENT),
        _frame(wire.MOVED, 0, 4, wire.MOVED_PUSHED),
        _frame(wire.ESTOPPED, 0, 4, 77),
        _frame(wire.BOARD_HEARTBEAT, 1, 5000, 0),
    ]


def fuzz_all(count: int, seed: int) -> list[FuzzResult]:
    """Every receiver, one after the other; without MicroPython the board runs in this interpreter alone."""
    results = [fuzz_host(count, seed), fuzz_board("cpython", count, seed)]
    if available_runtime() == "micropython":
        results.append(fuzz_board("micropython", count, seed))
    return results
