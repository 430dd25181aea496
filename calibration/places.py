"""Where on the screen to touch, and in which order."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from calibration.errors import OptionsInvalid
from calibration.options import Options
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import DOT_CLEARANCE_MM, Points

# The plastic number: its powers give the R2 sequence, even cover of a square for any count (Roberts 2018).
_PLASTIC = 1.32471795724474602596
# A quick check's places: inside the outermost places of the fit, where every kind of model is at its best.
VERIFY_INSET_MM = 10.0


def grid_places(screen: ScreenGeometry, options: Options) -> list[Pair]:
    """The places that the hand's model is fitted to, screen mm: the four corners, then a short way over the rest."""
    _require_room(screen, options)
    grid = _grid(screen, options.grid_columns, options.grid_rows, options.grid_inset_mm)
    xs, ys = [x for x, _ in grid], [y for _, y in grid]
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return corners + short_tour([place for place in grid if place not in corners], corners[-1])


def hid_places(screen: ScreenGeometry, options: Options) -> list[Pair]:
    """The places that a HID board's model is fitted to, screen mm, along a short way."""
    _require_room(screen, options)
    return short_tour(_grid(screen, options.hid_columns, options.hid_rows, options.grid_inset_mm), (0.0, 0.0))


def held_out_places(screen: ScreenGeometry, options: Options, turn_number: int = 0) -> list[Pair]:
    """The acceptance touches' places, screen mm: the four corners and an even cover of the screen, to and fro.

    turn_number: 0 for the first verdict; each later one gets an inner cover that no earlier one had.
    """
    inset = options.held_out_inset_mm
    width, height = screen.width_mm - 2 * inset, screen.height_mm - 2 * inset
    unit = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    inner = options.held_out - len(unit)
    for n in range(1 + turn_number * inner, 1 + (turn_number + 1) * inner):
        unit.append(((0.5 + n / _PLASTIC) % 1.0, (0.5 + n / _PLASTIC**2) % 1.0))
    return to_and_fro([(inset + x * width, inset + y * height) for x, y in unit])


def verify_places(screen: ScreenGeometry) -> list[Pair]:
    """Five places for a quick check, screen mm: near the corners and in the middle, along a short way."""
    left, right = VERIFY_INSET_MM, screen.width_mm - VERIFY_INSET_MM
    top, bottom = VERIFY_INSET_MM, screen.height_mm - VERIFY_INSET_MM
    middle = (screen.width_mm / 2.0, screen.height_mm / 2.0)
    return [(left, top), (right, top), middle, (left, bottom), (right, bottom)]


def short_tour(places: Sequence[Pair], start: Pair) -> list[Pair]:
    """The same places in an order that is short to travel from start: nearest first, then untangled (2-opt)."""
    rest, tour = list(places), [start]
    while rest:
        here = tour[-1]
        nearest = min(rest, key=lambda place: np.hypot(place[0] - here[0], place[1] - here[1]))
        rest.remove(nearest)
        tour.append(nearest)
    improved = True
    while improved:
        improved = False
        for i in range(1, len(tour) - 1):
            for j in range(i + 1, len(tour)):
                turned = tour[:i] + tour[i : j + 1][::-1] + tour[j + 1 :]
                if travel_mm(turned) < travel_mm(tour) - 1e-9:
                    tour, improved = turned, True
    return tour[1:]


def travel_mm(tour: Sequence[Pair]) -> float:
    """The length of the way along the places in their order."""
    return float(sum(np.hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(tour)))


def clear_of(place: Pair, dots: Sequence[Pair], screen: ScreenGeometry, inset_mm: float) -> Pair:
    """The place itself, or the nearest one that nothing on the page would hide; screen mm, inset_mm from the edge.

    dots: whatever black is on the page, older dots and control marks. Raises OptionsInvalid when the page is full.
    """
    old = np.array(dots, dtype=np.float64).reshape(-1, 2)
    for x, y in _outward(place):
        if _inside((x, y), screen, inset_mm) and _is_clear(np.array([[x, y]]), old):
            return x, y
    raise OptionsInvalid(
        f"no room for a fresh dot near ({place[0]:.1f}, {place[1]:.1f}) mm: {len(dots)} dots are on the "
        "page; ask for fewer places"
    )


def clear_block(
    middle: Pair, columns: int, rows: int, dots: Sequence[Pair], screen: ScreenGeometry, inset_mm: float
) -> list[list[Pair]]:
    """Rows of places, close together and clear of all dots, as near to the middle as there is room; screen mm.

    Raises OptionsInvalid when the page is full.
    """
    old = np.array(dots, dtype=np.float64).reshape(-1, 2)
    # A touch may land somewhat beside its place: a tenth more than two dots need.
    pitch = 1.1 * DOT_CLEARANCE_MM
    across = (np.arange(columns) - (columns - 1) / 2.0) * pitch
    down = (np.arange(rows) - (rows - 1) / 2.0) * pitch
    for x, y in _outward(middle, reach_mm=0.5 * screen.width_mm):
        block = [[(float(x + dx), float(y + dy)) for dx in across] for dy in down]
        on_screen = all(_inside(end, screen, inset_mm) for end in (block[0][0], block[-1][-1]))
        if on_screen and _is_clear(np.array(block, dtype=np.float64).reshape(-1, 2), old):
            return block
    raise OptionsInvalid(
        f"no room for {columns} x {rows} dots near the middle of the screen: {len(dots)} dots, marks and places are "
        "on the page; lower backlash_touches or the number of places"
    )


def _grid(screen: ScreenGeometry, columns: int, rows: int, inset_mm: float) -> list[Pair]:
    across = np.linspace(inset_mm, screen.width_mm - inset_mm, columns)
    down = np.linspace(inset_mm, screen.height_mm - inset_mm, rows)
    return [(float(x), float(y)) for y in down for x in across]


def _require_room(screen: ScreenGeometry, options: Options) -> None:
    if 4.0 * max(options.grid_inset_mm, options.held_out_inset_mm) > screen.width_mm:
        raise OptionsInvalid(
            f"insets of {options.grid_inset_mm} and {options.held_out_inset_mm} mm leave less than half of a "
            f"screen {screen.width_mm} mm wide; lower grid_inset_mm and held_out_inset_mm"
        )


def _outward(middle: Pair, reach_mm: float = 5.0 * DOT_CLEARANCE_MM) -> list[Pair]:
    """Places around the middle, the nearest first."""
    around = [middle]
    for radius in np.arange(DOT_CLEARANCE_MM / 4.0, reach_mm, DOT_CLEARANCE_MM / 4.0):
        for angle in np.arange(0.0, 2.0 * np.pi, np.pi / 8.0):
            around.append(
                (float(middle[0] + radius * np.cos(angle)), float(middle[1] + radius * np.sin(angle)))
            )
    return around


def _inside(place: Pair, screen: ScreenGeometry, inset_mm: float) -> bool:
    return (
        inset_mm <= place[0] <= screen.width_mm - inset_mm
        and inset_mm <= place[1] <= screen.height_mm - inset_mm
    )


def _is_clear(places: Points, old: Points) -> bool:
    if len(old) == 0:
        return True
    distances = np.linalg.norm(places[:, None] - old[None], axis=2)
    return float(distances.min()) >= DOT_CLEARANCE_MM


def to_and_fro(places: list[Pair]) -> list[Pair]:
    """The same places so ordered that a hand comes to them from both sides of each axis in turn."""
    ranked = sorted(places, key=lambda place: place[0] + place[1])
    order: list[Pair] = []
    while ranked:
        order.append(ranked.pop())
        if ranked:
            order.append(ranked.pop(0))
    return order
