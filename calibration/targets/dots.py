"""The dots page: black dots where fingers came down, and the control marks that the page itself draws."""

from collections.abc import Iterable

import numpy as np

from calibration.errors import TargetImpossible
from calibration.targets.turns import TURNS, Image, Points, Turn, is_landscape, turned_points

# Mid-bright, so that no camera saturates on it, and black dots, so that the sign of a fresh dot in a
# difference of two pictures is known.
DOTS_BACKGROUND_LEVEL = 170
DOTS_BACKGROUND_BGR = (DOTS_BACKGROUND_LEVEL, DOTS_BACKGROUND_LEVEL, DOTS_BACKGROUND_LEVEL)
DOT_BGR = (0, 0, 0)
DOT_DIAMETER_MM = 2.4
# Between the centres of two dots: closer, one would be hidden in part, and its centroid biased.
DOT_CLEARANCE_MM = 1.4 * DOT_DIAMETER_MM
# A second tap on a dot that is this fresh would not be seen: the page shows its dot aside, towards the
# screen's middle across. The procedure itself never comes back so soon.
DOUBLE_TAP_MS = 400
DOUBLE_TAP_ASIDE_MM = 1.5 * DOT_DIAMETER_MM

# Touches are not sent to the rim between the outer grid places (7 mm) and the acceptance corners (3 mm).
_RIM_MM = 5.5
# The marks lie between the places of this grid of touches, the densest that the procedure sends by default.
_GRID_INSET_MM = 7.0
_GRID_COLUMNS, _GRID_ROWS = 4, 6
_CORNER_MM = 3.0

# The control marks, from their corner of the page: grid cells inward from the outer grid place across and
# down, None for the rim. No two have the same pair, and none lies on an axis of symmetry: mirrored or turned,
# the pattern has not one mark in common with itself. The middle is left free: the hand comes down there first,
# before anyone can know where it will land.
_Cells = float | None
_MARKS: tuple[tuple[str, _Cells, _Cells], ...] = (
    ("top left", 1 / 3, None),
    ("top left", None, 3 / 2),
    ("top left", 1 / 3, 7 / 3),
    ("top right", None, 2 / 5),
    ("top right", 1 / 2, 3 / 2),
    ("top right", 4 / 3, 1 / 2),
    ("bottom left", 2 / 3, None),
    ("bottom left", None, 4 / 3),
    ("bottom left", 4 / 3, 2 / 3),
    ("bottom right", None, 2 / 3),
    ("bottom right", None, 9 / 4),
    ("bottom right", 2 / 3, 5 / 3),
)


def control_marks_mm(width_mm: float, height_mm: float, turn: Turn = "portrait") -> list[tuple[float, float]]:
    """Where the dots page draws its own marks, in portrait screen mm, on a portrait screen of that size.

    Twelve, over the whole screen and along its rim, never closer than DOT_CLEARANCE_MM to the procedure's
    4 x 6 grid of touches and to its acceptance corners, and in each turn at other places: whoever sees them
    knows the turn.

    Raises TargetImpossible for a screen that is too small for them, or not portrait.
    """
    if height_mm < width_mm:
        raise TargetImpossible(
            f"a screen of {width_mm} x {height_mm} mm is not portrait; give the size with the phone upright"
        )
    marks = _turned_marks(width_mm, height_mm, turn)
    others = np.vstack([_turned_marks(width_mm, height_mm, other) for other in TURNS if other != turn])
    if not (
        _nearest(marks, marks) >= DOT_CLEARANCE_MM
        and _nearest(marks, _touch_places(width_mm, height_mm)) >= DOT_CLEARANCE_MM
        and _nearest(marks, others) >= DOT_DIAMETER_MM
    ):
        raise TargetImpossible(
            f"a screen of {width_mm} x {height_mm} mm has no room for the control marks and the touches "
            "between them; check the configured screen size"
        )
    return [(float(x), float(y)) for x, y in marks]


