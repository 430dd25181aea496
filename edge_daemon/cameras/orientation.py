"""Which way the screen is turned, read off a rectified picture of it. Sans-IO; says nothing rather than guess.

Two kinds of evidence:

* The handle of gesture navigation, Android's pill and iOS' home indicator: a thin bar, 9 to 16 thousandths of the
  screen's long side from the edge at the bottom of whatever is read, in the middle of it, alone on its ground. A faint
  one counts only with a status bar (clock on the left, icons on the right, in one row) along the opposite edge.
* A page of the calibration: the board, or the dots page by its control marks, which has other places in each turn.

Two handles, or a status bar along an edge where none belongs, are no evidence. Neither is a status bar alone (a toolbar
at the bottom looks the same), nor three navigation buttons (a phone that is turned keeps them where they were).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.imaging import Bgr, Grey
from edge_daemon.cameras.rectify import QuarterTurns
from edge_daemon.contract.identity import Orientation

TURNS: Mapping[Orientation, QuarterTurns] = {
    "portrait": 0,
    "landscape_right": 1,
    "portrait_upside_down": 2,
    "landscape_left": 3,
}
"""Clockwise quarter turns that make of the portrait screen's picture the picture as it is read."""
_IN_TURN: tuple[Orientation, ...] = tuple(TURNS)

# All lengths are shares of the screen's long side. 1000 px of it are enough, 600 are too few.
HANDLE_FROM_EDGE = (0.0085, 0.0165)
HANDLE_LENGTH = (0.09, 0.36)
HANDLE_THICK_MAX = 0.010
HANDLE_OFF_MIDDLE_MAX = 0.007
STEP_SHARE_MAX = 0.4
"""Of a handle's levels: by so much its ground may differ above and below it. More, and it is the edge of something."""
FAINT_LEVELS, CLEAR_LEVELS = 7.0, 16.0
"""Grey levels by which a handle stands out: below the first there is none, above the second it needs no witness."""
LONG_SIDE_MIN_PX = 600

STATUS_ROWS = (0.006, 0.052)
STATUS_TALL_MAX = 0.034
CORNER_SHARE = 0.012
STATUS_INK_LEVELS = 12.0

PAGE_LONG_PX = 351
"""Of the small pictures in which a calibration page is looked for: over two px for a cell of the board's markers."""
PAGE_LIKENESS_MIN = 0.45
PAGE_LEAD_MIN = 0.5
"""Of the lead over another turn's page that the page's own picture has."""
_HALF_WINDOW = 0.007
_MIDDLE_SHARE = 0.03
_PAGE_GROUND_PX = 21

_Levels = npt.NDArray[np.float32]


@dataclass(frozen=True)
class OrientationFound:
    """orientation: None where the picture does not tell. evidence: what was seen, in words."""

    orientation: Orientation | None
    evidence: str


class OrientationFinder:
    """Looks at rectified pictures of one screen.

    pages: pictures of the calibration's pages on the portrait screen, by the turn in which they are shown; grey
    (height, width) of any size, the same shape of screen.
    """

    def __init__(self, pages: Mapping[Orientation, Sequence[Grey]] | None = None) -> None:
        self._pages = [
            (orientation, _page_details(page))
            for orientation, several in (pages or {}).items()
            for page in several
        ]

    def find(self, picture: Bgr, shown_in: Orientation = "portrait") -> OrientationFound:
        """picture: rectified, (height, width, 3) uint8 BGR, turned as it is read in `shown_in`."""
        if max(picture.shape[:2]) < LONG_SIDE_MIN_PX:
            return _nothing("the picture is too small to read it off")
        return (
            _by_handle(picture, shown_in)
            or self._by_page(picture, shown_in)
            or _nothing("no system bar shows it")
        )

    def _by_page(self, picture: Bgr, shown_in: Orientation) -> OrientationFound | None:
        if not self._pages:
            return None
        seen = np.ascontiguousarray(np.rot90(_page_details(picture), TURNS[shown_in]))
        alike = [(_likeness(page, seen), orientation, page) for orientation, page in self._pages]
        likeness, best, page = max(alike, key=lambda one: one[0])
        if likeness < PAGE_LIKENESS_MIN:
            return None
        for other_likeness, orientation, other in alike:
            # Turned, the board's squares fall on its squares: only their markers tell, so a small part of it all.
            differ = 1.0 - _likeness(page, other)
            if orientation != best and likeness - other_likeness < PAGE_LEAD_MIN * likeness * differ:
                return _nothing("a page of the calibration, but its turn is not clear")
        return OrientationFound(best, "a page of the calibration")


