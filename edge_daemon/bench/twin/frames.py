"""Changes of frame that the twin needs: screen mm, screen px, grid and world mm."""

import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_WIDTH_PX

Points = npt.NDArray[np.float64]

PX_PER_MM_X = SCREEN_WIDTH_PX / SCREEN_WIDTH_MM
PX_PER_MM_Y = SCREEN_HEIGHT_PX / SCREEN_HEIGHT_MM
GRID = 1000.0


def screen_to_world_mm(screen_mm: Points) -> Points:
    """Screen mm (N, 2) to points on the glass in world mm (N, 3)."""
    return np.column_stack(
        [
            screen_mm[:, 1] - SCREEN_HEIGHT_MM / 2,
            screen_mm[:, 0] - SCREEN_WIDTH_MM / 2,
            np.zeros(len(screen_mm)),
        ]
    )


def world_to_screen_mm(x_mm: float, y_mm: float) -> tuple[float, float]:
    """A world point to screen mm (x, y)."""
    return y_mm + SCREEN_WIDTH_MM / 2, x_mm + SCREEN_HEIGHT_MM / 2


def mm_to_px(x_mm: float, y_mm: float) -> tuple[float, float]:
    """Screen mm to screen px, both from the screen's top-left edge."""
    return x_mm * PX_PER_MM_X, y_mm * PX_PER_MM_Y


def mm_to_grid(x_mm: float, y_mm: float) -> tuple[float, float]:
    """Screen mm to the 0..1000 grid."""
    return x_mm / SCREEN_WIDTH_MM * GRID, y_mm / SCREEN_HEIGHT_MM * GRID


def grid_to_mm(x: float, y: float) -> tuple[float, float]:
    """The 0..1000 grid to screen mm."""
    return x / GRID * SCREEN_WIDTH_MM, y / GRID * SCREEN_HEIGHT_MM


def px_to_grid(x_px: float, y_px: float) -> tuple[float, float]:
    """Screen px to the 0..1000 grid."""
    return x_px / SCREEN_WIDTH_PX * GRID, y_px / SCREEN_HEIGHT_PX * GRID
