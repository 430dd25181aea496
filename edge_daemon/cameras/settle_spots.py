"""Small places of a page that change: a cursor, a spinner, a switch. Which of them leave the page as it is?

Sans-IO. Boxes are in cells (settle_area). A spot is the box of everything that changed in one place; its share of the
screen is reckoned without the rim that smoothing adds.

* A spot no larger than a text cursor (`CURSOR_SHARE`), alone and in its place, leaves the page as it is.
* One that has gone on for `BUSY_NS` without growing is a spinner; it leaves the page as it is.
* One that comes back to a state it had is a blinking thing; it leaves the page as it is.
* Any other change of a spot is a change of the page: a switch flips once and stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from edge_daemon.cameras.settle_area import Mask
from edge_daemon.cameras.settle_noise import Levels

SMALL_SHARE = 0.01
"""Of the screen. What changes in more than this is the page, however it goes on."""
PLACES_MAX = 6
"""Small places that change within PAUSE_NS; more are a page that fades or gets its pictures."""
CURSOR_SHARE = 0.0015
"""Of the screen. A text cursor of Android takes 0.0005 to 0.0012 with the rim that is left of it."""
BUSY_NS = 600_000_000
"""Longer than a switch takes to move or a button to light up and fade."""
PAUSE_NS = 300_000_000
"""A spinner that rests for longer begins anew, unless it was known."""
FORGET_NS = 3_000_000_000
"""A spot that has been quiet for so long belongs to the page."""
WHOLE_GROWTHS = 1
"""In a picture exposed while it changes a cursor shows in part, in the next as a whole; what grows more travels."""
TRAIL_PLACES = 4
TRAIL_NS = 1_000_000_000
"""What changes beside a place that has changed so lately may be the same thing, on its way."""
BACK_SHARE = 0.8
"""Of a spot's changed cells that must be as they were, within BACK_THRESHOLDS: the light is measured to a percent."""
BACK_THRESHOLDS = 2.0
RIM_CELLS = 1.5
_NEAR = 2

Box = tuple[int, int, int, int]
"""left, top, right, bottom in cells; right and bottom are beyond."""


def share_of(box: Box, cells: int) -> float:
    """The share of the screen, without the rim that smoothing and whole cells add: RIM_CELLS of each side."""
    left, top, right, bottom = box
    return max(right - left - RIM_CELLS, 1.0) * max(bottom - top - RIM_CELLS, 1.0) / cells


@dataclass
class Spot:
    """One small place. home: its box when it last grew. changed_ns: its last change that was one of the page; 0 once
    it is known as busy."""

    box: Box
    home: Box
    born_ns: int
    grown_ns: int
    episode_ns: int
    last_ns: int
    growths: int = 0
    changed_ns: int = 0
    busy: bool = False

    def covers(self, box: Box) -> bool:
        """Whether the box is within a cell of this spot's, two once it is known: a spinner's rim comes and goes."""
        rim = 2 if self.busy else 1
        return (
            box[0] >= self.home[0] - rim
            and box[1] >= self.home[1] - rim
            and box[2] <= self.home[2] + rim
            and box[3] <= self.home[3] + rim
        )

    def touches(self, box: Box) -> bool:
        return (
            box[0] < self.box[2] + _NEAR
            and self.box[0] < box[2] + _NEAR
            and box[1] < self.box[3] + _NEAR
            and self.box[1] < box[3] + _NEAR
        )


