"""The fresh dot between a picture before a touch and one after it."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect.board import DARK_LEVEL
from calibration.detect.discs import Disc, Patches, covered_share, ring_level
from calibration.errors import NoDot, PageChanged, PictureRefused, TooDark, TwoDots
from calibration.models import CameraModel
from calibration.screen import ScreenGeometry
from calibration.targets import DOT_DIAMETER_MM, Image, Points

# A fresh dot darkens its place by most of the page's level; noise, JPEG and flicker stay far below this.
DOT_CONTRAST_MIN = 0.3
# What changes by less than this is flicker: two pictures with as much banding as the picture checks let pass
# differ by 0.10. What lies between this and a dot's contrast is something, and never "no dot".
FAINT_CONTRAST_MIN = 0.12
DOT_NOISE_SIGMAS = 6.0
# Largest change of the whole page's level, as a share of it, that passes for flicker.
FLICKER_MAX = 0.2
# Smallest share of a whole dot's area that is still a dot: one half hidden by an older dot counts.
DOT_AREA_MIN = 0.12
# A camera's sharpening draws a faint bright ring of 0.3 dots' area around each dot; a banner is larger.
FAINT_BRIGHT_DOTS = 1.5
# More change than this many dots is another page, not a touch.
PAGE_CHANGE_DOTS = 6.0
# With its soft rim a dot changes up to so many dots' worth of the screen.
FURTHER_DOT = 2.0
# A dot of this share of its area or more is whole, and its centroid is where the finger came down ...
WHOLE_DOT_AREA = 0.8
# ... unless so much of it fell on an older dot: a hidden 2 % moves the centroid by 0.02 mm.
HIDDEN_MAX = 0.02
# Two dots that overlap: 0.2 mm apart they are 1.07 times as long as wide, and 0.25 mm apart they cover 1.13
# dots. A single dot measures up to 1.02 in both at a noise of 6 levels; a camera's gamma adds to its area.
ONE_DOT_AREA_MAX = 1.13
ONE_DOT_ELONGATION_MAX = 1.06
# A dot that the screen's edge cuts is long as well.
UNCUT_DOT_AREA = 0.95

_Plane = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Dot:
    """A fresh dot in screen mm. Only a whole dot's centre is a position; a part says contact, no more.

    area_share: over a whole dot's. hidden_share: of its disc that an older dot covers.
    """

    x_mm: float
    y_mm: float
    area_share: float
    hidden_share: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether nothing of the dot was hidden by an older one."""
        return self.area_share >= WHOLE_DOT_AREA and self.hidden_share <= HIDDEN_MAX


@dataclass(frozen=True)
class _Change:
    """One place that changed: where, how many dots large, and its strongest change in grey levels, + is darker."""

    place_mm: Points
    dots: float
    strongest: float


