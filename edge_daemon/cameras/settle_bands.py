"""Bands across a picture's rows: a pattern that repeats from top to bottom.

A rolling shutter makes them of a display that is dimmed by pulses (a gain of each row) and of a lamp that flickers
with the mains (an offset of each row). What changes on a page in a few rows does not repeat.
"""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.settle_area import Mask
from edge_daemon.cameras.settle_noise import Levels

RowValues = npt.NDArray[np.float64]
"""(rows,)"""

GAIN_MIN, GAIN_MAX = 0.004, 0.35
"""From one grey level of 255, to half as much again as a strongly dimmed display swings in a short exposure."""
OFFSET_MIN, OFFSET_MAX = 0.4, 4.0
"""Grey levels of lamplight on a glass."""
EXPLAINED = 0.8
"""Of the rows' differences. One list row that changed explains at most half as a repeated pattern."""
GAIN_CYCLES = np.arange(1.0, 8.01, 0.25)
"""Over the watched rows: 120 to 500 Hz in a read-out of 8 to 16 ms."""
OFFSET_CYCLES = np.arange(0.5, 2.01, 0.25)
"""100 or 120 Hz."""
HARMONICS = 3
OUTLIER_LEVELS = 12.0
"""A cell that differs by more has changed, and would tilt its whole row."""
ROW_CELLS = 8
"""Fewer say nothing about their row."""


class RowBands:
    """Finds bands in pictures of one size. watched: the cells that count."""

    def __init__(self, watched: Mask) -> None:
        self._weight = np.sqrt(watched.astype(np.float64).mean(axis=1) / 255.0)
        weight = self._weight.tobytes()
        self._gain_bases = _bases(weight, tuple(GAIN_CYCLES))
        self._offset_bases = _bases(weight, tuple(OFFSET_CYCLES))

    def gains(self, reference: Levels, current: Levels, usable: Mask) -> RowValues | None:
        """Each row's gain less all rows' own, as a share of it; None where there is no such pattern."""
        gains = _row_gains(reference, current, usable)
        left_over = current - reference * gains[:, None].astype(np.float32)
        gains = _row_gains(reference, current, _alike(left_over, usable))
        weight = self._weight * self._weight
        mean = float(gains @ weight) / max(float(weight.sum()), 1e-6)
        if mean <= 0.0:
            return None
        return self._repeated(gains / mean - 1.0, self._gain_bases, GAIN_MIN, GAIN_MAX)

    def offsets(self, left_over: Levels, usable: Mask) -> RowValues | None:
        """Each row's offset, grey levels, in what another light leaves over; None where there is no such pattern."""
        weight = np.asarray(_alike(left_over, usable), np.float32) / np.float32(255.0)
        count = weight.sum(axis=1, dtype=np.float64)
        sums = cv2.multiply(weight, left_over).sum(axis=1, dtype=np.float64)
        offsets = np.where(count >= ROW_CELLS, sums / np.maximum(count, 1.0), 0.0)
        return self._repeated(offsets, self._offset_bases, OFFSET_MIN, OFFSET_MAX)

    def _repeated(
        self, values: RowValues, bases: npt.NDArray[np.float64], least: float, most: float
    ) -> RowValues | None:
        """`values` as a repeated pattern whose greatest is at most `most`, if that is what they are."""
        rows = values * self._weight
        power = float(rows @ rows)
        if not bases.size or power < least * least * float(self._weight @ self._weight):
            return None
        shares = np.einsum("crk,r->ck", bases, rows)
        explained = np.einsum("ck,ck->c", shares, shares)
        best = int(np.argmax(explained))
        if explained[best] < EXPLAINED * power:
            return None
        pattern = bases[best] @ shares[best] / np.maximum(self._weight, 0.05)
        return None if float(np.abs(pattern).max()) > most else pattern


@lru_cache(maxsize=8)
def _bases(row_weight: bytes, all_cycles: tuple[float, ...]) -> npt.NDArray[np.float64]:
    """For each number of cycles an orthonormal basis of the patterns with HARMONICS, (cycles, rows, columns).

    row_weight: float64 of each row. Kept, because it costs more than a picture does and every wait needs it.
    """
    weight = np.frombuffer(row_weight, np.float64)
    rows = len(weight)
    if rows < 4 * HARMONICS:
        return np.zeros((0, rows, 0))
    at = np.arange(rows) / rows
    bases = []
    for cycles in all_cycles:
        angle = 2.0 * np.pi * cycles * at[:, None] * np.arange(1, HARMONICS + 1)
        columns = np.hstack([np.ones((rows, 1)), np.cos(angle), np.sin(angle)])
        bases.append(np.linalg.qr(columns * weight[:, None])[0])
    return np.array(bases)


def _alike(left_over: Levels, usable: Mask) -> Mask:
    near = cv2.inRange(left_over, -OUTLIER_LEVELS, OUTLIER_LEVELS)
    return np.asarray(cv2.bitwise_and(near, usable), np.uint8)


def _row_gains(reference: Levels, current: Levels, usable: Mask) -> RowValues:
    """The light of each row over the reference's; a row that shows too little has all rows' own."""
    weight = np.asarray(usable, np.float32) / np.float32(255.0)
    seen = cv2.multiply(weight, reference).sum(axis=1, dtype=np.float64)
    now = cv2.multiply(weight, current).sum(axis=1, dtype=np.float64)
    whole = float(now.sum()) / max(float(seen.sum()), 1.0)
    told = (weight.sum(axis=1) >= ROW_CELLS) & (seen > 0.0)
    return np.asarray(np.where(told, now / np.maximum(seen, 1.0), whole), np.float64)
