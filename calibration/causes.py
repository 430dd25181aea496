"""The likely cause of errors, in words, from their pattern over the screen and in time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.fitting import Matrix, Vector
from calibration.outliers import MEDIAN_PER_SIGMA
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import Points

# The worst touch is one of its kind when it is so many robust standard deviations from what is typical.
ALONE_SIGMAS = 6.0
# A place closer to the screen's edge than this share of its width is at the edge.
EDGE_SHARE = 0.15
# Four touches further in, by chance alone, have a third of the r.m.s. of twelve at the edge once in 300 times.
EDGE_RATIO = 3.0
EDGE_TOUCHES_MIN = 3
# Twice Schwarz's price of a number: at his, a shift with noise is called a lens in 9 % of cases, at this in 1 %.
NUMBER_COST = 2.0
# Nothing here is known better than that.
KNOWN_MM = 0.01
# Marks that are shifted like the touches, to within this share of the touches' shift, tell of one cause.
ALIKE_SHARE = 0.5
# A mean vector of fewer touches on one side of a jump would be an outlier's.
HALF_MIN = 4


@dataclass(frozen=True)
class _Pattern:
    """One explanation: how many numbers it has, what it leaves unexplained, and what it would be called."""

    numbers: int
    unexplained: float
    cause: str


def touch_cause(
    screen: ScreenGeometry, targets_mm: Points, errors_mm: Points, marks_shift_mm: Pair | None = None
) -> str:
    """Say what most likely made touches at targets_mm (N, 2), in the order they were made, land errors_mm (N, 2) off.

    marks_shift_mm: the mean shift of the page's control marks in the same pictures, None where not measured. The
    patterns are weighed by what they leave unexplained and how many numbers they need (Schwarz 1978, with NUMBER_COST).
    """
    unit = (targets_mm - np.array([screen.width_mm, screen.height_mm]) / 2.0) / (screen.height_mm / 2.0)
    if _one_alone(targets_mm, errors_mm):
        return (
            f"only the touch at ({_worst_place(targets_mm, errors_mm)}) mm is off: that place: dirt, a notification, a "
            "bump; clean it and repeat"
        )
    count = errors_mm.size
    # Without a floor a perfect pattern would beat any other.
    floor = count * KNOWN_MM**2

    def worth(pattern: _Pattern) -> float:
        fit = count * float(np.log((pattern.unexplained + floor) / count))
        return fit + NUMBER_COST * pattern.numbers * float(np.log(count))

    best = min(
        (
            _scatter(screen, targets_mm, errors_mm),
            _shift(errors_mm, marks_shift_mm),
            _jump(errors_mm),
            _turn_or_scale(screen, unit, errors_mm),
            *_bends(unit, errors_mm),
        ),
        key=worth,
    )
    return best.cause


def marks_cause(drawn_mm: Points, errors_mm: Points) -> str:
    """Say what most likely makes control marks at drawn_mm (N, 2) be seen errors_mm (N, 2) off."""
    mean = errors_mm.mean(axis=0)
    rest = errors_mm - mean
    if float((rest**2).sum()) < float(len(errors_mm) * (mean**2).sum()):
        return (
            f"all marks are shifted by ({mean[0]:+.3f}, {mean[1]:+.3f}) mm: page or camera moved since the board was "
            "seen, or the board's corners are found to one side (half a pixel)"
        )
    if _one_alone(drawn_mm, errors_mm):
        return f"one mark alone, at ({_worst_place(drawn_mm, errors_mm)}) mm: dirt, a reflection, a notification there"
    about = drawn_mm - drawn_mm.mean(axis=0)
    if _left(np.column_stack([np.ones(len(about)), about]), errors_mm) < 0.3 * float((rest**2).sum()):
        return (
            "the marks' errors grow evenly from the middle: the page is zoomed, or the screen's configured size in mm "
            "or px is wrong"
        )
    return "the marks' errors have no common direction: the lens or a bent screen; check focus, glare and exposure"


def _worst_place(places_mm: Points, errors_mm: Points) -> str:
    """The place of the worst error, as text."""
    worst = int(np.argmax(np.linalg.norm(errors_mm - np.median(errors_mm, axis=0), axis=1)))
    return f"{places_mm[worst][0]:.1f}, {places_mm[worst][1]:.1f}"


def _one_alone(places_mm: Points, errors_mm: Points) -> bool:
    """Whether one error is like no other, also not like the others' pattern, should they have one."""
    about = places_mm - places_mm.mean(axis=0)
    design = np.column_stack([np.ones(len(about)), about / np.abs(about).max()])
    keep = np.ones(len(errors_mm), dtype=np.bool_)
    worst = int(np.argmax(np.linalg.norm(errors_mm - np.median(errors_mm, axis=0), axis=1)))
    keep[worst] = False
    solution = np.linalg.lstsq(design[keep], errors_mm[keep], rcond=None)[0]
    off = np.linalg.norm(errors_mm - design @ solution, axis=1)
    sigma = max(float(np.median(off[keep])) / MEDIAN_PER_SIGMA, KNOWN_MM)
    return bool(off[worst] > ALONE_SIGMAS * sigma and off[worst] > 2.0 * float(off[keep].max()))


