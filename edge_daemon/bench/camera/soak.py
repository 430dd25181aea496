"""Does capturing last? Ten hours with faults in virtual time, and a minute of killed capture processes in real time.

    python -m edge_daemon.bench.camera.soak [--hours H] [--kills N]

Prints one JSON object; exit status 0 when nothing grew, every fault was named and each was recovered from in time.
"""

import argparse
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import trio
import trio.testing

from edge_daemon.bench.camera.idle import picture_server
from edge_daemon.bench.camera.soak_capture import FPS, Ill, SimulatedCaptures, World, at_once, now_ns
from edge_daemon.cameras.camera import Camera, CameraOffline, CameraOnline
from edge_daemon.cameras.errors import CameraError
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.frames import FrameBook
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES
from edge_daemon.cameras.settle import SettleVerdict
from edge_daemon.cameras.sources import HttpMjpegSource

HOURS, KILLS = 10.0, 20
HEALTHY_S, ILL_S = 48.0, 12.0
RECOVERED_WITHIN_S = 3.0
GROWTH_BYTES = 4 << 20
"""Of memory in the second half: less than a byte a frame. The interpreter's own arenas come and go by as much."""
GROWTH_OBJECTS = 500
KILL_EVERY_S = 1.5
SOURCE = HttpMjpegSource(url="http://127.0.0.1:1/stream?extra_headers=1", fps=float(FPS))


@dataclass(frozen=True)
class Held:
    """What the process holds now."""

    rss_bytes: int
    objects: int
    descriptors: int
    threads: int

    @classmethod
    def now(cls) -> "Held":
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len(gc.get_objects()),
            len(os.listdir("/proc/self/fd")),
            threading.active_count(),
        )


@dataclass
class Found:
    """Of one part. problems: in words; none and it is passed."""

    seconds: float = 0.0
    frames: int = 0
    restarts: int = 0
    faults: int = 0
    recover_s: dict[str, float] = field(default_factory=dict)
    rss_growth_bytes: int = 0
    object_growth: int = 0
    descriptor_growth: int = 0
    thread_growth: int = 0
    problems: list[str] = field(default_factory=list)

    def judge_growth(self, before: Held, after: Held) -> None:
        self.rss_growth_bytes = after.rss_bytes - before.rss_bytes
        self.object_growth = after.objects - before.objects
        self.descriptor_growth = after.descriptors - before.descriptors
        self.thread_growth = after.threads - before.threads
        if self.rss_growth_bytes > GROWTH_BYTES:
            self.problems.append(f"memory grew by {self.rss_growth_bytes} bytes")
        if self.object_growth > GROWTH_OBJECTS:
            self.problems.append(f"{self.object_growth} more objects than half-way")
        if self.descriptor_growth > 0:
            self.problems.append(f"{self.descriptor_growth} more descriptors than half-way")
        if self.thread_growth > 1:
            # A worker thread may be at work on a picture at either moment.
            self.problems.append(f"{self.thread_growth} more threads than half-way")


@contextmanager
def _timed(found: Found) -> Iterator[None]:
    began = time.monotonic()
    yield
    found.seconds = round(time.monotonic() - began, 1)


# -- in virtual time -----------------------------------------------------------------------------------------------


def simulate(
    hours: float = HOURS, *, healthy_s: float = HEALTHY_S, ill_s: float = ILL_S, growth: bool = True
) -> Found:
    """So many hours of 30 pictures a second: healthy for a while, then one fault after the other for a while.

    growth: judge what the second half holds more than the first; means nothing before the frame ring is full.
    """
    found = Found()
    with _timed(found):
        trio.run(
            _simulate,
            hours * 3600.0,
            healthy_s,
            ill_s,
            growth,
            found,
            clock=trio.testing.MockClock(autojump_threshold=0),
        )
    return found


