"""The screen's size: known to the technician, and the bridge between px, mm and grid units."""

import msgspec
import numpy as np

from calibration.errors import OptionsInvalid
from calibration.targets import Points

GRID = 1000.0
Pair = tuple[float, float]


class ScreenGeometry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A portrait screen: its drawing size in px and its visible size in mm.

    Raises OptionsInvalid for sizes that no phone has, so that a mistyped configuration stops here.
    """

    width_px: int
    height_px: int
    width_mm: float
    height_mm: float

    def __post_init__(self) -> None:
        for name, value in (("width_mm", self.width_mm), ("height_mm", self.height_mm)):
            if not 20.0 <= value <= 400.0:
                raise OptionsInvalid(f"the screen's {name} is {value}; measure the lit area, 20 to 400 mm")
        across, down = self.width_px / self.width_mm, self.height_px / self.height_mm
        if across <= 0 or abs(across / down - 1.0) > 0.05:
            raise OptionsInvalid(
                f"{self.width_px} x {self.height_px} px on {self.width_mm} x {self.height_mm} mm gives "
                f"pixels that are not square ({across:.2f} and {down:.2f} px/mm); check both sizes"
            )

    def px_to_mm(self, points_px: Points) -> Points:
        """Screen px (from the screen's edge) to screen mm; shape (N, 2)."""
        return _scaled(points_px, self.width_mm / self.width_px, self.height_mm / self.height_px)

    def grid_to_mm(self, points: Points) -> Points:
        """Grid units 0..1000 to screen mm; shape (N, 2)."""
        return _scaled(points, self.width_mm / GRID, self.height_mm / GRID)

    def mm_to_grid(self, points_mm: Points) -> Points:
        """Screen mm to grid units; shape (N, 2)."""
        return _scaled(points_mm, GRID / self.width_mm, GRID / self.height_mm)

    def outline_mm(self, per_side: int = 16) -> Points:
        """Points around the screen's edge in screen mm, clockwise from the top left; (4 * per_side, 2)."""
        along = np.arange(per_side) / per_side
        zero, one = np.zeros(per_side), np.ones(per_side)
        unit = np.vstack(
            [
                np.column_stack([along, zero]),
                np.column_stack([one, along]),
                np.column_stack([1 - along, one]),
                np.column_stack([zero, 1 - along]),
            ]
        )
        return _scaled(unit, self.width_mm, self.height_mm)


def _scaled(points: Points, across: float, down: float) -> Points:
    return np.asarray(points * np.array([across, down]), dtype=np.float64)