def _scatter(screen: ScreenGeometry, targets_mm: Points, errors_mm: Points) -> _Pattern:
    unexplained = float((errors_mm**2).sum())
    size = np.array([screen.width_mm, screen.height_mm])
    rim = np.minimum(targets_mm, size - targets_mm).min(axis=1) < EDGE_SHARE * screen.width_mm
    away = np.linalg.norm(errors_mm, axis=1)
    if min(int(rim.sum()), int((~rim).sum())) >= EDGE_TOUCHES_MIN:
        edge, inner = (float(np.sqrt((away[part] ** 2).mean())) for part in (rim, ~rim))
        if edge > EDGE_RATIO * inner:
            return _Pattern(
                0, unexplained, _edge_words(f"{edge:.2f} mm at the edges, {inner:.2f} mm further in")
            )
    rms = float(np.sqrt((away**2).mean()))
    return _Pattern(
        0,
        unexplained,
        f"errors of {rms:.2f} mm r.m.s. without a pattern: loose stylus or phone: the hand does not repeat; "
        "tighten both",
    )


def _shift(errors_mm: Points, marks_shift_mm: Pair | None) -> _Pattern:
    mean = errors_mm.mean(axis=0)
    words = f"all touches are shifted by ({mean[0]:+.2f}, {mean[1]:+.2f}) mm: "
    if marks_shift_mm is None:
        words += "the phone or the stylus was moved"
    elif np.linalg.norm(mean - marks_shift_mm) < ALIKE_SHARE * np.linalg.norm(mean):
        words += "and the page's control marks alike: the phone or the camera was moved, not the stylus"
    else:
        words += "but the page's control marks are not: the stylus was moved, or the hand lost its zero"
    return _Pattern(2, float(((errors_mm - mean) ** 2).sum()), words)


def _jump(errors_mm: Points) -> _Pattern:
    """One mean before a moment and another after it.

    The moment is chosen from many, which finds a jump in pure noise too: it counts for two numbers beside the four of
    the means.
    """
    best, at = float("inf"), HALF_MIN
    for moment in range(HALF_MIN, len(errors_mm) - HALF_MIN + 1):
        halves = (errors_mm[:moment], errors_mm[moment:])
        left = sum(float(((half - half.mean(axis=0)) ** 2).sum()) for half in halves)
        if left < best:
            best, at = left, moment
    jump = errors_mm[at:].mean(axis=0) - errors_mm[:at].mean(axis=0)
    return _Pattern(
        6,
        best,
        f"from touch {at + 1} on all land ({jump[0]:+.2f}, {jump[1]:+.2f}) mm from where they did before: something "
        "was bumped or slipped in between (phone, stylus, a lost step); fix it and start again",
    )


def _turn_or_scale(screen: ScreenGeometry, unit: Points, errors_mm: Points) -> _Pattern:
    design = np.column_stack([np.ones(len(unit)), unit])
    matrix = np.linalg.lstsq(design, errors_mm, rcond=None)[0][1:].T / (screen.height_mm / 2.0)
    turn = (matrix[1, 0] - matrix[0, 1]) / 2.0
    stretch = (matrix[0, 0] + matrix[1, 1]) / 2.0
    name = "rotation" if abs(turn) > abs(stretch) else "scale"
    return _Pattern(
        6,
        _left(design, errors_mm),
        f"errors grow from the centre: {name} (turned by {np.degrees(turn):+.3f} degrees, {stretch * 100:+.3f} % "
        "longer): the phone was turned, or a drive's steps per mm changed; fix the phone, calibrate again",
    )


def _bends(unit: Points, errors_mm: Points) -> tuple[_Pattern, _Pattern]:
    ones, square = np.ones((len(unit), 1)), (unit**2).sum(axis=1, keepdims=True)
    bowed = _left(np.hstack([ones, unit**2]), errors_mm)
    # One number for both axes: along the radius, growing with its cube, as an unmodelled lens does.
    radial = square * unit
    about, off = radial - radial.mean(axis=0), errors_mm - errors_mm.mean(axis=0)
    along = float((about * off).sum()) / max(float((about**2).sum()), 1e-12)
    words = _edge_words("errors bend over the screen")
    return _Pattern(6, bowed, words), _Pattern(3, float(((off - along * about) ** 2).sum()), words)


def _edge_words(what: str) -> str:
    return f"errors grow towards the edges ({what}): the lens or a bent screen; check focus; more places"


def _left(design: Matrix, values: Matrix) -> float:
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    left: Vector = np.asarray((values - design @ solution).ravel(), dtype=np.float64)
    return float(left @ left)


def mean_shift(pairs: Sequence[tuple[Pair, Pair]]) -> Pair:
    """The mean of second less first over pairs of places, mm."""
    shift = np.mean([np.subtract(seen, drawn) for drawn, seen in pairs], axis=0)
    return float(shift[0]), float(shift[1])
