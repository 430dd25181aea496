"""The control marks of the dots page in one picture: what judges the camera model and shows what moved or turned."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect.board import DARK_LEVEL
from calibration.detect.discs import Patches, ring_level
from calibration.errors import MarksOff, PageChanged, PictureRefused, TooDark, UpsideDown
from calibration.models import CameraModel
from calibration.result import MarkRecord
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import TURNS, Image, control_marks_mm

# A mark is black on mid-grey: what is less deep than this share of its surroundings is something else.
MARK_CONTRAST_MIN = 0.5
# Outside of these a touch dot, a shadow or a finger covers part of it, and its centroid is not its place.
MARK_AREA = (0.85, 1.13)
MARK_ELONGATION_MAX = 1.06
# Twelve are drawn. With fewer than this, what is left need not be spread over the screen.
MARKS_SHARE_MIN = 0.6
# So far from its place nothing is looked for: half the way to the nearest place of a touch.
REACH_MM = 1.5
# The camera model was fitted with less than 0.1 mm of error; further off, the model or the rig is wrong.
OFF_MAX_MM = 0.5
# The dots page is not in front if hardly any mark is there.
OTHER_PAGE_SHARE = 0.25

_Plane = npt.NDArray[np.float32]


class MarkShift(NamedTuple):
    """How far the marks have moved since the start, camera px: medians right and down, and the worst mark's."""

    dx_px: float
    dy_px: float
    worst_px: float


class MarkFinder:
    """Finds the control marks of one screen, seen through one camera model."""

    def __init__(
        self,
        camera: CameraModel,
        screen: ScreenGeometry,
        marks_mm: Sequence[Pair],
        off_max_mm: float = OFF_MAX_MM,
    ) -> None:
        """marks_mm: where the page draws them, portrait screen mm, as control_marks_mm has them for a turn."""
        self._camera = camera
        self._marks = np.array(marks_mm, dtype=np.float64).reshape(-1, 2)
        self._off_max_mm = off_max_mm
        self._patches = Patches(camera, np.zeros(2))
        every = {turn: np.array(control_marks_mm(screen.width_mm, screen.height_mm, turn)) for turn in TURNS}
        self._turn = next((turn for turn, marks in every.items() if _same(marks, self._marks)), None)
        self._others = {turn: marks for turn, marks in every.items() if turn != self._turn}
        self._start: dict[int, npt.NDArray[np.float64]] | None = None

    def find(self, picture: Image) -> tuple[MarkRecord, ...]:
        """The marks in a raw BGR picture of the dots page; those that something hides are left out.

        The first call that succeeds is the start that shift_px compares with. Raises MarksOff, UpsideDown,
        PageChanged, TooDark, or PictureRefused for a picture of another size.
        """
        seen = self._require(picture)
        if self._start is None:
            self._start = self._in_px(seen)
        return tuple(
            MarkRecord(drawn_mm=(float(self._marks[i][0]), float(self._marks[i][1])), seen_mm=place)
            for i, place in seen.items()
        )

    def shift_px(self, picture: Image) -> MarkShift:
        """How far the marks are from where they were at the start; zero in the first picture. Raises as find."""
        now = self._in_px(self._require(picture))
        if self._start is None:
            self._start = now
        both = sorted(now.keys() & self._start.keys())
        if len(both) < MARKS_SHARE_MIN * len(self._marks):
            raise MarksOff(
                f"only {len(both)} of {len(self._marks)} control marks are seen now and were seen at the start; "
                "take off what lies on the glass"
            )
        moved = np.array([now[i] - self._start[i] for i in both])
        dx, dy = (float(v) for v in np.median(moved, axis=0))
        return MarkShift(dx, dy, float(np.hypot(*moved.T).max()))

    def _require(self, picture: Image) -> dict[int, Pair]:
        grey = self._grey(picture)
        seen = self._seen(grey, self._marks)
        if len(seen) < MARKS_SHARE_MIN * len(self._marks):
            raise self._why_few(grey, len(seen))
        off = {i: float(np.hypot(*np.subtract(place, self._marks[i]))) for i, place in seen.items()}
        worst = max(off, key=lambda i: off[i])
        if off[worst] > self._off_max_mm:
            raise MarksOff(
                f"the control mark of ({self._marks[worst][0]:.1f}, {self._marks[worst][1]:.1f}) mm is seen "
                f"{off[worst]:.2f} mm off, the limit is {self._off_max_mm} mm; phone or camera moved, or the "
                "page is not drawn to the configured screen size: calibrate again"
            )
        return seen

    def _why_few(self, grey: _Plane, found: int) -> PictureRefused:
        for turn, marks in self._others.items():
            fitting = len(self._seen(grey, marks))
            if fitting >= MARKS_SHARE_MIN * len(marks) and fitting > found:
                asked = f"{self._turn} was asked for" if self._turn else "other marks were asked for"
                return UpsideDown(
                    f"the dots page is turned: {fitting} of its control marks fit {turn}, {asked}; turn the "
                    "page back and lock the phone's rotation"
                )
        if found < OTHER_PAGE_SHARE * len(self._marks):
            return PageChanged(
                f"{found} of the dots page's {len(self._marks)} control marks are in the picture; bring the "
                "dots page to the front, over the whole screen"
            )
        return MarksOff(
            f"only {found} of the {len(self._marks)} control marks are where the camera model expects them, at "
            f"least {MARKS_SHARE_MIN:.0%} are needed; clear what hides the screen, and if phone or camera moved "
            "calibrate again"
        )

    def _grey(self, picture: Image) -> _Plane:
        expected = (self._camera.image_height, self._camera.image_width, 3)
        if picture.shape != expected:
            raise PictureRefused(
                f"the picture of the control marks is {picture.shape}, the camera model is for {expected}; "
                "do not change the camera's resolution during or after a calibration"
            )
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), dtype=np.float32)

    def _seen(self, grey: _Plane, marks: npt.NDArray[np.float64]) -> dict[int, Pair]:
        """By its number, each mark that is whole and alone, in screen mm. Raises TooDark."""
        levels, seen = [], {}
        for number, place in enumerate(marks):
            level = ring_level(self._patches.cut(grey, place))
            levels.append(level)
            disc = self._patches.measure(-grey, place)
            if (
                disc is not None
                and disc.depth >= MARK_CONTRAST_MIN * level
                and MARK_AREA[0] <= disc.area_share <= MARK_AREA[1]
                and disc.elongation <= MARK_ELONGATION_MAX
                and float(np.hypot(*np.subtract(disc.centre_mm, place))) <= REACH_MM
            ):
                seen[number] = disc.centre_mm
        if max(levels) < DARK_LEVEL:
            raise TooDark(
                f"the dots page shows at level {max(levels):.0f} of 255, at least {DARK_LEVEL:.0f} is "
                "needed; switch the screen on, raise its brightness or the camera's exposure"
            )
        return seen

    def _in_px(self, seen: dict[int, Pair]) -> dict[int, npt.NDArray[np.float64]]:
        places = self._camera.project(np.array(list(seen.values()), dtype=np.float64))
        return dict(zip(seen, places, strict=True))


def _same(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> bool:
    return first.shape == second.shape and bool(np.allclose(first, second, atol=1e-6))
