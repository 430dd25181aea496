"""From raw camera pictures to board corners and fresh touch dots, or a refusal that says why not."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.errors import (
    Blurred,
    BoardNotFound,
    HalfOutOfView,
    NoDot,
    PageChanged,
    PictureRefused,
    TooDark,
    TwoDots,
)
from calibration.fitting import apply_homography, fit_homography
from calibration.models import CameraModel
from calibration.screen import ScreenGeometry
from calibration.targets import DOT_DIAMETER_MM, CharucoTarget, Image, Points

# Grey levels, of 255. Below this a lit white page drowns in sensor noise.
DARK_LEVEL = 40.0
# Steepest edge of the picture, as a share of its contrast per px. A sharp edge has about 0.5, one blurred
# by a Gaussian of sigma s px has 0.4 / s: below this limit the blur is wider than a marker's cell.
SHARP_EDGE_MIN = 0.13
# The homography of a handful of corners says already where the rest of the screen should be.
CORNERS_FOR_OUTLINE = 8

# A fresh dot darkens its place by most of the page's level; noise, JPEG and flicker stay far below this.
DOT_CONTRAST_MIN = 0.3
DOT_NOISE_SIGMAS = 6.0
# Largest change of the whole page's level, as a share of it, that passes for flicker.
FLICKER_MAX = 0.2
# Smallest share of a whole dot's area that is still a dot: one half hidden by an older dot counts.
DOT_AREA_MIN = 0.12
# More change than this many dots is another page, not a touch.
PAGE_CHANGE_DOTS = 6.0
# A dot of this share of its area or more is whole, and its centroid is where the finger came down.
WHOLE_DOT_AREA = 0.8
PATCH_SAMPLES = 64


@dataclass(frozen=True)
class BoardView:
    """Board corners in one picture: ids (N,), and px (N, 2) in raw camera px."""

    ids: npt.NDArray[np.int64]
    px: Points


@dataclass(frozen=True)
class Dot:
    """A fresh dot in screen mm. Only a whole dot's centre is a position; a part says contact, no more."""

    x_mm: float
    y_mm: float
    area_share: float

    @property
    def whole(self) -> bool:
        """Whether nothing of the dot was hidden by an older one."""
        return self.area_share >= WHOLE_DOT_AREA


class BoardFinder:
    """Finds the ChArUco board of one screen in pictures."""

    def __init__(self, target: CharucoTarget) -> None:
        self._target = target
        self._corners_px = target.corners_px()
        self._detector = cv2.aruco.CharucoDetector(target.board())

    def find(self, picture: Image) -> BoardView:
        """Find the board's corners in a BGR picture.

        Raises TooDark, Blurred, BoardNotFound or HalfOutOfView.
        """
        grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        corners, ids, _, _ = self._detector.detectBoard(grey)
        # OpenCV 4 and 5 differ in these shapes, and nothing found is None in both.
        found = np.empty(0, np.int64) if ids is None else np.asarray(ids, dtype=np.int64).ravel()
        px = np.empty((0, 2)) if len(found) == 0 else np.asarray(corners, dtype=np.float64).reshape(-1, 2)
        if len(found) < CORNERS_FOR_OUTLINE:
            raise why_nothing_was_found(np.asarray(grey, dtype=np.uint8))
        self._require_whole(found, px, picture.shape[1], picture.shape[0])
        return BoardView(ids=found, px=px)

    def _require_whole(self, ids: npt.NDArray[np.int64], px: Points, width: int, height: int) -> None:
        across, down = self._target.width_px, self._target.height_px
        outline = np.array([[0.0, 0.0], [across, 0.0], [across, down], [0.0, down]])
        seen = apply_homography(fit_homography(self._corners_px[ids], px), outline)
        names = ("top left", "top right", "bottom right", "bottom left")
        outside = [
            name
            for name, (x, y) in zip(names, seen, strict=True)
            if not (0.0 <= x <= width - 1 and 0.0 <= y <= height - 1)
        ]
        if outside:
            raise HalfOutOfView(
                f"the screen's {', '.join(outside)} corner lies outside the {width} x {height} picture; "
                "move the camera or the phone until the whole screen is in view"
            )


