"""A camera over a phone as the settle detector's small pictures show it: cheap enough for thousands of scenes.

It gives at once what a JPEG decoder gives at a quarter of each side, by the twin's own terms: screen gain, shine,
vignetting, rows of a rolling shutter over a pulsed display, read and shot noise. The sensor's noise is that of 16 px
averaged; JPEG's quantisation is done on the four coefficients of each 8 x 8 block that such a decoder uses.
"""

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.noise import SHOT_SHARE
from edge_daemon.bench.twin.renderer import SCREEN_GAIN
from edge_daemon.cameras.imaging import Grey
from edge_daemon.cameras.settle import Polygon

Canvas = npt.NDArray[np.uint8]
"""(rows, columns) grey levels of the phone's screen; one of its px covers 2 x 2 camera px."""
Levels = npt.NDArray[np.float32]

REDUCTION = 4
CANVAS_PER_SMALL = 2
# ITU-T T.81, table K.1: the coefficients of lowest frequency.
LUMA_STEPS = np.array([[16.0, 11.0], [12.0, 12.0]])
MARGIN = 64
WHITE_MAX, SHINE_MAX = 244.0, 18.0
"""Grey levels: white with what shines on the glass, and the most of that alone."""


@dataclass(frozen=True)
class Lamp:
    """A lamp over the bench, flickering at twice the mains: its depth of its light, and how much of it is daylight."""

    depth: float = 0.0
    hz: float = 100.0


@dataclass(frozen=True)
class SensorTraits:
    """noise_sigma: a camera px' read noise, grey levels. pwm_depth, pwm_hz, exposure_ms, readout_ms: as in the twin.
    quality: of the JPEG."""

    noise_sigma: float = 1.5
    pwm_depth: float = 0.0
    pwm_hz: float = 240.0
    pwm_duty: float = 0.5
    exposure_ms: float = 8.0
    readout_ms: float = 10.0
    quality: int = 90
    lamp: Lamp = Lamp()