class DotFinder:
    """Finds fresh dots of one screen, seen through one camera model."""

    def __init__(self, camera: CameraModel, screen: ScreenGeometry) -> None:
        self._camera = camera
        outline = camera.project(screen.outline_mm())
        low = np.maximum(np.floor(outline.min(axis=0)).astype(int), 0)
        high = np.minimum(
            np.ceil(outline.max(axis=0)).astype(int) + 1, [camera.image_width, camera.image_height]
        )
        self._crop = (slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0])))
        self._origin = low.astype(np.float64)
        self._patches = Patches(camera, self._origin)
        mask = np.zeros((high[1] - low[1], high[0] - low[0]), dtype=np.uint8)
        cv2.fillPoly(mask, [np.round(outline - low).astype(np.int32)], (255,))
        # The rim of the lit page flickers with the least shake of the camera.
        self._inside = cv2.erode(mask, np.ones((5, 5), dtype=np.uint8)) > 0

    def find(self, before: Image, after: Image) -> Dot:
        """The one dot that is in `after` and not in `before`, both raw BGR camera pictures.

        Raises NoDot, TwoDots, PageChanged, TooDark, or PictureRefused for a picture of another size.
        """
        return self.find_all(before, after, 1)[0]

    def find_all(self, before: Image, after: Image, touches: int) -> list[Dot]:
        """As many dots as there were touches between the two pictures, in no order. Raises as find does."""
        old, new = self._grey("before", before), self._grey("after", after)
        darker, level = self._darkening(old, new)
        smooth = np.asarray(cv2.GaussianBlur(darker, (0, 0), 1.0), dtype=np.float32)
        noise = 1.4826 * float(np.median(np.abs(smooth[::4, ::4][self._inside[::4, ::4]])))
        faint = max(DOT_NOISE_SIGMAS * noise, FAINT_CONTRAST_MIN * level)
        changes = self._changes(smooth, faint, PAGE_CHANGE_DOTS + FURTHER_DOT * (touches - 1))
        dots = _dots_among(changes, max(DOT_NOISE_SIGMAS * noise, DOT_CONTRAST_MIN * level))
        if not dots:
            raise NoDot("no fresh dot on the screen after the touch")
        if len(dots) < touches:
            raise NoDot(f"{len(dots)} fresh dots after {touches} touches, at {_where(dots)} mm")
        if len(dots) > touches:
            after_touches = "one touch" if touches == 1 else f"{touches} touches"
            raise TwoDots(f"{len(dots)} fresh dots after {after_touches}, at {_where(dots)} mm; {_KEEP_OFF}")
        return [self._measure(darker, old, dot) for dot in dots]

    def _measure(self, darker: _Plane, old: npt.NDArray[np.uint8], change: _Change) -> Dot:
        disc = self._patches.measure(darker, change.place_mm)
        if disc is None:
            raise PageChanged(
                f"what changed near {_where([change])} mm has no middle, so it is no dot; keep the dots page in front"
            )
        under = self._patches.cut(old.astype(np.float32), np.array(disc.centre_mm))
        hidden = covered_share(under, ring_level(under) - 0.5 * disc.depth)
        _require_one(disc, hidden)
        return Dot(disc.centre_mm[0], disc.centre_mm[1], disc.area_share, hidden)

    def _grey(self, name: str, picture: Image) -> npt.NDArray[np.uint8]:
        expected = (self._camera.image_height, self._camera.image_width, 3)
        if picture.shape != expected:
            raise PictureRefused(
                f"the picture {name} the touch is {picture.shape}, the camera model is for {expected}; "
                "do not change the camera's resolution during or after a calibration"
            )
        return np.asarray(cv2.cvtColor(picture[self._crop], cv2.COLOR_BGR2GRAY), dtype=np.uint8)

    def _darkening(self, old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> tuple[_Plane, float]:
        level = float(np.median(old[::4, ::4][self._inside[::4, ::4]]))
        if level < DARK_LEVEL:
            raise TooDark(
                f"the dots page shows at level {level:.0f} of 255, at least {DARK_LEVEL:.0f} is needed; "
                "raise the screen's brightness or the camera's exposure"
            )
        darker = np.asarray(cv2.subtract(old, new, dtype=cv2.CV_32F), dtype=np.float32)
        # Exposure and mains flicker shift the whole page; a dot changes a small part of it.
        shift = float(np.median(darker[::4, ::4][self._inside[::4, ::4]]))
        if abs(shift) > FLICKER_MAX * level:
            # Taken for flicker, a page gone dark would send the hand deeper and deeper for a dot.
            raise PageChanged(
                f"the whole screen changed from level {level:.0f} by {-shift:+.0f} during one touch; keep the "
                "dots page in front, and switch off sleep, automatic brightness and automatic exposure"
            )
        return np.asarray(darker - shift, dtype=np.float32), level

    def _changes(self, smooth: _Plane, threshold: float, dots_max: float) -> list[_Change]:
        """Every place that changed by more than threshold and is large enough to be part of a dot."""
        strength = np.where(self._inside, smooth, np.float32(0.0))
        changed = (np.abs(strength) > threshold).astype(np.uint8)
        count, labels, stats, centres = cv2.connectedComponentsWithStats(changed)
        places = self._camera.unproject(np.asarray(centres[1:count], dtype=np.float64) + self._origin)
        areas = np.asarray(stats[1:count, cv2.CC_STAT_AREA], dtype=np.float64)
        scale = self._camera.px_per_mm(places)
        shares = areas / (np.pi / 4.0 * (DOT_DIAMETER_MM * scale) ** 2)
        if float(shares.sum()) > dots_max:
            raise PageChanged(
                f"{shares.sum():.0f} dots' worth of the screen changed during one touch; keep the dots page "
                "in front, silence notifications, and keep phone and camera still"
            )
        changes = []
        for i in np.flatnonzero(shares >= DOT_AREA_MIN):
            x, y, width, height = (int(v) for v in stats[i + 1, :4])
            box = (slice(y, y + height), slice(x, x + width))
            values = strength[box][labels[box] == i + 1]
            strongest = float(values[np.argmax(np.abs(values))])
            changes.append(_Change(places[i], float(shares[i]), strongest))
        return changes


_KEEP_OFF = "keep other fingers off the glass, and check the stylus for bounce"


def _dots_among(changes: list[_Change], dot_contrast: float) -> list[_Change]:
    """Those as dark as a dot. Raises PageChanged for changes that are none, so that nobody presses deeper."""
    dots = [c for c in changes if c.strongest >= dot_contrast]
    bright = [
        c
        for c in changes
        if c.strongest <= -dot_contrast or (c.strongest < 0.0 and c.dots >= FAINT_BRIGHT_DOTS)
    ]
    faint = [c for c in changes if 0.0 < c.strongest < dot_contrast]
    if bright:
        raise PageChanged(
            f"the page became brighter near {_where(bright)} mm during one touch, and a touch only darkens it; "
            "keep the dots page in front, silence notifications, and keep phone and camera still"
        )
    if faint:
        raise PageChanged(
            f"something fainter than a dot appeared near {_where(faint)} mm ({faint[0].strongest:.0f} levels, a "
            f"dot has {dot_contrast:.0f} or more); wait until the page has drawn its dot, and keep shadows off"
        )
    return dots


def _require_one(disc: Disc, hidden_share: float) -> None:
    x, y = disc.centre_mm
    whole = disc.area_share >= UNCUT_DOT_AREA and hidden_share <= HIDDEN_MAX
    longer = whole and disc.elongation > ONE_DOT_ELONGATION_MAX
    if disc.area_share > ONE_DOT_AREA_MAX or longer:
        raise TwoDots(
            f"the fresh dot at ({x:.1f}, {y:.1f}) mm covers {disc.area_share:.2f} dots and is "
            f"{disc.elongation:.2f} times as long as wide: two that overlap; {_KEEP_OFF}"
        )


def _where(changes: list[_Change]) -> str:
    return ", ".join(f"({c.place_mm[0]:.1f}, {c.place_mm[1]:.1f})" for c in changes)