def why_nothing_was_found(grey: npt.NDArray[np.uint8]) -> PictureRefused:
    """The refusal that fits a picture in which there is no board."""
    dark, bright = (float(v) for v in np.percentile(grey[::2, ::2], [2.0, 99.0]))
    if bright < DARK_LEVEL:
        return TooDark(
            f"the brightest part of the picture is {bright:.0f} of 255, at least {DARK_LEVEL:.0f} is needed; "
            "switch the screen on, raise its brightness or the camera's exposure"
        )
    steepness = cv2.magnitude(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)) / 8.0
    sharpness = float(np.percentile(steepness, 99.9)) / max(bright - dark, 1.0)
    if bright - dark > DARK_LEVEL and sharpness < SHARP_EDGE_MIN:
        return Blurred(
            f"the steepest edges rise by {sharpness:.0%} of the contrast per px, at least "
            f"{SHARP_EDGE_MIN:.0%} is needed; focus the camera, and keep phone and camera still"
        )
    return BoardNotFound("no calibration board in the picture; show it on the phone and aim the camera at it")


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
        mask = np.zeros((high[1] - low[1], high[0] - low[0]), dtype=np.uint8)
        cv2.fillPoly(mask, [np.round(outline - low).astype(np.int32)], (255,))
        # The rim of the lit page flickers with the least shake of the camera.
        self._inside = cv2.erode(mask, np.ones((5, 5), dtype=np.uint8)) > 0

    def find(self, before: Image, after: Image) -> Dot:
        """The one dot that is in `after` and not in `before`, both raw BGR camera pictures.

        Raises NoDot, TwoDots, PageChanged, TooDark, or PictureRefused for a picture of another size.
        """
        darker, level = self._darkening(before, after)
        noise = 1.4826 * float(np.median(np.abs(darker[::4, ::4][self._inside[::4, ::4]])))
        # The noise of a blurred picture is lower, so this limit is on the safe side.
        threshold = max(DOT_NOISE_SIGMAS * noise, DOT_CONTRAST_MIN * level)
        smooth = cv2.GaussianBlur(darker, (0, 0), 1.0)
        smooth[~self._inside] = 0.0
        changed = (np.abs(smooth) > threshold).astype(np.uint8)
        count, _, stats, centres = cv2.connectedComponentsWithStats(changed)
        places = self._camera.unproject(np.asarray(centres[1:count], dtype=np.float64) + self._origin)
        areas = np.asarray(stats[1:count, cv2.CC_STAT_AREA], dtype=np.float64)
        shares = areas / self._dot_area_px(places)
        if float(shares.sum()) > PAGE_CHANGE_DOTS:
            raise PageChanged(
                f"{shares.sum():.0f} dots' worth of the screen changed during one touch; keep the dots page "
                "in front, silence notifications, and keep phone and camera still"
            )
        found = np.flatnonzero(shares >= DOT_AREA_MIN)
        if len(found) == 0:
            raise NoDot("no fresh dot on the screen after the touch")
        if len(found) > 1:
            where = ", ".join(f"({x:.1f}, {y:.1f})" for x, y in places[found])
            raise TwoDots(
                f"{len(found)} fresh dots after one touch, at {where} mm; "
                "keep other fingers off the glass, and check the stylus for bounce"
            )
        return self._measure(darker, places[int(found[0])])

    def _darkening(self, before: Image, after: Image) -> tuple[npt.NDArray[np.float32], float]:
        expected = (self._camera.image_height, self._camera.image_width, 3)
        for name, picture in (("before", before), ("after", after)):
            if picture.shape != expected:
                raise PictureRefused(
                    f"the picture {name} the touch is {picture.shape}, the camera model is for {expected}; "
                    "do not change the camera's resolution during or after a calibration"
                )
        old = cv2.cvtColor(before[self._crop], cv2.COLOR_BGR2GRAY)
        new = cv2.cvtColor(after[self._crop], cv2.COLOR_BGR2GRAY)
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

    def _dot_area_px(self, places_mm: Points) -> npt.NDArray[np.float64]:
        scale = self._camera.px_per_mm(places_mm)
        return np.asarray(np.pi / 4.0 * (DOT_DIAMETER_MM * scale) ** 2, dtype=np.float64)

    def _measure(self, darker: npt.NDArray[np.float32], start_mm: Points) -> Dot:
        """The centroid in screen mm: resampling on a grid in mm takes perspective out of it."""
        half_mm = DOT_DIAMETER_MM
        steps = (np.arange(PATCH_SAMPLES) + 0.5) / PATCH_SAMPLES * 2 * half_mm - half_mm
        offset_x, offset_y = np.meshgrid(steps, steps)
        near = np.hypot(offset_x, offset_y) < 0.85 * DOT_DIAMETER_MM
        centre, share = start_mm.astype(np.float64), 0.0
        for _ in range(3):
            mm = np.column_stack([offset_x.ravel() + centre[0], offset_y.ravel() + centre[1]])
            px = (self._camera.project(mm) - self._origin).astype(np.float32)
            shape = (PATCH_SAMPLES, PATCH_SAMPLES)
            patch = cv2.remap(
                darker, px[:, 0].reshape(shape), px[:, 1].reshape(shape), cv2.INTER_LINEAR, borderValue=0.0
            )
            # Robust against a hot pixel, and close to the dot's own depth for any blur up to its size.
            depth = float(np.percentile(patch[near], 90.0))
            weight = np.where(near & (patch > 0.1 * depth), patch, 0.0)
            total = float(weight.sum())
            centre = centre + np.array([(weight * offset_x).sum(), (weight * offset_y).sum()]) / total
            share = total / depth * (2 * half_mm / PATCH_SAMPLES) ** 2 / (np.pi / 4 * DOT_DIAMETER_MM**2)
        return Dot(x_mm=float(centre[0]), y_mm=float(centre[1]), area_share=share)
