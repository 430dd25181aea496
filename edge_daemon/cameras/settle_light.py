"""How the light differs between two pictures of one page: brightness, an offset, and bands across the rows.

A picture is taken for `reference * (gain + bands) + offset + row_offsets`. Only what leaves black black is a change
of light: a page that fades to white stays a difference.
"""

from dataclasses import dataclass, replace
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.settle_area import Mask
from edge_daemon.cameras.settle_bands import OUTLIER_LEVELS, ROW_CELLS, RowBands
from edge_daemon.cameras.settle_noise import Levels

Rows = npt.NDArray[np.float32]

GAIN_MIN, GAIN_MAX = 0.2, 5.0
BLACK_MAX = 25.0
"""Grey level: what a change of brightness leaves as it is lies no higher. Black and what shines on the glass."""
OFFSET_SLACK = 1.2
"""Grey levels by which a lamp over the bench may brighten a glass as a whole."""
SATURATED = 250.0
"""Grey levels. Above it noise and fine detail are cut off, and a mean is no longer that of the light."""
COLUMNS = 64
QUIET_SHARE = 0.998
"""Of the cells within half a threshold: then there are no bands to look for."""
USABLE_SHARE = 0.25
"""Of the watched cells: so many must be less than saturated, or all count."""
BELIEVED = 0.8
"""Of the misfit without bands: with them it must be less."""
ROW_GAIN_MAX = 0.03
ROW_LEVELS = 4.0
"""What a row may have of its own besides the bands; more is a change of the page."""
ROW_TOLD, ROWS_MANY = 1.5, 0.25
CORNERS = 0.3
"""Of the bands: what their corners may add to the two."""
_STEADY = 25.0
"""Squared grey levels: a blank page says nothing about the offset."""
_CELLS_MIN = 16
WHITE = np.float32(255.0)


@dataclass(frozen=True)
class Light:
    """One picture's light against the reference's. bands and row_offsets: (rows,), to be added to gain and offset;
    None is none."""

    gain: float = 1.0
    offset: float = 0.0
    bands: Rows | None = None
    row_offsets: Rows | None = None

    @property
    def banding(self) -> float:
        """The greatest gain of a row, of either sign."""
        return 0.0 if self.bands is None else float(np.abs(self.bands).max())

    def on(self, reference: Levels) -> Levels:
        """The reference in this light; white stays white."""
        seen: Levels = reference * np.float32(self.gain) + np.float32(self.offset)
        if self.bands is not None:
            seen = seen + reference * self.bands[:, None]
        if self.row_offsets is not None:
            seen = seen + self.row_offsets[:, None]
        return np.minimum(seen, WHITE)

    def off(self, current: Levels) -> Levels:
        """A picture in this light as the reference's light would show it."""
        gain = np.float32(self.gain) if self.bands is None else np.float32(self.gain) + self.bands[:, None]
        seen = current if self.row_offsets is None else current - self.row_offsets[:, None]
        return (seen - np.float32(self.offset)) / gain


SAME_LIGHT = Light()


