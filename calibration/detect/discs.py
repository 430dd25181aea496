"""Dots on the screen, measured in screen mm: resampling on a grid in mm takes perspective out of the centroid."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.models import CameraModel
from calibration.targets import DOT_DIAMETER_MM, Points

RADIUS_MM = DOT_DIAMETER_MM / 2.0
# A patch reaches one diameter to each side; at 64 samples a side its step is finer than any camera's px.
PATCH_SAMPLES = 64
HALF_MM = DOT_DIAMETER_MM
# The centroid's window, and beyond it the ring that says what lies under the dot. Blur by two px at 4 px/mm
# reaches half a mm beyond the dot's rim; the nearest other dot begins at 0.9 diameters.
WINDOW_MM = 0.72 * DOT_DIAMETER_MM
RING_MM = (0.72 * DOT_DIAMETER_MM, 0.95 * DOT_DIAMETER_MM)
# The depth is read where neither blur nor an off-centre start can reach.
CORE_MM = 0.3 * DOT_DIAMETER_MM
# A core less deep than this share of the patch's deepest tenth: part of the dot is missing.
CORE_FILLED = 0.8
ITERATIONS = 4
# ... and done when the centre moves by less: a tenth of what noise makes of it.
SETTLED_MM = 1e-3

_Plane = npt.NDArray[np.float32]
_Vector = npt.NDArray[np.float64]

_STEPS = (np.arange(PATCH_SAMPLES) + 0.5) / PATCH_SAMPLES * 2.0 * HALF_MM - HALF_MM
_X, _Y = np.meshgrid(_STEPS, _STEPS)
_radius = np.hypot(_X, _Y)
_WINDOW = _radius < WINDOW_MM
_RING = (_radius >= RING_MM[0]) & (_radius < RING_MM[1])
_CORE = _radius < CORE_MM
_DISC = _radius < RADIUS_MM
_CELL_MM2 = (2.0 * HALF_MM / PATCH_SAMPLES) ** 2

_RING_DESIGN = np.column_stack([np.ones(int(_RING.sum())), _X[_RING], _Y[_RING]])


@dataclass(frozen=True)
class Disc:
    """A dark blob: centre in screen mm, depth in grey levels below its surroundings.

    area_share: its area over a whole dot's. elongation: long over short axis, 1 for a disc.
    """

    centre_mm: tuple[float, float]
    depth: float
    area_share: float
    elongation: float


class Patches:
    """Looks up the surroundings of places on the screen in one crop of a camera picture."""

    def __init__(self, camera: CameraModel, origin_px: _Vector) -> None:
        """origin_px: the camera px of the crop's first pixel."""
        self._camera = camera
        self._origin = origin_px

    def cut(self, plane: _Plane, centre_mm: _Vector) -> _Vector:
        """Values on the grid around centre_mm, (PATCH_SAMPLES, PATCH_SAMPLES); beyond the crop its rim's."""
        mm = np.column_stack([_X.ravel() + centre_mm[0], _Y.ravel() + centre_mm[1]])
        px = (self._camera.project(mm) - self._origin).astype(np.float32)
        x, y = (px[:, i].reshape(_X.shape) for i in range(2))
        cut = cv2.remap(plane, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(cut, dtype=np.float64)

    def measure(self, darkness: _Plane, start_mm: Points) -> Disc | None:
        """The blob within half a mm or so of start_mm; None where nothing is darker than its surroundings.

        darkness: grey levels, larger where the dot is.
        """
        centre = start_mm.astype(np.float64)
        for _ in range(ITERATIONS):
            patch = self.cut(darkness, centre)
            patch = patch - _surroundings(patch)
            weight = np.where(_WINDOW, patch, 0.0)
            total = float(weight.sum())
            if not total > 0.0:
                return None
            step = np.array([(weight * _X).sum(), (weight * _Y).sum()]) / total
            if float(np.hypot(*step)) > HALF_MM:
                return None
            centre = centre + step
            if float(np.hypot(*step)) < SETTLED_MM:
                break
        # Robust against a hot pixel, and close to the dot's own depth for any blur up to its size.
        deep = float(np.percentile(patch[_WINDOW], 90.0))
        core = float(np.median(patch[_CORE]))
        depth = core if core > CORE_FILLED * deep else deep
        if not depth > 0.0:
            return None
        return Disc(
            centre_mm=(float(centre[0]), float(centre[1])),
            depth=depth,
            area_share=total / depth * _CELL_MM2 / (np.pi * RADIUS_MM**2),
            elongation=_elongation(weight, total, step),
        )


def covered_share(patch: _Vector, limit: float) -> float:
    """The share of a dot's disc, in a patch cut around its centre, whose values are below limit."""
    return float((patch[_DISC] < limit).mean())


def ring_level(patch: _Vector) -> float:
    """The level around a dot's place."""
    return float(np.median(patch[_RING]))


def _surroundings(patch: _Vector) -> _Vector:
    """The plane through the ring, without what is another dot's: (PATCH_SAMPLES, PATCH_SAMPLES)."""
    values = patch[_RING]
    # Up to half of the ring may be hidden; the median and the spread about it do not care.
    spread = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    near = np.abs(values - np.median(values)) <= 4.0 * spread + 1.0
    design = _RING_DESIGN[near]
    # Normal equations: three well-scaled columns, and a tenth of the time of a general solver.
    plane = np.linalg.solve(design.T @ design, design.T @ values[near])
    return np.asarray(plane[0] + plane[1] * _X + plane[2] * _Y, dtype=np.float64)


def _elongation(weight: _Vector, total: float, mean: _Vector) -> float:
    x, y = _X - mean[0], _Y - mean[1]
    xx, yy, xy = (float((weight * v).sum()) / total for v in (x * x, y * y, x * y))
    middle, half = (xx + yy) / 2.0, float(np.hypot((xx - yy) / 2.0, xy))
    # What is brighter than its surroundings as well as darker has no shape; noise can make a crescent's short axis
    # vanish.
    return (
        float(np.sqrt((middle + half) / max(middle - half, 1e-3))) if middle + half > 0.0 else float(np.inf)
    )
