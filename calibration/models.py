"""The three models of a calibrated rig: camera, hand, contact plane. Plain numbers, so they can be stored.

Screen mm, hand mm and camera px are as everywhere in this package: screen mm from the screen's top-left
corner, camera px from the centre of the picture's first pixel, hand z growing away from the glass.
"""

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused, OutsideModel
from calibration.fitting import Matrix, Vector, apply_homography
from calibration.hand_terms import term_count, term_slopes, terms
from calibration.screen import GRID, Pair, ScreenGeometry
from calibration.targets import Points

HandKind = Literal["affine", "homography", "quadratic", "cubic", "thin_plate"]
Maps = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
Nine = tuple[float, float, float, float, float, float, float, float, float]

# Newton's method on a smooth map this close to affine doubles its digits each step: five are enough.
NEWTON_STEPS = 20
NEWTON_CONVERGED = 1e-9
# In half screens from the middle: what Newton finds further out than half a screen off it is another branch.
FAR_OFF = 2.0
# In half diagonals: no picture has pixels so far from its middle.
PICTURE_BEYOND = 2.0
UNPROJECT_MISS_MAX_PX = 1e-6


class CameraModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Screen mm <-> raw camera px: a homography of the flat screen, then lens distortion.

    With q = (px - centre) / radius, u the undistorted q and r² = |u|²:
    q = u (1 + k1 r² + k2 r⁴) + (2 p1 ux uy + p2 (r² + 2 ux²), p1 (r² + 2 uy²) + 2 p2 ux uy)
    (Brown 1966, as in OpenCV, but in units of the picture's half diagonal and not of a focal length: one
    view of a flat board does not tell the focal length, and this model does not need it.)
    """

    image_width: int
    image_height: int
    homography: Nine  # screen mm -> u, row by row
    k1: float
    k2: float
    p1: float
    p2: float

    @property
    def centre(self) -> Vector:
        """The middle of the picture in px, taken as the centre of distortion."""
        return np.array([(self.image_width - 1) / 2.0, (self.image_height - 1) / 2.0])

    @property
    def radius_px(self) -> float:
        """The picture's half diagonal: the unit of q."""
        return float(np.hypot(self.image_width, self.image_height)) / 2.0

    def project(self, screen_mm: Points) -> Points:
        """Screen mm (N, 2) to raw camera px (N, 2)."""
        undistorted = apply_homography(np.array(self.homography).reshape(3, 3), screen_mm)
        return self.centre + self.radius_px * self._distorted(undistorted)

    def unproject(self, camera_px: Points) -> Points:
        """Raw camera px (N, 2) to screen mm (N, 2), by Newton's method on the distortion.

        Raises OutsideModel for pixels well outside the picture, where a lens fitted within it says nothing; for those
        at which its distortion has no inverse; and for those beyond the horizon of the screen's plane.
        """
        wanted = (camera_px - self.centre) / self.radius_px
        undistorted = wanted.copy()
        # Where there is no inverse the iteration runs away; the checks below catch what it leaves.
        with np.errstate(all="ignore"):
            for _ in range(NEWTON_STEPS):
                missed = wanted - self._distorted(undistorted)
                undistorted = undistorted + _solve_each(self._distortion_slopes(undistorted), missed)
            missed = wanted - self._distorted(undistorted)
        if not (
            float(np.abs(wanted).max(initial=0.0)) <= PICTURE_BEYOND
            and float(np.abs(missed).max(initial=0.0)) * self.radius_px < UNPROJECT_MISS_MAX_PX
            and self._before_fold(undistorted)
        ):
            raise OutsideModel(
                "the lens distortion of this calibration has no inverse at some of the given pixels; "
                "ask only for pixels on the screen"
            )
        back = np.linalg.inv(np.array(self.homography).reshape(3, 3))
        # Places on the screen have the denominator's sign of its middle; beyond the horizon it is turned round.
        if not np.all((undistorted @ back[2, :2] + back[2, 2]) / back[2, 2] > 0.0):
            raise OutsideModel(
                "some of the given pixels see nothing of the screen's plane; ask only for pixels on the screen"
            )
        return apply_homography(back, undistorted)

    def _before_fold(self, undistorted: Points) -> bool:
        """Whether the radial part still grows everywhere between the centre and these; a fold has a second root."""
        r = np.linspace(0.0, float(np.linalg.norm(undistorted, axis=1).max(initial=0.0)), 200)
        return bool(np.all(1.0 + 3.0 * self.k1 * r**2 + 5.0 * self.k2 * r**4 > 0.0))

    def _distorted(self, undistorted: Points) -> Points:
        return distort(undistorted, self.k1, self.k2, self.p1, self.p2)

    def _distortion_slopes(self, undistorted: Points) -> Matrix:
        x, y = undistorted[:, 0], undistorted[:, 1]
        r2 = x * x + y * y
        radial, growth = 1.0 + r2 * (self.k1 + r2 * self.k2), 2.0 * (self.k1 + 2.0 * r2 * self.k2)
        across = x * y * growth + 2.0 * (self.p1 * x + self.p2 * y)
        slopes = [
            [radial + x * x * growth + 2.0 * self.p1 * y + 6.0 * self.p2 * x, across],
            [across, radial + y * y * growth + 6.0 * self.p1 * y + 2.0 * self.p2 * x],
        ]
        return np.asarray(np.array(slopes).transpose(2, 0, 1), dtype=np.float64)

    def rectify_maps(self, screen: ScreenGeometry, width: int, height: int) -> Maps:
        """Maps for cv2.remap, float32 (height, width) each: a picture whose edges are the screen's edges."""
        x_mm = (np.arange(width) + 0.5) * (screen.width_mm / width)
        y_mm = (np.arange(height) + 0.5) * (screen.height_mm / height)
        grid_x, grid_y = np.meshgrid(x_mm, y_mm)
        seen = self.project(np.column_stack([grid_x.ravel(), grid_y.ravel()]))
        return (
            seen[:, 0].reshape(height, width).astype(np.float32),
            seen[:, 1].reshape(height, width).astype(np.float32),
        )

    def px_per_mm(self, screen_mm: Points) -> Vector:
        """How many camera px one mm of screen is at each place, geometric mean of both directions; (N,)."""
        right, below = np.array([0.5, 0.0]), np.array([0.0, 0.5])
        across = self.project(screen_mm + right) - self.project(screen_mm - right)
        down = self.project(screen_mm + below) - self.project(screen_mm - below)
        area = np.abs(across[:, 0] * down[:, 1] - across[:, 1] * down[:, 0])
        return np.asarray(np.sqrt(area), dtype=np.float64)


