"""The calibration procedure: from a board on the screen to a calibration accepted by held-out touches.

Nothing is known beforehand but the screen's size, the hand's envelope and that its centre is over the screen.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibration.contact import HeightSearch, Site, fit_plane, predict
from calibration.detect import BoardFinder, DotFinder
from calibration.errors import AcceptanceFailed, NoDot, OutOfReach, RigMoved
from calibration.fit_camera import CameraQuality, fit_camera
from calibration.fit_hand import fit_hand, fit_kind
from calibration.models import CameraModel, ContactPlane, HandModel
from calibration.options import Options
from calibration.places import clear_of, grid_places, held_out_places
from calibration.result import Acceptance, CornerRecord, DeviceCalibration, Pair, TouchStep
from calibration.rig import Rig, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.session import TouchSession
from calibration.targets import DOT_DIAMETER_MM, charuco_target

# Touches that close in on a height step aside by this much, so that each leaves a visible crescent of a dot.
ASIDE_MM = 1.0
# The first triangle's corners stay so far inside the screen's edge.
TRIANGLE_RIM_MM = 3.0
TRIANGLE_MIN_MM = 6.0


@dataclass(frozen=True)
class Step:
    """One step of the procedure, as a person at the rig reads it."""

    title: str
    caution: str


STEPS: dict[str, Step] = {
    "board": Step("Look at the board", "From here to the end, do not move phone, camera or lamp."),
    "contact": Step(
        "Find the glass",
        "The hand presses down in small steps in the middle of its range. Keep fingers out and the "
        "emergency stop at hand.",
    ),
    "triangle": Step("Find the hand's directions", "The hand touches close to the first place."),
    "plane": Step("Measure the glass at the corners", "The hand now travels over the whole screen."),
    "grid": Step("Touch the grid", "Leave the dots on the screen; silence notifications."),
    "acceptance": Step("Touch held-out places", "These touches judge the calibration; do not help them."),
    "check": Step("Look at the board again", "Last look: nothing may have moved since the first."),
}


@dataclass(frozen=True)
class Progress:
    """Where the procedure stands: step number of steps, and how many touches it has made."""

    number: int
    steps: int
    step: Step
    touches: int
    detail: str


OnProgress = Callable[[Progress], None]


def calibrate(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
) -> DeviceCalibration:
    """Run the whole procedure and return a calibration that passed its acceptance.

    Raises a CalibrationError that names what was refused: PictureRefused, FitRefused, RigRefused,
    ContactNotFound, OutOfReach, RigMoved, AcceptanceFailed, OptionsInvalid. Whatever else a rig's verb
    raises passes through; that is how a run is cancelled.
    """
    return _Run(rig, screen, options or Options(), on_progress).calibrate()


def measure_camera(
    rig: Rig, screen: ScreenGeometry, options: Options | None = None
) -> tuple[CameraModel, CameraQuality, tuple[CornerRecord, ...]]:
    """Only the camera's part: show the board, look at it, fit the model. For a phone that has no hand.

    Raises PictureRefused, FitRefused, RigMoved, Declined.
    """
    chosen = options or Options()
    target = charuco_target(screen.width_px, screen.height_px)
    finder = BoardFinder(target)
    rig.ask(ShowTarget("charuco"))
    seen: dict[int, list[Pair]] = {}
    for _ in range(chosen.board_looks):
        picture = rig.look().image
        view = finder.find(picture)
        for number, (x, y) in zip(view.ids, view.px, strict=True):
            seen.setdefault(int(number), []).append((float(x), float(y)))
    # A corner found in a minority of the pictures sits in a reflection or on the edge of being found.
    kept = {number: np.array(px) for number, px in sorted(seen.items()) if 2 * len(px) >= chosen.board_looks}
    shake = float(np.percentile([np.ptp(px, axis=0).max() for px in kept.values()], 90.0))
    if shake > chosen.moved_max_px:
        raise RigMoved(
            f"the board's corners wander by {shake:.2f} px from picture to picture, the limit is "
            f"{chosen.moved_max_px} px; fix camera and phone, and wait until nothing vibrates"
        )
    ids = np.array(list(kept), dtype=np.int64)
    mean = np.array([px.mean(axis=0) for px in kept.values()])
    size = (picture.shape[1], picture.shape[0])
    board_mm = screen.px_to_mm(target.corners_px())
    model, quality = fit_camera(screen, size, ids, board_mm, mean, chosen.camera_residual_max_px)
    corners = tuple(
        CornerRecord(id=number, px=(float(m[0]), float(m[1])), looks=len(px))
        for (number, px), m in zip(kept.items(), mean, strict=True)
    )
    return model, quality, corners


class _Run:
    """One run of the procedure: what it has been given, and the place it has come to."""

    def __init__(
        self, rig: Rig, screen: ScreenGeometry, options: Options, on_progress: OnProgress | None
    ) -> None:
        self._rig, self._screen, self._options = rig, screen, options
        self._on_progress = on_progress
        self._grid = grid_places(screen, options)
        self._held_out = held_out_places(screen, options)
        self._session: TouchSession | None = None
        self._sites: list[Site] = []
        self._step = "board"

    def calibrate(self) -> DeviceCalibration:
        self._begin("board")
        camera, quality, corners = measure_camera(self._rig, self._screen, self._options)
        self._session = TouchSession(self._rig, DotFinder(camera, self._screen))
        session = self._session
        self._begin("contact")
        first, seen = self._find_first_contact()
        self._begin("triangle")
        self._touch_triangle(first, seen)
        self._begin("plane")
        plane = self._measure_plane()
        self._begin("grid")
        for target in self._grid[4:]:
            self._touch_grid_place(plane, target)
        seen_mm, hand_mm, numbers = session.pairs()
        hand, hand_quality = fit_hand(self._screen, seen_mm, hand_mm)
        for outlier in hand_quality.outliers:
            session.mark_outlier(numbers[outlier])
        self._begin("acceptance")
        acceptance = self._accept(hand, plane)
        self._begin("check")
        self._require_unmoved(corners)
        if not acceptance.passed:
            raise AcceptanceFailed(_verdict(acceptance), acceptance)
        return DeviceCalibration(
            screen=self._screen,
            camera=camera,
            hand=hand,
            contact=plane,
            overtravel_mm=self._options.overtravel_mm,
            overtravel_limit_mm=self._options.overtravel_limit_mm,
            acceptance=acceptance,
            camera_quality=quality,
            hand_quality=hand_quality,
            corners=corners,
            touches=tuple(session.records),
        )

    def _find_first_contact(self) -> tuple[Pair, Pair]:
        """Come down in the envelope's centre; returns the place in hand mm and in screen mm."""
        box, options = self._rig.limits, self._options
        place = ((box.x_min_mm + box.x_max_mm) / 2.0, (box.y_min_mm + box.y_max_mm) / 2.0)
        search = HeightSearch(
            self._rig.hover_z_mm,
            None,
            step_mm=options.coarse_step_mm,
            resolution_mm=options.contact_resolution_mm,
            floor_mm=box.z_min_mm,
        )
        search.feed(self._rig.hover_z_mm, touched=False)
        return place, self._close_in("contact", place, search, slope_x=0.0, target=None)

    def _touch_triangle(self, first: Pair, seen: Pair) -> None:
        """Two more places close by: the hand's directions, scale and the glass's rough slope."""
        screen = self._screen
        room = min(seen[0], screen.width_mm - seen[0], seen[1], screen.height_mm - seen[1])
        side = min(self._options.triangle_mm, room - TRIANGLE_RIM_MM)
        if side < TRIANGLE_MIN_MM:
            raise OutOfReach(
                f"the centre of the hand's envelope is at ({seen[0]:.1f}, {seen[1]:.1f}) mm of the screen, "
                f"only {room:.1f} mm from its edge; move the phone so that its middle lies there"
            )
        for place in ((first[0] + side, first[1]), (first[0], first[1] + side)):
            self._find_height("triangle", place, None)

    def _measure_plane(self) -> ContactPlane:
        for target in self._grid[:4]:
            self._find_height("plane", self._send_to(target), target)
        return fit_plane(self._sites)

    def _find_height(self, step: TouchStep, place: Pair, target: Pair | None) -> None:
        """Close in on the contact height at a place whose neighbours' heights are known."""
        options = self._options
        expected = predict(self._sites, *place, options.tilt_max)
        search = HeightSearch(
            expected.contact_mm + expected.within_mm,
            expected.contact_mm - expected.within_mm,
            step_mm=options.coarse_step_mm,
            resolution_mm=options.contact_resolution_mm,
            floor_mm=max(
                self._rig.limits.z_min_mm,
                expected.contact_mm - expected.within_mm - options.overtravel_limit_mm,
            ),
        )
        self._close_in(step, place, search, expected.slope_x, target)

    def _close_in(
        self, step: TouchStep, place: Pair, search: HeightSearch, slope_x: float, target: Pair | None
    ) -> Pair:
        """Touch as the search says until it is content; returns where the first dot was, screen mm."""
        first: Pair | None = None
        touched = 0
        while (height := search.next_press_z()) is not None:
            # 0, +1, -1, +2 ... mm aside: a dot on a dot would not be seen.
            aside = ASIDE_MM * ((touched + 1) // 2) * (1 if touched % 2 else -1)
            dot = self._touching.touch(
                step, (place[0] + aside, place[1]), height + slope_x * aside, target if touched == 0 else None
            )
            search.feed(height, dot is not None)
            if dot is not None:
                first = first or (dot.x_mm, dot.y_mm)
                touched += 1
            self._tell(f"height {height:.2f} mm: {'touched' if dot else 'free'}")
        contact, half_width = search.result()
        self._sites.append(Site(*place, contact_mm=contact, half_width_mm=half_width))
        assert first is not None
        return first

    def _touch_grid_place(self, plane: ContactPlane, target: Pair) -> None:
        options = self._options
        target = clear_of(target, self._touching.dots, self._screen, DOT_DIAMETER_MM)
        place = self._send_to(target)
        contact = plane.contact_z(*place)
        for press in (contact - options.overtravel_mm, contact - 2.0 * options.overtravel_mm):
            dot = self._touching.touch("grid", place, press, target)
            self._tell(f"({target[0]:.1f}, {target[1]:.1f}) mm: {'touched' if dot else 'no dot'}")
            if dot is not None:
                return
        raise NoDot(
            f"no dot at ({target[0]:.1f}, {target[1]:.1f}) mm of the screen, pressing to {press:.2f} mm with "
            f"the glass expected at {contact:.2f} mm; look for dirt, a bent screen or a loose stylus"
        )

    def _accept(self, hand: HandModel, plane: ContactPlane) -> Acceptance:
        options, screen = self._options, self._screen
        landed: list[tuple[Pair, Pair]] = []
        for wanted in self._held_out:
            target = clear_of(wanted, self._touching.dots, screen, options.held_out_inset_mm)
            grid = screen.mm_to_grid(np.array([target]))[0]
            place = hand.grid_to_hand(float(grid[0]), float(grid[1]))
            press = plane.contact_z(*place) - options.overtravel_mm
            dot = self._touching.touch("acceptance", place, press, target)
            if dot is None:
                raise AcceptanceFailed(
                    f"the held-out touch at ({target[0]:.1f}, {target[1]:.1f}) mm of the screen left no dot, "
                    f"pressing {options.overtravel_mm} mm beyond contact; raise overtravel_mm, or look for "
                    "a bent screen or a loose stylus"
                )
            landed.append((target, (dot.x_mm, dot.y_mm)))
            off = float(np.hypot(dot.x_mm - target[0], dot.y_mm - target[1]))
            self._tell(f"({target[0]:.1f}, {target[1]:.1f}) mm: {off:.3f} mm off")
        return Acceptance.of(screen, landed, options.acceptance_max_mm)

    def _require_unmoved(self, corners: tuple[CornerRecord, ...]) -> None:
        finder = BoardFinder(charuco_target(self._screen.width_px, self._screen.height_px))
        self._rig.ask(ShowTarget("charuco"))
        view = finder.find(self._rig.look().image)
        now = {int(number): px for number, px in zip(view.ids, view.px, strict=True)}
        shifts = [float(np.hypot(*(now[c.id] - np.array(c.px)))) for c in corners if c.id in now]
        moved = float(np.percentile(shifts, 90.0)) if shifts else np.inf
        if moved > self._options.moved_max_px:
            raise RigMoved(
                f"the board is {moved:.2f} px from where it was at the beginning, the limit is "
                f"{self._options.moved_max_px} px; fix the phone and the camera, and start again"
            )

    def _send_to(self, target: Pair) -> Pair:
        """Hand mm for a place on the screen, by the affine map of all dots so far."""
        seen, hand, _ = self._touching.pairs()
        model = fit_kind("affine", self._screen.mm_to_grid(seen), hand)
        place = model.map_grid(self._screen.mm_to_grid(np.array([target])))[0]
        return float(place[0]), float(place[1])

    @property
    def _touching(self) -> TouchSession:
        assert self._session is not None
        return self._session

    def _begin(self, step: str) -> None:
        self._step = step
        self._tell("")

    def _tell(self, detail: str) -> None:
        if self._on_progress is None:
            return
        touches = len(self._session.records) if self._session else 0
        number = list(STEPS).index(self._step) + 1
        self._on_progress(Progress(number, len(STEPS), STEPS[self._step], touches, detail))


def _verdict(acceptance: Acceptance) -> str:
    worst = acceptance.worst
    return (
        f"the worst of {len(acceptance.touches)} held-out touches landed {worst.error_mm:.2f} mm "
        f"({worst.error_grid:.1f} grid units) from ({worst.target_mm[0]:.1f}, {worst.target_mm[1]:.1f}) mm "
        f"of the screen, the limit is {acceptance.limit_mm} mm (p50 {acceptance.p50_mm:.2f}, "
        f"p95 {acceptance.p95_mm:.2f}); tighten the stylus and the phone, then calibrate again"
    )
