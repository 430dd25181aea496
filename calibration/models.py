"""The three models of a calibrated rig: camera, hand, contact plane. Plain numbers, so they can be stored.

Screen mm, hand mm and camera px are as everywhere in this package: screen mm from the screen's top-left
corner, camera px from the centre of the picture's first pixel, hand z growing away from the glass.
"""

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused, OutsideModel
from calibration.fitting import Matrix, Vector, apply_homography
from calibration.screen import GRID, ScreenGeometry
from calibration.targets import Points

HandKind = Literal["affine", "homography", "quadratic"]
Maps = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
Nine = tuple[float, float, float, float, float, float, float, float, float]


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
        return self.centre + self.radius_px * distort(undistorted, self.k1, self.k2, self.p1, self.p2)

    def unproject(self, camera_px: Points) -> Points:
        """Raw camera px (N, 2) to screen mm (N, 2), by fixed-point iteration on the distortion.

        Raises OutsideModel for pixels so far out that the distortion has no inverse there.
        """
        wanted = (camera_px - self.centre) / self.radius_px
        undistorted = wanted.copy()
        # Where there is no inverse the iteration runs away; the check below catches what it leaves.
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(50):
                bent = distort(undistorted, self.k1, self.k2, self.p1, self.p2)
                undistorted = undistorted + (wanted - bent)
            back = distort(undistorted, self.k1, self.k2, self.p1, self.p2)
            missed = float(np.abs(back - wanted).max(initial=0.0)) * self.radius_px
        if not missed < 1e-3:
            raise OutsideModel(
                "the lens distortion of this calibration has no inverse at some of the given pixels; "
                "ask only for pixels on the screen"
            )
        return apply_homography(np.linalg.inv(np.array(self.homography).reshape(3, 3)), undistorted)

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
    """Grid units -> hand mm.

    The screen is normalised to -1..1 in both directions first. For affine and quadratic the coefficients
    are one row of (1, x, y) or (1, x, y, x², xy, y²) terms for hand x, then one for hand y; for homography
    they are the nine numbers of the matrix row by row.
    """

    kind: HandKind
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        expected = {"affine": 6, "homography": 9, "quadratic": 12}[self.kind]
        if len(self.coefficients) != expected or not np.all(np.isfinite(self.coefficients)):
            raise FitRefused(
                f"a hand model of kind {self.kind} has {expected} finite numbers, got {self.coefficients}"
            )

    def grid_to_hand(self, x: float, y: float) -> tuple[float, float]:
        """Grid units, 0..1000 both ends included, to hand mm.

        Raises OutsideModel off the grid: the model says nothing there, and nothing is ever clamped.
        """
        if not (0.0 <= x <= GRID and 0.0 <= y <= GRID):
            raise OutsideModel(f"grid place ({x}, {y}) is off the screen; both must be 0 to {GRID:g}")
        hand = self.map_grid(np.array([[x, y]], dtype=np.float64))[0]
        return float(hand[0]), float(hand[1])

    def map_grid(self, grid: Points) -> Points:
        """Grid units (N, 2) to hand mm (N, 2), without a check of the range."""
        unit = grid / (GRID / 2.0) - 1.0
        if self.kind == "homography":
            return apply_homography(np.array(self.coefficients).reshape(3, 3), unit)
        terms = affine_terms(unit) if self.kind == "affine" else quadratic_terms(unit)
        return np.asarray(terms @ np.array(self.coefficients).reshape(2, -1).T, dtype=np.float64)


def affine_terms(unit: Points) -> Matrix:
    """The design matrix (1, x, y); (N, 3)."""
    return np.column_stack([np.ones(len(unit)), unit])


def quadratic_terms(unit: Points) -> Matrix:
    """The design matrix (1, x, y, x², xy, y²); (N, 6)."""
    x, y = unit[:, 0], unit[:, 1]
    return np.column_stack([np.ones(len(unit)), x, y, x * x, x * y, y * y])


POLYNOMIAL_TERMS: dict[HandKind, Callable[[Points], Matrix]] = {
    "affine": affine_terms,
    "quadratic": quadratic_terms,
}


class ContactPlane(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The height at which the stylus meets the glass: z = a x + b y + c in hand mm."""

    a: float
    b: float
    c: float

    def contact_z(self, x_mm: float, y_mm: float) -> float:
        """The contact height in mm at hand coordinates."""
        return self.a * x_mm + self.b * y_mm + self.c
