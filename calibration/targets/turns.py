"""The four ways a page can be turned on the glass, and the way back to the portrait screen."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float64]

Turn = Literal["portrait", "landscape_left", "portrait_upside_down", "landscape_right"]
"""`landscape_left`: the phone is turned counter-clockwise, its top edge points left. `landscape_right`: clockwise."""
TURNS: tuple[Turn, ...] = ("portrait", "landscape_left", "portrait_upside_down", "landscape_right")

# Quarter turns, counter-clockwise, that bring the page as it is read to the portrait screen it is shown on.
_QUARTERS: dict[Turn, int] = {
    "portrait": 0,
    "landscape_left": 3,
    "portrait_upside_down": 2,
    "landscape_right": 1,
}


def is_landscape(turn: Turn) -> bool:
    """Whether the page as it is read is wider than high."""
    return turn in ("landscape_left", "landscape_right")


def turned_points(points: Points, width: float, height: float, turn: Turn) -> Points:
    """Places on the page as it is read → places on the portrait screen of width x height; shape (N, 2).

    In any unit, counted from the top-left edge.
    """
    x, y = points[:, 0], points[:, 1]
    match turn:
        case "portrait":
            screen = (x, y)
        case "landscape_left":
            screen = (width - y, x)
        case "portrait_upside_down":
            screen = (width - x, height - y)
        case "landscape_right":
            screen = (y, height - x)
    return np.column_stack(screen).astype(np.float64)


def turned_picture(page: Image, turn: Turn) -> Image:
    """The page as it is read, (rows, columns, ...), → the same picture in the portrait screen's px."""
    return np.ascontiguousarray(np.rot90(page, _QUARTERS[turn]))
