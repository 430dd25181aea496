"""The hand as the camera sees it: stylus, carriage and arm in front of the picture, and their soft shadow."""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import Colour, Image
from edge_daemon.bench.twin.frames import Placement, screen_to_world_mm
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Lens, Points, Pose, project

_SHIFT = 4
_CIRCLE = np.array([(np.cos(a), np.sin(a)) for a in np.linspace(0.0, 2 * np.pi, 16, endpoint=False)])

# Sizes in mm. The stylus leans towards the arm, so that the camera sees where its tip goes.
TIP_RADIUS, TIP_LENGTH = 1.1, 7.0
SHAFT_RADIUS, SHAFT_LENGTH = 2.6, 46.0
LEAN = 0.42
CARRIAGE_BACK, CARRIAGE_HALF, CARRIAGE_BOTTOM, CARRIAGE_TOP = 24.0, 9.0, 34.0, 60.0
ARM_HALF, ARM_BOTTOM, ARM_TOP = 6.5, 42.0, 56.0
# The arm comes in from the operator's side, the picture's lower edge.
ARM_REACHES_MM = 125.0
# The lamp stands behind, to the right: shadows fall to the left and towards the arm's side.
SHADOW_X, SHADOW_Y = -0.16, -0.10
SHADOW_SCALE = 8

TIP_COLOUR: Colour = (58, 56, 54)
SHAFT_COLOUR: Colour = (112, 108, 104)
SHINE_COLOUR: Colour = (190, 187, 184)
SIDE_COLOUR: Colour = (36, 33, 30)
TOP_COLOUR: Colour = (64, 59, 55)
EDGE_COLOUR: Colour = (88, 83, 78)


Outlines = list[tuple[Points, Colour]]


