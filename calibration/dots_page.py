"""The dots page under the camera: every picture of it is watched by the control marks, and yields one fresh dot."""

import numpy as np

from calibration.detect import Dot, DotFinder, MarkFinder
from calibration.detect.marks import REACH_MM
from calibration.drift import DriftReference, DriftReport, measure
from calibration.errors import MarksOff, NoDot, PageChanged, PictureRefused, RigMoved, TwoDots
from calibration.models import CameraModel
from calibration.options import Options
from calibration.result import MarkRecord
from calibration.rig import Rig, ShowTarget, Turn
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import Image, control_marks_mm

# A notification slides away by itself; so many looks, a second or so each, are given to it.
SETTLE_LOOKS_MAX = 8
# A single mark is seen half as well as the median of all; a turn about the middle shows in single ones only.
SINGLE_MARK_SHARE = 2.0


class DotsPage:
    """The dots page in one turn, from the moment it is shown to the last touch on it.

    occupied: all that is black on the page, screen mm: its own marks, the dots so far, and places at which
    something went wrong. shift_px: how far the marks have moved since the first picture, in the last one.
    """

    def __init__(
        self,
        rig: Rig,
        screen: ScreenGeometry,
        camera: CameraModel,
        options: Options,
        *,
        turn: Turn = "portrait",
        reference: DriftReference | None = None,
    ) -> None:
        """reference: what stood where when the board was seen, to say who moved; None says only that something did."""
        self._rig, self._screen, self._camera = rig, screen, camera
        self._options, self._turn, self._reference = options, turn, reference
        marks_mm = control_marks_mm(screen.width_mm, screen.height_mm, turn)
        # As far as marks are looked for at all: what they say is judged elsewhere, with its own limits.
        self._marks = MarkFinder(camera, screen, marks_mm, REACH_MM)
        self._dots = DotFinder(camera, screen)
        self._before: Image | None = None
        self.occupied: list[Pair] = list(marks_mm)
        self.shift_px = 0.0

    def show(self) -> tuple[MarkRecord, ...]:
        """Have the page shown, and find its marks: the mean of several pictures.

        Raises MarksOff, UpsideDown, PageChanged, TooDark, RigMoved, and what the rig raises.
        """
        self._rig.ask(ShowTarget("dots", self._turn))
        return self.require_still()

    def fresh_dot(self) -> Dot:
        """Look, and find the one dot that was not there at the last look.

        Raises NoDot, TwoDots, PageChanged, UpsideDown, TooDark or RigMoved, and what the rig raises. After all but
        NoDot the page must settle before the next touch.
        """
        return self.fresh_dots(1)[0]

    def fresh_dots(self, touches: int) -> list[Dot]:
        """The same for several touches since the last look: one dot each, in no order."""
        assert self._before is not None, "the page has been shown"
        after = self._rig.look().image
        self._require_unmoved(after)
        try:
            dots = self._dots.find_all(self._before, after, touches)
        except NoDot:
            self._before = after
            raise
        self._before = after
        self.occupied.extend((dot.x_mm, dot.y_mm) for dot in dots)
        return dots

    def settle(self, touches: int = 1) -> None:
        """After touches that went wrong: look until the page is itself again, whatever dots it may have got.

        Raises PageChanged or another refusal when it does not become so, UpsideDown, RigMoved.
        """
        assert self._before is not None, "the page has been shown"
        refusal: PictureRefused | None = None
        for _ in range(SETTLE_LOOKS_MAX):
            picture = self._rig.look().image
            try:
                self._require_unmoved(picture)
                dots = self._dots.find_all(self._before, picture, touches)
                self.occupied.extend((dot.x_mm, dot.y_mm) for dot in dots)
            except (NoDot, TwoDots):
                pass
            except PageChanged as changed:
                refusal = changed
                continue
            self._before = picture
            return
        assert refusal is not None
        raise refusal

    def require_still(self) -> tuple[MarkRecord, ...]:
        """Where the marks are seen now, the mean of several pictures, in none of which anything has moved.

        Raises RigMoved, MarksOff, UpsideDown, PageChanged, TooDark.
        """
        seen: dict[Pair, list[Pair]] = {}
        for _ in range(self._options.mark_looks):
            picture = self._rig.look().image
            if self._before is not None:
                self._require_unmoved(picture)
            for mark in self._find(picture):
                seen.setdefault(mark.drawn_mm, []).append(mark.seen_mm)
            self._before = picture
        return tuple(
            MarkRecord(drawn_mm=drawn, seen_mm=_mean(places))
            for drawn, places in seen.items()
            if 2 * len(places) >= self._options.mark_looks
        )

    def moved(self, picture: Image | None = None) -> DriftReport | None:
        """What the bed's markers and the screen's outline say in a picture, the last one if none is given.

        None without a reference.
        """
        seen = self._before if picture is None else picture
        if self._reference is None or seen is None:
            return None
        return measure([seen], self._reference, self._camera, self._screen)

    def _find(self, picture: Image) -> tuple[MarkRecord, ...]:
        try:
            return self._marks.find(picture)
        except (MarksOff, PageChanged) as few:
            self._require_in_place(picture, few)
            raise

    def _require_in_place(self, picture: Image, few: PictureRefused) -> None:
        """Few marks are seen: hidden by something, or so far off that they are not found. Raises RigMoved."""
        report = self.moved(picture)
        if report is not None and report.hold:
            raise RigMoved(f"{report.message}; fix it, and start again") from few

    def _require_unmoved(self, picture: Image) -> None:
        try:
            shift = self._marks.shift_px(picture)
        except (MarksOff, PageChanged) as few:
            self._require_in_place(picture, few)
            # The marks have been seen where they belong: what is missing now is hidden, and may come back.
            raise PageChanged(str(few)) from few
        self.shift_px = float(np.hypot(shift.dx_px, shift.dy_px))
        limit = self._options.moved_max_px
        if self.shift_px > limit or shift.worst_px > SINGLE_MARK_SHARE * limit:
            report = self.moved(picture)
            who = "phone or camera moved" if report is None else report.message
            raise RigMoved(
                f"the control marks are {self.shift_px:.2f} px from where they were at first, the worst "
                f"{shift.worst_px:.2f} px, the limits are {limit} and {SINGLE_MARK_SHARE * limit} px; {who}; fix it, "
                "and start again"
            )


def _mean(places: list[Pair]) -> Pair:
    x, y = np.mean(places, axis=0)
    return float(x), float(y)
