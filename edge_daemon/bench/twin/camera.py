"""The camera over the phone: exposes, renders and publishes pictures, in whatever thread calls run().

Each picture shows what was there while it was exposed, and goes out only after the camera's latency. Its stamp
is taken when the first bytes leave the sensor, as a USB camera's is: at the end of the exposure.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from math import radians

import cv2
import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.frames import screen_to_world_mm
from edge_daemon.bench.twin.mechanics import Hand, TipPose
from edge_daemon.bench.twin.mjpeg import MjpegServer, Part
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Points, project
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.renderer import Renderer
from edge_daemon.bench.twin.truth import Truth

FPS = 15
JPEG_QUALITY = 90
# A tip that moves less than this during the exposure leaves no visible blur (0.2 mm are 1.5 px).
BLUR_MM = 0.2


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


@dataclass(frozen=True)
class Exposure:
    """When the twin's camera really looked: CLOCK_MONOTONIC ns; stamp_ns is what it says of itself."""

    sequence: int
    begin_ns: int
    end_ns: int
    stamp_ns: int


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
        self._truth = truth
        self._phone = phone
        self._hand = hand
        self._lens = truth.camera.lens
        self._pose = truth.camera.pose
        self._renderer = Renderer(truth, self._lens, self._pose)
        self._exposure_ns = round(truth.camera.exposure_ms * 1e6)
        self._latency_ns = round(truth.camera.latency_ms * 1e6)
        self._trouble = Trouble.NONE
        self._server = MjpegServer()
        self._stop = threading.Event()
        self._sequence = 0
        self._last_jpeg = b""
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
        return project(self._lens, self._pose, screen_to_world_mm(np.asarray(screen_mm, dtype=np.float64)))

    def hand_in_view(self) -> bool:
        """Whether the hand would show in a picture taken now."""
        return self._renderer.hand_in_view(self._hand.pose())

    def cost(self) -> Cost:
        """What rendering and encoding cost so far."""
        with self._lock:
            costs = list(self._costs_ms) or [0.0]
            recent = list(self._exposures)[-60:]
        span_s = (recent[-1].begin_ns - recent[0].begin_ns) / 1e9 if len(recent) > 1 else 0.0
        return Cost(
            frames=self._sequence,
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
        pose = replace(
            self._pose,
            tilt_rad=self._pose.tilt_rad + radians(tilt_degrees),
            roll_rad=self._pose.roll_rad + radians(roll_degrees),
            aim_x_mm=self._pose.aim_x_mm + 2.0 * tilt_degrees,
        )
        renderer = Renderer(self._truth, self._lens, pose)
        self._pose, self._renderer = pose, renderer

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
        begin_ns = time.monotonic_ns()
        opening = self._phone.frame(begin_ns)
        if self._wait_until(begin_ns + self._exposure_ns):
            return
        end_ns = time.monotonic_ns()
        closing = self._phone.frame(end_ns)
        if self._trouble is not Trouble.STUCK or not self._last_jpeg:
            picture = self._renderer.render(opening, closing, self._hand_during(begin_ns, end_ns))
            self._last_jpeg = _encode(picture)
        self._sequence += 1
        exposure = Exposure(self._sequence, begin_ns, end_ns, end_ns)
        with self._lock:
            self._exposures.append(exposure)
            self._costs_ms.append((time.monotonic_ns() - end_ns) / 1e6)
        available_ns = max(end_ns + self._latency_ns, time.monotonic_ns())
        self._server.publish(Part(self._last_jpeg, exposure.stamp_ns, available_ns))

    def _hand_during(self, begin_ns: int, end_ns: int) -> list[TipPose]:
        poses = [self._hand.pose_at(at_ns) for at_ns in (begin_ns, (begin_ns + end_ns) // 2, end_ns)]
        reach = max(
            abs(poses[-1].x_mm - poses[0].x_mm),
            abs(poses[-1].y_mm - poses[0].y_mm),
            abs(poses[-1].height_mm - poses[0].height_mm) / 5,
        )
        return poses if reach > BLUR_MM else poses[-1:]

    def _publish_no_signal(self) -> None:
        blank = draw.canvas(PICTURE_WIDTH_PX, PICTURE_HEIGHT_PX, draw.BLACK)
        draw.text(blank, "< NO SIGNAL >", PICTURE_WIDTH_PX / 2, 380, 60, draw.WHITE, 400, "center")
        self._server.publish(Part(_encode(blank), 0, time.monotonic_ns(), online=False))


def _encode(picture: draw.Image) -> bytes:
    encoded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1]
    return encoded.tobytes()
