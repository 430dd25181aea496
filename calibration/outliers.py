"""Which of a fit's touches were no clean touches: a bump, a slip, a dot that was taken for another."""

from itertools import combinations

import numpy as np
import numpy.typing as npt

from calibration.errors import ResidualRefused
from calibration.fitting import Matrix, deleted_residuals

# A touch this many robust standard deviations off, and at least 0.3 mm, was no clean touch.
OUTLIER_SIGMAS = 6.0
OUTLIER_MIN_MM = 0.3
OUTLIERS_MAX = 2
MEDIAN_PER_SIGMA = 1.177  # of the distance of a two-dimensional Gaussian

Mask = npt.NDArray[np.bool_]


def clean_touches(design: Matrix, values_mm: Matrix, what: str) -> Mask:
    """Which touches to use; (N,): all but those, two at most, that are far from what the others say without them.

    design (N, terms) and values_mm (N, 2) make the least-squares fit that all clean touches follow. The two whose
    removal makes the rest agree best are set aside first, every pair is tried (least trimmed squares, Rousseeuw 1984),
    and come back unless the rest refute them. To begin with all would not do: two bad touches side by side pull a fit
    so far that both look good. Raises ResidualRefused when there are more than two, FitRefused as deleted_residuals.
    """
    good = np.ones(len(design), dtype=np.bool_)
    rest = _best_without(design, values_mm, OUTLIERS_MAX)
    agreeing = np.linalg.norm(deleted_residuals(design[rest], values_mm[rest], what), axis=1)
    limit = max(OUTLIER_SIGMAS * float(np.median(agreeing)) / MEDIAN_PER_SIGMA, OUTLIER_MIN_MM)
    worst = float(agreeing.max())
    if worst > limit:
        raise ResidualRefused(
            f"after dropping {OUTLIERS_MAX} of {len(design)} touches another is {worst:.2f} mm off what the rest "
            "predict; check that the phone is fixed, that nothing else touches it and that a stylus is tight"
        )
    predicted = design @ np.linalg.lstsq(design[rest], values_mm[rest], rcond=None)[0]
    good[~rest] = np.linalg.norm(values_mm - predicted, axis=1)[~rest] <= limit
    return good


def _best_without(design: Matrix, values: Matrix, dropped: int) -> Mask:
    """The rows that are left when the `dropped` with the most to gain are not fitted; (N,)."""
    q, _ = np.linalg.qr(design)
    hat = q @ q.T
    residual, free = values - hat @ values, np.eye(len(design)) - hat

    def gained(out: tuple[int, ...]) -> float:
        # By how much the sum of squares falls when these are left out (Cook & Weisberg 1982, 2.2).
        return float((residual[[*out]] * np.linalg.solve(free[np.ix_(out, out)], residual[[*out]])).sum())

    good = np.ones(len(design), dtype=np.bool_)
    good[[*max(combinations(range(len(design)), dropped), key=gained)]] = False
    return good
