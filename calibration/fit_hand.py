"""From touches (commanded hand mm, seen screen mm) to a HandModel, chosen by leave-one-out."""

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused, OutsideModel, ResidualRefused
from calibration.fitting import Vector, as_good, deleted_residuals, fit_homography, require_rank
from calibration.hand_terms import homography_terms, screen_units, terms
from calibration.models import HandKind, HandModel
from calibration.outliers import clean_touches
from calibration.screen import GRID, ScreenGeometry
from calibration.targets import Points
from calibration.thin_plate import ThinPlate

# From the fewest parameters to the most.
KINDS: tuple[HandKind, ...] = ("affine", "homography", "quadratic", "cubic", "thin_plate")
PLACES_NEEDED: dict[HandKind, int] = {
    "affine": 3,
    "homography": 4,
    "quadratic": 6,
    "cubic": 10,
    "thin_plate": 12,
}
# A touch's noise times this is the worst that a fit may make of it anywhere on the screen. 4 x 6 places give 0.6
# (affine) to 1.8 (cubic); a cubic on 3 x 5 places gives over 10: three columns do not tell x³ from x.
NOISE_GAIN_MAX = 3.0
# With fewer places than this it cannot be told which of them is wrong, only that they scatter.
PLACES_TO_JUDGE = 8
PLACES_TO_JUDGE_BENT = 14
# Leave-one-out r.m.s. beyond this cannot pass an acceptance; a sound hand stays below 0.1 mm.
SCATTER_MAX_MM = 0.3
# There and back again over the whole screen: what the product adds of its own.
INVERSE_MAX_MM = 1e-3


class HandQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leave-one-out r.m.s. in hand mm of each model that could be fitted, and which touches were dropped.

    inverse_error_mm: how far grid -> hand -> grid ends from where it began, screen mm, the worst of the whole screen.
    """

    leave_one_out_rms_mm: dict[str, float]
    places: int
    outliers: tuple[int, ...]
    inverse_error_mm: float | None = None


@dataclass(frozen=True)
class _Choice:
    kind: HandKind
    errors: dict[HandKind, Vector]


def fit_hand(screen: ScreenGeometry, seen_mm: Points, hand_mm: Points) -> tuple[HandModel, HandQuality]:
    """Choose and fit the model grid -> hand: the simplest within one standard error of the best.

    seen_mm (N, 2) is where the dots were, screen mm; hand_mm (N, 2) is where the hand was sent. Touches far
    from what all others say are dropped, two at most, and named by index in the result. Raises
    ResidualRefused when there are more or all scatter, FitRefused when the places determine no model or the model
    folds.

    One standard error is that of the DIFFERENCE of two models' leave-one-out losses, touch by touch (paired). The
    textbook's (Hastie et al., 7.10), of the best model's own loss, is mostly the touches' noise, which both models
    share: with 24 places and 0.045 mm of it an affine map stands for a bowed arm in 26 % of 1,000 simulated rigs (5 mm
    inset), with the paired one in 17 %. It is still a rule that prefers too simple to too bent: nothing here can tell
    a bow of less than 0.1 mm from noise, and such a bow costs less than the noise does.

    How many places: 24 in 4 x 6, 7 mm from the edges at most, 5 where the page has room. Simulated, 500 rigs a line:
    arm bowed by up to 0.2 mm, pulleys eccentric by up to 0.03 mm, each rig's 1,000 touches over the screen up to 3 mm
    from its edges, all in mm. "0.045": touch noise an axis; "rig": a drive's 0.025 to 0.035 with a panel's jitter of
    0.010 to 0.025, and 0.02 of the camera's when seen.

    ===================  =====  =========================  ==================================  ===============
    places @ inset       noise  model alone: p50 p95 worst  touches: p50 p95, worst rig p95 max  rigs max > 0.25
    ===================  =====  =========================  ==================================  ===============
    15 = 3 x 5 @ 7 mm    rig    0.035  0.068  0.162         0.054  0.110    0.155  0.244         0
    24 = 4 x 6 @ 7 mm    rig    0.029  0.058  0.229         0.050  0.103    0.140  0.245         0
    24 = 4 x 6 @ 5 mm    rig    0.029  0.056  0.163         0.050  0.103    0.145  0.234         0
    35 = 5 x 7 @ 5 mm    rig    0.026  0.050  0.130         0.048  0.100    0.124  0.229         0
    24 twice    @ 5 mm   rig    0.025  0.046  0.134         0.048  0.099    0.126  0.268         1
    15 = 3 x 5 @ 7 mm    0.045  0.038  0.075  0.170         0.065  0.133    0.175  0.283         28
    24 = 4 x 6 @ 7 mm    0.045  0.032  0.063  0.186         0.061  0.126    0.152  0.275         4
    24 = 4 x 6 @ 5 mm    0.045  0.031  0.060  0.149         0.061  0.125    0.154  0.274         3
    35 = 5 x 7 @ 5 mm    0.045  0.027  0.054  0.153         0.059  0.122    0.148  0.283         2
    24 twice    @ 5 mm   0.045  0.026  0.049  0.142         0.058  0.121    0.144  0.262         4
    ===================  =====  =========================  ==================================  ===============

    p50 and p95 are the typical (median) rig's, worst is over all rigs. The touches' own noise is most of it: alone it
    makes p95 0.110 and, among 1,000 touches, up to 0.245 with 0.045 mm. More than 24 places, or touching them twice,
    gains 0.003 mm of p95.
    """
    unit = _unit(screen.mm_to_grid(seen_mm))
    good = _clean(unit, hand_mm)
    grid, hand = screen.mm_to_grid(seen_mm)[good], hand_mm[good]
    choice = _choose(grid, hand)
    scatter = _rms(choice.errors[choice.kind])
    if not scatter <= SCATTER_MAX_MM:
        raise ResidualRefused(
            f"touches scatter by {scatter:.2f} mm r.m.s. around the best model ({choice.kind}), the limit is "
            f"{SCATTER_MAX_MM} mm; check that the stylus is tight and the phone is fixed, start again"
        )
    model = fit_kind(choice.kind, grid, hand)
    return model, HandQuality(
        leave_one_out_rms_mm={kind: _rms(errors) for kind, errors in choice.errors.items()},
        places=len(grid),
        outliers=tuple(int(i) for i in np.flatnonzero(~good)),
        inverse_error_mm=inverse_error_mm(model, screen),
    )


def fit_kind(kind: HandKind, grid: Points, hand_mm: Points) -> HandModel:
    """Fit one kind of model, least squares in hand mm; a thin plate as smooth as leave-one-out wants it.

    Raises FitRefused when the places do not determine it, or a bent one would be wild between or beyond them.
    """
    _require_places(kind, len(grid))
    unit = _unit(grid)
    if kind == "homography":
        matrix = fit_homography(unit, hand_mm)
        return HandModel(kind=kind, coefficients=tuple(float(v) for v in matrix.ravel()))
    if kind == "thin_plate":
        plate = ThinPlate(unit, hand_mm)
        return HandModel(
            kind=kind,
            coefficients=tuple(float(v) for v in plate.coefficients.T.ravel()),
            knots=tuple((float(x), float(y)) for x, y in unit),
        )
    design = terms(kind, unit, _NO_KNOTS)
    require_rank(design, f"{kind} hand model")
    if kind != "affine":
        _require_tame(kind, unit)
    solution = np.linalg.lstsq(design, hand_mm, rcond=None)[0]
    return HandModel(kind=kind, coefficients=tuple(float(v) for v in solution.T.ravel()))


def leave_one_out(kind: HandKind, grid: Points, hand_mm: Points) -> Vector:
    """The distance in mm of each touch from the model fitted to all the others; (N,).

    In closed form where the model is linear in its numbers. A thin plate keeps the smoothness that was chosen with
    all touches. Raises FitRefused where some touch alone determines part of the model.
    """
    _require_places(kind, len(grid))
    unit = _unit(grid)
    _require_tame(kind, unit)
    if kind == "thin_plate":
        return ThinPlate(unit, hand_mm).left_out
    if kind == "homography":
        return _homography_left_out(grid, hand_mm)
    design = terms(kind, unit, _NO_KNOTS)
    off = deleted_residuals(design, hand_mm, f"{kind} hand model")
    return np.asarray(np.linalg.norm(off, axis=1), dtype=np.float64)


def inverse_error_mm(model: HandModel, screen: ScreenGeometry) -> float:
    """How far grid -> hand -> grid ends from where it began, screen mm: the worst of 33 x 33 places.

    Raises FitRefused "folds" where two places on the screen share one of the hand's, and for INVERSE_MAX_MM.
    """
    unit = screen_units(33)
    grid = (unit + 1.0) * (GRID / 2.0)
    turns = np.linalg.det(model.slopes(unit))
    try:
        back = model.unmap_hand(model.map_grid(grid))
    except OutsideModel:
        back = np.full_like(grid, np.inf)
    worst = float(np.linalg.norm(screen.grid_to_mm(back - grid), axis=1).max())
    if not (worst < INVERSE_MAX_MM and (np.all(turns > 0.0) or np.all(turns < 0.0))):
        raise FitRefused(
            f"the {model.kind} hand model folds within the screen (there and back again misses by {worst:.3g} mm); "
            "touch more places, spread over the whole screen"
        )
    return worst


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
    return _Choice(next(kind for kind in losses if as_good(losses[kind], best)), errors)


def _clean(unit: Points, hand_mm: Points) -> npt.NDArray[np.bool_]:
    """Which touches to use, judged by the richest map that the places bear with two of them missing."""
    if len(unit) < PLACES_TO_JUDGE:
        return np.ones(len(unit), dtype=np.bool_)
    kind: HandKind = "affine"
    if len(unit) >= PLACES_TO_JUDGE_BENT and noise_gain("quadratic", unit) <= NOISE_GAIN_MAX:
        kind = "quadratic"
    return clean_touches(terms(kind, unit, _NO_KNOTS), hand_mm, f"{kind} hand model")


def noise_gain(kind: HandKind, unit: Points) -> float:
    """The model's standard error at the worst place of the whole screen, edges included, per touch noise of 1.

    Infinite where the places do not determine the model.
    """
    screen = screen_units()
    if kind == "homography":
        design, everywhere = homography_terms(unit), homography_terms(screen)
    else:
        design, everywhere = terms(kind, unit, _NO_KNOTS), terms(kind, screen, _NO_KNOTS)
    if len(design) < design.shape[1]:
        return float("inf")
    weights = everywhere @ np.linalg.pinv(design, rcond=1e-12)
    known = np.abs(weights @ design - everywhere).max() < 1e-6
    return float(np.linalg.norm(weights, axis=1).max()) if known else float("inf")


def _require_tame(kind: HandKind, unit: Points) -> None:
    # A thin plate is as tame as its affine part: its bumps are smoothed to half the touches' freedom at most.
    gain = noise_gain("affine" if kind == "thin_plate" else kind, unit)
    if not gain <= NOISE_GAIN_MAX:
        raise FitRefused(
            f"these {len(unit)} places do not determine a {kind} hand model over the whole screen: noise would grow "
            f"{gain:.1f} times at its edges, the limit is {NOISE_GAIN_MAX:g}; use more places, spread over the whole "
            "screen and not along lines"
        )


def _homography_left_out(grid: Points, hand_mm: Points) -> Vector:
    errors = np.empty(len(grid))
    for out in range(len(grid)):
        keep: npt.NDArray[np.bool_] = np.arange(len(grid)) != out
        model = fit_kind("homography", grid[keep], hand_mm[keep])
        errors[out] = np.linalg.norm(model.map_grid(grid[out : out + 1])[0] - hand_mm[out])
    return errors


def _require_places(kind: HandKind, places: int) -> None:
    if places < PLACES_NEEDED[kind]:
        raise FitRefused(
            f"a hand model of kind {kind} needs {PLACES_NEEDED[kind]} places, got {places}; touch more"
        )


def _unit(grid: Points) -> Points:
    return np.asarray(grid / (GRID / 2.0) - 1.0, dtype=np.float64)


def _rms(errors: Vector) -> float:
    return float(np.sqrt((errors**2).mean()))


_NO_KNOTS = np.empty((0, 2))
