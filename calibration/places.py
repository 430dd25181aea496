"""Where on the screen to touch."""

import numpy as np

from calibration.errors import OptionsInvalid
from calibration.options import Options
from calibration.result import Pair
from calibration.screen import ScreenGeometry
from calibration.targets import DOT_DIAMETER_MM

# A fresh dot closer than this to an older one would be hidden in part, and its centroid biased.
CLEARANCE_MM = 1.4 * DOT_DIAMETER_MM
# The plastic number: its powers give the R2 sequence, even cover of a square for any count (Roberts 2018).
_PLASTIC = 1.32471795724474602596


def grid_places(screen: ScreenGeometry, options: Options) -> list[Pair]:
    """The places that the hand's model is fitted to, screen mm: the four corners first, then row by row."""
    inset = options.grid_inset_mm
    if 4.0 * max(inset, options.held_out_inset_mm) > screen.width_mm:
        raise OptionsInvalid(
            f"insets of {inset} and {options.held_out_inset_mm} mm leave less than half of a screen "
            f"{screen.width_mm} mm wide; lower grid_inset_mm and held_out_inset_mm"
        )
    across = np.linspace(inset, screen.width_mm - inset, options.grid_columns)
    down = np.linspace(inset, screen.height_mm - inset, options.grid_rows)
    corners = [(float(x), float(y)) for y in (down[0], down[-1]) for x in (across[0], across[-1])]
    rest = [(float(x), float(y)) for y in down for x in across]
    return corners + [place for place in rest if place not in corners]


def held_out_places(screen: ScreenGeometry, options: Options) -> list[Pair]:
    """The acceptance touches' places, screen mm: the four corners, then an even cover of the whole screen."""
    inset = options.held_out_inset_mm
    width, height = screen.width_mm - 2 * inset, screen.height_mm - 2 * inset
    unit = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for n in range(1, options.held_out - len(unit) + 1):
        unit.append(((0.5 + n / _PLASTIC) % 1.0, (0.5 + n / _PLASTIC**2) % 1.0))
    return [(inset + x * width, inset + y * height) for x, y in unit]


def clear_of(place: Pair, dots: list[Pair], screen: ScreenGeometry, inset_mm: float) -> Pair:
    """The place itself, or the nearest one that no older dot would hide; screen mm, inset_mm from the edge.

    Raises OptionsInvalid when the page is full.
    """
    old = np.array(dots, dtype=np.float64).reshape(-1, 2)
    for radius in np.arange(0.0, 5.0 * CLEARANCE_MM, CLEARANCE_MM / 4.0):
        for angle in np.arange(0.0, 2.0 * np.pi, np.pi / 8.0):
            x = float(place[0] + radius * np.cos(angle))
            y = float(place[1] + radius * np.sin(angle))
            on_screen = (
                inset_mm <= x <= screen.width_mm - inset_mm and inset_mm <= y <= screen.height_mm - inset_mm
            )
            if on_screen and (len(old) == 0 or float(np.hypot(*(old - [x, y]).T).min()) >= CLEARANCE_MM):
                return x, y
    raise OptionsInvalid(
        f"no room for a fresh dot near ({place[0]:.1f}, {place[1]:.1f}) mm: {len(dots)} dots are on the "
        "page; ask for fewer places"
    )