async def _simulate(length_s: float, healthy_s: float, ill_s: float, growth: bool, found: Found) -> None:
    world = World()
    captures = SimulatedCaptures(world)
    camera = Camera(
        "soak", SOURCE, ring_bytes=MAX_JPEG_BYTES, capture=captures, now_ns=now_ns, in_thread=at_once
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(camera.run)
        nursery.start_soon(_use, camera, found)
        await camera.wait_online()
        half: Held | None = None
        ills = list(Ill)
        while trio.current_time() < length_s:
            if growth and half is None and trio.current_time() >= length_s / 2:
                half = Held.now()
            await trio.sleep(healthy_s)
            await _fall_ill(camera, world, ills[found.faults % len(ills)], ill_s, found)
        await trio.sleep(healthy_s)
        if half is not None:
            found.judge_growth(half, Held.now())
        if not isinstance(camera.status, CameraOnline):
            found.problems.append(f"at the end the camera is not online: {camera.status}")
        if camera.counters.captured != world.delivered:
            found.problems.append(f"{world.delivered} frames delivered, {camera.counters.captured} counted")
        found.frames, found.restarts = world.delivered, camera.counters.restarts
        nursery.cancel_scope.cancel()


async def _fall_ill(camera: Camera, world: World, ill: Ill, ill_s: float, found: Found) -> None:
    """One fault: it must be named while it lasts, and be gone soon after."""
    found.faults += 1
    world.fall_ill(ill)
    named = False
    with trio.move_on_after(ill_s):
        status = camera.status
        while True:
            named = named or ill.fault in _names(camera)
            status = await camera.status_other_than(status)
    world.fall_ill(None)
    ended_at = trio.current_time()
    with trio.move_on_after(4 * RECOVERED_WITHIN_S):
        while not isinstance(camera.status, CameraOnline) or ill.fault in _names(camera):
            await camera.status_other_than(camera.status)
    recover_s = trio.current_time() - ended_at
    found.recover_s[ill.words] = round(max(recover_s, found.recover_s.get(ill.words, 0.0)), 3)
    if not named:
        found.problems.append(f"{ill.words}: never called {ill.fault}, but {camera.status}")
    if recover_s > RECOVERED_WITHIN_S:
        found.problems.append(f"{ill.words}: recovered only after {recover_s:.1f} s")


def _names(camera: Camera) -> set[CameraFault]:
    status = camera.status
    if isinstance(status, CameraOffline):
        return set() if status.fault is None else {status.fault}
    return {one.fault for one in status.degraded}


async def _use(camera: Camera, found: Found) -> None:
    """Looks as a plane would ask for them: once a second a frame, once a minute a wait for stillness."""
    book = FrameBook()
    verdict = SettleVerdict("unreliable", "nobody waited")
    looks = sequence = 0
    while True:
        await trio.sleep(1.0)
        looks += 1
        asked_ns, asked_at = now_ns(), trio.current_time()
        try:
            frame = await camera.frame_after(asked_ns, 10.0)
        except CameraError:
            frame = None
        if trio.current_time() - asked_at > RECOVERED_WITHIN_S + 0.5:
            found.problems.append(f"a look waited {trio.current_time() - asked_at:.1f} s")
        if frame is None:
            continue
        if frame.exposed_ns <= asked_ns or frame.sequence <= sequence:
            found.problems.append(f"frame {frame.sequence} is older than what was asked for")
        sequence = frame.sequence
        record = book.mint(frame, orientation="portrait", settle=verdict, fencing_token=1)
        assert record is not None
        camera.captured_between(record.sequence, now_ns())
        if looks % 60 == 0:
            await camera.settled(asked_ns, 1.0)


# -- in real time --------------------------------------------------------------------------------------------------


def kill_processes(kills: int = KILLS) -> Found:
    """A real camera on a real server; its capture process is killed again and again."""
    found = Found()
    with _timed(found), picture_server() as (port, _):
        trio.run(_kill_processes, port, kills, found)
    return found


async def _kill_processes(port: int, kills: int, found: Found) -> None:
    camera = Camera("soak", HttpMjpegSource(url=f"http://127.0.0.1:{port}/stream?extra_headers=1"))
    half: Held | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(camera.run)
        for number in range(kills):
            with trio.move_on_after(10) as waiting:
                await camera.wait_online()
            pid = camera.capture_pid
            if waiting.cancelled_caught or pid is None:
                found.problems.append(f"after {number} kills: {camera.status}")
                break
            await trio.sleep(KILL_EVERY_S)
            if number == kills // 2:
                half = Held.now()
            os.kill(pid, signal.SIGKILL)
            killed_at, killed_ns = trio.current_time(), time.monotonic_ns()
            with trio.move_on_after(4 * RECOVERED_WITHIN_S):
                await _frame_of_another(camera, pid, killed_ns)
            took_s = trio.current_time() - killed_at
            found.recover_s["killed"] = round(max(took_s, found.recover_s.get("killed", 0.0)), 3)
            if took_s > RECOVERED_WITHIN_S:
                found.problems.append(f"a killed process was replaced only after {took_s:.1f} s")
            if _alive(pid):
                found.problems.append(f"process {pid} was killed and not reaped")
        await trio.sleep(KILL_EVERY_S)
        if half is not None:
            found.judge_growth(half, Held.now())
        found.faults, found.frames, found.restarts = kills, camera.counters.captured, camera.counters.restarts
        nursery.cancel_scope.cancel()


async def _frame_of_another(camera: Camera, pid: int, after_ns: int) -> None:
    while camera.capture_pid in (None, pid) or not isinstance(camera.status, CameraOnline):
        await camera.status_other_than(camera.status)
    await camera.frame_after(after_ns, 4 * RECOVERED_WITHIN_S)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Ten hours of capturing with faults, in minutes.")
    parser.add_argument("--hours", type=float, default=HOURS, help="of virtual time")
    parser.add_argument("--kills", type=int, default=KILLS, help="of real capture processes")
    given = parser.parse_args()
    parts = {"simulated": simulate(given.hours), "killed": kill_processes(given.kills)}
    passed = not any(part.problems for part in parts.values())
    said = {"suite": "soak", "verdict": "passed" if passed else "failed", "hours": given.hours}
    sys.stdout.write(json.dumps(said | {name: asdict(part) for name, part in parts.items()}) + "\n")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
