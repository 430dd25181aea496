"""Finding the height of the glass by touches that either leave a dot or do not, and the plane through it."""

from dataclasses import dataclass

import numpy as np

from calibration.errors import ContactNotFound, FitRefused
from calibration.fitting import Matrix, Vector, require_rank
from calibration.models import ContactPlane

# Heights are repeatable to a few hundredths of a mm: an interval may miss its plane by so much.
HEIGHT_NOISE_MM = 0.1
# Curved glass, or a screen that gives way in its middle, leaves a plane by so much and can still be pressed by it.
CURVED_MAX_MM = 0.25
# So many touches in a row that all met the glass, each lower than the free height before them, make that free
# height doubtful: a touch that the phone missed looks like free air.
DOUBTFUL_AFTER = 2


class HeightSearch:
    """Closes in on the contact height at one place. No touch goes further than one step below free air.

    `free_mm` is a height that is above the glass: found so by a touch without a dot, or assumed. An assumed
    bound at which the search ends is checked by a touch of its own, and so is a free height that everything
    since speaks against.
    """

    def __init__(
        self,
        free_mm: float,
        touching_mm: float | None,
        *,
        step_mm: float,
        resolution_mm: float,
        floor_mm: float,
    ) -> None:
        self._free, self._free_known = free_mm, False
        self._touching, self._touching_known = touching_mm, False
        self._step, self._resolution, self._floor = step_mm, resolution_mm, floor_mm
        self._widen = 4.0 * resolution_mm
        self._touched_since_free = 0

    def next_press_z(self) -> float | None:
        """The height of the next touch in mm, or None when the contact is known well enough.

        Raises ContactNotFound when nothing was met down to the floor.
        """
        if self._touching is None:
            return self._above_floor(self._free - self._step)
        if self._free - self._touching > 2.0 * self._resolution:
            return self._above_floor(max((self._free + self._touching) / 2.0, self._free - self._step))
        if not self._touching_known:
            return self._above_floor(self._touching)
        if not self._free_known or self._touched_since_free >= DOUBTFUL_AFTER:
            return self._free
        return None

    def feed(self, press_z_mm: float, touched: bool) -> None:
        """Tell the search whether the touch at that height left a dot."""
        if touched:
            self._touching, self._touching_known = press_z_mm, True
            self._touched_since_free += 1
            if press_z_mm >= self._free:
                self._free, self._free_known = press_z_mm + self._widen, False
                self._widen *= 2.0
        else:
            self._free, self._free_known = press_z_mm, True
            self._touched_since_free = 0
            if self._touching is not None and press_z_mm <= self._touching:
                self._touching, self._touching_known = press_z_mm - self._widen, False
                self._widen *= 2.0

    def result(self) -> tuple[float, float]:
        """(contact height, half width of the interval it lies in), mm. Only once next_press_z gave None."""
        assert self._touching is not None
        return (self._free + self._touching) / 2.0, (self._free - self._touching) / 2.0

    def _above_floor(self, press_z_mm: float) -> float:
        if press_z_mm < self._floor:
            raise ContactNotFound(
                f"no touch was seen down to {self._free:.2f} mm, and {press_z_mm:.2f} mm is below the "
                f"lowest safe height of {self._floor:.2f} mm; check that the screen is under the hand, that "
                "it shows the dots page, and that the stylus is one that the screen can feel"
            )
        return press_z_mm


@dataclass(frozen=True)
class Site:
    """The contact height at one place: hand mm, and the half width of the interval it lies in."""

    x_mm: float
    y_mm: float
    contact_mm: float
    half_width_mm: float


@dataclass(frozen=True)
class Prediction:
    """A contact height to expect, by how much it may be wrong either way, and how the glass slopes there."""

    contact_mm: float
    within_mm: float
    slope_x: float
    slope_y: float


def predict(sites: list[Site], x_mm: float, y_mm: float, tilt_max: float) -> Prediction:
    """What the sites known so far say of another place.

    With three sites or more the plane through them, with the worst that their intervals allow; with fewer
    the nearest site's height, give or take the steepest glass that a rig may have.
    """
    if len(sites) >= 3:
        heights = np.array([site.contact_mm for site in sites])
        widths = np.array([site.half_width_mm for site in sites])
        solve = np.linalg.pinv(_design(sites))
        weights = solve.T @ np.array([x_mm, y_mm, 1.0])
        slope_x, slope_y, _ = solve @ heights
        return Prediction(
            contact_mm=float(weights @ heights),
            within_mm=float(np.abs(weights) @ widths) + HEIGHT_NOISE_MM,
            slope_x=float(slope_x),
            slope_y=float(slope_y),
        )
    nearest = min(sites, key=lambda site: np.hypot(site.x_mm - x_mm, site.y_mm - y_mm))
    distance = float(np.hypot(nearest.x_mm - x_mm, nearest.y_mm - y_mm))
    within = nearest.half_width_mm + HEIGHT_NOISE_MM + tilt_max * distance
    return Prediction(nearest.contact_mm, within, slope_x=0.0, slope_y=0.0)


def fit_plane(sites: list[Site]) -> ContactPlane:
    """The plane through the sites, weighted by their intervals.

    Raises FitRefused for sites in a line, or a site further from the plane than its interval and glass that is
    curved or gives way explain.
    """
    design = _design(sites)
    heights = np.array([site.contact_mm for site in sites])
    widths = np.array([site.half_width_mm for site in sites])
    weight = 1.0 / (widths + HEIGHT_NOISE_MM / 3.0)
    middle = design.mean(axis=0) * [1.0, 1.0, 0.0]
    spread = np.append(np.ptp(design[:, :2], axis=0).max() * np.ones(2), 1.0)
    unit = (design - middle) / spread
    require_rank(unit * weight[:, None], "contact plane")
    slope_x, slope_y, level = np.linalg.lstsq(unit * weight[:, None], heights * weight, rcond=None)[0]
    a, b = float(slope_x / spread[0]), float(slope_y / spread[1])
    plane = ContactPlane(a=a, b=b, c=float(level - a * middle[0] - b * middle[1]))
    off = _off_plane(plane, sites)
    worst = int(np.argmax(np.abs(off) - widths))
    if abs(off[worst]) > widths[worst] + CURVED_MAX_MM:
        raise FitRefused(
            f"the glass at hand ({sites[worst].x_mm:.1f}, {sites[worst].y_mm:.1f}) mm is {off[worst]:+.2f} mm "
            f"off a plane through all places, the limit is {CURVED_MAX_MM} mm; "
            "check that the phone lies firmly, the stylus is tight, and the "
            "screen is flat"
        )
    return plane


def plane_residual_mm(plane: ContactPlane, sites: list[Site]) -> float:
    """The largest distance of a site's height from the plane: curvature, compliance and the search's own width."""
    return float(np.abs(_off_plane(plane, sites)).max())


def _off_plane(plane: ContactPlane, sites: list[Site]) -> Vector:
    return np.array([site.contact_mm - plane.contact_z(site.x_mm, site.y_mm) for site in sites])


def _design(sites: list[Site]) -> Matrix:
    return np.array([[site.x_mm, site.y_mm, 1.0] for site in sites])
