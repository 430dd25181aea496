"""What capturing costs while nobody looks: 1080p at 30 fps from a server in a process of its own.

    python -m edge_daemon.bench.camera.idle [SECONDS]

Three processes: the server, which stands for camera and driver and is not counted; the daemon's side of one camera;
its capture process. The last two are counted, user and system time, each from its own account in the kernel.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import cv2
import numpy as np
import trio

from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.sources import HttpMjpegSource

WIDTH, HEIGHT, FPS = 1920, 1080, 30
PICTURES = 8
JPEG_QUALITY = 88
STARTED_WITHIN_S = 30.0
WARM_UP_S = 2.0
"""Starting an interpreter is no idle cost."""
_HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=frame\r\n\r\n--frame\r\n"


@dataclass(frozen=True)
class IdleCost:
    """Percent of one core over `seconds`; frames: captured meanwhile; jpeg_bytes: mean size of a picture."""

    daemon_pct: float
    capture_pct: float
    seconds: float
    frames: int
    jpeg_bytes: int

    @property
    def total_pct(self) -> float:
        return self.daemon_pct + self.capture_pct


def measure_idle_cost(seconds: float = 20.0) -> IdleCost:
    """What both our processes take for one idle camera. Raises RuntimeError when frames are lost."""
    with picture_server() as (port, jpeg_bytes):
        done = subprocess.run(
            _myself("--watch", str(port), str(seconds)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=seconds + STARTED_WITHIN_S,
        )
    found = json.loads(done.stdout)
    if found["frames"] < 0.9 * FPS * found["seconds"]:
        raise RuntimeError(
            f"only {found['frames']} frames in {found['seconds']:.0f} s: the machine is too busy to measure"
        )
    return IdleCost(jpeg_bytes=jpeg_bytes, **found)


@contextmanager
def picture_server() -> Iterator[tuple[int, int]]:
    """A server of such pictures in a process of its own: its port, and the mean size of a picture in bytes."""
    with subprocess.Popen(_myself("--serve"), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port, jpeg_bytes = (int(word) for word in server.stdout.readline().split())
            yield port, jpeg_bytes
        finally:
            server.kill()


def _myself(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "edge_daemon.bench.camera.idle", *arguments]


# -- the camera: not counted -----------------------------------------------------------------------------------


def _pictures() -> list[bytes]:
    """A phone on a table with sensor noise; different each, so that no check takes the camera for stuck."""
    random = np.random.default_rng(1)
    view = np.full((HEIGHT, WIDTH, 3), (60, 70, 65), np.uint8)
    cv2.rectangle(view, (700, 40), (1220, 1040), (240, 240, 240), -1)
    for row in range(8):
        for column in range(4):
            colour = tuple(int(value) for value in random.integers(30, 230, 3))
            cv2.rectangle(
                view, (730 + column * 120, 80 + row * 115), (820 + column * 120, 170 + row * 115), colour, -1
            )
    noise = random.normal(0.0, 2.0, (HEIGHT, WIDTH, 1))
    rolled = (np.roll(noise, 97 * number, (0, 1)) for number in range(PICTURES))
    shots = (np.clip(np.rint(view + shift), 0, 255).astype(np.uint8) for shift in rolled)
    return [
        cv2.imencode(".jpg", shot, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes() for shot in shots
    ]


def _serve() -> None:
    """Serve until killed, one client after the other; says its port and the mean size of a picture."""
    jpegs = _pictures()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]} {sum(map(len, jpegs)) // PICTURES}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                try:
                    _stream(connection, jpegs)
                except OSError:
                    continue


def _stream(connection: socket.socket, jpegs: list[bytes]) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(_HEAD)
    number, next_at = 0, time.monotonic()
    while True:
        jpeg = jpegs[number % PICTURES]
        grab_s = f"{time.monotonic_ns() // 1_000_000 / 1000:.6f}"
        head = (
            f"Content-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\nX-Timestamp: {time.time():.6f}\r\n"
            f"X-UStreamer-Online: true\r\nX-UStreamer-Dropped: 0\r\nX-UStreamer-Grab-Time: {grab_s}\r\n\r\n"
        )
        connection.sendall(head.encode() + jpeg + b"\r\n--frame\r\n")
        number += 1
        next_at += 1.0 / FPS
        time.sleep(max(0.0, next_at - time.monotonic()))


# -- ours: counted -----------------------------------------------------------------------------------------------


def _cpu_s(pid: int) -> float:
    """User and system time of a running process, from proc(5)'s stat, fields 14 and 15."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _watch(port: int, seconds: float) -> None:
    camera = Camera("idle", HttpMjpegSource(url=f"http://127.0.0.1:{port}/stream?extra_headers=1"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(camera.run)
        await camera.wait_online()
        await trio.sleep(WARM_UP_S)
        pid = camera.capture_pid
        assert pid is not None
        began, own, capture, frames = trio.current_time(), _own_cpu_s(), _cpu_s(pid), camera.counters.captured
        await trio.sleep(seconds)
        lasted = trio.current_time() - began
        found = {
            "daemon_pct": 100 * (_own_cpu_s() - own) / lasted,
            "capture_pct": 100 * (_cpu_s(pid) - capture) / lasted,
            "seconds": lasted,
            "frames": camera.counters.captured - frames,
        }
        nursery.cancel_scope.cancel()
    sys.stdout.write(json.dumps(found) + "\n")


def main() -> None:
    match sys.argv[1:]:
        case ["--serve"]:
            _serve()
        case ["--watch", port, seconds]:
            trio.run(_watch, int(port), float(seconds))
        case arguments:
            cost = measure_idle_cost(float(arguments[0]) if arguments else 20.0)
            sys.stdout.write(json.dumps(asdict(cost) | {"total_pct": cost.total_pct}) + "\n")


if __name__ == "__main__":
    main()
