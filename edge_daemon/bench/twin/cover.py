"""Through the cover glass: which pixel of the display the camera sees behind a point of the glass' surface.

The pixels lie under a millimetre of glass that refracts, and the glass is rounded at its rim. Refraction is Snell's
law in its vector form (e.g. Glassner, An Introduction to Ray Tracing, chapter 2).
"""

import numpy as np

from edge_daemon.bench.twin.frames import HOME, Placement
from edge_daemon.bench.twin.optics import Lens, Points, Pose, project, unproject
from edge_daemon.bench.twin.truth import BEZEL_GLASS_MM, SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

# The shift under the glass changes by less than 1 % of the way: each round gains two digits.
INVERSE_ROUNDS = 6


class Cover:
    """One camera's line of sight through the cover glass of a phone that lies in one place."""

    def __init__(self, truth: Truth, lens: Lens, pose: Pose, placement: Placement = HOME) -> None:
        self._lens = lens
        self._pose = pose
        self._placement = placement
        self._shape = truth.shape
        self._cover_mm = truth.display.cover_mm
        self._index = truth.display.cover_index
        self._eye = pose.eye_mm()

    def seen(self, surface_mm: Points) -> Points:
        """Points (N, 2) where lines of sight meet the glass' plane (world mm) to the display's points (N, 2) behind.

        Both the phone's drop and its slope are taken at the point where the line meets the plane: the glass deviates
        from it by less than 0.2 mm.
        """
        into = np.column_stack([surface_mm, np.zeros(len(surface_mm))]) - self._eye
        into /= np.linalg.norm(into, axis=1)[:, None]
        drop, slope = self._drop_and_slope(surface_mm)
        on_glass = surface_mm + into[:, :2] * (drop / -into[:, 2])[:, None]
        normal = np.column_stack([-slope, np.ones(len(slope))])
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        ratio = 1.0 / self._index
        cos_in = -(into * normal).sum(axis=1)
        cos_out = np.sqrt(1.0 - ratio**2 * (1.0 - cos_in**2))
        inside = ratio * into + (ratio * cos_in - cos_out)[:, None] * normal
        depth = np.maximum(self._cover_mm - drop, 0.0)
        return np.asarray(on_glass + inside[:, :2] * (depth / -inside[:, 2])[:, None], dtype=np.float64)

    def picture_px(self, display_mm: Points) -> Points:
        """World points (N, 2) of display pixels to picture px (N, 2): the inverse of seen() and the lens."""
        surface = display_mm.copy()
        if self._cover_mm > 0.0:
            for _ in range(INVERSE_ROUNDS):
                surface = surface + (display_mm - self.seen(surface))
        return project(self._lens, self._pose, np.column_stack([surface, np.zeros(len(surface))]))

    def display_mm(self, picture_px: Points) -> Points:
        """Picture px (N, 2) to world points (N, 2) of the display's pixels."""
        surface = unproject(self._lens, self._pose, picture_px)
        return self.seen(surface) if self._cover_mm > 0.0 else surface

    def _drop_and_slope(self, surface_mm: Points) -> tuple[Points, Points]:
        """GlassShape.drop_mm of many points, (N,), and the slope of the glass there in world axes, (N, 2)."""
        place, shape = self._placement, self._shape
        c, s = np.cos(place.turn_rad), np.sin(place.turn_rad)
        turn = np.array([[c, -s], [s, c]])
        local = (surface_mm - (place.x_mm, place.y_mm)) @ turn
        half = np.array([SCREEN_HEIGHT_MM / 2, SCREEN_WIDTH_MM / 2])
        unit = local / half
        drop = shape.bow_mm * (unit**2).sum(axis=1)
        slope = -2.0 * shape.bow_mm * unit / half
        inside = half - np.abs(local)
        share = np.maximum(1.0 - np.maximum(inside, -BEZEL_GLASS_MM) / shape.rim_width_mm, 0.0)
        drop += shape.rim_mm * (share**2).sum(axis=1)
        steep = np.where(inside > -BEZEL_GLASS_MM, -2.0 * shape.rim_mm * share / shape.rim_width_mm, 0.0)
        slope += steep * np.sign(local)
        return drop, np.asarray(slope @ turn.T, dtype=np.float64)
