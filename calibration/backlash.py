"""The play of the hand's drives, measured by coming to the same place from both sides."""

from collections.abc import Sequence

import msgspec
import numpy as np

from calibration.errors import BacklashTooLarge, FitRefused
from calibration.fitting import Vector

# Play is known no better than its standard error: so many of them are added before it is called taken out.
SIGMAS = 3.0
TOUCHES_MIN = 2


class Backlash(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far apart touches land that came from the low and from the high side, hand mm, each axis on its own.

    x_sigma_mm and y_sigma_mm: standard errors of those two figures.
    """

    x_mm: float
    y_mm: float
    x_sigma_mm: float
    y_sigma_mm: float


def measure_backlash(
    x_low_mm: Sequence[float],
    x_high_mm: Sequence[float],
    y_low_mm: Sequence[float],
    y_high_mm: Sequence[float],
) -> Backlash:
    """Measure the play from repeated touches.

    Each argument is one axis and the side that this axis came from; its numbers are where those touches landed along
    that axis less where they were sent, hand mm: what the hand's model says of the place seen. The play is the mean of
    the high side less the mean of the low side (a drive that comes from below leaves the arm behind, below), its
    standard error that of a difference of two means (Welch). The lengths may differ, two touches a side at least.

    Raises FitRefused for fewer, or for a play that is negative beyond its error: then the sides are swapped or the
    hand slips.
    """
    x_mm, x_sigma_mm = _difference("x", x_low_mm, x_high_mm)
    y_mm, y_sigma_mm = _difference("y", y_low_mm, y_high_mm)
    return Backlash(x_mm=x_mm, y_mm=y_mm, x_sigma_mm=x_sigma_mm, y_sigma_mm=y_sigma_mm)


def require_taken_out(backlash: Backlash, approach_mm: float) -> None:
    """Raise BacklashTooLarge unless coming from approach_mm to one side takes the play out of both axes."""
    for axis, play_mm, sigma_mm in (
        ("x", backlash.x_mm, backlash.x_sigma_mm),
        ("y", backlash.y_mm, backlash.y_sigma_mm),
    ):
        needed = play_mm + SIGMAS * sigma_mm
        if not needed <= approach_mm:
            raise BacklashTooLarge(
                f"hand {axis} has {play_mm:.3f} mm of play, known to ±{sigma_mm:.3f} mm; the hand comes from "
                f"{approach_mm:.3f} mm to one side, at least {needed:.3f} mm are needed; tighten the belt or the "
                "grub screws of that axis, or raise the approach"
            )


def _difference(axis: str, low_mm: Sequence[float], high_mm: Sequence[float]) -> tuple[float, float]:
    low, high = np.asarray(low_mm, dtype=np.float64), np.asarray(high_mm, dtype=np.float64)
    if min(low.size, high.size) < TOUCHES_MIN or not np.all(np.isfinite(np.concatenate([low, high]))):
        raise FitRefused(
            f"the play of hand {axis} needs {TOUCHES_MIN} touches from each side with a place seen, got "
            f"{low.size} from the low and {high.size} from the high side; touch again"
        )
    play_mm = float(high.mean() - low.mean())
    sigma_mm = float(np.sqrt(_variance_of_mean(low) + _variance_of_mean(high)))
    if play_mm < -SIGMAS * sigma_mm:
        raise FitRefused(
            f"touches that came from the high side of hand {axis} landed {-play_mm:.3f} mm below those from the low "
            f"side (±{sigma_mm:.3f} mm): play cannot be negative; check that the hand does not slip, start again"
        )
    return play_mm, sigma_mm


def _variance_of_mean(values: Vector) -> float:
    return float(values.var(ddof=1)) / values.size
