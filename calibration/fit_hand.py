"""From touches (commanded hand mm, seen screen mm) to a HandModel, chosen by leave-one-out."""

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused, ResidualRefused
from calibration.fitting import Vector, fit_homography, require_rank
from calibration.models import POLYNOMIAL_TERMS, HandKind, HandModel
from calibration.screen import GRID, ScreenGeometry
from calibration.targets import Points

# From the fewest parameters to the most.
KINDS: tuple[HandKind, ...] = ("affine", "homography", "quadratic")
PLACES_NEEDED: dict[HandKind, int] = {"affine": 3, "homography": 4, "quadratic": 6}
# A touch this many robust standard deviations off, and at least 0.3 mm, was no clean touch.
OUTLIER_SIGMAS = 6.0
OUTLIER_MIN_MM = 0.3
OUTLIERS_MAX = 2
# Leave-one-out r.m.s. beyond this cannot pass an acceptance; a sound hand stays below 0.1 mm.
SCATTER_MAX_MM = 0.3


class HandQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leave-one-out r.m.s. in hand mm of each model that could be fitted, and which touches were dropped."""

    leave_one_out_rms_mm: dict[str, float]
    places: int
    outliers: tuple[int, ...]


@dataclass(frozen=True)
class _Choice:
    kind: HandKind
    errors: dict[HandKind, Vector]


def fit_hand(screen: ScreenGeometry, seen_mm: Points, hand_mm: Points) -> tuple[HandModel, HandQuality]:
    """Choose and fit the model grid -> hand: the simplest within one standard error of the best.

    seen_mm (N, 2) is where the dots were, screen mm; hand_mm (N, 2) is where the hand was sent. Touches far
    from what all others say are dropped, two at most, and named by index in the result. Raises
    ResidualRefused when there are more or all scatter, FitRefused when the places determine no model.
    """
    grid = screen.mm_to_grid(seen_mm)
    good = np.ones(len(grid), dtype=np.bool_)
    choice = _choose(grid, hand_mm)
    for _ in range(OUTLIERS_MAX + 1):
        errors = choice.errors[choice.kind]
        sigma = float(np.median(errors)) / 1.177
        worst = int(np.argmax(errors))
        if errors[worst] <= max(OUTLIER_SIGMAS * sigma, OUTLIER_MIN_MM):
            break
        if int((~good).sum()) == OUTLIERS_MAX:
            raise ResidualRefused(
                f"after dropping {OUTLIERS_MAX} of {len(grid)} touches another is {errors[worst]:.2f} mm off "
                "what the rest predict; check that the stylus is tight and the phone is fixed, start again"
            )
        good[np.flatnonzero(good)[worst]] = False
        choice = _choose(grid[good], hand_mm[good])
    scatter = float(np.sqrt((choice.errors[choice.kind] ** 2).mean()))
    if scatter > SCATTER_MAX_MM:
        raise ResidualRefused(
            f"touches scatter by {scatter:.2f} mm r.m.s. around the best model ({choice.kind}), the limit is "
            f"{SCATTER_MAX_MM} mm; check that the stylus is tight and the phone is fixed, start again"
        )
    return fit_kind(choice.kind, grid[good], hand_mm[good]), HandQuality(
        leave_one_out_rms_mm={
            kind: float(np.sqrt((errors**2).mean())) for kind, errors in choice.errors.items()
        },
        places=int(good.sum()),
        outliers=tuple(int(i) for i in np.flatnonzero(~good)),
    )


def fit_kind(kind: HandKind, grid: Points, hand_mm: Points) -> HandModel:
    """Fit one kind of model, least squares in hand mm.

    Raises FitRefused when the places do not determine it.
    """
    if len(grid) < PLACES_NEEDED[kind]:
        raise FitRefused(
            f"a hand model of kind {kind} needs {PLACES_NEEDED[kind]} places, got {len(grid)}; touch more"
        )
    unit = grid / (GRID / 2.0) - 1.0
    if kind == "homography":
        matrix = fit_homography(unit, hand_mm)
        return HandModel(kind=kind, coefficients=tuple(float(v) for v in matrix.ravel()))
    design = POLYNOMIAL_TERMS[kind](unit)
    require_rank(design, f"{kind} hand model")
    solution = np.linalg.lstsq(design, hand_mm, rcond=None)[0]
    return HandModel(kind=kind, coefficients=tuple(float(v) for v in solution.T.ravel()))


def leave_one_out(kind: HandKind, grid: Points, hand_mm: Points) -> Vector:
    """The distance in mm of each touch from the model fitted to all the others; (N,). Raises FitRefused."""
    errors = np.empty(len(grid))
    for out in range(len(grid)):
        keep: npt.NDArray[np.bool_] = np.arange(len(grid)) != out
        model = fit_kind(kind, grid[keep], hand_mm[keep])
        errors[out] = np.linalg.norm(model.map_grid(grid[out : out + 1])[0] - hand_mm[out])
    return errors


def _choose(grid: Points, hand_mm: Points) -> _Choice:
    errors: dict[HandKind, Vector] = {}
    refusals: list[str] = []
    for kind in KINDS:
        try:
            errors[kind] = leave_one_out(kind, grid, hand_mm)
        except FitRefused as refusal:
            refusals.append(f"{kind}: {refusal}")
    if not errors:
        raise FitRefused("the touches determine no hand model at all: " + "; ".join(refusals))
    losses = {kind: loss**2 for kind, loss in errors.items()}
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    limit = float(best.mean()) + float(best.std(ddof=1)) / np.sqrt(len(best))
    return _Choice(next(kind for kind in losses if float(losses[kind].mean()) <= limit), errors)
