"""Which part of the picture the settle detector watches, and the picture brought to that part's cells.

A cell is 2 x 2 px of the small picture: one 8 x 8 block of a JPEG that was decoded at a quarter.
"""

from collections.abc import Sequence
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.imaging import Grey
from edge_daemon.cameras.settle_noise import Levels

Polygon = Sequence[tuple[float, float]]
"""Corners in raw camera pixels, (0, 0) the centre of the top-left pixel."""
Mask = npt.NDArray[np.uint8]
"""(rows, columns) of 0 and 255."""

CELL_PX = 2
WHOLE = 254
"""A mean of 255s, rounded."""
CELL_SIGMA = 0.833
"""Noise of a cell over the noise of a smoothed pixel, for white noise: kernels (1 2 2 1)/6 and (1 1 1)/3."""
_BEZEL_SHARE = 0.015
"""Outside begins so far from the screen, of the picture's height: the glass' edge shines with the screen."""
_RING_SHARE = 0.1
"""Without a mask the outside is the picture's rim, this share of each side."""


class WatchedArea:
    """The cells to watch in pictures of one size.

    mask: watch only inside this polygon (the screen). ignore: polygons not to watch. Raises ValueError when
    nothing is left to watch.
    """

    def __init__(
        self, shape: tuple[int, ...], mask: Polygon | None, ignore: Sequence[Polygon], reduction: int
    ) -> None:
        height, width = shape
        self.shape = shape
        inside = np.full((height, width), 255 if mask is None else 0, np.uint8)
        if mask is not None:
            cv2.fillPoly(inside, [_corners(mask, reduction)], 255)
        left, top, wide, high = cv2.boundingRect(inside)
        left, top = left - left % CELL_PX, top - top % CELL_PX
        # Cells are whole; a last odd row or column is left out.
        columns, rows = (width - left) // CELL_PX, (height - top) // CELL_PX
        columns, rows = min(columns, -(-wide // CELL_PX)), min(rows, -(-high // CELL_PX))
        self._crop = (slice(top, top + rows * CELL_PX), slice(left, left + columns * CELL_PX))
        self._size = (columns, rows)
        watched = inside.copy()
        for polygon in ignore:
            cv2.fillPoly(watched, [_corners(polygon, reduction)], 0)
        if rows <= 0 or columns <= 0 or not watched.any():
            raise ValueError(f"mask and ignore leave nothing to watch in a picture of {width}x{height}")
        self.outside = _outside(inside, mask is None)
        for polygon in ignore:
            cv2.fillPoly(self.outside, [_corners(polygon, reduction)], 0)
        """Where the picture, at full small size, shows what is not the screen and not ignored."""
        self.watched: Mask = self._whole_cells(_without_rim(watched))
        """(rows, columns) of cells to watch."""
        self.cells = max(1, cv2.countNonZero(self._whole_cells(inside)))
        """How many cells the screen has: what shares are reckoned of."""
        if not cv2.countNonZero(self.watched):
            raise ValueError(f"mask and ignore leave nothing to watch in a picture of {width}x{height}")

    def to_cells(self, grey: Grey) -> Levels:
        """The watched part of a small picture: smoothed 3 x 3, then the mean of each cell."""
        smooth = cv2.blur(grey[self._crop], (3, 3), borderType=cv2.BORDER_REPLICATE)
        return cast(Levels, cv2.resize(smooth.astype(np.float32), self._size, interpolation=cv2.INTER_AREA))

    def _whole_cells(self, pixels: Mask) -> Mask:
        whole = cv2.resize(pixels[self._crop], self._size, interpolation=cv2.INTER_AREA)
        return np.where(np.asarray(whole) >= WHOLE, 255, 0).astype(np.uint8)


def _without_rim(watched: Mask) -> Mask:
    """Without the cells next to what is not watched: smoothing and JPEG carry some of it over. All of a part so
    small that nothing would be left."""
    size = 2 * CELL_PX + 1
    inner = cv2.erode(watched, np.ones((size, size), np.uint8))
    return np.asarray(inner if cv2.countNonZero(inner) else watched, np.uint8)


def _outside(inside: Mask, everywhere: bool) -> Mask:
    height, width = inside.shape
    if everywhere:
        rim = np.full_like(inside, 255)
        down, across = round(height * _RING_SHARE), round(width * _RING_SHARE)
        rim[down : height - down, across : width - across] = 0
        return rim
    reach = max(1, round(height * _BEZEL_SHARE))
    return np.asarray(255 - cv2.dilate(inside, np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)), np.uint8)


def _corners(polygon: Polygon, reduction: int) -> npt.NDArray[np.int32]:
    """Pixel centres of the reduced picture: (x + 0.5) / reduction - 0.5."""
    return np.rint((np.asarray(polygon, np.float64) + 0.5) / reduction - 0.5).astype(np.int32)