def distort(undistorted: Points, k1: float, k2: float, p1: float, p2: float) -> Points:
    """The lens distortion of CameraModel in units of the half diagonal; (N, 2) to (N, 2)."""
    x, y = undistorted[:, 0], undistorted[:, 1]
    r2 = x * x + y * y
    radial = 1.0 + r2 * (k1 + r2 * k2)
    return np.column_stack(
        [
            x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
            y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
        ]
    )


class HandModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Grid units -> hand mm, and back.

    The screen is normalised to -1..1 in both directions first. For affine, quadratic and cubic the coefficients
    are one row of (1, x, y), (1, x, y, x², xy, y²), or those and (x³, x²y, xy², y³) for hand x, then one for hand y;
    for homography they are the nine numbers of the matrix row by row. A thin plate's rows are (1, x, y) and one
    weight per knot; the knots, normalised like the screen, are where touches were.
    """

    kind: HandKind
    coefficients: tuple[float, ...]
    knots: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        expected = 9 if self.kind == "homography" else 2 * term_count(self.kind, len(self.knots))
        numbers = np.concatenate([self.coefficients, self._knots.ravel()])
        if len(self.coefficients) != expected or not np.all(np.isfinite(numbers)):
            raise FitRefused(
                f"a hand model of kind {self.kind} has {expected} finite numbers, got {self.coefficients}"
            )

    def grid_to_hand(self, x: float, y: float) -> Pair:
        """Grid units, 0..1000 both ends included, to hand mm.

        Raises OutsideModel off the grid: the model says nothing there, and nothing is ever clamped.
        """
        if not (0.0 <= x <= GRID and 0.0 <= y <= GRID):
            raise OutsideModel(f"grid place ({x}, {y}) is off the screen; both must be 0 to {GRID:g}")
        hand = self.map_grid(np.array([[x, y]], dtype=np.float64))[0]
        return float(hand[0]), float(hand[1])

    def hand_to_grid(self, x_mm: float, y_mm: float) -> Pair:
        """Hand mm to grid units, which may lie a little off the screen. Raises OutsideModel as unmap_hand does."""
        grid = self.unmap_hand(np.array([[x_mm, y_mm]], dtype=np.float64))[0]
        return float(grid[0]), float(grid[1])

    def map_grid(self, grid: Points) -> Points:
        """Grid units (N, 2) to hand mm (N, 2), without a check of the range."""
        return self._map(grid / (GRID / 2.0) - 1.0)

    def unmap_hand(self, hand_mm: Points) -> Points:
        """Hand mm (N, 2) to grid units (N, 2): Newton from the model's affine part at the middle of the screen.

        Raises OutsideModel when it does not converge, or only to a place more than half a screen off the screen.
        """
        middle = np.zeros((1, 2))
        unit = _solve_each(self.slopes(middle), hand_mm - self._map(middle))
        # Far from the screen a polynomial may run away; the check below catches what that leaves.
        with np.errstate(all="ignore"):
            for _ in range(NEWTON_STEPS):
                step = _solve_each(self.slopes(unit), hand_mm - self._map(unit))
                unit = unit + step
            found = np.abs(step).max(initial=0.0) < NEWTON_CONVERGED
        if not (found and float(np.abs(unit).max(initial=0.0)) <= FAR_OFF):
            raise OutsideModel(
                "no place on or near the screen is where the hand's model leads to some of the given hand mm; "
                "ask only for places over the screen"
            )
        return np.asarray((unit + 1.0) * (GRID / 2.0), dtype=np.float64)

    def slopes(self, unit: Points) -> Matrix:
        """The Jacobian in hand mm per normalised unit (half a screen) at each place; (N, 2, 2), [:, hand, unit]."""
        if self.kind == "homography":
            matrix = np.array(self.coefficients).reshape(3, 3)
            below = unit @ matrix[2, :2] + matrix[2, 2]
            flat = matrix[:2, :2] - self._map(unit)[:, :, None] * matrix[2, :2]
            return np.asarray(flat / below[:, None, None], dtype=np.float64)
        rows = np.array(self.coefficients).reshape(2, -1).T
        by_x, by_y = term_slopes(self.kind, unit, self._knots)
        return np.stack([by_x @ rows, by_y @ rows], axis=2)

    def _map(self, unit: Points) -> Points:
        if self.kind == "homography":
            return apply_homography(np.array(self.coefficients).reshape(3, 3), unit)
        rows = np.array(self.coefficients).reshape(2, -1).T
        return np.asarray(terms(self.kind, unit, self._knots) @ rows, dtype=np.float64)

    @property
    def _knots(self) -> Points:
        return np.array(self.knots, dtype=np.float64).reshape(-1, 2)


def _solve_each(slopes: Matrix, right: Points) -> Points:
    """Solve a 2 x 2 system per place by Cramer's rule: a singular one gives infinities and not an exception."""
    (a, b), (c, d) = slopes.transpose(1, 2, 0)
    determinant = a * d - b * c
    return np.column_stack(
        [
            (d * right[:, 0] - b * right[:, 1]) / determinant,
            (a * right[:, 1] - c * right[:, 0]) / determinant,
        ]
    )


class ContactPlane(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The height at which the stylus meets the glass: z = a x + b y + c in hand mm."""

    a: float
    b: float
    c: float

    def contact_z(self, x_mm: float, y_mm: float) -> float:
        """The contact height in mm at hand coordinates."""
        return self.a * x_mm + self.b * y_mm + self.c
