"""Pictures for a person to judge a calibration by."""

import cv2
import numpy as np

from calibration.models import CameraModel
from calibration.result import Acceptance
from calibration.screen import GRID, ScreenGeometry
from calibration.targets import Image, Points

LINE_BGR = (60, 220, 60)
EDGE_BGR = (40, 160, 255)
TARGET_BGR = (255, 200, 0)
LANDED_BGR = (60, 60, 255)
# Errors of hundredths of a mm are invisible at a handful of px per mm.
ERROR_MAGNIFIED = 50.0
_SHIFT = 4


def grid_overlay(
    picture: Image, camera: CameraModel, screen: ScreenGeometry, acceptance: Acceptance | None = None
) -> Image:
    """The raw camera picture with the grid drawn through the calibration: every 100 units, the edge marked.

    With an acceptance, each held-out touch is a ring at its target and a line along its error, magnified 50
    times. Returns a new BGR picture of the same shape.
    """
    drawn = picture.copy()
    along = np.linspace(0.0, GRID, 41)
    for value in np.arange(0.0, GRID + 1.0, 100.0):
        edge = value in (0.0, GRID)
        colour, width = (EDGE_BGR, 2) if edge else (LINE_BGR, 1)
        level = np.full_like(along, value)
        for line in (np.column_stack([level, along]), np.column_stack([along, level])):
            _polyline(drawn, camera.project(screen.grid_to_mm(line)), colour, width)
    for name, place in (("0,0", (0.0, 0.0)), ("1000,0", (GRID, 0.0)), ("0,1000", (0.0, GRID))):
        x, y = (round(float(v)) for v in camera.project(screen.grid_to_mm(np.array([place])))[0])
        below = 18 if place[1] else -6
        cv2.putText(drawn, name, (x, y + below), cv2.FONT_HERSHEY_SIMPLEX, 0.45, EDGE_BGR, 1, cv2.LINE_AA)
    for touch in acceptance.touches if acceptance else ():
        target = np.array(touch.target_mm)
        error = np.array(touch.landed_mm) - target
        ends = camera.project(np.array([target, target + ERROR_MAGNIFIED * error]))
        cv2.circle(drawn, _fixed(ends[0]), 5 << _SHIFT, TARGET_BGR, 1, cv2.LINE_AA, _SHIFT)
        cv2.line(drawn, _fixed(ends[0]), _fixed(ends[1]), LANDED_BGR, 2, cv2.LINE_AA, _SHIFT)
    return drawn


def rectified(picture: Image, camera: CameraModel, screen: ScreenGeometry, width: int) -> Image:
    """The screen alone, `width` px wide: the picture's edges are the grid's edges; BGR uint8."""
    height = round(width * screen.height_mm / screen.width_mm)
    map_x, map_y = camera.rectify_maps(screen, width, height)
    return np.asarray(cv2.remap(picture, map_x, map_y, cv2.INTER_LINEAR), dtype=np.uint8)


def _polyline(drawn: Image, px: Points, colour: tuple[int, int, int], width: int) -> None:
    fixed = np.round(px * (1 << _SHIFT)).astype(np.int32).reshape(-1, 1, 2)
    cv2.polylines(drawn, [fixed], False, colour, width, cv2.LINE_AA, _SHIFT)


def _fixed(px: Points) -> tuple[int, int]:
    return round(float(px[0]) * (1 << _SHIFT)), round(float(px[1]) * (1 << _SHIFT))
