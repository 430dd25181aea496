"""From the phone's screen and the hand's place to what the camera's sensor sees.

Everything that does not change is worked out once: where each picture px looks on the screen, how much light
reaches it, the bench around the phone. A frame then is one warp if the screen changed, else only noise.
"""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin import draw, scenery
from edge_daemon.bench.twin.display import ScreenFrame
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Lens, Pose, unproject
from edge_daemon.bench.twin.stylus import StylusArtist
from edge_daemon.bench.twin.truth import (
    SCREEN_HEIGHT_MM,
    SCREEN_HEIGHT_PX,
    SCREEN_WIDTH_MM,
    SCREEN_WIDTH_PX,
    Truth,
)

NOISE_MARGIN_PX = 160
# A display at a comfortable brightness, exposed so that white does not clip.
SCREEN_GAIN = 0.91
AMBIENT = 0.62
VIGNETTE = 0.16
# Reflections on the glass, in grey levels: a soft patch of the ceiling lamp.
VEIL_BASE, VEIL_LAMP = 7.0, 9.0
LENS_BLUR_SIGMA = 0.55


class Renderer:
    """Renders raw 1280 x 720 BGR pictures for one lens in one place."""

    def __init__(self, truth: Truth, lens: Lens, pose: Pose) -> None:
        self._rng = truth.stream(13)
        world = _looks_at(lens, pose)
        light = _light(lens)
        self._roi, self._maps = _screen_maps(world)
        alpha = _screen_alpha(world)
        rows, columns = self._roi
        backdrop = _backdrop(world, light) * (1.0 - alpha[:, :, None])
        backdrop += alpha[:, :, None] * _veil(world)[:, :, None]
        self._backdrop = np.clip(np.round(backdrop), 0, 255).astype(np.uint8)
        gain = np.round(255.0 * SCREEN_GAIN * light[rows, columns] * alpha[rows, columns]).astype(np.uint8)
        self._gain = cv2.merge([gain, gain, gain])
        self._noise_up, self._noise_down = _noise(self._rng, truth.camera.noise_sigma)
        self._artist = StylusArtist(lens, pose, (alpha * 255).astype(np.uint8))
        self._clean: tuple[ScreenFrame, ScreenFrame, Image] | None = None
        self._halves: list[tuple[ScreenFrame, Image]] = []

    def render(self, opening: ScreenFrame, closing: ScreenFrame, hand: list[TipPose]) -> Image:
        """The picture of an exposure during which the screen went from `opening` to `closing`.

        `hand`: poses of the tip spread over the exposure, one if it did not move.
        """
        return self._with_noise(self._artist.draw(self._without_hand(opening, closing), hand))

    def hand_in_view(self, pose: TipPose) -> bool:
        """Whether the hand or its shadow would show."""
        return self._artist.covers(pose)

    def _without_hand(self, opening: ScreenFrame, closing: ScreenFrame) -> Image:
        if self._clean is None or self._clean[0] is not opening or self._clean[1] is not closing:
            screen = self._half(opening)
            if closing is not opening:
                screen = draw.blend(screen, self._half(closing), 0.5)
            self._clean = (opening, closing, self._compose(screen))
        return self._clean[2]

    def _half(self, frame: ScreenFrame) -> Image:
        """The screen at half size: what the lens resolves. An opening often is the last closing."""
        for known, half in self._halves:
            if known is frame:
                return half
        half = np.asarray(
            cv2.resize(frame.image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), dtype=np.uint8
        )
        self._halves = [*self._halves[-1:], (frame, half)]
        return half

    def _compose(self, half_screen: Image) -> Image:
        seen = cv2.remap(half_screen, *self._maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        seen = cv2.GaussianBlur(seen, (3, 3), LENS_BLUR_SIGMA)
        lit = cv2.multiply(seen, self._gain, scale=1 / 255)
        picture = self._backdrop.copy()
        rows, columns = self._roi
        picture[rows, columns] = cv2.add(picture[rows, columns], lit)
        return picture

    def _with_noise(self, picture: Image) -> Image:
        y, x = self._rng.integers(0, NOISE_MARGIN_PX, 2)
        rows, columns = slice(y, y + PICTURE_HEIGHT_PX), slice(x, x + PICTURE_WIDTH_PX)
        raised = cv2.add(picture, self._noise_up[rows, columns])
        return np.asarray(cv2.subtract(raised, self._noise_down[rows, columns]), dtype=np.uint8)


_Field = npt.NDArray[np.float64]


# Exact places are worked out each so many px and interpolated: off by less than 0.001 px of the screen.
GRID_PX = 4


def _looks_at(lens: Lens, pose: Pose) -> _Field:
    """World mm that each picture px sees on the glass plane, shape (720, 1280, 2)."""
    columns, rows = PICTURE_WIDTH_PX // GRID_PX + 1, PICTURE_HEIGHT_PX // GRID_PX + 1
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    pixels = np.column_stack([x.ravel(), y.ravel()]).astype(np.float64) * GRID_PX
    coarse = unproject(lens, pose, pixels).reshape(rows, columns, 2)
    scale = np.array([[1.0 / GRID_PX, 0.0, 0.0], [0.0, 1.0 / GRID_PX, 0.0]])
    size = (PICTURE_WIDTH_PX, PICTURE_HEIGHT_PX)
    fine = cv2.warpAffine(coarse, scale, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(fine, dtype=np.float64)


def _screen_px(world: _Field) -> tuple[_Field, _Field]:
    x_px = (world[..., 1] + SCREEN_WIDTH_MM / 2) * PX_PER_MM_X
    y_px = (world[..., 0] + SCREEN_HEIGHT_MM / 2) * PX_PER_MM_Y
    return x_px, y_px


def _screen_maps(world: _Field) -> tuple[tuple[slice, slice], tuple[cv2.typing.MatLike, cv2.typing.MatLike]]:
    """The part of the picture that holds the screen, and its remap maps into the half-size screen."""
    x_px, y_px = _screen_px(world)
    inside = (x_px > -3) & (x_px < SCREEN_WIDTH_PX + 3) & (y_px > -3) & (y_px < SCREEN_HEIGHT_PX + 3)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    roi = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    # Screen px count from the edge; a half-size sample's centre lies 0.5 of its own px from there.
    half_x = (x_px[roi] / 2 - 0.5).astype(np.float32)
    half_y = (y_px[roi] / 2 - 0.5).astype(np.float32)
    maps = cv2.convertMaps(half_x, half_y, cv2.CV_16SC2)
    return roi, (maps[0], maps[1])


def _screen_alpha(world: _Field) -> _Field:
    """How much of each picture px is lit screen: 1 inside, 0 outside, a px-wide ramp along its outline."""
    reach_x, reach_y = SCREEN_HEIGHT_MM / 2, SCREEN_WIDTH_MM / 2
    radius = scenery.SCREEN_RADIUS_MM
    dx = np.abs(world[..., 0]) - (reach_x - radius)
    dy = np.abs(world[..., 1]) - (reach_y - radius)
    outside = (
        np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0)) + np.minimum(np.maximum(dx, dy), 0.0) - radius
    )
    px_mm = float(np.abs(world[360, 641, 0] - world[360, 640, 0]))
    return np.clip(0.5 - outside / px_mm, 0.0, 1.0)


