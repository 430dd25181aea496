"""Pictures for a person to judge a calibration by."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.acceptance import Acceptance
from calibration.errors import CameraMismatch
from calibration.models import CameraModel
from calibration.result import DeviceCalibration
from calibration.screen import GRID, Pair, ScreenGeometry
from calibration.targets import Image, Points

Colour = tuple[int, int, int]

LINE_BGR = (60, 220, 60)
EDGE_BGR = (40, 160, 255)
TARGET_BGR = (255, 200, 0)
LANDED_BGR = (60, 60, 255)
BED_BGR = (115, 158, 0)
MARK_BGR = (170, 50, 170)
MARK_RING_MM = 1.7
# Errors of hundredths of a mm are invisible at a handful of px per mm.
ERROR_MAGNIFIED = 50.0
# Small enough that a bad touch still lies near its place.
RESIDUAL_MAGNIFIED = 10.0
# The longer side of a picture that arrows are drawn on: sharp on paper, and a file below 2 MB.
WINDOW_PX = 1500.0
_SHIFT = 4


@dataclass(frozen=True)
class Arrow:
    """An error to be drawn from its place, screen mm. limit_mm: with a circle that such an error must not leave."""

    place_mm: Pair
    error_mm: Pair
    colour_bgr: Colour
    limit_mm: float | None = None


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


def residual_overlay(picture: Image, calibration: DeviceCalibration, arrows: Sequence[Arrow]) -> Image:
    """The raw camera picture with every error as an arrow RESIDUAL_MAGNIFIED times its length.

    Limits are magnified alike. Around them: the grid's edge, the control marks where the page draws them, the bed
    markers where they were. Cropped to all of that and enlarged, so that hundredths of a mm can be seen; BGR uint8.
    Raises CameraMismatch for a picture of another size.
    """
    camera, screen = calibration.camera.model, calibration.screen
    height, width = picture.shape[:2]
    if (width, height) != (camera.image_width, camera.image_height):
        raise CameraMismatch(
            f"the picture has {width} x {height} px, the calibration is for {camera.image_width} x "
            f"{camera.image_height}; give a raw picture of the same camera mode"
        )
    edge = camera.project(np.vstack([screen.outline_mm(), [[0.0, 0.0]]]))
    reference = calibration.camera.reference
    bed = [np.array(corners) for corners in reference.bed_px.values()] if reference is not None else []
    window = _Window.around(np.vstack([edge, *bed]), width, height)
    drawn = window.cut(picture)
    _polyline(drawn, window.place(edge), EDGE_BGR, 2)
    for corners in bed:
        _polyline(drawn, window.place(np.vstack([corners, corners[:1]])), BED_BGR, 2)
    for mark in calibration.camera.marks:
        _circle(drawn, window, calibration, mark.drawn_mm, MARK_RING_MM, MARK_BGR)
    for arrow in arrows:
        _arrow(drawn, window, calibration, arrow)
    return drawn


def rectified(picture: Image, camera: CameraModel, screen: ScreenGeometry, width: int) -> Image:
    """The screen alone, `width` px wide: the picture's edges are the grid's edges; BGR uint8."""
    height = round(width * screen.height_mm / screen.width_mm)
    map_x, map_y = camera.rectify_maps(screen, width, height)
    return np.asarray(cv2.remap(picture, map_x, map_y, cv2.INTER_LINEAR), dtype=np.uint8)


@dataclass(frozen=True)
class _Window:
    """A part of a picture, enlarged."""

    left: int
    top: int
    right: int
    bottom: int
    scale: float

    @classmethod
    def around(cls, px: Points, width: int, height: int) -> "_Window":
        """What holds these camera px and a little more, within the picture, WINDOW_PX on its longer side."""
        (left, top), (right, bottom) = px.min(axis=0) - 16.0, px.max(axis=0) + 17.0
        left, top = max(0, int(left)), max(0, int(top))
        right, bottom = min(width, int(right)), min(height, int(bottom))
        return cls(left, top, right, bottom, WINDOW_PX / max(right - left, bottom - top))

    def cut(self, picture: Image) -> Image:
        """The enlarged part, a new picture."""
        part = picture[self.top : self.bottom, self.left : self.right]
        enlarged = cv2.resize(part, None, fx=self.scale, fy=self.scale, interpolation=cv2.INTER_CUBIC)
        return np.asarray(enlarged, dtype=np.uint8)

    def place(self, px: Points) -> Points:
        """Camera px (N, 2) in the enlarged part's px; both count from the centre of their first pixel."""
        return np.asarray((px - [self.left, self.top] + 0.5) * self.scale - 0.5, dtype=np.float64)


def _circle(
    drawn: Image,
    window: _Window,
    calibration: DeviceCalibration,
    place_mm: Pair,
    radius_mm: float,
    colour: Colour,
) -> None:
    """A circle on the screen, as the camera sees it."""
    angle = np.linspace(0.0, 2.0 * np.pi, 49)
    ring_mm = np.array(place_mm) + radius_mm * np.column_stack([np.cos(angle), np.sin(angle)])
    _polyline(drawn, window.place(calibration.camera.model.project(ring_mm)), colour, 2)


def _arrow(drawn: Image, window: _Window, calibration: DeviceCalibration, arrow: Arrow) -> None:
    start = np.array(arrow.place_mm)
    tip = start + RESIDUAL_MAGNIFIED * np.array(arrow.error_mm)
    ends = window.place(calibration.camera.model.project(np.array([start, tip])))
    if arrow.limit_mm is not None:
        _circle(
            drawn, window, calibration, arrow.place_mm, RESIDUAL_MAGNIFIED * arrow.limit_mm, arrow.colour_bgr
        )
    length_px = float(np.linalg.norm(ends[1] - ends[0]))
    tip_share = min(0.5, 9.0 / max(length_px, 1.0))
    cv2.circle(drawn, _fixed(ends[0]), 3 << _SHIFT, arrow.colour_bgr, -1, cv2.LINE_AA, _SHIFT)
    cv2.arrowedLine(
        drawn, _fixed(ends[0]), _fixed(ends[1]), arrow.colour_bgr, 2, cv2.LINE_AA, _SHIFT, tip_share
    )


def _polyline(drawn: Image, px: Points, colour: Colour, width: int) -> None:
    fixed = np.round(px * (1 << _SHIFT)).astype(np.int32).reshape(-1, 1, 2)
    cv2.polylines(drawn, [fixed], False, colour, width, cv2.LINE_AA, _SHIFT)


def _fixed(px: Points) -> tuple[int, int]:
    return round(float(px[0]) * (1 << _SHIFT)), round(float(px[1]) * (1 << _SHIFT))
