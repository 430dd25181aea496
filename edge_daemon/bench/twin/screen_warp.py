"""The phone's screen as the lens brings it to the sensor: warped, blurred, averaged over each picture px.

A page often differs from the last one by a dot: at full quality only what changed is warped again.
"""

import cv2
import numpy as np

from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.display import ScreenFrame
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y, Placement, screen_to_world_mm
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX, SCREEN_WIDTH_PX
from edge_daemon.bench.twin.view import Field, screen_px

Roi = tuple[slice, slice]
# More than this share of the screen new: warping all of it costs no more.
PART_MAX = 0.3
# Points along each side of a changed rectangle: enough for the lens' curvature.
SIDE_POINTS = 9


class ScreenWarp:
    """The warp of one camera over one phone in one place."""

    def __init__(
        self, cover: Cover, placement: Placement, display_mm: Field, samples: int, blur_px: float
    ) -> None:
        """display_mm: what each sample sees (View.display_mm); blur_px: sigma of the lens' blur, picture px."""
        self._cover = cover
        self._placement = placement
        self._samples = samples
        self._sigma = blur_px * samples
        self._reach = round(2.3 * self._sigma)
        x_px, y_px = screen_px(display_mm)
        inside = (x_px > -3) & (x_px < SCREEN_WIDTH_PX + 3) & (y_px > -3) & (y_px < SCREEN_HEIGHT_PX + 3)
        rows, columns = (np.flatnonzero(inside.any(axis=axis)) // samples for axis in (1, 0))
        self.roi: Roi = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
        """The part of the picture, in px, that holds the screen."""
        fine = tuple(slice(part.start * samples, part.stop * samples) for part in self.roi)
        shrink = 0.5 if samples == 1 else 1.0
        # Screen px count from the edge; the first sample's centre lies 0.5 of its own px from there.
        self._maps = cv2.convertMaps(x_px[fine] * shrink - 0.5, y_px[fine] * shrink - 0.5, cv2.CV_16SC2)
        self._known: list[tuple[ScreenFrame, Image]] = []

    def seen(self, frame: ScreenFrame) -> Image:
        """The screen in the picture's `roi`, its light not yet weighed. An opening often is the last closing."""
        for known, seen in self._known:
            if known is frame:
                return seen
        seen = (
            self._all(frame)
            if self._samples == 1 or not self._known
            else self._changed(frame, *self._known[-1])
        )
        self._known = [*self._known[-1:], (frame, seen)]
        return seen

    def _all(self, frame: ScreenFrame) -> Image:
        source: cv2.typing.MatLike = frame.image
        if self._samples == 1:
            # One sample a px looks at a screen of half the size, whose px are about as large as the picture's.
            source = cv2.resize(source, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        height, width = self._maps[0].shape[:2]
        return _dimmed(self._warped(source, slice(0, height), slice(0, width)), frame.brightness)

    def _changed(self, frame: ScreenFrame, old: ScreenFrame, old_seen: Image) -> Image:
        """As _all(), by warping only what differs from `old`."""
        if frame.brightness != old.brightness:
            return self._all(frame)
        differs = cv2.absdiff(frame.image, old.image)
        left, top, width, height = cv2.boundingRect(differs.reshape(differs.shape[0], -1))
        if width == 0:
            return old_seen
        left, right = left // 3, (left + width + 2) // 3
        if (right - left) * height > PART_MAX * SCREEN_WIDTH_PX * SCREEN_HEIGHT_PX:
            return self._all(frame)
        down, across = self._picture_of(left, top, right, top + height)
        seen = old_seen.copy()
        if down.stop > down.start and across.stop > across.start:
            seen[down, across] = _dimmed(self._part(frame.image, down, across), frame.brightness)
        return seen

    def _picture_of(self, left: int, top: int, right: int, bottom: int) -> Roi:
        """The part of `roi`, counted from its corner, that may see a rectangle of screen px."""
        share = np.linspace(0.0, 1.0, SIDE_POINTS)
        x, y = left - 2 + share * (right - left + 4), top - 2 + share * (bottom - top + 4)
        rim = np.vstack(
            [np.column_stack([x, np.full(SIDE_POINTS, at)]) for at in (y[0], y[-1])]
            + [np.column_stack([np.full(SIDE_POINTS, at), y]) for at in (x[0], x[-1])]
        )
        on_screen = screen_to_world_mm(rim / (PX_PER_MM_X, PX_PER_MM_Y), self._placement)[:, :2]
        seen = self._cover.picture_px(on_screen)
        spread = self._reach // self._samples + 2
        low = np.floor(seen.min(axis=0)).astype(int) - spread
        high = np.ceil(seen.max(axis=0)).astype(int) + spread + 1
        rows, columns = self.roi
        down = slice(max(0, low[1] - rows.start), min(rows.stop, high[1]) - rows.start)
        across = slice(max(0, low[0] - columns.start), min(columns.stop, high[0]) - columns.start)
        return down, across

    def _part(self, source: Image, down: slice, across: slice) -> Image:
        """A part of `roi`: warped with so much around it that its blur is whole."""
        extra = self._reach // self._samples + 1
        size = [side // self._samples for side in self._maps[0].shape[:2]]
        wide = [
            slice(max(0, part.start - extra), min(most, part.stop + extra))
            for part, most in zip((down, across), size, strict=True)
        ]
        fine = [slice(part.start * self._samples, part.stop * self._samples) for part in wide]
        seen = self._warped(source, *fine)
        inner = [
            slice(part.start - outer.start, part.stop - outer.start)
            for part, outer in zip((down, across), wide, strict=True)
        ]
        return seen[inner[0], inner[1]]

    def _warped(self, source: cv2.typing.MatLike, down: slice, across: slice) -> Image:
        whole, fraction = (np.ascontiguousarray(part[down, across]) for part in self._maps)
        seen = cv2.remap(source, whole, fraction, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        width = 2 * self._reach + 1
        seen = cv2.GaussianBlur(seen, (width, width), self._sigma)
        if self._samples > 1:
            size = (seen.shape[1] // self._samples, seen.shape[0] // self._samples)
            seen = cv2.resize(seen, size, interpolation=cv2.INTER_AREA)
        return np.asarray(seen, dtype=np.uint8)


def _dimmed(seen: Image, brightness: float) -> Image:
    return (
        seen if brightness == 1.0 else np.asarray(cv2.convertScaleAbs(seen, alpha=brightness), dtype=np.uint8)
    )