def _light(lens: Lens) -> _Field:
    """Vignetting, 1 in the middle, falling with the square of the distance."""
    x = (np.arange(PICTURE_WIDTH_PX) - lens.cx_px) / (PICTURE_WIDTH_PX / 2)
    y = (np.arange(PICTURE_HEIGHT_PX) - lens.cy_px) / (PICTURE_WIDTH_PX / 2)
    return np.asarray(1.0 - VIGNETTE * (x[None, :] ** 2 + y[:, None] ** 2) / 1.32, dtype=np.float64)


def _backdrop(world: _Field, light: _Field) -> _Field:
    """Bench and phone body as seen, (720, 1280, 3) float, lamp-lit from behind on the right."""
    texture = scenery.bench_texture()
    scale = scenery.PX_PER_MM
    map_x = ((world[..., 0] + scenery.HALF_LENGTH_MM) * scale - 0.5).astype(np.float32)
    map_y = ((world[..., 1] + scenery.HALF_WIDTH_MM) * scale - 0.5).astype(np.float32)
    smooth = cv2.GaussianBlur(texture, (0, 0), 0.8)
    seen = cv2.remap(smooth, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    lamp = 1.0 + 0.0022 * world[..., 0] + 0.003 * world[..., 1]
    return np.asarray(seen * (AMBIENT * 1.35 * light * lamp)[:, :, None], dtype=np.float64)


def _veil(world: _Field) -> _Field:
    lamp = np.exp(-((world[..., 0] - 42.0) ** 2 / 900.0 + (world[..., 1] - 14.0) ** 2 / 420.0))
    return np.asarray(VEIL_BASE + VEIL_LAMP * lamp, dtype=np.float64)


def _noise(rng: np.random.Generator, sigma: float) -> tuple[Image, Image]:
    """What noise adds and what it takes away, in tiles larger than a picture.

    Most of it is common to the three channels, as after a camera's demosaicing; each has `sigma` in all.
    """
    shape = (PICTURE_HEIGHT_PX + NOISE_MARGIN_PX, PICTURE_WIDTH_PX + NOISE_MARGIN_PX)
    common = rng.standard_normal(shape, dtype=np.float32)[:, :, None]
    own = rng.standard_normal((*shape, 3), dtype=np.float32)
    noise = np.round(sigma * (0.86 * common + 0.51 * own))
    return np.maximum(noise, 0).astype(np.uint8), np.maximum(-noise, 0).astype(np.uint8)
