"""The camera without its thread: what it sees between two given moments, as a JPEG and as the truth about it.

Two ways to use it, one way that it works: the camera's thread opens the shutter, waits, closes it; a bench that runs
in virtual time does the same with explicit times and calls nothing that looks at a clock.
"""

from dataclasses import dataclass, replace
from math import radians

import cv2
import numpy as np

from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.display import ScreenFrame
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import HOME, Placement, screen_to_world_mm, world_to_screen_points_mm
from edge_daemon.bench.twin.mechanics import Hand, TipPose
from edge_daemon.bench.twin.optics import Points, Pose
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.picture_options import PLAIN, PictureOptions, PictureQuality
from edge_daemon.bench.twin.renderer import Renderer
from edge_daemon.bench.twin.truth import Truth

# A tip that moves less than this during the exposure leaves no visible blur (0.2 mm are 1.5 px).
BLUR_MM = 0.2


@dataclass(frozen=True)
class Exposure:
    """When the twin's camera really looked, ns; stamp_ns is what it says of itself."""

    sequence: int
    begin_ns: int
    end_ns: int
    stamp_ns: int


@dataclass(frozen=True)
class Picture:
    """One picture as it leaves the camera: JPEG bytes of 1280 x 720, and the exposure behind it."""

    jpeg: bytes
    exposure: Exposure


@dataclass(frozen=True)
class Shutter:
    """An open shutter: what the screen showed when it opened."""

    begin_ns: int
    opening: ScreenFrame


class Sensor:
    """One camera looking at one phone and one hand. Times are handed in and only go forward."""

    def __init__(self, truth: Truth, phone: Phone, hand: Hand, quality: PictureQuality = "realtime") -> None:
        self._truth = truth
        self._phone = phone
        self._hand = hand
        self._quality: PictureQuality = quality
        self._lens = truth.camera.lens
        self._pose = truth.camera.pose
        self._placement = HOME
        self._options = PLAIN
        # Built when the first picture is taken: many benches never take one.
        self._built: Renderer | None = None
        self._sequence = 0
        self.exposure_ns = round((truth.camera.exposure_ms + truth.display.readout_ms) * 1e6)
        """From open_shutter() to close_shutter(), ns: the first row opens, the last one closes."""

    def open_shutter(self, begin_ns: int) -> Shutter:
        """The exposure begins."""
        return Shutter(begin_ns, self._phone.frame(begin_ns))

    def close_shutter(self, shutter: Shutter, end_ns: int) -> Image:
        """The exposure is over: the raw picture, (720, 1280, 3) BGR uint8. The hand must be stepped to end_ns."""
        closing = self._phone.frame(end_ns)
        hand = self._hand_during(shutter.begin_ns, end_ns)
        return self._renderer.render(shutter.opening, closing, hand, shutter.begin_ns)

    def finish(self, shutter: Shutter, end_ns: int, jpeg: bytes) -> Picture:
        """Count the picture and stamp it."""
        self._sequence += 1
        return Picture(jpeg, Exposure(self._sequence, shutter.begin_ns, end_ns, end_ns))

    def encode(self, picture: Image) -> bytes:
        """A raw picture as the camera's JPEG."""
        return encode(picture, self._options.jpeg_quality)

    def take_picture(self, begin_ns: int) -> Picture:
        """A whole picture of a world that is already stepped to begin_ns + exposure_ns, or that rests."""
        shutter = self.open_shutter(begin_ns)
        end_ns = begin_ns + self.exposure_ns
        return self.finish(shutter, end_ns, self.encode(self.close_shutter(shutter, end_ns)))

    # -- what the bench may know -----------------------------------------------------------------------------

    def truth_project(self, screen_mm: Points) -> Points:
        """Screen mm (N, 2) of the display's pixels to true picture px (N, 2), through the cover glass."""
        display = screen_to_world_mm(np.asarray(screen_mm, dtype=np.float64), self._placement)[:, :2]
        return Cover(self._truth, self._lens, self._pose, self._placement).picture_px(display)

    def truth_unproject(self, picture_px: Points) -> Points:
        """Picture px (N, 2) to the true screen mm (N, 2) of the display's pixels seen there."""
        cover = Cover(self._truth, self._lens, self._pose, self._placement)
        return world_to_screen_points_mm(
            cover.display_mm(np.asarray(picture_px, dtype=np.float64)), self._placement
        )

    def hand_in_view(self) -> bool:
        """Whether the hand would show in a picture taken now."""
        return self._renderer.hand_in_view(self._hand.pose())

    # -- what may go wrong -------------------------------------------------------------------------------------

    def knock(self, tilt_degrees: float = 0.5, roll_degrees: float = 0.5) -> None:
        """Somebody bumps into the camera: from now on it looks from elsewhere."""
        self._rebuild(
            pose=replace(
                self._pose,
                tilt_rad=self._pose.tilt_rad + radians(tilt_degrees),
                roll_rad=self._pose.roll_rad + radians(roll_degrees),
                aim_x_mm=self._pose.aim_x_mm + 2.0 * tilt_degrees,
            )
        )

    def place_phone(self, placement: Placement) -> None:
        """The phone lies elsewhere from now on."""
        self._rebuild(placement=placement)

    @property
    def options(self) -> PictureOptions:
        """What is wrong with pictures now."""
        return self._options

    def set_options(self, options: PictureOptions) -> None:
        """Pictures are like this from now on: out of focus, with glare, a board beside the phone …"""
        self._rebuild(options=options)

    def _rebuild(
        self,
        pose: Pose | None = None,
        placement: Placement | None = None,
        options: PictureOptions | None = None,
    ) -> None:
        """A renderer takes a while to build: the old one serves until the new one is there."""
        self._pose, self._placement = pose or self._pose, placement or self._placement
        self._options = options or self._options
        if self._built is not None:
            self._built = self._build()

    @property
    def _renderer(self) -> Renderer:
        if self._built is None:
            self._built = self._build()
        return self._built

    def _build(self) -> Renderer:
        return Renderer(self._truth, self._lens, self._pose, self._quality, self._placement, self._options)

    def _hand_during(self, begin_ns: int, end_ns: int) -> list[TipPose]:
        poses = [self._hand.pose_at(at_ns) for at_ns in (begin_ns, (begin_ns + end_ns) // 2, end_ns)]
        reach = max(
            abs(poses[-1].x_mm - poses[0].x_mm),
            abs(poses[-1].y_mm - poses[0].y_mm),
            abs(poses[-1].height_mm - poses[0].height_mm) / 5,
        )
        return poses if reach > BLUR_MM else poses[-1:]


def encode(picture: Image, quality: int) -> bytes:
    """A picture as JPEG, quality 0..100."""
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
