"""The glass under the hand: first contact, the hand's directions, and the plane through the corners."""

import math

from calibration.contact import HeightSearch, Prediction, Site, fit_plane, plane_residual_mm, predict
from calibration.detect import Dot
from calibration.errors import NoDot, OutOfReach, PictureRefused
from calibration.models import ContactPlane
from calibration.procedure.place import send_to
from calibration.procedure.progress import Work
from calibration.procedure.run import Run, touches_work
from calibration.result import TouchStep
from calibration.rig import HandFacts, HandTouch
from calibration.screen import Pair
from calibration.session import Attempts

# Touches that close in on a height step aside by this much, so that each leaves a visible crescent of a dot.
ASIDE_MM = 1.0
# The first triangle's corners stay so far inside the screen's edge.
TRIANGLE_RIM_MM = 3.0
TRIANGLE_MIN_MM = 6.0


class Glass:
    """Finds heights one site after another; each makes the next one's prediction better."""

    def __init__(self, run: Run, hand: HandFacts) -> None:
        self._run, self._hand = run, hand
        self._sites: list[Site] = []
        self._first: tuple[Pair, Pair] | None = None

    def find_first_contact(self) -> None:
        """Come down in the middle of the envelope, step by step, until the screen feels it."""
        box, options = self._hand.limits, self._run.options
        place = ((box.x_min_mm + box.x_max_mm) / 2.0, (box.y_min_mm + box.y_max_mm) / 2.0)
        search = HeightSearch(
            self._hand.hover_z_mm,
            None,
            step_mm=options.coarse_step_mm,
            resolution_mm=options.contact_resolution_mm,
            floor_mm=box.z_min_mm,
        )
        search.feed(self._hand.hover_z_mm, touched=False)
        level = Prediction(self._hand.hover_z_mm, math.inf, slope_x=0.0, slope_y=0.0)
        seen = self._close_in("contact", 1, place, (1.0, 0.0), search, level, None)
        self._first = (place, seen)

    def touch_triangle(self) -> None:
        """Two more places close by: the hand's directions, scale and the glass's rough slope."""
        assert self._first is not None, "the first contact has been found"
        screen, (first, seen) = self._run.screen, self._first
        room = min(seen[0], screen.width_mm - seen[0], seen[1], screen.height_mm - seen[1])
        side = min(self._run.options.triangle_mm, room - TRIANGLE_RIM_MM)
        if side < TRIANGLE_MIN_MM:
            raise OutOfReach(
                f"the centre of the hand's envelope is at ({seen[0]:.1f}, {seen[1]:.1f}) mm of the screen, "
                f"only {room:.1f} mm from its edge; move the phone so that its middle lies there"
            )
        for point, place in enumerate(((first[0] + side, first[1]), (first[0], first[1] + side)), start=1):
            self._find_height("triangle", point, place, (1.0, 0.0), None)

    def measure_plane(self, corners: list[Pair]) -> tuple[ContactPlane, float]:
        """The plane through all sites, and the largest distance of one of them from it, mm.

        corners: four places of the screen, mm. Raises FitRefused for glass that is no plane.
        """
        middle = self._run.screen.width_mm / 2.0
        for point, target in enumerate(corners, start=1):
            place = send_to(self._run, target)
            inward = send_to(self._run, (target[0] + math.copysign(1.0, middle - target[0]), target[1]))
            self._find_height("plane", point, place, (inward[0] - place[0], inward[1] - place[1]), target)
        plane = fit_plane(self._sites)
        return plane, plane_residual_mm(plane, self._sites)

    def _find_height(
        self, step: TouchStep, point: int, place: Pair, aside: Pair, target: Pair | None
    ) -> None:
        """Close in on the contact height at a place whose neighbours' heights are known."""
        options = self._run.options
        expected = predict(self._sites, *place, options.tilt_max)
        search = HeightSearch(
            expected.contact_mm + expected.within_mm,
            expected.contact_mm - expected.within_mm,
            step_mm=options.coarse_step_mm,
            resolution_mm=options.contact_resolution_mm,
            floor_mm=max(
                self._hand.limits.z_min_mm,
                expected.contact_mm - expected.within_mm - options.overtravel_limit_mm,
            ),
        )
        self._close_in(step, point, place, aside, search, expected, target)

    def _close_in(
        self,
        step: TouchStep,
        point: int,
        place: Pair,
        aside: Pair,
        search: HeightSearch,
        expected: Prediction,
        target: Pair | None,
    ) -> Pair:
        """Touch as the search says until it is content; returns where the first dot was, screen mm.

        aside: a step of 1 mm in hand mm, towards which there is room.
        """
        attempts = Attempts(self._run.rig, self._run.options, step, point)
        first: Pair | None = None
        moved = 0
        beside = {True: (0.0, 0.0), False: (0.0, 0.0)}
        while (height := search.next_press_z()) is not None:
            dx, dy = (moved * ASIDE_MM * along for along in aside)
            press_z = height + expected.slope_x * dx + expected.slope_y * dy
            try:
                dot = self._touch(
                    step, HandTouch(place[0] + dx, place[1] + dy, press_z), None if first else target
                )
            except PictureRefused as refusal:
                attempts.refused(refusal)
                self._run.page.settle()
                moved += 1
                continue
            search.feed(height, dot is not None)
            beside[dot is not None] = (dx, dy)
            # A dot on a dot would not be seen; nor one on a control mark, which is how it may look when nothing
            # is seen below where the glass was expected.
            if dot is not None or height < expected.contact_mm - expected.within_mm:
                moved += 1
            if dot is not None and first is None:
                first = (dot.x_mm, dot.y_mm)
            self._run.meter.tell(f"height {height:.2f} mm: {'touched' if dot else 'free'}")
        contact, half_width = search.result()
        # The height is that of where the last touches were: the slope towards there may not be known yet.
        dx, dy = (sum(along) / 2.0 for along in zip(*beside.values(), strict=True))
        self._sites.append(
            Site(
                place[0] + dx,
                place[1] + dy,
                contact_mm=contact + expected.slope_x * dx + expected.slope_y * dy,
                half_width_mm=half_width,
            )
        )
        assert first is not None, "a search ends only after it has touched"
        return first

    def _touch(self, step: TouchStep, touch: HandTouch, target: Pair | None) -> Dot | None:
        try:
            return self._run.session.touch(step, touch, target)
        except NoDot:
            return None


def glass_work(hand: HandFacts, coarse_step_mm: float) -> dict[str, Work]:
    """The touches that are to be expected: the glass half way down, then some halvings a site."""
    way_mm = (hand.hover_z_mm - hand.limits.z_min_mm) / 2.0
    return {
        "contact": touches_work(math.ceil(way_mm / coarse_step_mm) + 4),
        "triangle": touches_work(2 * 5),
        "plane": touches_work(4 * 5),
    }
