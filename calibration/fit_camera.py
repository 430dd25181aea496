"""From the board's corners in one view to a CameraModel, judged by corners that the fit did not see."""

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import CoverageRefused, FitRefused, ResidualRefused
from calibration.fitting import (
    Matrix,
    Vector,
    apply_homography,
    as_good,
    fit_homography,
    gauss_newton,
    normalisation,
)
from calibration.models import CameraModel, distort
from calibration.screen import ScreenGeometry
from calibration.targets import Points

# The lens terms that are tried beyond the homography, as places in (k1, k2, p1, p2), by their number. The simplest
# within one standard error of the best on held-out corners is taken (`as_good`). p1 and p2 also stand for a principal
# point off the picture's middle: with 12 px of that, and k3 up to 0.02, all four miss by 0.0025 mm at worst without
# noise. At 0.1 px of corner noise and 5 pictures the worst place of the screen is typically 0.012 mm off, 0.051 mm in
# the worst of 200 simulated cameras. A k3 would make 0.034 mm of the former, a free centre gains nothing.
LENS_TERMS: dict[int, tuple[int, ...]] = {0: (), 1: (0,), 2: (0, 1), 3: (0, 2, 3), 4: (0, 1, 2, 3)}
FOLDS = 4
# A corner this many robust standard deviations off (and at least 0.5 px) was mis-detected: glare, dust.
OUTLIER_SIGMAS = 6.0
OUTLIER_MIN_PX = 0.5
OUTLIER_SHARE_MAX = 0.1
# Least share of the board's corners that must be seen, and of the screen that they must span each way.
CORNER_SHARE_MIN = 0.6
SPAN_MIN = 0.7


class CameraQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How well the model predicts corners that it was not fitted to."""

    held_out_rms_px: float
    held_out_max_px: float
    corners_used: int
    corners_on_board: int
    outlier_ids: tuple[int, ...]
    lens_terms: int


@dataclass(frozen=True)
class _Fit:
    homography: Matrix
    lens: Vector

    def predict(self, screen_mm: Points) -> Points:
        return distort(apply_homography(self.homography, screen_mm), *(float(v) for v in self.lens))


def fit_camera(
    screen: ScreenGeometry,
    image_size: tuple[int, int],
    ids: npt.NDArray[np.int64],
    board_mm: Points,
    seen_px: Points,
    residual_max_px: float,
) -> tuple[CameraModel, CameraQuality]:
    """Fit the model to corners seen in a picture of image_size (width, height).

    ids are the corners' ids, board_mm every corner of the board in screen mm by id, seen_px (N, 2) where
    they were seen. Raises CoverageRefused, ResidualRefused (held-out r.m.s. above residual_max_px, or too
    many mis-detected corners) or FitRefused.
    """
    _require_coverage(screen, ids, board_mm)
    blank = CameraModel(
        image_width=image_size[0],
        image_height=image_size[1],
        homography=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        k1=0.0,
        k2=0.0,
        p1=0.0,
        p2=0.0,
    )
    screen_mm, seen = board_mm[ids], (seen_px - blank.centre) / blank.radius_px
    good = _inliers(screen_mm, seen, blank.radius_px)
    outliers = tuple(int(i) for i in ids[~good])
    if len(outliers) > OUTLIER_SHARE_MAX * len(ids):
        raise ResidualRefused(
            f"{len(outliers)} of {len(ids)} board corners lie where no lens puts them (ids {outliers}); "
            "look for reflections on the glass and check that the board is drawn over the whole screen"
        )
    order = np.arange(int(good.sum())) % FOLDS
    held_out = {
        terms: _held_out_errors(screen_mm[good], seen[good], order, terms) * blank.radius_px
        for terms in LENS_TERMS
    }
    terms = _simplest(held_out)
    rms, worst = float(np.sqrt((held_out[terms] ** 2).mean())), float(held_out[terms].max())
    if not rms <= residual_max_px:
        raise ResidualRefused(
            f"held-out board corners are {rms:.3f} px r.m.s. from the model, the limit is "
            f"{residual_max_px:.3f} px; check the focus, that the screen is flat, and its configured px size"
        )
    fit = _fit(screen_mm[good], seen[good], terms)
    flat = [float(v) for v in (fit.homography / fit.homography[2, 2]).ravel()]
    k1, k2, p1, p2 = (float(v) for v in fit.lens)
    model = msgspec.structs.replace(blank, homography=tuple(flat), k1=k1, k2=k2, p1=p1, p2=p2)
    _require_invertible(model, screen)
    return model, CameraQuality(
        held_out_rms_px=rms,
        held_out_max_px=worst,
        corners_used=int(good.sum()),
        corners_on_board=len(board_mm),
        outlier_ids=outliers,
        lens_terms=terms,
    )


def _fit(screen_mm: Points, seen: Points, terms: int) -> _Fit:
    unit = normalisation(screen_mm)
    flat = apply_homography(unit, screen_mm)
    start = fit_homography(flat, seen)
    if terms == 0:
        return _Fit(np.asarray(start @ unit, dtype=np.float64), np.zeros(4))

    def split(parameters: Vector) -> _Fit:
        lens = np.zeros(4)
        lens[list(LENS_TERMS[terms])] = parameters[8:]
        return _Fit(np.append(parameters[:8], 1.0).reshape(3, 3), lens)

    def distances(parameters: Vector) -> Vector:
        return np.asarray((split(parameters).predict(flat) - seen).ravel(), dtype=np.float64)

    first = np.concatenate([(start / start[2, 2]).ravel()[:8], np.zeros(terms)])
    best = split(gauss_newton(distances, first, "camera model"))
    return _Fit(np.asarray(best.homography @ unit, dtype=np.float64), best.lens)


def _errors(fit: _Fit, screen_mm: Points, seen: Points) -> Vector:
    return np.asarray(np.linalg.norm(fit.predict(screen_mm) - seen, axis=1), dtype=np.float64)


def _inliers(screen_mm: Points, seen: Points, radius_px: float) -> npt.NDArray[np.bool_]:
    good = np.ones(len(seen), dtype=np.bool_)
    for _ in range(3):
        errors = _errors(_fit(screen_mm[good], seen[good], 2), screen_mm, seen) * radius_px
        # The median of a two-dimensional Gaussian's distance is 1.177 sigma.
        sigma = float(np.median(errors[good])) / 1.177
        now = errors <= max(OUTLIER_SIGMAS * sigma, OUTLIER_MIN_PX)
        if np.array_equal(now, good):
            break
        good = now
    return good


def _held_out_errors(screen_mm: Points, seen: Points, fold: npt.NDArray[np.int64], terms: int) -> Vector:
    errors = np.full(len(seen), np.inf)
    for number in range(FOLDS):
        out = fold == number
        errors[out] = _errors(_fit(screen_mm[~out], seen[~out], terms), screen_mm[out], seen[out])
    return errors


def _simplest(held_out: dict[int, Vector]) -> int:
    losses = {terms: errors**2 for terms, errors in held_out.items()}
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    return next(terms for terms in LENS_TERMS if as_good(losses[terms], best))


def _require_coverage(screen: ScreenGeometry, ids: npt.NDArray[np.int64], board_mm: Points) -> None:
    if len(ids) < CORNER_SHARE_MIN * len(board_mm):
        raise CoverageRefused(
            f"only {len(ids)} of the board's {len(board_mm)} corners were seen, at least "
            f"{CORNER_SHARE_MIN:.0%} are needed; bring the whole screen into view, without glare"
        )
    span = np.ptp(board_mm[ids], axis=0) / np.ptp(board_mm, axis=0)
    if float(span.min()) < SPAN_MIN:
        raise CoverageRefused(
            f"the corners seen span {span[0]:.0%} of the board's width and {span[1]:.0%} of its height on a "
            f"screen of {screen.width_mm} x {screen.height_mm} mm, at least {SPAN_MIN:.0%} are needed; "
            "bring the whole screen into view, without glare"
        )


def _require_invertible(model: CameraModel, screen: ScreenGeometry) -> None:
    edge = screen.outline_mm()
    missed = np.abs(model.unproject(model.project(edge)) - edge).max()
    if not float(missed) < 1e-3:
        raise FitRefused("the fitted lens distortion folds back within the screen; improve the focus")
