"""What a story about a drawn screen is made of.

Its `paint(s)` gives the upright canvas at a time in seconds; the same object as long as nothing changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edge_daemon.bench.camera.small_sensor import Canvas

Paint = Callable[[float], Canvas]


@dataclass
class Span:
    """The page changes from begin_s to end_s. gradual: it does so by little at first or at last; it is seen while
    `share` of the screen differs from before or after. trace_s: something that is less than a change goes before."""

    begin_s: float
    end_s: float
    gradual: bool = False
    share: float = 0.01
    trace_s: float | None = None

    @property
    def first_s(self) -> float:
        return self.begin_s if self.trace_s is None else self.trace_s


@dataclass
class Story:
    """See `Scene` for the facts; times in seconds. brightness and shift_px (small px) depend on the time."""

    paint: Paint
    length_s: float
    spans: list[Span] = field(default_factory=list)
    learning_s: float = 0.0
    busy_small: bool = False
    untellable_s: float | None = None
    brightness: Callable[[float], float] | None = None
    shift_px: Callable[[float], tuple[float, float] | None] | None = None


Tell = Callable[[np.random.Generator, int, int], Story]
REST_S = 0.9
REFRESH_S = 1 / 60


def refreshed(at_s: float) -> float:
    """The panel's last refresh, s."""
    return int(at_s / REFRESH_S) * REFRESH_S


def eased(share: float) -> float:
    """Fast at first, slow at last, as pages and cards move."""
    return 1.0 - (1.0 - min(max(share, 0.0), 1.0)) ** 3


def moments(rng: np.random.Generator, low_s: float, high_s: float) -> tuple[float, float, float]:
    """Beginning, end, and the story's length for something that lasts so long."""
    begin_s = float(rng.uniform(0.35, 0.8))
    end_s = begin_s + float(rng.uniform(low_s, high_s))
    return begin_s, end_s, end_s + REST_S


def between(before: Canvas, after: Canvas, begin_s: float, end_s: float, middle: Paint) -> Paint:
    """`before` until begin_s, then `middle`, `after` from end_s on. middle gets the share gone by, 0 to 1."""

    def paint(at_s: float) -> Canvas:
        shown_s = refreshed(at_s)
        if shown_s < begin_s:
            return before
        return after if shown_s >= end_s else middle((shown_s - begin_s) / (end_s - begin_s))

    return paint
