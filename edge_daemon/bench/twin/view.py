"""Where each picture px looks: on the glass, on the display under it, on the bed. Worked out once for a camera."""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.bed import BED_Z_MM
from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y, Placement
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Lens, Points, Pose, unproject
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

Field = npt.NDArray[np.float32]

# Exact places are worked out each so many px and interpolated: off by less than 0.001 px of the screen.
GRID_PX = 4


class View:
    """The picture's lines of sight, `samples` x `samples` a px; fields have samples * (720, 1280) rows and columns."""

    def __init__(self, truth: Truth, lens: Lens, pose: Pose, placement: Placement, samples: int) -> None:
        self._placement = placement
        self._samples = samples
        self._columns = PICTURE_WIDTH_PX // GRID_PX + 3
        self._rows = PICTURE_HEIGHT_PX // GRID_PX + 3
        x, y = np.meshgrid(np.arange(self._columns) - 1, np.arange(self._rows) - 1)
        pixels = np.column_stack([x.ravel(), y.ravel()]).astype(np.float64) * GRID_PX
        surface = unproject(lens, pose, pixels)
        self._surface = surface
        cover = Cover(truth, lens, pose, placement)
        self._display = cover.seen(surface) if truth.display.cover_mm > 0.0 else surface
        self._bed = unproject(lens, pose, pixels, BED_Z_MM)

    def surface_mm(self) -> Field:
        """Where lines of sight meet the glass, in the phone's own mm, (rows, columns, 2)."""
        return self._fine(self._of_phone(self._surface))

    def display_mm(self) -> Field:
        """Which points of the display they end on, in the phone's own mm."""
        return self._fine(self._of_phone(self._display))

    def bed_mm(self) -> Field:
        """Where they would meet the bed, in world mm."""
        return self._fine(self._bed)

    def bed_of_phone_mm(self) -> Field:
        """The same in the phone's own mm: where its shadow lies."""
        return self._fine(self._of_phone(self._bed))

    def _of_phone(self, world_mm: Points) -> Points:
        place = self._placement
        c, s = np.cos(place.turn_rad), np.sin(place.turn_rad)
        return np.asarray(
            (world_mm - (place.x_mm, place.y_mm)) @ np.array([[c, -s], [s, c]]), dtype=np.float64
        )

    def _fine(self, coarse: Points) -> Field:
        """Interpolate to every sample. The fractions are multiples of 1/32, which is what OpenCV's tables hold."""
        step = 1.0 / (GRID_PX * self._samples)
        first = (0.5 / self._samples - 0.5) / GRID_PX + 1.0
        matrix = np.array([[step, 0.0, first], [0.0, step, first]])
        size = (PICTURE_WIDTH_PX * self._samples, PICTURE_HEIGHT_PX * self._samples)
        grid = coarse.reshape(self._rows, self._columns, 2).astype(np.float32)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return np.asarray(cv2.warpAffine(grid, matrix, size, flags=flags), dtype=np.float32)


def screen_px(phone_mm: Field) -> tuple[Field, Field]:
    """The phone's own mm in screen px from the screen's top-left edge: x and y, each (rows, columns)."""
    x_px = (phone_mm[..., 1] + SCREEN_WIDTH_MM / 2) * PX_PER_MM_X
    y_px = (phone_mm[..., 0] + SCREEN_HEIGHT_MM / 2) * PX_PER_MM_Y
    return x_px.astype(np.float32), y_px.astype(np.float32)


def averaged(fine: npt.NDArray[np.float32], samples: int) -> npt.NDArray[np.float32]:
    """Samples to picture px by their mean."""
    if samples == 1:
        return fine
    size = (fine.shape[1] // samples, fine.shape[0] // samples)
    return np.asarray(cv2.resize(fine, size, interpolation=cv2.INTER_AREA), dtype=np.float32)
