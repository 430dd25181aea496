"""Touching and looking: every touch is checked against the envelope, seen by the camera and kept."""

import math

import msgspec

from calibration.detect import Dot
from calibration.dots_page import DotsPage
from calibration.errors import NoDot, OutOfReach, PictureRefused, UpsideDown
from calibration.models import ContactPlane
from calibration.options import Options
from calibration.result import TouchRecord, TouchStep
from calibration.rig import DigitizerTouch, HandFacts, HandTouch, PointerTouch, PointRefused, Rig, Side, Touch
from calibration.screen import Pair

LOW: tuple[Side, Side] = ("low", "low")
# A touch of a series that lands this far from where it was aimed cannot be told from another's.
STRAY_MM = 2.0
# A height that was computed to lie exactly on a limit may miss it by rounding.
_ROUNDING_MM = 1e-6


class TouchSession:
    """All touches of one calibration on one dots page, and all that was measured.

    Once `surface` is known, nothing is pressed deeper below it than the hard limit.
    """

    def __init__(self, rig: Rig, page: DotsPage, options: Options) -> None:
        self._rig, self._options = rig, options
        self.page = page
        self.records: list[TouchRecord] = []
        self.surface: ContactPlane | None = None

    def touch(self, step: TouchStep, touch: Touch, target_mm: Pair | None) -> Dot:
        """Touch once and find the fresh dot. The touch is kept also when no dot can be measured.

        Raises OutOfReach before anything moves, what the rig raises, and what DotsPage.fresh_dot raises.
        """
        self._send(step, touch, target_mm)
        dot = self.page.fresh_dot()
        self._saw(len(self.records) - 1, dot)
        return dot

    def touch_series(self, step: TouchStep, touches: list[tuple[Touch, Pair]]) -> list[Dot]:
        """Touch place after place without a look between, then find the dot of each, given with where it was aimed.

        Each touch comes from the place before it, as an action's does, and not from where the hand parks for a
        look. Raises as touch does; NoDot also for a dot that lies too far from where any touch was aimed.
        """
        first = len(self.records)
        for touch, target_mm in touches:
            self._send(step, touch, target_mm)
        dots = self.page.fresh_dots(len(touches))
        found: list[Dot] = []
        for number, (_, (x_mm, y_mm)) in enumerate(touches):
            dot = min(dots, key=lambda dot: math.hypot(dot.x_mm - x_mm, dot.y_mm - y_mm))
            if math.hypot(dot.x_mm - x_mm, dot.y_mm - y_mm) > STRAY_MM or dot in found:
                raise NoDot(f"no dot within {STRAY_MM} mm of ({x_mm:.1f}, {y_mm:.1f}) mm of the screen")
            self._saw(first + number, dot)
            found.append(dot)
        return found

    def _send(self, step: TouchStep, touch: Touch, target_mm: Pair | None) -> None:
        self._require_reach(touch)
        self._rig.touch(touch)
        self.records.append(
            TouchRecord(
                step=step,
                sent=sent(touch),
                press_z_mm=touch.press_z_mm if isinstance(touch, HandTouch) else None,
                seen_mm=None,
                whole=False,
                target_mm=target_mm,
                approach=(touch.approach_x, touch.approach_y) if isinstance(touch, HandTouch) else LOW,
            )
        )

    def _saw(self, number: int, dot: Dot) -> None:
        seen = (dot.x_mm, dot.y_mm)
        self.records[number] = msgspec.structs.replace(self.records[number], seen_mm=seen, whole=dot.whole)

    def _require_reach(self, touch: Touch) -> None:
        match touch:
            case HandTouch():
                self._require_in_envelope(touch)
            case DigitizerTouch(x, y):
                if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
                    raise OutOfReach(
                        f"the next touch needs the digitizer's axes at ({x:.4f}, {y:.4f}), they go from 0 to 1; the "
                        "digitizer's area does not cover the screen, see the HID board's margins"
                    )
            case PointerTouch(x, y):
                if x < 0 or y < 0:
                    raise OutOfReach(
                        f"the next click needs ({x}, {y}) counts from the corner, and there is nothing beyond it; "
                        "check that the page is upright"
                    )

    def _require_in_envelope(self, touch: HandTouch) -> None:
        facts = self._rig.hand
        assert facts is not None, "only a rig with a hand is sent hand touches"
        box = facts.limits
        from_x, from_y = _come_from(touch, facts)
        for axis, value, low, high in (
            ("x", touch.x_mm, box.x_min_mm, box.x_max_mm),
            ("x", from_x, box.x_min_mm, box.x_max_mm),
            ("y", touch.y_mm, box.y_min_mm, box.y_max_mm),
            ("y", from_y, box.y_min_mm, box.y_max_mm),
            ("z", touch.press_z_mm, box.z_min_mm, box.z_max_mm),
        ):
            if not low <= value <= high:
                raise OutOfReach(
                    f"the next touch needs hand {axis} = {value:.2f} mm, the envelope is {low:.2f} to "
                    f"{high:.2f} mm; move the phone so that its whole screen is within the hand's reach"
                )
        if self.surface is None:
            return
        beyond = self.surface.contact_z(touch.x_mm, touch.y_mm) - touch.press_z_mm
        if not beyond <= self._options.overtravel_limit_mm + _ROUNDING_MM:
            raise OutOfReach(
                f"the next touch would press {beyond:.2f} mm beyond the glass, the hard limit is "
                f"{self._options.overtravel_limit_mm} mm; calibrate again"
            )


class Attempts:
    """How often one place is touched again: each time the person, or whoever stands in for them, is asked."""

    def __init__(self, rig: Rig, options: Options, step: str, point: int) -> None:
        self._rig, self._max, self._step, self._point = rig, options.redo_max, step, point
        self.count = 0

    def refused(self, refusal: PictureRefused) -> None:
        """Return if the place is to be touched again, raise the refusal if not.

        A page that is turned is never asked about: its dots and marks are elsewhere now.
        """
        if isinstance(refusal, UpsideDown):
            raise refusal
        if self.count == self._max:
            tried = self.count + 1
            raise type(refusal)(
                f"{refusal} (point {self._point} of the {self._step} step, touched {tried} times)"
            ) from refusal
        if self._rig.ask(PointRefused(self._step, self._point, str(refusal))) != "redo":
            raise refusal
        self.count += 1


def sent(touch: Touch) -> Pair:
    """Where a touch is sent: hand mm, digitizer fractions or pointer counts."""
    match touch:
        case HandTouch(x, y) | DigitizerTouch(x, y):
            return x, y
        case PointerTouch(x_counts, y_counts):
            return float(x_counts), float(y_counts)


def _come_from(touch: HandTouch, facts: HandFacts) -> Pair:
    """Where the hand must be before it comes to the touch's place, hand mm."""
    side_x = -1.0 if touch.approach_x == "low" else 1.0
    side_y = -1.0 if touch.approach_y == "low" else 1.0
    return touch.x_mm + side_x * facts.approach_mm, touch.y_mm + side_y * facts.approach_mm
