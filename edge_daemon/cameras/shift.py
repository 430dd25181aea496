"""Has the camera moved? The part of the picture that is not the screen is compared with how it was at first."""

from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.imaging import Grey

Levels = npt.NDArray[np.float32]

CHANGED_LEVELS = 4.0
"""Grey levels, in half the small picture, by which an edge of bed or phone changes that moves by a camera pixel."""
CHANGED_SHARE = 0.004
"""Of the outside. Less is a crumb, or noise."""
EXPLAINED_SHARE = 0.5
"""Of the squared difference, the shift must undo this much, or something else happened there: a hand."""
SHIFT_MIN_PX = 0.25
"""Of the small picture: one camera pixel at a quarter of each side."""
SHIFT_MAX_SHARE = 0.25
"""Of the picture's height. Farther, and little of it would still be the same."""
FEATHER_PX = 1.5
HALF = 2
REFINEMENTS = 4
TILES = 6
TILES_MIN = 4
TILES_SHARE = 0.6
TILE_TOLD = 150.0
"""Squared grey levels: an edge of six levels over four pixels."""


class ShiftCheck:
    """Compares small pictures with the first one, outside the screen, in half their size: phase correlation gives every
    frequency the same weight, and the highest hold mostly noise.

    outside: (rows, columns) of 0 and 255, where the picture shows bed and bezel.
    """

    def __init__(self, first: Grey, outside: npt.NDArray[np.uint8]) -> None:
        self._size = (max(outside.shape[1] // HALF, 1), max(outside.shape[0] // HALF, 1))
        halved = cv2.resize(outside, self._size, interpolation=cv2.INTER_AREA)
        self._outside = np.where(np.asarray(halved) >= 254, 255, 0).astype(np.uint8)
        self._pixels = cv2.countNonZero(self._outside)
        self._weight = _feathered(self._outside)
        self._first = self._halved(first)
        self._row_first = self._rows(self._first)
        self._shift: tuple[float, float] | None = None

    def shift_px(self, grey: Grey) -> tuple[float, float] | None:
        """(right, down) in pixels of the small picture; None where the camera did not move, or where it cannot be
        told. Once it has moved it stays moved until the outside looks as at first again.

        Phase correlation (cv2.phaseCorrelate), believed only if the shift undoes most of what changed.
        """
        if not self._pixels:
            return None
        current = self._halved(grey)
        changed = self._changed(self._first, self._row_first, current)
        if changed < CHANGED_SHARE * self._pixels:
            self._shift = None
        else:
            self._shift = self._found(current) or self._shift
        return self._shift

    def _found(self, current: Levels) -> tuple[float, float] | None:
        far, _ = cv2.phaseCorrelate(self._weighted(self._first), self._weighted(current))
        tries = [self._refined(current, 0.0, 0.0), self._refined(current, *far)]
        _, right, down = min((self._left(current, *shift), *shift) for shift in tries)
        distance = HALF * float(np.hypot(right, down))
        if not SHIFT_MIN_PX <= distance <= SHIFT_MAX_SHARE * HALF * current.shape[0]:
            return None
        return (HALF * right, HALF * down) if self._everywhere(current, right, down) else None

    def _everywhere(self, current: Levels, right: float, down: float) -> bool:
        """Whether what the shift must change has changed so in most parts of the picture, and in several: a hand that
        moves over a plain bed is a shift as well, but in one part."""
        there, back = _moved(self._first, right / 2, down / 2), _moved(self._first, -right / 2, -down / 2)
        now = _moved(current, -right / 2, -down / 2)
        # Against the first picture moved the same way, and so blurred the same way.
        left, unmoved, expected = self._tiles(there, now), self._tiles(back, now), self._tiles(there, back)
        telling = expected > TILE_TOLD
        agreeing = telling & (left < (1.0 - EXPLAINED_SHARE) * unmoved)
        return int(telling.sum()) >= TILES_MIN and int(agreeing.sum()) >= TILES_SHARE * int(telling.sum())

    def _tiles(self, one: Levels, other: Levels) -> Levels:
        """The squared difference in each of TILES x TILES parts, squared grey levels."""
        gains = (self._rows(other) + 1.0) / (self._rows(one) + 1.0)
        ahead = (other - one * gains) * self._weight
        mean = cv2.resize(ahead * ahead, (TILES, TILES), interpolation=cv2.INTER_AREA)
        return np.asarray(mean * np.float32(ahead.size / TILES**2), np.float32)

    def _left(self, current: Levels, right: float, down: float) -> float:
        """How much still differs once the shift is undone, squared grey levels."""
        # Each half the way: moving a picture by a part of a pixel blurs it, and so both are blurred alike.
        one, other = _moved(self._first, right / 2, down / 2), _moved(current, -right / 2, -down / 2)
        gains = (self._rows(other) + 1.0) / (self._rows(one) + 1.0)
        return float(cv2.norm((other - one * gains) * self._weight, cv2.NORM_L2SQR))

    def _refined(self, current: Levels, right: float, down: float) -> tuple[float, float]:
        """A better shift near this one, by the pictures' gradients (Lucas and Kanade 1981)."""
        height, width = current.shape
        for _ in range(REFINEMENTS):
            if abs(right) > width / 2 or abs(down) > height / 2:
                break
            one, other = _moved(self._first, right / 2, down / 2), _moved(current, -right / 2, -down / 2)
            gains = (self._rows(other) + 1.0) / (self._rows(one) + 1.0)
            ahead = (other - one * gains) * self._weight
            middle = cv2.addWeighted(one, 0.5, other, 0.5, 0.0)
            across = cv2.Scharr(middle, cv2.CV_32F, 1, 0, scale=1 / 32)
            along = cv2.Scharr(middle, cv2.CV_32F, 0, 1, scale=1 / 32)
            weighted = across * self._weight, along * self._weight
            matrix = np.array([[float((a * b).sum()) for b in (across, along)] for a in weighted])
            if np.linalg.det(matrix) <= 1e-3 * float(np.trace(matrix)) ** 2:
                break
            step = -np.linalg.solve(matrix, [float((across * ahead).sum()), float((along * ahead).sum())])
            right, down = right + float(step[0]), down + float(step[1])
        return right, down

    def _halved(self, picture: Grey) -> Levels:
        # Smoothed first: a thin line would stay in its pixel while the camera moves, and then jump.
        smooth = cv2.GaussianBlur(picture, (5, 5), 0, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(cv2.resize(smooth, self._size, interpolation=cv2.INTER_AREA), np.float32)

    def _rows(self, picture: Levels) -> Levels:
        """The light of each row's outside, (rows, 1)."""
        outside = np.where(self._outside > 0, picture, np.float32(0.0))
        return np.asarray(outside.sum(axis=1, keepdims=True), np.float32)

    def _changed(self, one: Levels, one_rows: Levels, other: Levels) -> int:
        """How many pixels outside differ by more than a lamp's light: its flicker makes bands of whole rows."""
        gains = (self._rows(other) + 1.0) / (one_rows + 1.0)
        alike = cv2.inRange(other - one * gains, -CHANGED_LEVELS, CHANGED_LEVELS)
        return cv2.countNonZero(cv2.bitwise_and(cv2.bitwise_not(alike), self._outside))

    def _weighted(self, picture: Levels) -> Levels:
        mean = cv2.mean(picture, self._outside)[0]
        return (picture - np.float32(mean)) * self._weight


def _feathered(outside: npt.NDArray[np.uint8]) -> Levels:
    """1 well outside, 0 on the screen and at the picture's rim: a hard edge there would be the strongest thing in
    both pictures, and would not have moved. (A Hann window would leave out the rim, where the outside is.)"""
    inner = outside.copy()
    inner[[0, -1], :] = 0
    inner[:, [0, -1]] = 0
    distance = cv2.distanceTransform(inner, cv2.DIST_L2, 3)
    share: Levels = np.asarray(distance, np.float32) / np.float32(FEATHER_PX)
    return cast(Levels, np.minimum(share, np.float32(1.0)))


def _moved(picture: Levels, right: float, down: float) -> Levels:
    matrix = np.array([[1.0, 0.0, right], [0.0, 1.0, down]])
    size = (picture.shape[1], picture.shape[0])
    return cast(Levels, cv2.warpAffine(picture, matrix, size, borderMode=cv2.BORDER_REPLICATE))