def _by_handle(picture: Bgr, shown_in: Orientation) -> OrientationFound | None:
    long_px = max(picture.shape[:2])
    edges = _Edges(picture, shown_in)
    levels = {bottom: _handle_levels(edges, bottom, long_px) for bottom in _IN_TURN}
    seen = [bottom for bottom in _IN_TURN if levels[bottom] >= FAINT_LEVELS]
    if not seen:
        return None
    if len(seen) > 1:
        return _nothing(f"bars like a handle at {len(seen)} edges")
    (found,) = seen
    if _has_status_bar(edges.top(found), long_px):
        return OrientationFound(found, "a navigation handle and a status bar")
    if levels[found] < CLEAR_LEVELS:
        return _nothing("a handle too faint to be sure of")
    if any(_has_status_bar(edges.top(other), long_px) for other in _IN_TURN if other != found):
        return _nothing("a handle and a status bar contradict each other")
    return OrientationFound(found, "a navigation handle")


class _Edges:
    """What lies along each edge of a picture, by its distance from the edge, the outermost first.

    Of the green channel: half of the grey, and in the picture already. As little as possible is looked at: whatever is
    read here costs its way from the memory, for each screenshot.
    """

    def __init__(self, picture: Bgr, shown_in: Orientation) -> None:
        self._picture = picture
        self._shown_in = shown_in
        self._long_px = max(picture.shape[:2])

    def middle_of_bottom(self, orientation: Orientation) -> _Levels:
        """Of the bottom of what is read in this orientation, the mean over its middle: (depth,)."""
        side, depth = self._side(orientation, 2), _depth_px(HANDLE_FROM_EDGE[1], self._long_px)
        height, width = self._picture.shape[:2]
        half, middle = round(_MIDDLE_SHARE * self._long_px), (height if side % 2 else width) // 2
        return self._means(side, 0, depth, slice(middle - half, middle + half), along=True)

    def along_bottom(self, orientation: Orientation, begin: int, end: int) -> _Levels:
        """Along that bottom, the mean over the rows from `begin` to before `end`."""
        return self._means(self._side(orientation, 2), begin, end, slice(None), along=False)

    def top(self, orientation: Orientation) -> _Levels:
        """The rows of a status bar at the top of what is read in this orientation; left is left."""
        side = self._side(orientation, 0)
        begin, end = (round(share * self._long_px) for share in STATUS_ROWS)
        strip = self._strip(side, begin, end, slice(None))[:, :, 1]
        return np.rot90(strip, side).astype(np.float32)

    def _side(self, orientation: Orientation, away: int) -> int:
        """Of the picture as it is: 0 top, 1 right, 2 bottom, 3 left."""
        return (TURNS[self._shown_in] - TURNS[orientation] + away) % 4

    def _strip(self, side: int, begin: int, end: int, part: slice) -> Bgr:
        """As it lies in the picture."""
        height, width = self._picture.shape[:2]
        return (
            self._picture[begin:end, part],
            self._picture[part, width - end : width - begin],
            self._picture[height - end : height - begin, part],
            self._picture[part, begin:end],
        )[side]

    def _means(self, side: int, begin: int, end: int, part: slice, *, along: bool) -> _Levels:
        strip = self._strip(side, begin, end, part)
        lying = side % 2 == 0
        means = cv2.reduce(strip, 1 if along == lying else 0, cv2.REDUCE_AVG, dtype=cv2.CV_32F)
        green = means.reshape(-1, 3)[:, 1]
        return np.asarray(green[::-1] if along and side in (1, 2) else green, np.float32)


def _depth_px(until: float, long_px: int) -> int:
    return round((until + 2 * _HALF_WINDOW) * long_px) + 1


def _nothing(evidence: str) -> OrientationFound:
    return OrientationFound(None, evidence)


def _handle_levels(edges: _Edges, bottom: Orientation, long_px: int) -> float:
    """By how many grey levels a handle stands out at this bottom; 0 where there is none."""
    reach = max(2, round(_HALF_WINDOW * long_px))
    first, last = max(reach, round(HANDLE_FROM_EDGE[0] * long_px)), round(HANDLE_FROM_EDGE[1] * long_px)
    core = edges.middle_of_bottom(bottom)
    bump = core[reach:-reach] - (core[: -2 * reach] + core[2 * reach :]) / 2.0
    at = first + int(np.argmax(np.abs(bump[first - reach : last - reach + 1])))
    sign, levels = float(np.sign(bump[at - reach])), float(abs(bump[at - reach]))
    if levels < FAINT_LEVELS or abs(float(core[at - reach] - core[at + reach])) > STEP_SHARE_MAX * levels:
        return 0.0
    thick = _run(sign * bump >= levels / 2, at - reach)
    if thick is None or thick[1] - thick[0] > HANDLE_THICK_MAX * long_px:
        return 0.0
    middle = (thick[0] + thick[1] - 1) // 2 + reach
    # Against the ground at its outer side: at the inner one the page's own content may begin.
    ground = edges.along_bottom(bottom, middle - reach, middle - reach + 1)
    along = sign * (edges.along_bottom(bottom, middle - 1, middle + 2) - ground)
    along = cv2.blur(along[None], (5, 1))[0]
    return levels if _is_handle(along, levels, long_px) else 0.0


