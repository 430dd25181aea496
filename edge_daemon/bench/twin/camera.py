"""The camera over the phone: exposes, renders and publishes pictures, in whatever thread calls run().

Each picture shows what was there while it was exposed, and goes out only after the camera's latency. Its stamp
is taken when the first bytes leave the sensor, as a USB camera's is: at the end of the exposure.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import cv2
import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import Placement
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.mjpeg import MjpegServer, Part
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Points
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.picture_options import PictureOptions
from edge_daemon.bench.twin.sensor import Exposure, Sensor, encode
from edge_daemon.bench.twin.truth import Truth

FPS = 15
NO_SIGNAL_QUALITY = 90
STARVED_ONE_IN = 3
LATE_NS = 10_000_000


class Trouble(Enum):
    """What is wrong with the camera."""

    NONE = "none"
    UNPLUGGED = "unplugged"
    """The server goes on with its NO SIGNAL picture, offline."""
    FROZEN = "frozen"
    """No new picture: the last one is sent again each second with its old stamp."""
    STUCK = "stuck"
    """The same picture over and over under new stamps: a driver that hands out one buffer."""
    SILENT = "silent"
    """The connection stays and nothing comes."""
    COVERED = "covered"
    """A cloth over the lens: the pictures are black."""
    CUT = "cut"
    """Each picture ends in its middle: a crowded bus."""
    STARVED = "starved"
    """One picture of three comes."""
    WRONG_CLOCK = "wrong_clock"
    """The stamps are of the wall clock."""


@dataclass(frozen=True)
class Cost:
    """What pictures cost on this machine, in ms: median and worst of the last ones."""

    frames: int
    render_p50_ms: float
    render_max_ms: float
    fps: float


class CameraTwin:
    """One camera looking at one phone and one hand."""

    def __init__(self, truth: Truth, phone: Phone, hand: Hand) -> None:
        self.sensor = Sensor(truth, phone, hand)
        self.pen: Callable[[Image, int], None] | None = None
        """What a bench paints into each raw picture, on the camera's thread; it is told the exposure's sequence."""
        self._latency_ns = round(truth.camera.latency_ms * 1e6)
        self._trouble = Trouble.NONE
        self._server = MjpegServer()
        self._stop = threading.Event()
        self._last_jpeg = b""
        self._frames = 0
        self._lock = threading.Lock()
        self._exposures: deque[Exposure] = deque(maxlen=4096)
        self._costs_ms: deque[float] = deque(maxlen=300)

    @property
    def url(self) -> str:
        """The stream, with the stamps."""
        return f"http://127.0.0.1:{self._server.port}/stream?extra_headers=1"

    @property
    def exposures(self) -> list[Exposure]:
        """The last 4096 true exposures, the oldest first."""
        with self._lock:
            return list(self._exposures)

    def truth_project(self, screen_mm: Points) -> Points:
        """Screen mm (N, 2) on the glass to true picture px (N, 2). For tests and the bench's own checks."""
        return self.sensor.truth_project(screen_mm)

    def hand_in_view(self) -> bool:
        """Whether the hand would show in a picture taken now."""
        return self.sensor.hand_in_view()

    def cost(self) -> Cost:
        """What rendering and encoding cost so far."""
        with self._lock:
            costs = list(self._costs_ms) or [0.0]
            recent = list(self._exposures)[-60:]
        span_s = (recent[-1].begin_ns - recent[0].begin_ns) / 1e9 if len(recent) > 1 else 0.0
        return Cost(
            frames=self._frames,
            render_p50_ms=round(float(np.median(costs)), 2),
            render_max_ms=round(max(costs), 2),
            fps=round((len(recent) - 1) / span_s, 2) if span_s else 0.0,
        )

    # -- life ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Serve; the pictures come from run()."""
        # Two cores are shared with everything else; OpenCV's own pool would fight for them.
        cv2.setNumThreads(1)
        self._server.open()

    def stop(self) -> None:
        """Make run() return soon; from any thread."""
        self._stop.set()

    def close(self) -> None:
        """Stop serving; blocks until the server's threads are gone."""
        self._server.close()

    # -- what may go wrong ---------------------------------------------------------------------------------

    def set_trouble(self, trouble: Trouble) -> None:
        """Let something be wrong with the camera, or nothing (Trouble.NONE)."""
        self._trouble = trouble
        self._server.set_silent(trouble is Trouble.SILENT)

    def kill_server(self) -> None:
        """The streaming process dies: connections break, the port refuses."""
        self._server.close()

    def restart_server(self) -> None:
        """The streaming process is back, on the same port."""
        if not self._server.is_open:
            self._server.open()

    def knock(self, tilt_degrees: float = 0.5, roll_degrees: float = 0.5) -> None:
        """Somebody bumps into the camera: from now on it looks from elsewhere."""
        self.sensor.knock(tilt_degrees, roll_degrees)

    def place_phone(self, placement: Placement) -> None:
        """The phone lies elsewhere on the bed from now on."""
        self.sensor.place_phone(placement)

    def set_options(self, options: PictureOptions) -> None:
        """Pictures are like this from now on: out of focus, with glare, a stray board, deep banding …"""
        self.sensor.set_options(options)

    # -- pictures ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Take pictures until stop(); blocks."""
        period_ns = 1_000_000_000 // FPS
        next_ns = time.monotonic_ns()
        while not self._wait_until(next_ns):
            if self._trouble is Trouble.UNPLUGGED:
                self._publish_no_signal()
            elif self._trouble is not Trouble.FROZEN:
                self._take_picture()
            next_ns = max(next_ns + period_ns, time.monotonic_ns())

    def _wait_until(self, at_ns: int) -> bool:
        """True when the camera is to stop."""
        return self._stop.wait(max(0, at_ns - time.monotonic_ns()) / 1e9)

    def _take_picture(self) -> None:
        shutter = self.sensor.open_shutter(time.monotonic_ns())
        if self._wait_until(shutter.begin_ns + self.sensor.exposure_ns):
            return
        end_ns = time.monotonic_ns()
        if end_ns - shutter.begin_ns > self.sensor.exposure_ns + LATE_NS:
            # A busy machine woke us late. No camera exposes for longer than it was set to: this picture was not taken.
            return
        raw = self.sensor.close_shutter(shutter, end_ns)
        if self._trouble is Trouble.COVERED:
            raw //= 64
        if self.pen is not None:
            self.pen(raw, self._frames + 1)
        if self._trouble is not Trouble.STUCK or not self._last_jpeg:
            self._last_jpeg = self.sensor.encode(raw)
        exposure = self.sensor.finish(shutter, end_ns, self._last_jpeg).exposure
        with self._lock:
            self._frames += 1
            self._exposures.append(exposure)
            self._costs_ms.append((time.monotonic_ns() - end_ns) / 1e6)
        self._publish(exposure, end_ns)

    def _publish(self, exposure: Exposure, end_ns: int) -> None:
        if self._trouble is Trouble.STARVED and exposure.sequence % STARVED_ONE_IN:
            return
        cut = len(self._last_jpeg) // 2 if self._trouble is Trouble.CUT else None
        stamp_ns = time.time_ns() if self._trouble is Trouble.WRONG_CLOCK else exposure.stamp_ns
        available_ns = max(end_ns + self._latency_ns, time.monotonic_ns())
        self._server.publish(Part(self._last_jpeg[:cut], stamp_ns, available_ns))

    def _publish_no_signal(self) -> None:
        blank = draw.canvas(PICTURE_WIDTH_PX, PICTURE_HEIGHT_PX, draw.BLACK)
        draw.text(blank, "< NO SIGNAL >", PICTURE_WIDTH_PX / 2, 380, 60, draw.WHITE, 400, "center")
        self._server.publish(Part(encode(blank, NO_SIGNAL_QUALITY), 0, time.monotonic_ns(), online=False))
