"""The grid in each orientation of the screen.

Calibration knows the portrait screen only. `landscape_left` is the phone turned counter-clockwise (its top edge
points left), `landscape_right` clockwise.
"""

from edge_daemon.contract import Orientation
from edge_daemon.contract.actions import GRID_MAX


def to_portrait(x: float, y: float, orientation: Orientation) -> tuple[float, float]:
    """Grid point (x, y) of a screen in `orientation` → grid point of the same glass in portrait."""
    match orientation:
        case "portrait":
            return x, y
        case "landscape_left":
            return GRID_MAX - y, x
        case "portrait_upside_down":
            return GRID_MAX - x, GRID_MAX - y
        case "landscape_right":
            return y, GRID_MAX - x
