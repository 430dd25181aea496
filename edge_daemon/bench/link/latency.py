"""Round trip of an exchange that does nothing, against a bare echo on the same kind of pty.

No-op: QUERY of an id that the board never had, asked through Board.ask() and answered by RESULT – a frame each
way through both codecs, both link machines and trio.

Floor: os.write and os.read of as many bytes, blocking, echoed by the same interpreter that runs the firmware.
It is a hard floor: nobody who serves more than one board may block in os.read. So the same echo waited for in
the daemon's event loop, as its serial port waits, is measured too and called the loop's floor.

Where the scheduler puts the two processes moves all of these figures threefold, so both ends get a processor of
their own, in the floors as in the round trip: a board is never on the daemon's core. Each is measured in several
blocks in turn, each with a process of its own, and its quietest block counts: a floor from a busy moment would
flatter the ratio.
"""

import os
import select
import socket
import subprocess
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trio

from edge_daemon.bench.link.process import UID, Firmware, interpreter
from edge_daemon.boards import Board
from firmware import wire

ECHO = Path(__file__).with_name("echo.py")
NEVER_GIVEN = 1 << 62
WARM_UP = 200
ECHO_PATIENCE_S = 10.0
MESSAGE = wire.encode_frame(wire.QUERY, 1, 1, 0, wire.pack_body(wire.QUERY, NEVER_GIVEN))


class EchoSilent(RuntimeError):
    """The floor cannot be measured."""


@dataclass(frozen=True, order=True)
class RoundTrips:
    p50_us: float
    p99_us: float

    @classmethod
    def of(cls, samples_ns: Sequence[int]) -> "RoundTrips":
        p50, p99 = np.percentile(np.array(samples_ns) / 1000, [50, 99])
        return cls(float(p50), float(p99))


def measure_floor(count: int) -> RoundTrips:
    """Bytes to the echo and back, read and written without any loop around it."""
    with _echo() as line:
        samples = [_echo_once(line) for _ in range(WARM_UP + count)]
    return RoundTrips.of(samples[WARM_UP:])


async def measure_loop_floor(count: int) -> RoundTrips:
    """The same, waited for in trio."""
    with _echo() as line:
        os.set_blocking(line, False)
        samples = [await _echo_once_in_loop(line) for _ in range(WARM_UP + count)]
    return RoundTrips.of(samples[WARM_UP:])


@contextmanager
def _echo() -> Iterator[int]:
    """A line with the echo's process at its other end, which has answered once."""
    master, line = os.openpty()
    tty.setraw(line)
    os.set_blocking(master, False)
    process = subprocess.Popen([*interpreter(), str(ECHO), str(master)], pass_fds=(master,))
    os.close(master)
    try:
        with apart(process.pid):
            yield _answering(line)
    finally:
        process.kill()
        process.wait()
        os.close(line)


@contextmanager
def apart(peer_pid: int) -> Iterator[None]:
    """This thread and the peer on a processor each, where there are two; this thread is set free at the end."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        yield
        return
    ours, theirs, *_ = sorted(allowed)
    os.sched_setaffinity(peer_pid, {theirs})
    os.sched_setaffinity(0, {ours})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _answering(line: int) -> int:
    """The line, once the echo has given back a first message. Raises EchoSilent."""
    os.write(line, MESSAGE)
    if not select.select([line], [], [], ECHO_PATIENCE_S)[0]:
        raise EchoSilent(f"the echo did not answer within {ECHO_PATIENCE_S:.0f} s")
    os.read(line, len(MESSAGE))
    return line


def _echo_once(line: int) -> int:
    begun_ns = time.monotonic_ns()
    os.write(line, MESSAGE)
    missing = len(MESSAGE)
    while missing:
        missing -= len(os.read(line, missing))
    return time.monotonic_ns() - begun_ns


async def _echo_once_in_loop(line: int) -> int:
    begun_ns = time.monotonic_ns()
    os.write(line, MESSAGE)
    missing = len(MESSAGE)
    while missing:
        await trio.lowlevel.wait_readable(line)
        missing -= len(os.read(line, missing))
    return time.monotonic_ns() - begun_ns


async def measure_round_trips(directory: Path, count: int) -> RoundTrips:
    """QUERY and RESULT between a Board and the firmware, with nothing between them but the pty."""
    wire_path = directory / "latency.wire"
    wire_path.unlink(missing_ok=True)
    listener = trio.socket.socket(socket.AF_UNIX)
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    firmware = Firmware(directory, wire_path)
    board = Board("hand", os.ttyname(slave), UID, "hand")
    with listener:
        await listener.bind(str(wire_path))
        listener.listen(1)
        async with trio.open_nursery() as nursery:
            try:
                await firmware.start(master, "power_on", nursery)
                os.close(master)
                wires, _ = await listener.accept()
                with wires:
                    nursery.start_soon(board.run)
                    boot_id = (await board.wait_online()).boot_id
                    with apart(firmware.pid):
                        samples = [await _ask_once(board, boot_id) for _ in range(WARM_UP + count)]
            finally:
                await firmware.kill()
                nursery.cancel_scope.cancel()
    os.close(slave)
    return RoundTrips.of(samples[WARM_UP:])


async def _ask_once(board: Board, boot_id: int) -> int:
    begun_ns = time.monotonic_ns()
    await board.ask(NEVER_GIVEN, boot_id)
    return time.monotonic_ns() - begun_ns
