"""The outline of the lit screen: where its light ends, to a fraction of a px, at fixed places along each side."""

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
import numpy.typing as npt

from calibration.models import CameraModel
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import Image, Points

# Fractions of a side at which it is looked at: the corners are rounded, and cameras and buttons sit in them.
FRACTIONS: tuple[float, ...] = tuple(float(v) for v in np.linspace(0.14, 0.86, 25).round(4))
SIDES = ("top", "right", "bottom", "left")
# How far to both sides of the expected edge a profile reaches, camera px: a move to be held for is 0.5.
REACH_PX = 5.0
STEP_PX = 0.25
# Samples along the edge that are averaged into one profile: noise falls by three, and rounding shows nowhere.
ALONG_PX = tuple(float(v) for v in np.linspace(-4.0, 4.0, 9))
# The flat parts of a profile, px from the edge: beyond the blur of a picture that passes the checks.
PLATEAU_PX = (2.75, REACH_PX)
# A lit edge rises by this many levels at least; less is a dark app, or night.
RISE_MIN = 25.0
# Both plateaus are flat to this share of the rise: else it is content that ends there, not the screen. An even
# bezel and page leave what noise is left.
FLAT_MAX = 0.12
# An edge found further from where it is expected than this is another one.
NEAR_PX = 2.25

# A screen that was shoved is looked for this far away; there the steepest fall of the light is its edge.
WIDE_PX = 48.0

_Plane = npt.NDArray[np.float32]
_Vector = npt.NDArray[np.float64]
_reach = np.arange(-REACH_PX, REACH_PX + STEP_PX / 2.0, STEP_PX)
_wide_reach = np.arange(-WIDE_PX, WIDE_PX + 0.5)


class Outline:
    """The expected edge points and their outward normals, camera px."""

    def __init__(self, camera: CameraModel, screen: ScreenGeometry) -> None:
        along = np.array(FRACTIONS)
        zero, one = np.zeros_like(along), np.ones_like(along)
        size = np.array([screen.width_mm, screen.height_mm])
        unit = {
            "top": (np.column_stack([along, zero]), (0.0, -1.0)),
            "right": (np.column_stack([one, along]), (1.0, 0.0)),
            "bottom": (np.column_stack([along, one]), (0.0, 1.0)),
            "left": (np.column_stack([zero, along]), (-1.0, 0.0)),
        }
        self.points: dict[str, Points] = {}
        self.normals: dict[str, Points] = {}
        for side, (places, outward) in unit.items():
            mm = places * size
            tangent_mm = np.array([abs(outward[1]), abs(outward[0])])
            tangent = camera.project(mm + 0.5 * tangent_mm) - camera.project(mm - 0.5 * tangent_mm)
            tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
            normal = np.column_stack([-tangent[:, 1], tangent[:, 0]])
            away = camera.project(mm + 0.5 * np.array(outward)) - camera.project(mm)
            normal *= np.sign((normal * away).sum(axis=1, keepdims=True))
            self.points[side], self.normals[side] = camera.project(mm), normal

    def measure(self, pictures: Sequence[Image], wide: bool = False) -> dict[str, tuple[Pair | None, ...]]:
        """Where the light ends, by side; None where no edge of the lit screen can be told.

        wide: look for a screen that was shoved, to about a px, and not for the fraction of a px.
        """
        light = _mean_light(pictures)
        return {side: self._side(light, self.points[side], self.normals[side], wide) for side in SIDES}

    def offsets(
        self, now: Mapping[str, tuple[Pair | None, ...]], then: Mapping[str, tuple[Pair | None, ...]]
    ) -> tuple[Points, Points, npt.NDArray[np.float64]]:
        """Points then (N, 2), normals (N, 2) and how far each moved along its normal (N,), where both are known."""
        rows: list[tuple[Pair, npt.NDArray[np.float64], float]] = []
        for side in SIDES:
            for old, new, normal in zip(then.get(side, ()), now[side], self.normals[side], strict=False):
                if old is not None and new is not None:
                    rows.append((old, normal, float(np.subtract(new, old) @ normal)))
        points = np.array([row[0] for row in rows], dtype=np.float64).reshape(-1, 2)
        normals = np.array([row[1] for row in rows], dtype=np.float64).reshape(-1, 2)
        return points, normals, np.array([row[2] for row in rows], dtype=np.float64)

    def _side(self, light: _Plane, points: Points, normals: Points, wide: bool) -> tuple[Pair | None, ...]:
        reach, find = (_wide_reach, _steepest_falls_px) if wide else (_reach, edge_offsets_px)
        tangents = np.column_stack([-normals[:, 1], normals[:, 0]])
        on_edge = points[:, None] + np.array(ALONG_PX)[None, :, None] * tangents[:, None]
        px = (on_edge[:, :, None] + reach[None, None, :, None] * normals[:, None, None]).astype(np.float32)
        shape = (px.shape[0] * px.shape[1], px.shape[2])
        values = cv2.remap(light, px[..., 0].reshape(shape), px[..., 1].reshape(shape), cv2.INTER_LINEAR)
        profiles = np.asarray(values, dtype=np.float64).reshape(px.shape[:3]).mean(axis=1)
        places = points + find(profiles)[:, None] * normals
        return tuple((float(x), float(y)) if np.isfinite(x + y) else None for x, y in places)


def edge_offsets_px(profiles: _Vector) -> _Vector:
    """Where profiles from inside to outside, (N, samples), fall: px outward of their middle, (N,); NaN if nowhere.

    By the area under each between its own plateaus: a brighter or dimmer screen moves nothing, and neither does
    where the edge of a sharp picture lies among the px, which pulls a crossing of the half height by 0.1 px.
    """
    inner, outer = profiles[:, _reach <= -PLATEAU_PX[0]], profiles[:, _reach >= PLATEAU_PX[0]]
    high, low = np.median(inner, axis=1), np.median(outer, axis=1)
    rise = high - low
    uneven = np.maximum(np.ptp(inner, axis=1), np.ptp(outer, axis=1))
    is_edge = (rise >= RISE_MIN) & (uneven <= FLAT_MAX * rise + 2.0)
    unit = (profiles - low[:, None]) / np.where(is_edge, rise, 1.0)[:, None]
    offset = STEP_PX * np.trapezoid(unit, axis=1) - REACH_PX
    return np.where(is_edge & (np.abs(offset) <= NEAR_PX), offset, np.nan)


def _steepest_falls_px(profiles: _Vector) -> _Vector:
    """Where wide profiles fall most within four px: px outward of their middle, (N,); NaN where they hardly do."""
    falls = profiles[:, :-4] - profiles[:, 4:]
    steepest = np.argmax(falls, axis=1)
    return np.where(falls.max(axis=1) >= RISE_MIN, _wide_reach[steepest + 2], np.nan)


def _mean_light(pictures: Sequence[Image]) -> _Plane:
    """The brightest channel, averaged over the pictures: a red page ends where a white one does."""
    total = np.zeros(pictures[0].shape[:2], dtype=np.float32)
    for picture in pictures:
        total += picture.max(axis=2)
    return total / np.float32(len(pictures))
