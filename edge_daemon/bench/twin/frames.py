"""Changes of frame that the twin needs: screen mm, screen px, grid and world mm."""

from dataclasses import dataclass
from math import cos, sin

import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_WIDTH_PX

Points = npt.NDArray[np.float64]

PX_PER_MM_X = SCREEN_WIDTH_PX / SCREEN_WIDTH_MM
PX_PER_MM_Y = SCREEN_HEIGHT_PX / SCREEN_HEIGHT_MM
GRID = 1000.0


@dataclass(frozen=True)
class Placement:
    """Where the phone lies in the world: moved by x_mm, y_mm and turned about its centre (from X towards Y)."""

    x_mm: float = 0.0
    y_mm: float = 0.0
    turn_rad: float = 0.0

    def to_phone_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """A world point in the phone's own mm: the world's axes at home, the origin at the screen's middle."""
        if self is HOME:
            return x_mm, y_mm
        dx, dy = x_mm - self.x_mm, y_mm - self.y_mm
        c, s = cos(self.turn_rad), sin(self.turn_rad)
        return c * dx + s * dy, -s * dx + c * dy

    def to_world_mm(self, phone_mm: Points) -> Points:
        """Points (N, 2) of the phone's own mm in world mm (N, 2)."""
        c, s = cos(self.turn_rad), sin(self.turn_rad)
        turned = phone_mm @ np.array([[c, s], [-s, c]])
        return np.asarray(turned + np.array([self.x_mm, self.y_mm]), dtype=np.float64)

    def nudged(self, dx_mm: float, dy_mm: float, turn_rad: float) -> "Placement":
        """The placement after one more shove."""
        return Placement(self.x_mm + dx_mm, self.y_mm + dy_mm, self.turn_rad + turn_rad)


HOME = Placement()


def screen_to_world_mm(screen_mm: Points, placement: Placement = HOME) -> Points:
    """Screen mm (N, 2) to points at the glass's height in world mm (N, 3)."""
    phone_mm = np.column_stack(
        [screen_mm[:, 1] - SCREEN_HEIGHT_MM / 2, screen_mm[:, 0] - SCREEN_WIDTH_MM / 2]
    )
    return np.column_stack([placement.to_world_mm(phone_mm), np.zeros(len(screen_mm))])


def world_to_screen_mm(x_mm: float, y_mm: float, placement: Placement = HOME) -> tuple[float, float]:
    """A world point to screen mm (x, y)."""
    x_mm, y_mm = placement.to_phone_mm(x_mm, y_mm)
    return y_mm + SCREEN_WIDTH_MM / 2, x_mm + SCREEN_HEIGHT_MM / 2


def world_to_screen_points_mm(world_mm: Points, placement: Placement = HOME) -> Points:
    """World points (N, 2) to screen mm (N, 2)."""
    c, s = cos(placement.turn_rad), sin(placement.turn_rad)
    phone_mm = (world_mm - (placement.x_mm, placement.y_mm)) @ np.array([[c, -s], [s, c]])
    return np.asarray(phone_mm[:, ::-1] + (SCREEN_WIDTH_MM / 2, SCREEN_HEIGHT_MM / 2), dtype=np.float64)


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