def page_marks_mm(width_mm: float, height_mm: float, *, landscape: bool) -> Points:
    """The control marks on the page as it is read, shape (N, 2), for a portrait screen of that size.

    The landscape page is the portrait one with its axes exchanged: on the glass it is mirrored.
    """
    cell_x = (width_mm - 2 * _GRID_INSET_MM) / (_GRID_COLUMNS - 1)
    cell_y = (height_mm - 2 * _GRID_INSET_MM) / (_GRID_ROWS - 1)
    marks = []
    for corner, across, down in _MARKS:
        x = _RIM_MM if across is None else _GRID_INSET_MM + across * cell_x
        y = _RIM_MM if down is None else _GRID_INSET_MM + down * cell_y
        marks.append(
            (width_mm - x if "right" in corner else x, height_mm - y if "bottom" in corner else y),
        )
    portrait = np.array(marks, dtype=np.float64)
    return portrait[:, ::-1].copy() if landscape else portrait


def draw_dots(
    width_px: int,
    height_px: int,
    width_mm: float,
    height_mm: float,
    places_mm: Iterable[tuple[float, float]] = (),
    turn: Turn = "portrait",
) -> Image:
    """Draw the dots page: its control marks, and a dot at each of places_mm (portrait screen mm).

    BGR uint8, shape (height_px, width_px, 3), in the portrait screen's px whatever the turn. Raises
    TargetImpossible as control_marks_mm does.
    """
    page = np.full((height_px, width_px, 3), DOTS_BACKGROUND_LEVEL, dtype=np.uint8)
    across, down = width_px / width_mm, height_px / height_mm
    for x_mm, y_mm in [*control_marks_mm(width_mm, height_mm, turn), *places_mm]:
        _blacken(page, x_mm * across, y_mm * down, across, down)
    return page


def _blacken(page: Image, x_px: float, y_px: float, across: float, down: float) -> None:
    """One dot around (x_px, y_px), whose edge covers pixels in part as a browser's canvas draws it.

    OpenCV's smooth ellipses are half a px larger all around.
    """
    radius = DOT_DIAMETER_MM / 2.0
    left, top = max(0, int(x_px - radius * across) - 1), max(0, int(y_px - radius * down) - 1)
    rows = np.arange(top, min(page.shape[0], int(y_px + radius * down) + 2))
    columns = np.arange(left, min(page.shape[1], int(x_px + radius * across) + 2))
    if len(rows) == 0 or len(columns) == 0:
        return
    off_mm = np.hypot((columns[None] + 0.5 - x_px) / across, (rows[:, None] + 0.5 - y_px) / down)
    covered = np.clip((radius - off_mm) * (across + down) / 2.0 + 0.5, 0.0, 1.0)
    level = np.round(DOTS_BACKGROUND_LEVEL * (1.0 - covered)).astype(np.uint8)
    part = page[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    np.minimum(part, level[:, :, None], out=part)


def _turned_marks(width_mm: float, height_mm: float, turn: Turn) -> Points:
    page = page_marks_mm(width_mm, height_mm, landscape=is_landscape(turn))
    return turned_points(page, width_mm, height_mm, turn)


def _touch_places(width_mm: float, height_mm: float) -> Points:
    """Places of the procedure that must stay where they are: the grid's, and the acceptance corners."""
    grid = [
        (x, y)
        for x in np.linspace(_GRID_INSET_MM, width_mm - _GRID_INSET_MM, _GRID_COLUMNS)
        for y in np.linspace(_GRID_INSET_MM, height_mm - _GRID_INSET_MM, _GRID_ROWS)
    ]
    corners = [
        (x, y) for x in (_CORNER_MM, width_mm - _CORNER_MM) for y in (_CORNER_MM, height_mm - _CORNER_MM)
    ]
    return np.array(grid + corners, dtype=np.float64)


def _nearest(first: Points, second: Points) -> float:
    """The smallest distance between two sets; within one set, between two different points of it."""
    distances = np.linalg.norm(first[:, None] - second[None], axis=2)
    if first is second:
        np.fill_diagonal(distances, np.inf)
    return float(distances.min())