class LightMeter:
    """Measures the light in pictures of one size. watched: the cells that count."""

    def __init__(self, watched: Mask) -> None:
        self._watched = watched
        # A picture's light is the same in every column: some of them tell it.
        self._step = max(1, watched.shape[1] // COLUMNS)
        self._sampled = np.ascontiguousarray(watched[:, :: self._step])
        self._cells = cv2.countNonZero(self._sampled)
        self._bands = RowBands(self._sampled)

    def measure(self, reference: Levels, current: Levels, threshold: float) -> Light:
        """The light of `current` against `reference`; SAME_LIGHT where no change of light explains it.

        threshold: grey levels; cells that differ by more in a first light are left out of a second one.
        """
        reference = np.ascontiguousarray(reference[:, :: self._step])
        current = np.ascontiguousarray(current[:, :: self._step])
        # Chosen by the reference alone: what lies near white would come and go with the flicker to be measured.
        usable = _both(_within(reference, 0.0, SATURATED), self._sampled)
        if cv2.countNonZero(usable) < USABLE_SHARE * self._cells:
            usable = self._sampled
        light = _fitted(reference, current, usable)
        difference = cv2.absdiff(current, light.on(reference))
        alike = _both(_within(difference, 0.0, threshold), usable)
        near = _both(_within(difference, 0.0, threshold / 2.0), usable)
        kept, of = cv2.countNonZero(alike), cv2.countNonZero(usable)
        if cv2.countNonZero(near) >= QUIET_SHARE * of:
            return light
        banded = self._with_bands(reference, current, usable, light)
        if banded is not light:
            return banded
        return _fitted(reference, current, alike) if 0.5 * of < kept < of else light

    def refine(self, reference: Levels, current: Levels, light: Light, threshold: float) -> Light:
        """The same light with what is left in whole rows: a little gain and a little offset for each.

        The bands of a strongly pulsed display have corners that a few harmonics do not follow, and may come together
        with a lamp's. Rows that would need more than a little are left as they are; cells that differ by more than
        `threshold` and ROW_LEVELS say nothing about their row.
        """
        on = light.on(reference)
        left_over = cast(Levels, cv2.subtract(current, on))
        far = threshold + ROW_LEVELS
        alike = _both(_within(left_over, -far, far), self._watched)
        alike = _both(alike, _within(cast(Levels, cv2.max(on, current)), 0.0, SATURATED))
        weight = np.asarray(alike, np.float32) / np.float32(255.0)
        count = weight.sum(axis=1) + np.float32(1e-6)
        seen = weight * on
        mean, mean_left = seen.sum(axis=1) / count, (weight * left_over).sum(axis=1) / count
        spread = (seen * on).sum(axis=1) / count - mean * mean
        together = (seen * left_over).sum(axis=1) / count - mean * mean_left
        slope = together / (spread + np.float32(_STEADY))
        more = CORNERS * light.banding
        # Bands that were not recognised go over many rows, a changed row of a list is one of a dozen.
        many = 2.0 if float((np.abs(mean_left) > ROW_TOLD).mean()) > ROWS_MANY else 1.0
        wild = (
            (np.abs(slope) > many * ROW_GAIN_MAX + more)
            | (np.abs(mean_left) > many * ROW_LEVELS + more * mean)
            | (count < ROW_CELLS)
        )
        slope, own = np.where(wild, 0.0, slope), np.where(wild, 0.0, mean_left - slope * mean)
        # The slope is one of the reference in this light; bands and offsets are of the reference itself.
        gain = np.float32(light.gain) + (np.float32(0.0) if light.bands is None else light.bands)
        before = np.float32(0.0) if light.row_offsets is None else light.row_offsets
        return Light(
            light.gain,
            light.offset,
            np.asarray(gain * (1.0 + slope) - light.gain, np.float32),
            np.asarray(before + own + slope * (light.offset + before), np.float32),
        )

    def _with_bands(self, reference: Levels, current: Levels, usable: Mask, plain: Light) -> Light:
        """The best of no bands, bands of the display and bands of a lamp; on dark rows the two look alike."""
        lights = [plain]
        gains = self._bands.gains(reference, current, usable)
        if gains is not None:
            rows = gains.astype(np.float32)
            light = self._trimmed(reference * (1.0 + rows[:, None]), current, usable)
            lights.append(replace(light, bands=np.asarray(light.gain * rows, np.float32)))
        offsets = self._bands.offsets(cast(Levels, cv2.subtract(current, plain.on(reference))), usable)
        if offsets is not None:
            rows = offsets.astype(np.float32)
            light = self._trimmed(reference, current - rows[:, None], usable)
            lights.append(replace(light, row_offsets=rows))
        misfits = [_misfit(reference, current, usable, light) for light in lights]
        best = int(np.argmin(misfits))
        return lights[best] if misfits[best] < BELIEVED * misfits[0] else plain

    @staticmethod
    def _trimmed(reference: Levels, current: Levels, usable: Mask) -> Light:
        """Fitted twice, the second time without what has really changed."""
        light = _fitted(reference, current, usable)
        difference = cv2.absdiff(current, light.on(reference))
        alike = _both(_within(difference, 0.0, OUTLIER_LEVELS), usable)
        if cv2.countNonZero(alike) < 0.5 * cv2.countNonZero(usable):
            return light
        return _fitted(reference, current, alike)


def _fitted(reference: Levels, current: Levels, usable: Mask) -> Light:
    """Gain and offset by least squares over the usable cells; the best that leave black black."""
    weight = np.asarray(usable, np.float32) / np.float32(255.0)
    count = float(weight.sum(dtype=np.float64))
    if count < _CELLS_MIN:
        return SAME_LIGHT
    seen = cv2.multiply(weight, reference)
    square = cv2.norm(seen, cv2.NORM_L2SQR)
    product = float(cv2.multiply(seen, current).sum(dtype=np.float64))
    mean = float(seen.sum(dtype=np.float64)) / count
    mean_now = float(cv2.multiply(weight, current).sum(dtype=np.float64)) / count
    prior = mean_now / mean if mean > 1.0 else 1.0
    gain = (product / count - mean * mean_now + prior * _STEADY) / (square / count - mean * mean + _STEADY)
    offset = mean_now - gain * mean
    low, high = sorted((0.0, (1.0 - gain) * BLACK_MAX))
    if not low - OFFSET_SLACK <= offset <= high + OFFSET_SLACK:
        # Through the nearest level that may stay black: what this light does not explain is the page's.
        slack = OFFSET_SLACK if offset > high else -OFFSET_SLACK
        black = BLACK_MAX if (offset > high) == (gain < 1.0) else 0.0
        moment = product / count - black * mean_now - (black + slack) * (mean - black)
        gain = moment / max(square / count - 2.0 * black * mean + black * black, 1.0)
        offset = (1.0 - gain) * black + slack
    return Light(gain, offset) if GAIN_MIN <= gain <= GAIN_MAX else SAME_LIGHT


def _misfit(reference: Levels, current: Levels, usable: Mask, light: Light) -> float:
    """What the light leaves unexplained; cells that have really changed count as OUTLIER_LEVELS."""
    left_over = np.minimum(np.abs(current - light.on(reference)), np.float32(OUTLIER_LEVELS))
    return float(cv2.norm(left_over, cv2.NORM_L2SQR, usable))


def _within(levels: Levels | cv2.typing.MatLike, low: float, high: float) -> Mask:
    return np.asarray(cv2.inRange(levels, low, high), np.uint8)


def _both(one: Mask, other: Mask) -> Mask:
    return np.asarray(cv2.bitwise_and(one, other), np.uint8)
