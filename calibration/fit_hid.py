"""From touches of a HID board to the model that says what to report for a place on the screen."""

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused, OutsideModel, ResidualRefused
from calibration.fitting import Matrix, deleted_residuals, require_rank
from calibration.outliers import clean_touches
from calibration.screen import GRID, Pair, ScreenGeometry
from calibration.targets import Points

PLACES_MIN = 5
# With fewer places than this it cannot be told which of them is wrong, only that they scatter.
PLACES_TO_JUDGE = 8
# Nothing mechanical is in a HID touch: what is left is rounding, and the camera's 0.02 mm.
SCATTER_MAX_MM = 0.3
# How far beyond 0..1 a fraction may come out and still mean the area's edge: what 12 places seen to 0.02 mm leave
# unknown is 0.0003 of a screen's width, one standard error at its edge.
EDGE_UNKNOWN = 0.0015
# A pointer without acceleration carries the same way per count everywhere; a path bent by this over the screen is not
# such a one, unless its scatter may have made that by chance.
BEND_MAX_MM = 0.5
BEND_SIGMAS = 4.0


class HidQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leave-one-out r.m.s. in screen mm, how many places were used, and which touches were dropped."""

    leave_one_out_rms_mm: float
    places: int
    outliers: tuple[int, ...]


class DigitizerModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Grid units (portrait) to fractions of the digitizer's axes: fraction = a + b x + c y for each axis.

    x and y are grid / 1000. Margins show as an offset and a scale, a turned area as swapped terms.
    """

    x: tuple[float, float, float]
    y: tuple[float, float, float]

    def grid_to_fraction(self, x: float, y: float) -> Pair:
        """Grid units 0..1000 to the axes' fractions; not checked to lie within 0..1."""
        u, v = x / GRID, y / GRID
        return (
            self.x[0] + self.x[1] * u + self.x[2] * v,
            self.y[0] + self.y[1] * u + self.y[2] * v,
        )

    def reachable_fraction(self, x: float, y: float) -> Pair:
        """Grid units 0..1000 to fractions within 0..1, to report.

        A fraction beyond 0..1 by less than the fit can know (EDGE_UNKNOWN) is the area's edge itself. Raises
        OutsideModel off the grid, and for a place that the digitizer's area does not cover.
        """
        if not (0.0 <= x <= GRID and 0.0 <= y <= GRID):
            raise OutsideModel(f"grid place ({x}, {y}) is off the screen; both must be 0 to {GRID:g}")
        needed = np.array(self.grid_to_fraction(x, y))
        reported = np.clip(needed, 0.0, 1.0)
        if float(np.abs(needed - reported).max()) > EDGE_UNKNOWN:
            raise OutsideModel(
                f"grid place ({x}, {y}) needs the digitizer's fractions ({needed[0]:.4f}, {needed[1]:.4f}); its area "
                "does not reach there: give the board the whole screen's area and calibrate again"
            )
        return float(reported[0]), float(reported[1])

    def unreachable_grid(self) -> dict[str, float]:
        """How far in from each edge of the screen no fraction within 0..1 reaches, in grid units.

        Keys left, right, top, bottom (portrait); edges that are reached to the end are left out. For an area that
        is turned by a few degrees it is the worst along the edge.
        """
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        matrix, offset = np.array([self.x[1:], self.y[1:]]), np.array([self.x[0], self.y[0]])
        needed = corners @ matrix.T + offset
        limited = np.clip(needed, 0.0, 1.0)
        # What is missing of each fraction, brought to the screen; what the fit cannot know is not missing.
        missing = np.where(np.abs(needed - limited) > EDGE_UNKNOWN, limited - needed, 0.0)
        inward = np.linalg.solve(matrix, missing.T).T * np.where(corners == 0.0, 1.0, -1.0) * GRID
        worst = {
            "left": float(inward[corners[:, 0] == 0.0, 0].max()),
            "right": float(inward[corners[:, 0] == 1.0, 0].max()),
            "top": float(inward[corners[:, 1] == 0.0, 1].max()),
            "bottom": float(inward[corners[:, 1] == 1.0, 1].max()),
        }
        return {edge: margin for edge, margin in worst.items() if margin > EDGE_UNKNOWN * GRID / 2.0}


class PointerModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far one count carries the pointer, at `step` counts a report: screen mm.

    home_counts: enough of them, up and left, bring it into the corner from anywhere. home_x_mm, home_y_mm: where the
    pointer's tip stands there.
    """

    mm_per_count_x: float
    mm_per_count_y: float
    step_counts: int
    home_counts: int
    home_x_mm: float = 0.0
    home_y_mm: float = 0.0

    def mm_to_counts(self, x_mm: float, y_mm: float) -> tuple[int, int]:
        """Screen mm to whole counts from the top left corner; negative beyond what the home corner lets it reach."""
        return (
            round((x_mm - self.home_x_mm) / self.mm_per_count_x),
            round((y_mm - self.home_y_mm) / self.mm_per_count_y),
        )


def fit_digitizer(
    screen: ScreenGeometry, seen_mm: Points, fractions: Points
) -> tuple[DigitizerModel, HidQuality]:
    """Fit what to report for a place, from touches at fractions (N, 2) seen at seen_mm (N, 2), screen mm.

    Affine: an area with margins, turned by quarters or mirrored, is that. Touches far from what all others say are
    dropped, two at most, and named. Raises FitRefused for too few places or an area that has no extent, and for a
    screen whose edge lies beyond the digitizer's area (the message names edge and margin; fit_digitizer_area gives
    the model anyway); ResidualRefused when touches scatter.
    """
    model, quality = fit_digitizer_area(screen, seen_mm, fractions)
    short = model.unreachable_grid()
    if short:
        edges = ", ".join(f"{edge} {margin:.1f}" for edge, margin in short.items())
        raise FitRefused(
            f"the digitizer's area does not cover the screen, grid units that cannot be touched: {edges}; turn the "
            "phone to the orientation the board was set up for, or give the board the whole screen's area"
        )
    return model, quality


def fit_digitizer_area(
    screen: ScreenGeometry, seen_mm: Points, fractions: Points
) -> tuple[DigitizerModel, HidQuality]:
    """As fit_digitizer, for an area that need not cover the screen."""
    _require_places(seen_mm, fractions)
    # Seen = affine(sent) first: the scatter is in what is seen, and is judged in screen mm.
    sent = np.column_stack([np.ones(len(fractions)), 2.0 * fractions - 1.0])
    good = _clean(sent, seen_mm, "digitizer's area")
    quality = _quality(good, deleted_residuals(sent[good], seen_mm[good], "digitizer's area"))
    solution = np.linalg.lstsq(sent[good], screen.mm_to_grid(seen_mm[good]) / GRID, rcond=None)[0]
    to_grid = solution[1:].T * 2.0
    origin = solution[0] - solution[1] - solution[2]
    if not abs(float(np.linalg.det(to_grid))) > 1e-3:
        raise FitRefused(
            "the digitizer's two axes move the dot along one line; check the board's profile and that both axes work"
        )
    back = np.linalg.inv(to_grid)
    offset = -back @ origin
    x, y = ((float(o), float(row[0]), float(row[1])) for o, row in zip(offset, back, strict=True))
    return DigitizerModel(x=x, y=y), quality


def fit_pointer(
    screen: ScreenGeometry,
    seen_mm: Points,
    counts: Points,
    *,
    step_counts: int,
    home_counts: int,
) -> tuple[PointerModel, HidQuality]:
    """Fit one gain per axis and the home corner, from clicks `counts` (N, 2) from home seen at seen_mm (N, 2).

    step_counts and home_counts are how the touches were made, and how they must be made from then on. Touches far
    from what all others say are dropped, two at most, and named. Raises FitRefused for too few places or a gain that
    is not positive; ResidualRefused with the cause "pointer acceleration" when the path per count grows along an
    axis, and when clicks scatter.
    """
    _require_places(seen_mm, counts)
    reach = np.abs(counts).max(axis=0)
    if not np.all(reach > 0):
        raise FitRefused("all clicks were made at the home corner on one axis; click over the whole screen")
    unit = 2.0 * counts / reach - 1.0
    good = _clean(np.column_stack([np.ones(len(unit)), unit]), seen_mm, "pointer's path")
    _require_no_acceleration(unit[good], seen_mm[good])
    straight = [np.column_stack([np.ones(int(good.sum())), unit[good, axis]]) for axis in range(2)]
    lines = [np.linalg.lstsq(straight[axis], seen_mm[good, axis], rcond=None)[0] for axis in range(2)]
    off = [
        deleted_residuals(straight[axis], seen_mm[good, axis : axis + 1], "pointer's gain")
        for axis in range(2)
    ]
    gains = np.array([2.0 * slope / most for (_, slope), most in zip(lines, reach, strict=True)])
    homes = [middle - slope for middle, slope in lines]
    if not np.all(gains > 0.0):
        raise FitRefused(
            f"the pointer moves {gains[0]:.4f} mm right per count right and {gains[1]:.4f} mm down per count down; "
            "both must be positive: check the phone's orientation and the pointer settings"
        )
    return PointerModel(
        mm_per_count_x=float(gains[0]),
        mm_per_count_y=float(gains[1]),
        step_counts=step_counts,
        home_counts=home_counts,
        home_x_mm=float(homes[0]),
        home_y_mm=float(homes[1]),
    ), _quality(good, np.hstack(off))


def _require_no_acceleration(unit: Points, seen_mm: Points) -> None:
    for axis, name in enumerate("xy"):
        if len(np.unique(unit[:, axis])) < 3:
            continue  # two distances from home say nothing of a bend
        design = np.column_stack([np.ones(len(unit)), unit[:, axis], unit[:, axis] ** 2])
        solution = np.linalg.lstsq(design, seen_mm[:, axis], rcond=None)[0]
        off = seen_mm[:, axis] - design @ solution
        variance = float(off @ off) / max(len(unit) - 3, 1)
        by_chance = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[2, 2]))
        bend_mm = float(solution[2])
        if abs(bend_mm) > max(BEND_MAX_MM, BEND_SIGMAS * by_chance):
            raise ResidualRefused(
                f"pointer acceleration: lower step_counts (the pointer's way along {name} is bent by {bend_mm:+.2f} "
                f"mm over the screen, the limit is {BEND_MAX_MM} mm), or switch pointer acceleration off"
            )


def _clean(design: Matrix, seen_mm: Points, what: str) -> npt.NDArray[np.bool_]:
    require_rank(design, what)
    if len(design) < PLACES_TO_JUDGE:
        return np.ones(len(design), dtype=np.bool_)
    return clean_touches(design, seen_mm, what)


def _quality(good: npt.NDArray[np.bool_], off_mm: Matrix) -> HidQuality:
    rms = float(np.sqrt((off_mm**2).sum(axis=1).mean()))
    if not rms <= SCATTER_MAX_MM:
        raise ResidualRefused(
            f"touches scatter by {rms:.2f} mm r.m.s. around the best straight map, the limit is {SCATTER_MAX_MM} mm; "
            "check that the phone is fixed and that pointer acceleration is off, start again"
        )
    return HidQuality(
        leave_one_out_rms_mm=rms,
        places=int(good.sum()),
        outliers=tuple(int(i) for i in np.flatnonzero(~good)),
    )


def _require_places(seen_mm: Points, sent: Points) -> None:
    if len(seen_mm) != len(sent) or len(sent) < PLACES_MIN or not np.all(np.isfinite([seen_mm, sent])):
        raise FitRefused(
            f"{len(sent)} touches sent and {len(seen_mm)} seen; at least {PLACES_MIN} pairs are needed; touch more"
        )