def _is_handle(along: _Levels, levels: float, long_px: int) -> bool:
    """Whether what stands out along the edge is one even bar in its middle with nothing beside it."""
    middle = len(along) / 2.0
    run = _run(along >= levels / 2, round(middle))
    if run is None:
        return False
    begin, end = run
    length = end - begin
    if not HANDLE_LENGTH[0] * long_px <= length <= HANDLE_LENGTH[1] * long_px:
        return False
    if abs((begin + end) / 2.0 - middle) > HANDLE_OFF_MIDDLE_MAX * long_px:
        return False
    margin = round(0.006 * long_px)
    inside = along[begin + margin : end - margin]
    around = round(length / 2)
    outside = np.concatenate(
        [along[max(0, begin - around) : begin - margin], along[end + margin : end + around]]
    )
    if len(outside) < length // 3:
        return False
    low, high = _ranked(inside, 0.04), _ranked(inside, 0.96)
    even = low >= 0.6 * levels and high <= 1.4 * levels
    return even and _ranked(np.abs(outside), 0.92) <= 0.3 * levels


def _ranked(values: _Levels, share: float) -> float:
    """The value that this share of them lies below. NumPy's own quantile takes longer than all else in here."""
    return float(np.sort(values)[int(share * len(values))])


def _run(holds: npt.NDArray[np.bool_], at: int) -> tuple[int, int] | None:
    """The stretch around `at` where it holds: (first, one past the last)."""
    if not 0 <= at < len(holds) or not holds[at]:
        return None
    gaps = np.flatnonzero(~holds)
    before, after = gaps[gaps < at], gaps[gaps > at]
    return int(before[-1]) + 1 if len(before) else 0, int(after[0]) if len(after) else len(holds)


def _has_status_bar(band: _Levels, long_px: int) -> bool:
    """A low cluster at the left, one at the right, in one row, with room around each."""
    width = band.shape[1]
    # Without the screen's round corners.
    corner, third = round(CORNER_SHARE * long_px), round(0.33 * width)
    sides = band[:, corner:third], band[:, width - third : width - corner]
    # Mostly ground, both sides together; a wallpaper's fades from row to row.
    some = np.sort(np.concatenate([side[:, ::8] for side in sides], axis=1), axis=1)
    ground = some[:, some.shape[1] // 2, None]
    spans = []
    for side in sides:
        away = np.abs(side - ground)
        ink = away > max(STATUS_INK_LEVELS, 0.4 * float(away.max()))
        across, down = np.flatnonzero(ink.any(axis=0)), np.flatnonzero(ink.any(axis=1))
        rim = round(0.005 * long_px)
        if not len(across) or across[0] < rim or across[-1] >= side.shape[1] - rim:
            return False
        # What goes on below is no bar.
        if down[-1] - down[0] > STATUS_TALL_MAX * long_px or down[-1] >= len(band) - 3:
            return False
        spans.append(float(down[0] + down[-1]) / 2.0)
    return abs(spans[0] - spans[1]) < 0.008 * long_px


def _page_details(page: npt.NDArray[np.uint8]) -> _Levels:
    """A grey or BGR page small, without its slow changes of light, at mean 0 and variance 1."""
    height, width = page.shape[:2]
    share = PAGE_LONG_PX / max(height, width)
    size = (round(width * share), round(height * share))
    small = cv2.resize(page, size, interpolation=cv2.INTER_LINEAR)
    if small.ndim == 3:
        small = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY)
    details = cv2.subtract(small, cv2.blur(small, (_PAGE_GROUND_PX, _PAGE_GROUND_PX)), dtype=cv2.CV_32F)
    details -= details.mean()
    return cast(_Levels, details / max(float(details.std()), 1.0))


def _likeness(one: _Levels, other: _Levels) -> float:
    """Correlation of two pages' details, -1 to 1; -1 for pages of different shapes."""
    return float(np.vdot(one, other)) / one.size if one.shape == other.shape else -1.0