class Spots:
    """The small places of one page that have changed since it was first seen."""

    def __init__(self, page: Levels, cells: int, trail: Sequence[Spot] = ()) -> None:
        """trail: places that changed bit by bit until this page; what goes on beside one is no cursor."""
        self._trail = tuple(trail)
        self._page = page.copy()
        # What each place showed when it last was neither as at first nor as the time before.
        self._other = page.copy()
        self._cells = cells
        self._spots: list[Spot] = []
        self._excused_ns: int | None = None

    @property
    def changed_ns(self) -> int:
        """When a spot last changed the page; 0 for never."""
        return max((spot.changed_ns for spot in self._spots), default=0)

    def trail(self, moment_ns: int) -> list[Spot]:
        """The places that changed at or after that moment; none where there were many, for those were a page."""
        if len(self._spots) > TRAIL_PLACES:
            return []
        lately = [spot for spot in self._spots if spot.last_ns >= moment_ns]
        return lately + [spot for spot in self._trail if spot.last_ns >= moment_ns]

    @property
    def count(self) -> int:
        """How many places have changed lately."""
        return len(self._spots)

    @property
    def share(self) -> float:
        """Of the screen, all spots together."""
        return sum(share_of(spot.box, self._cells) for spot in self._spots)

    def busy_since(self, moment_ns: int) -> bool:
        """Whether something small that leaves the page as it is went on at or after that moment."""
        return self._excused_ns is not None and self._excused_ns >= moment_ns

    def take(self, changed: Mask, levels: Levels, shown: Levels, threshold: float, now_ns: int) -> bool:
        """Cells changed; False when that is no longer small: then it is another page.

        levels: the picture; shown: what each cell showed until now; both in the page's light.
        """
        for spot in [spot for spot in self._spots if now_ns - spot.last_ns > FORGET_NS]:
            left, top, right, bottom = spot.box
            self._page[top:bottom, left:right] = shown[top:bottom, left:right]
            self._other[top:bottom, left:right] = shown[top:bottom, left:right]
            self._spots.remove(spot)
        touched = [self._place(box, now_ns) for box in _boxes(changed)]
        if self.share > SMALL_SHARE or self._at_once(now_ns) > PLACES_MAX:
            for spot in touched:
                spot.last_ns = now_ns
            return False
        # Two boxes may have come to lie in one spot.
        for spot in {id(spot): spot for spot in touched if spot in self._spots}.values():
            self._judge(spot, changed, levels, threshold, now_ns)
        return True

    def _at_once(self, now_ns: int) -> int:
        return sum(1 for spot in self._spots if now_ns - spot.last_ns <= PAUSE_NS or not spot.last_ns)

    def _place(self, box: Box, now_ns: int) -> Spot:
        """The spot that this box belongs to: a known one, several that become one, or a new one."""
        near = [spot for spot in self._spots if spot.touches(box)]
        if not near:
            spot = Spot(box, box, born_ns=now_ns, grown_ns=now_ns, episode_ns=now_ns, last_ns=0)
            self._spots.append(spot)
            return spot
        spot = near[0]
        for other in near[1:]:
            spot.busy = spot.busy and other.busy
            spot.born_ns = min(spot.born_ns, other.born_ns)
            spot.episode_ns = min(spot.episode_ns, other.episode_ns)
            spot.changed_ns = max(spot.changed_ns, other.changed_ns)
            spot.grown_ns = max(spot.grown_ns, other.grown_ns)
            spot.growths += other.growths
            spot.last_ns = max(spot.last_ns, other.last_ns)
            spot.box = _union(spot.box, other.box)
            self._spots.remove(other)
        grown = not spot.covers(box)
        spot.box = _union(spot.box, box)
        if grown:
            spot.grown_ns, spot.home = now_ns, spot.box
            spot.growths += 1
        return spot

    def _judge(self, spot: Spot, changed: Mask, levels: Levels, threshold: float, now_ns: int) -> None:
        if now_ns - spot.last_ns > PAUSE_NS:
            spot.episode_ns = now_ns
        spot.last_ns = now_ns
        if spot.busy and spot.grown_ns == now_ns:
            spot.busy, spot.episode_ns = False, now_ns
        if not spot.busy:
            since_ns = max(spot.episode_ns, spot.grown_ns)
            spot.busy = now_ns - since_ns >= BUSY_NS
            if spot.busy:
                spot.changed_ns = 0
        came_back = self._came_back(spot, changed, levels, threshold) and spot.grown_ns != now_ns
        if spot.busy or came_back or self._is_cursor(spot):
            self._excused_ns = now_ns
        else:
            spot.changed_ns = now_ns

    def _is_cursor(self, spot: Spot) -> bool:
        now_ns = spot.last_ns
        lately = [other for other in self._spots if not other.busy and now_ns - other.last_ns <= PAUSE_NS]
        if any(now_ns - old.last_ns <= TRAIL_NS and old.touches(spot.box) for old in self._trail):
            return False
        unknown = sum(share_of(other.box, self._cells) for other in lately)
        grows = spot.grown_ns == now_ns and spot.growths > 0
        return spot.growths <= WHOLE_GROWTHS and not grows and unknown <= CURSOR_SHARE

    def _came_back(self, spot: Spot, changed: Mask, levels: Levels, threshold: float) -> bool:
        """Whether the spot shows what it showed at first, or what it showed the time before."""
        left, top, right, bottom = spot.box
        where = (slice(top, bottom), slice(left, right))
        now = levels[where]
        states = (self._page[where], self._other[where])
        count = cv2.countNonZero(changed[where])
        for state in states:
            alike = cv2.inRange(cv2.absdiff(now, state), 0.0, BACK_THRESHOLDS * threshold)
            back = cv2.countNonZero(cv2.bitwise_and(alike, changed[where]))
            if back >= min(BACK_SHARE * count, max(count - 1.0, 1.0)):
                return True
        was = changed[where] > 0
        self._other[where][was] = now[was]
        return False


def _boxes(changed: Mask) -> list[Box]:
    """Of the connected parts; what lies within a cell of one another is one part."""
    near = cv2.dilate(changed, np.ones((3, 3), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(near, connectivity=8)
    rows, columns = changed.shape
    boxes = []
    for left, top, width, height, _ in stats[1:].tolist():
        right, bottom = min(left + width - 1, columns), min(top + height - 1, rows)
        boxes.append((max(left + (left > 0), 0), max(top + (top > 0), 0), right, bottom))
    return boxes


def _union(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])
