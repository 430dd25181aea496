"""From the phone's screen and the hand's place to what the camera's sensor sees.

Everything that does not change is worked out once: where each picture px looks, how much light reaches it, the bench
around the phone. A frame then is one warp if the screen changed, else only noise.
"""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.backdrop import backdrop, light, lit_share
from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.display import ScreenFrame
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import HOME, Placement
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.noise import FineNoise, QuickNoise
from edge_daemon.bench.twin.optics import Lens, Pose
from edge_daemon.bench.twin.picture_options import PLAIN, PictureOptions, PictureQuality
from edge_daemon.bench.twin.pixel_grid import LENS_BLUR_SIGMA, fringes
from edge_daemon.bench.twin.screen_warp import ScreenWarp
from edge_daemon.bench.twin.shutter import RollingShutter
from edge_daemon.bench.twin.stylus import StylusArtist
from edge_daemon.bench.twin.truth import Truth
from edge_daemon.bench.twin.view import View

# A display at a comfortable brightness, exposed so that white does not clip.
SCREEN_GAIN = 0.91
SAMPLES: dict[PictureQuality, int] = {"realtime": 1, "full": 2}
# In real time the display's flicker is taken at so many phases, each composed once for a screen.
PHASES = 6

Gain = npt.NDArray[np.float32]


class Renderer:
    """Renders raw 1280 x 720 BGR pictures for one lens in one place over one phone in one place."""

    def __init__(
        self,
        truth: Truth,
        lens: Lens,
        pose: Pose,
        quality: PictureQuality = "realtime",
        placement: Placement = HOME,
        options: PictureOptions = PLAIN,
    ) -> None:
        self._quality = quality
        self._samples = SAMPLES[quality]
        view = View(truth, lens, pose, placement, self._samples)
        display = view.display_mm()
        lit = lit_share(display, self._samples)
        shade = light(lens)
        blur_px = float(np.hypot(LENS_BLUR_SIGMA, options.blur_px))
        cover = Cover(truth, lens, pose, placement)
        self._screen = ScreenWarp(cover, placement, display, self._samples, blur_px)
        self._roi = self._screen.roi
        scene = backdrop(truth, view, self._samples, shade, lit, options)
        gain = SCREEN_GAIN * options.exposure * (shade * lit)[self._roi]
        centres = display[self._samples // 2 :: self._samples, self._samples // 2 :: self._samples]
        colours = fringes(centres[self._roi], options.moire, options.blur_px)
        self._gain = (gain[:, :, None] * colours).astype(np.float32)
        self._scene = scene
        self._backdrop = np.clip(np.round(scene), 0, 255).astype(np.uint8)
        self._shutter = RollingShutter(truth, options.pwm_depth)
        # In real time each phase's gain is ready, in 1/255.
        self._gain_at = [
            np.clip(np.round(255.0 * self._weighed(phase)), 0, 255).astype(np.uint8)
            for phase in self._phases()
        ]
        noise = QuickNoise if quality == "realtime" else FineNoise
        self._noise = noise(truth.stream(13), truth.camera.noise_sigma)
        self._artist = StylusArtist(lens, pose, placement, (lit * 255).astype(np.uint8))
        self._lit: tuple[ScreenFrame, ScreenFrame, Image] | None = None
        self._clean: dict[int, Image] = {}

    def render(
        self, opening: ScreenFrame, closing: ScreenFrame, hand: list[TipPose], begin_ns: int = 0
    ) -> Image:
        """The picture of an exposure that began at begin_ns, while the screen went from `opening` to `closing`.

        `hand`: poses of the tip spread over the exposure, one if it did not move.
        """
        return self._noise.added(self._artist.draw(self._without_hand(opening, closing, begin_ns), hand))

    def hand_in_view(self, pose: TipPose) -> bool:
        """Whether the hand or its shadow would show."""
        return self._artist.covers(pose)

    def _without_hand(self, opening: ScreenFrame, closing: ScreenFrame, begin_ns: int) -> Image:
        if self._lit is None or self._lit[0] is not opening or self._lit[1] is not closing:
            seen = self._screen.seen(opening)
            if closing is not opening:
                seen = draw.blend(seen, self._screen.seen(closing), 0.5)
            self._lit = (opening, closing, seen)
            self._clean = {}
        if self._quality == "full":
            return self._composed(self._lit[2], self._weighed(self._shutter.phase(begin_ns)))
        step = int(self._shutter.phase(begin_ns) * len(self._gain_at))
        if step not in self._clean:
            self._clean[step] = self._quickly_composed(self._lit[2], self._gain_at[step])
        return self._clean[step]

    def _phases(self) -> list[float]:
        if self._quality == "full":
            return []
        return [0.0] if self._shutter.flat else [(step + 0.5) / PHASES for step in range(PHASES)]

    def _weighed(self, phase: float) -> Gain:
        """How much of the display's light each px takes, with the rows as bright as their exposure makes them."""
        rows = self._shutter.rows(phase)[self._roi[0]]
        return (
            self._gain
            if self._shutter.flat
            else np.asarray(self._gain * rows[:, None, None], dtype=np.float32)
        )

    def _composed(self, seen: Image, gain: Gain) -> Image:
        """The display's light over the backdrop."""
        picture = self._backdrop.copy()
        light_ = cv2.multiply(seen, gain, dtype=cv2.CV_32F)
        picture[self._roi] = cv2.add(self._scene[self._roi], light_, dtype=cv2.CV_8U)
        return picture

    def _quickly_composed(self, seen: Image, gain: Image) -> Image:
        """The same in whole grey levels; gain in 1/255."""
        picture = self._backdrop.copy()
        picture[self._roi] = cv2.add(picture[self._roi], cv2.multiply(seen, gain, scale=1 / 255))
        return picture
