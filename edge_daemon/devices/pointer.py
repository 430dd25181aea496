"""Counts of a relative pointer, said as the board takes them: a place between 0 and 1 of a span."""

from dataclasses import dataclass

from edge_daemon.boards.hid import PointerScale


@dataclass(frozen=True)
class PointerPlace:
    """What `HidClient.pointer_tap` is told: fractions x, y of the scale's spans."""

    x: float
    y: float
    scale: PointerScale


def place_of_counts(x_counts: int, y_counts: int, home_counts: int, step_counts: int) -> PointerPlace:
    """The place exactly so many counts right and down of the corner.

    Each span is as long as the way itself, so that no rounding lies between the counts and what the board sends; a
    span of nothing is no span to the board.
    """
    scale = PointerScale(max(1, x_counts), max(1, y_counts), home_counts, step_counts)
    return PointerPlace(float(x_counts > 0), float(y_counts > 0), scale)
