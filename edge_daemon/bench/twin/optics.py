"""The camera's true geometry: a pinhole with Brown-Conrady distortion above the glass plane.

The formulas are OpenCV's documented camera model (calib3d, "Pinhole camera model": radial k1 k2 k3,
tangential p1 p2), written out here so that the truth does not come from the function under test.
"""

from dataclasses import dataclass, replace
from math import cos, sin

import numpy as np
import numpy.typing as npt

PICTURE_WIDTH_PX = 1280
PICTURE_HEIGHT_PX = 720

Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lens:
    """Focal lengths, principal point (px, (0, 0) at the centre of the first pixel) and distortion."""

    fx_px: float
    fy_px: float
    cx_px: float
    cy_px: float
    k1: float
    k2: float
    p1: float
    p2: float
    k3: float


@dataclass(frozen=True)
class Pose:
    """Where the camera hangs: it looks at (aim_x, aim_y, 0) in world mm from distance_mm, tilted.

    tilt_rad leans the line of sight away from the vertical in the direction azimuth_rad (from world X towards
    Y); roll_rad turns the picture about the line of sight.
    """

    distance_mm: float
    tilt_rad: float
    azimuth_rad: float
    roll_rad: float
    aim_x_mm: float
    aim_y_mm: float

    def rotation(self) -> Points:
        """World axes to camera axes, shape (3, 3). Untilted: picture right is X, picture up is Y."""
        ca, sa = cos(self.azimuth_rad), sin(self.azimuth_rad)
        ct, st = cos(self.tilt_rad), sin(self.tilt_rad)
        cr, sr = cos(self.roll_rad), sin(self.roll_rad)
        turn = np.array([[ca, -sa, 0.0], [sa, ca, 0.0], [0.0, 0.0, 1.0]])
        lean = np.array([[ct, 0.0, st], [0.0, 1.0, 0.0], [-st, 0.0, ct]])
        roll = np.array([[cr, -sr, 0.0], [sr, cr, 0.0], [0.0, 0.0, 1.0]])
        look_down = np.diag([1.0, -1.0, -1.0])
        return np.asarray(roll @ look_down @ turn @ lean @ turn.T, dtype=np.float64)

    def translation(self) -> Points:
        """World origin in camera axes, shape (3,), mm."""
        aim = np.array([self.aim_x_mm, self.aim_y_mm, 0.0])
        return np.asarray(np.array([0.0, 0.0, self.distance_mm]) - self.rotation() @ aim, dtype=np.float64)

    def eye_mm(self) -> Points:
        """The lens' centre in world mm, shape (3,)."""
        return np.asarray(-self.rotation().T @ self.translation(), dtype=np.float64)


def distort(lens: Lens, rays: Points) -> Points:
    """Ideal normalised image points (N, 2) to distorted ones (N, 2)."""
    x, y = rays[:, 0], rays[:, 1]
    r2 = x * x + y * y
    radial = 1.0 + r2 * (lens.k1 + r2 * (lens.k2 + r2 * lens.k3))
    return np.column_stack(
        [
            x * radial + 2.0 * lens.p1 * x * y + lens.p2 * (r2 + 2.0 * x * x),
            y * radial + lens.p1 * (r2 + 2.0 * y * y) + 2.0 * lens.p2 * x * y,
        ]
    )


def undistort(lens: Lens, distorted: Points) -> Points:
    """Inverse of distort by fixed-point iteration; converges for the weak lenses drawn here."""
    rays = distorted.copy()
    for _ in range(10):
        rays = rays + (distorted - distort(lens, rays))
    return rays


def project(lens: Lens, pose: Pose, world_mm: Points) -> Points:
    """World points (N, 3) in mm to picture px (N, 2)."""
    seen = world_mm @ pose.rotation().T + pose.translation()
    rays = distort(lens, seen[:, :2] / seen[:, 2:3])
    picture: Points = rays * np.array([lens.fx_px, lens.fy_px]) + np.array([lens.cx_px, lens.cy_px])
    return picture


def unproject(lens: Lens, pose: Pose, picture_px: Points, z_mm: float = 0.0) -> Points:
    """Picture px (N, 2) to the world points (N, 2) in mm where their rays meet the height z_mm."""
    distorted = (picture_px - np.array([lens.cx_px, lens.cy_px])) / np.array([lens.fx_px, lens.fy_px])
    rays = undistort(lens, distorted)
    eye = pose.eye_mm()
    directions = np.column_stack([rays, np.ones(len(rays))]) @ pose.rotation()
    reach = (z_mm - eye[2]) / directions[:, 2]
    return np.asarray(eye[:2] + directions[:, :2] * reach[:, None], dtype=np.float64)


def fit_focal_px(lens: Lens, pose: Pose, length_mm: float, width_mm: float, share: float) -> Lens:
    """Zoom so that a screen of length_mm x width_mm spans `share` of the picture's width.

    The lens comes in with fx_px = 1 and fy_px as the ratio to it.
    """
    half = np.array([[sx * length_mm / 2, sy * width_mm / 2, 0.0] for sx in (-1, 1) for sy in (-1, 1)])
    unit = replace(lens, cx_px=0.0, cy_px=0.0)
    corners = project(unit, pose, half)
    focal = share * PICTURE_WIDTH_PX / float(np.ptp(corners[:, 0]))
    return replace(lens, fx_px=focal, fy_px=focal * lens.fy_px)