class StylusArtist:
    """Draws the hand into pictures of one camera."""

    def __init__(
        self, lens: Lens, pose: Pose, placement: Placement, screen_alpha: npt.NDArray[np.uint8]
    ) -> None:
        """screen_alpha: the picture's share of lit screen, (720, 1280) uint8; light hides most of a shadow."""
        self._lens = lens
        self._pose = pose
        self._placement = placement
        self._resting: tuple[TipPose, Outlines] | None = None
        size = (PICTURE_WIDTH_PX // SHADOW_SCALE, PICTURE_HEIGHT_PX // SHADOW_SCALE)
        lit = cv2.resize(screen_alpha, size, interpolation=cv2.INTER_AREA).astype(np.float32) / 255.0
        self._shadow_depth = 0.5 - 0.42 * lit

    def draw(self, picture: Image, poses: list[TipPose]) -> Image:
        """The picture with the hand at these poses, blurred over them; itself if the hand is out of view."""
        solids = [self._outlines(pose) for pose in poses]
        if not any(_in_view(outline) for outlines in solids for outline, _ in outlines):
            return picture
        shaded = self._shaded(picture, poses[-1])
        drawn = []
        for outlines in solids:
            layer = shaded.copy()
            for outline, fill in outlines:
                _fill(layer, outline, fill)
            drawn.append(layer)
        blurred = drawn[0]
        for count, layer in enumerate(drawn[1:], start=2):
            blurred = draw.blend(blurred, layer, 1 / count)
        return blurred

    def _outlines(self, pose: TipPose) -> Outlines:
        """A resting hand is looked at again and again: its outlines are worked out once."""
        if self._resting is None or self._resting[0] != pose:
            self._resting = (pose, self._solids(pose))
        return self._resting[1]

    def covers(self, pose: TipPose) -> bool:
        """Whether any of the hand, or of its shadow, is in the picture."""
        outlines = [outline for outline, _ in self._solids(pose)]
        return any(_in_view(outline) for outline in [*outlines, *self._shadows(pose)])

    def _tip(self, pose: TipPose) -> tuple[float, float, float]:
        world = screen_to_world_mm(np.array([[pose.x_mm, pose.y_mm]]), self._placement)[0]
        # Pressed in, the stylus gives way; its tip stays on the glass.
        return float(world[0]), float(world[1]), max(0.0, pose.height_mm)

    def _solids(self, pose: TipPose) -> Outlines:
        x, y, z = self._tip(pose)
        back = y - CARRIAGE_BACK
        half = CARRIAGE_HALF
        arm = self._box((x - ARM_HALF, x + ARM_HALF), (-ARM_REACHES_MM, back), (z + ARM_BOTTOM, z + ARM_TOP))
        groove = self._plate((x - 1.5, x + 1.5), (-ARM_REACHES_MM, back - half), z + ARM_TOP)
        block = (z + CARRIAGE_BOTTOM, z + CARRIAGE_TOP)
        carriage = self._box((x - half, x + half), (back - half, back + half), block)
        screw = (self._circle(x, back, z + CARRIAGE_TOP, 2.2), EDGE_COLOUR)
        return [*self._rod(x, y, z), *arm, (groove, EDGE_COLOUR), *carriage, screw]

    def _rod(self, x: float, y: float, z: float) -> Outlines:
        shoulder = self._circle(x, y - LEAN * TIP_LENGTH, z + TIP_LENGTH, SHAFT_RADIUS)
        top = self._circle(x, y - LEAN * SHAFT_LENGTH, z + SHAFT_LENGTH, SHAFT_RADIUS)
        glint_low = self._circle(x + 0.9, y - LEAN * TIP_LENGTH, z + TIP_LENGTH + SHAFT_RADIUS, 0.6)
        glint_top = self._circle(x + 0.9, y - LEAN * SHAFT_LENGTH, z + SHAFT_LENGTH + SHAFT_RADIUS, 0.6)
        return [
            (_hull(self._circle(x, y, z, TIP_RADIUS), shoulder), TIP_COLOUR),
            (_hull(shoulder, top), SHAFT_COLOUR),
            (_hull(glint_low, glint_top), SHINE_COLOUR),
        ]

    def _shadows(self, pose: TipPose) -> list[Points]:
        x, y, z = self._tip(pose)
        back = y - CARRIAGE_BACK
        tip = self._dropped(x, y, z, TIP_RADIUS)
        top = self._dropped(x, y - LEAN * SHAFT_LENGTH, z + SHAFT_LENGTH, SHAFT_RADIUS)
        block = self._dropped_plate(
            x, CARRIAGE_HALF, (back - CARRIAGE_HALF, back + CARRIAGE_HALF), z + CARRIAGE_TOP
        )
        arm = self._dropped_plate(x, ARM_HALF, (-ARM_REACHES_MM, back), z + ARM_TOP)
        return [_hull(tip, top), block, arm]

    def _shaded(self, picture: Image, pose: TipPose) -> Image:
        mask = np.zeros(self._shadow_depth.shape, dtype=np.uint8)
        for outline in self._shadows(pose):
            _fill(mask, (outline + 0.5) / SHADOW_SCALE - 0.5, 255)
        soft = cv2.GaussianBlur(mask, (0, 0), 1.6).astype(np.float32) / 255.0
        gain = (255.0 * (1.0 - soft * self._shadow_depth)).astype(np.uint8)
        full = cv2.resize(gain, (PICTURE_WIDTH_PX, PICTURE_HEIGHT_PX), interpolation=cv2.INTER_LINEAR)
        return np.asarray(cv2.multiply(picture, cv2.merge([full, full, full]), scale=1 / 255), dtype=np.uint8)

    def _seen(self, world_mm: Points) -> Points:
        return project(self._lens, self._pose, world_mm)

    def _circle(self, x: float, y: float, z: float, radius: float) -> Points:
        rim = _CIRCLE * radius + (x, y)
        return self._seen(np.column_stack([rim, np.full(len(rim), z)]))

    def _dropped(self, x: float, y: float, z: float, radius: float) -> Points:
        return self._circle(x + SHADOW_X * z, y + SHADOW_Y * z, 0.0, radius)

    def _dropped_plate(self, x: float, half: float, ys: tuple[float, float], z: float) -> Points:
        dx, dy = SHADOW_X * z, SHADOW_Y * z
        return self._plate((x - half + dx, x + half + dx), (ys[0] + dy, ys[1] + dy), 0.0)

    def _plate(self, xs: tuple[float, float], ys: tuple[float, float], z: float) -> Points:
        corners = [(xs[0], ys[0], z), (xs[1], ys[0], z), (xs[1], ys[1], z), (xs[0], ys[1], z)]
        return self._seen(np.array(corners))

    def _box(self, xs: tuple[float, float], ys: tuple[float, float], zs: tuple[float, float]) -> Outlines:
        """Its outline in the sides' colour, then its top face."""
        top = self._plate(xs, ys, zs[1])
        return [(_hull(self._plate(xs, ys, zs[0]), top), SIDE_COLOUR), (top, TOP_COLOUR)]


def _hull(*outlines: Points) -> Points:
    points = np.concatenate(outlines).astype(np.float32)
    return np.asarray(cv2.convexHull(points), dtype=np.float64).reshape(-1, 2)


def _in_view(outline: Points) -> bool:
    low, high = outline.min(axis=0), outline.max(axis=0)
    return bool(high[0] >= 0 and high[1] >= 0 and low[0] < PICTURE_WIDTH_PX and low[1] < PICTURE_HEIGHT_PX)


def _fill(picture: Image, outline: Points, fill: Colour | int) -> None:
    fixed = np.round(outline * (1 << _SHIFT)).astype(np.int32)
    ink = fill if isinstance(fill, tuple) else (fill,)
    cv2.fillConvexPoly(picture, fixed, ink, lineType=cv2.LINE_AA, shift=_SHIFT)