class SmallSensor:
    """One camera of `size` (width, height) camera px over one screen of `canvas` (columns, rows) canvas px."""

    def __init__(
        self, rng: np.random.Generator, size: tuple[int, int], canvas: tuple[int, int], traits: SensorTraits
    ) -> None:
        self._rng = rng
        self.traits = traits
        self._columns, self._rows = size[0] // REDUCTION, size[1] // REDUCTION
        wide, high = canvas[0] // CANVAS_PER_SMALL, canvas[1] // CANVAS_PER_SMALL
        left = (self._columns - wide) // 2 + int(rng.integers(-3, 4))
        top = (self._rows - high) // 2 + int(rng.integers(-2, 3))
        self._roi = (slice(top, top + high), slice(left, left + wide))
        self._judged = (slice(None), slice(None))
        # The camera's exposure is locked so that white does not clip, not in the brightest of its rows either.
        brightest = max(float(self._row_gain(k * 331_337).max()) for k in range(16))
        self._gain = np.float32(min(SCREEN_GAIN, (WHITE_MAX - SHINE_MAX) / 255.0 / brightest))
        self._bench = self._bench_with_phone()
        self._shine = np.asarray(rng.uniform(5.0, SHINE_MAX - 9.0) + 9.0 * self._patch(), np.float32)[
            self._roi
        ]
        shape = (self._rows + MARGIN, self._columns + MARGIN)
        self._noise = (rng.standard_normal(shape, dtype=np.float32) * traits.noise_sigma / REDUCTION).astype(
            np.float32
        )
        scale = 5000.0 / traits.quality if traits.quality < 50 else 200.0 - 2.0 * traits.quality
        # Of the 2 x 2 transform: the decoder's four coefficients are four times as large.
        self._steps = np.maximum(np.floor((LUMA_STEPS * scale + 50.0) / 100.0), 1.0) / 4.0

    @property
    def step(self) -> float:
        """Grey levels by which a block's mean is rounded."""
        return float(self._steps[0, 0]) / 2.0

    @property
    def mask(self) -> Polygon:
        """The screen's corners, camera px."""
        down, across = self._roi
        left, right = (REDUCTION * at - 0.5 for at in (across.start, across.stop))
        top, bottom = (REDUCTION * at - 0.5 for at in (down.start, down.stop))
        return ((left, top), (right, top), (right, bottom), (left, bottom))

    def strip(self, share: float, upright: bool) -> Polygon:
        """The status bar: the first `share` of the screen, at its top if upright, else at its left; `screen_share`
        leaves it out from now on."""
        down, across = self._roi
        side = down.stop - down.start if upright else across.stop - across.start
        beyond = slice(round(side * share) + 2, None)
        self._judged = (beyond, slice(None)) if upright else (slice(None), beyond)
        (left, top), _, (right, bottom), _ = self.mask
        if upright:
            bottom = top + share * (bottom - top)
        else:
            right = left + share * (right - left)
        return ((left, top), (right, top), (right, bottom), (left, bottom))

    def screen_share(self, one: Levels, other: Levels, levels: float) -> float:
        """The share of the screen's JPEG blocks (8 x 8 camera px) whose means differ by so many levels in two clean
        pictures, a change of the whole screen's brightness taken off."""
        part = self._judged
        seen, before = (picture[self._roi][part] - self._shine[part] for picture in (one, other))
        gain = float((seen * before).sum()) / max(float((before * before).sum()), 1.0)
        left_over = seen - np.float32(gain) * before
        blocks = (left_over.shape[1] // 2, left_over.shape[0] // 2)
        differs = np.abs(cv2.resize(left_over, blocks, interpolation=cv2.INTER_AREA)) >= levels
        return float(differs.mean())

    def clean(self, canvas: Canvas, brightness: float = 1.0) -> Levels:
        """The picture without rows, lamp and noise, float levels."""
        down, across = self._roi
        size = (across.stop - across.start, down.stop - down.start)
        seen = cv2.resize(canvas, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        picture = self._bench.copy()
        picture[self._roi] = self._shine + seen * (self._gain * np.float32(brightness))
        return picture

    def expose(self, clean: Levels, begin_ns: int, shift_px: tuple[float, float] | None = None) -> Grey:
        """One picture, (rows, columns) uint8. shift_px: the camera has moved so far, small px."""
        picture = clean.copy()
        picture[self._roi] = self._shine + (picture[self._roi] - self._shine) * self._row_gain(begin_ns)
        lamp = self._lamp_rows(begin_ns)
        if lamp is not None:
            light = picture.copy()
            light[self._roi] = self._shine
            picture += light * lamp
        if shift_px is not None:
            matrix = np.array([[1.0, 0.0, shift_px[0]], [0.0, 1.0, shift_px[1]]])
            size = (self._columns, self._rows)
            picture = cast(Levels, cv2.warpAffine(picture, matrix, size, borderMode=cv2.BORDER_REPLICATE))
        picture = np.minimum(picture, np.float32(255.0))
        if self.traits.noise_sigma > 0.0:
            y, x = self._rng.integers(0, MARGIN, 2)
            noise = self._noise[y : y + self._rows, x : x + self._columns]
            shot = cv2.sqrt(picture * np.float32(SHOT_SHARE / 255.0) + np.float32(1.0))
            picture = picture + noise * shot
        return np.asarray(np.clip(np.rint(self._quantised(picture)), 0, 255), np.uint8)

    def _row_gain(self, begin_ns: int) -> Levels:
        traits = self.traits
        if traits.pwm_depth == 0.0:
            return np.ones((1, 1), np.float32)
        down = self._roi[0]
        rows = np.arange(down.start, down.stop) / self._rows
        opened = (begin_ns / 1e9 + rows * traits.readout_ms / 1e3) * traits.pwm_hz % 1000.0
        periods = traits.exposure_ms / 1e3 * traits.pwm_hz
        dim = self._dim_until(opened + periods) - self._dim_until(opened)
        mean = 1.0 - traits.pwm_depth * (1.0 - traits.pwm_duty)
        return np.asarray((1.0 - traits.pwm_depth * dim / periods) / mean, np.float32)[:, None]

    def _dim_until(self, periods: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        whole, duty = np.floor(periods), self.traits.pwm_duty
        return np.asarray(whole * (1.0 - duty) + np.maximum(periods - whole - duty, 0.0), np.float64)

    def _lamp_rows(self, begin_ns: int) -> Levels | None:
        lamp = self.traits.lamp
        if lamp.depth == 0.0:
            return None
        rows = np.arange(self._rows) / self._rows * self.traits.readout_ms / 1e3
        middle = begin_ns / 1e9 % 1.0 + rows + self.traits.exposure_ms / 2e3
        kept = np.sinc(lamp.hz * self.traits.exposure_ms / 1e3)
        wave = lamp.depth * kept * np.sin(2.0 * np.pi * lamp.hz * middle)
        return np.asarray(wave, np.float32)[:, None]

    def _quantised(self, picture: Levels) -> Levels:
        a, b = picture[0::2, 0::2], picture[0::2, 1::2]
        c, d = picture[1::2, 0::2], picture[1::2, 1::2]
        parts = ((a + b + c + d) / 2, (a - b + c - d) / 2, (a + b - c - d) / 2, (a - b - c + d) / 2)
        mean, across, down, both = (
            np.rint(part / step) * step
            for part, step in zip(parts, self._steps.ravel().astype(np.float32), strict=True)
        )
        rebuilt = np.empty_like(picture)
        rebuilt[0::2, 0::2] = (mean + across + down + both) / 2
        rebuilt[0::2, 1::2] = (mean - across + down - both) / 2
        rebuilt[1::2, 0::2] = (mean + across - down - both) / 2
        rebuilt[1::2, 1::2] = (mean - across - down + both) / 2
        return rebuilt

    def _bench_with_phone(self) -> Levels:
        """Bed with its lines and markers, the phone's dark body with a bright frame."""
        rng = self._rng
        bench = np.full((self._rows, self._columns), rng.uniform(50.0, 90.0), np.float32)
        for at in range(int(rng.integers(4, 20)), self._columns, 24):
            bench[:, at] += 14.0
        for at in range(int(rng.integers(4, 20)), self._rows, 24):
            bench[at, :] += 14.0
        for _ in range(4):
            x, y = int(rng.integers(4, self._columns - 20)), int(rng.choice([2, self._rows - 18]))
            marker = rng.integers(0, 2, (4, 4)).astype(np.float32) * 150.0 + 40.0
            bench[y : y + 16, x : x + 16] = cv2.resize(marker, (16, 16), interpolation=cv2.INTER_NEAREST)
        down, across = self._roi
        rim = 5
        bench[max(down.start - rim, 0) : down.stop + rim, max(across.start - rim, 0) : across.stop + rim] = (
            110.0
        )
        rim = 4
        bench[max(down.start - rim, 0) : down.stop + rim, max(across.start - rim, 0) : across.stop + rim] = (
            22.0
        )
        return cast(Levels, cv2.GaussianBlur(bench, (0, 0), 0.6))

    def _patch(self) -> Levels:
        x = (np.arange(self._columns) / self._columns - self._rng.uniform(0.3, 0.7)) / 0.2
        y = (np.arange(self._rows) / self._rows - self._rng.uniform(0.3, 0.7)) / 0.3
        return np.exp(-(y[:, None] ** 2) - x[None, :] ** 2).astype(np.float32)
