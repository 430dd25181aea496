"""A calibration from its raw points: what the procedure runs at the end, and what runs again on a stored one."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from calibration.acceptance import Acceptance, judge_marks
from calibration.backlash import Backlash, measure_backlash
from calibration.errors import FitRefused, MarksOff
from calibration.fit_camera import fit_camera
from calibration.fit_hand import HandQuality, fit_hand
from calibration.fit_hid import DigitizerModel, PointerModel, fit_digitizer_area, fit_pointer
from calibration.models import CameraModel, HandModel
from calibration.options import Options
from calibration.result import (
    CameraPart,
    DeviceCalibration,
    DigitizerPart,
    HandPart,
    MarkRecord,
    PointerPart,
    TouchRecord,
)
from calibration.screen import GRID, Pair, ScreenGeometry
from calibration.targets import Points, charuco_target

Touches = tuple[TouchRecord, ...]
# These judge, or show the play: a model fitted to them would be judged by what it has seen, or bent by the play.
NEVER_FITTED = ("acceptance", "verify")
# A touch was sent for its target when the model leads there to within what a board's whole µm may round away.
SENT_FOR_MM = 2e-3


def solve_again(calibration: DeviceCalibration, options: Options | None = None) -> DeviceCalibration:
    """Compute a calibration anew from the raw points it holds, with the code of this version.

    1. The camera's model from the board's corners.
    2. Every dot and control mark: back to the camera px it was seen at (through the model it was measured with), and to
       screen mm by the new one.
    3. The hand's, digitizer's or pointer's model from all whole touches of the fit – also those that were dropped as
       outliers before: which are, is decided again.
    4. The play, from the touches that came from both sides.
    5. The verdict. A held-out touch was sent to known hand mm and landed at a known place. What another model would
       have made of it is the difference between where it landed and where that model believes the hand was sent to:
       its inverse at what was sent. While the model still leads to what was sent, that is the touch's own target.

    Kept as they are: the contact plane, the overtravel and the approach (hand mm, no model has a part in them), and
    what was measured in pictures. Unchanged code on unchanged points gives the same calibration, bit for bit.

    The result may be refused: its acceptance says so, and it must not be used then. Raises FitRefused and its kin as
    the procedure does, MarksOff for a camera model that the control marks refute, and FitRefused when touches that
    the verdict stands on are missing. options: only the limits are used.
    """
    limits = options or Options()
    screen = calibration.screen
    camera = _camera_again(screen, calibration.camera, limits)

    def seen_again(touches: Touches) -> Touches:
        return _seen_again(touches, calibration.camera.model, camera.model)

    judged = _judged(calibration)
    sent_for: Callable[[TouchRecord], Pair] | None = None
    hand, digitizer, pointer = calibration.hand, calibration.digitizer, calibration.pointer
    if hand is not None:
        hand = _hand_again(screen, hand, seen_again(hand.touches))
        sent_for = hand_target(screen, hand.model)
    elif digitizer is not None:
        again = solve_digitizer(screen, seen_again(digitizer.touches))
        digitizer = msgspec.structs.replace(again, turn=digitizer.turn, area=digitizer.area)
        sent_for = digitizer_target(screen, digitizer.model)
    elif pointer is not None:
        old = pointer.model
        pointer = solve_pointer(
            screen, seen_again(pointer.touches), step_counts=old.step_counts, home_counts=old.home_counts
        )
        sent_for = pointer_target(pointer.model)
    solved = DeviceCalibration(screen=screen, camera=camera, hand=hand, digitizer=digitizer, pointer=pointer)
    if calibration.acceptance is None or sent_for is None:
        return solved
    held_out = [solved.touches[number] for number in judged]
    acceptance = calibration.acceptance
    return msgspec.structs.replace(
        solved,
        acceptance=Acceptance.of(
            screen,
            [(sent_for(touch), touch.seen_mm) for touch in held_out if touch.seen_mm is not None],
            p95_limit_mm=acceptance.p95_limit_mm,
            max_limit_mm=acceptance.max_limit_mm,
            touches_min=len(acceptance.touches),
        ),
    )


def fitted(touches: Sequence[TouchRecord]) -> list[int]:
    """The numbers of the touches that a model is fitted to: whole dots, from the low side, not held out or replaced."""
    return [
        number
        for number, touch in enumerate(touches)
        if touch.whole
        and touch.seen_mm is not None
        and touch.step not in NEVER_FITTED
        and touch.approach == ("low", "low")
        and not touch.replaced
    ]


def solve_hand(
    screen: ScreenGeometry, touches: Sequence[TouchRecord]
) -> tuple[HandModel, HandQuality, Touches]:
    """The hand's model from its touches, and the touches with `outlier` as the fit decided. Raises as fit_hand."""
    numbers = fitted(touches)
    model, quality = fit_hand(screen, *_pairs(touches, numbers))
    return model, quality, _marked(touches, numbers, quality.outliers)


def solve_digitizer(screen: ScreenGeometry, touches: Sequence[TouchRecord]) -> DigitizerPart:
    """The digitizer's part from its touches. Raises as fit_digitizer_area: an edge out of reach is for the caller."""
    numbers = fitted(touches)
    model, quality = fit_digitizer_area(screen, *_pairs(touches, numbers))
    return DigitizerPart(model=model, quality=quality, touches=_marked(touches, numbers, quality.outliers))


def solve_pointer(
    screen: ScreenGeometry, touches: Sequence[TouchRecord], *, step_counts: int, home_counts: int
) -> PointerPart:
    """The pointer's part from its touches. Raises as fit_pointer."""
    numbers = fitted(touches)
    seen, counts = _pairs(touches, numbers)
    model, quality = fit_pointer(screen, seen, counts, step_counts=step_counts, home_counts=home_counts)
    return PointerPart(model=model, quality=quality, touches=_marked(touches, numbers, quality.outliers))


def solve_backlash(
    screen: ScreenGeometry, model: HandModel, touches: Sequence[TouchRecord]
) -> Backlash | None:
    """The play from the touches of the step "backlash", None where there are none. Raises as measure_backlash.

    Touches need not share a place: what counts is by how much each landed beside where it was sent, by the model.
    """
    chosen = [touch for touch in touches if touch.step == "backlash" and touch.whole and touch.seen_mm]
    if not chosen:
        return None
    seen, sent = _pairs(chosen, range(len(chosen)))
    beside = model.map_grid(screen.mm_to_grid(seen)) - sent

    def side(axis: int, name: str) -> list[float]:
        # The other axis from its low side: one thing at a time.
        return [
            float(off[axis])
            for touch, off in zip(chosen, beside, strict=True)
            if touch.approach[axis] == name and touch.approach[1 - axis] == "low"
        ]

    return measure_backlash(side(0, "low"), side(0, "high"), side(1, "low"), side(1, "high"))


def hand_target(screen: ScreenGeometry, model: HandModel) -> Callable[[TouchRecord], Pair]:
    """A function that says which place in screen mm a touch was sent to, as this model believes.

    It raises OutsideModel for a touch that the model puts nowhere near the screen.
    """

    def of(touch: TouchRecord) -> Pair:
        if touch.target_mm is not None:
            there = model.map_grid(screen.mm_to_grid(np.array([touch.target_mm])))[0]
            if float(np.hypot(*(there - touch.sent))) <= SENT_FOR_MM:
                return touch.target_mm
        return _pair(screen.grid_to_mm(model.unmap_hand(np.array([touch.sent])))[0])

    return of


def digitizer_target(screen: ScreenGeometry, model: DigitizerModel) -> Callable[[TouchRecord], Pair]:
    """As hand_target, for a digitizer's fractions."""
    matrix, offset = np.array([model.x[1:], model.y[1:]]), np.array([model.x[0], model.y[0]])
    # The digitizer's own rounding, brought to the screen, is no error of the model.
    same = SENT_FOR_MM / max(screen.width_mm, screen.height_mm)

    def of(touch: TouchRecord) -> Pair:
        if touch.target_mm is not None:
            grid = screen.mm_to_grid(np.array([touch.target_mm]))[0]
            there = model.grid_to_fraction(float(grid[0]), float(grid[1]))
            if max(abs(there[0] - touch.sent[0]), abs(there[1] - touch.sent[1])) <= same:
                return touch.target_mm
        grid = np.linalg.solve(matrix, np.array(touch.sent) - offset) * GRID
        return _pair(screen.grid_to_mm(grid[None, :])[0])

    return of


def pointer_target(model: PointerModel) -> Callable[[TouchRecord], Pair]:
    """As hand_target, for a pointer's whole counts: the target itself while the model sends the same counts for it."""

    def of(touch: TouchRecord) -> Pair:
        if touch.target_mm is not None and model.mm_to_counts(*touch.target_mm) == touch.sent:
            return touch.target_mm
        return (
            model.home_x_mm + touch.sent[0] * model.mm_per_count_x,
            model.home_y_mm + touch.sent[1] * model.mm_per_count_y,
        )

    return of


def _camera_again(screen: ScreenGeometry, camera: CameraPart, limits: Options) -> CameraPart:
    old = camera.model
    model, quality = fit_camera(
        screen,
        (old.image_width, old.image_height),
        np.array([corner.id for corner in camera.corners], dtype=np.int64),
        screen.px_to_mm(charuco_target(screen.width_px, screen.height_px, camera.turn).corners_px()),
        np.array([corner.px for corner in camera.corners], dtype=np.float64).reshape(-1, 2),
        limits.camera_residual_max_px,
    )
    drawn = [mark.drawn_mm for mark in camera.marks]
    seen = _moved(np.array([mark.seen_mm for mark in camera.marks]).reshape(-1, 2), old, model)
    marks = tuple(MarkRecord(drawn_mm=at, seen_mm=_pair(now)) for at, now in zip(drawn, seen, strict=True))
    if marks:
        failing = judge_marks(
            drawn, [mark.seen_mm for mark in marks], limits.marks_mean_max_mm, limits.marks_max_mm
        )
        if failing:
            raise MarksOff(f"solved again: {failing}; calibrate again")
    return msgspec.structs.replace(camera, model=model, quality=quality, marks=marks)


def _hand_again(screen: ScreenGeometry, hand: HandPart, touches: Touches) -> HandPart:
    model, quality, marked = solve_hand(screen, touches)
    return msgspec.structs.replace(
        hand, model=model, quality=quality, touches=marked, backlash=solve_backlash(screen, model, marked)
    )


def _judged(calibration: DeviceCalibration) -> list[int]:
    """The numbers of the touches that the verdict stands on, in its order. Raises FitRefused when one is missing."""
    if calibration.acceptance is None:
        return []
    by_place = {
        touch.seen_mm: number
        for number, touch in enumerate(calibration.touches)
        if touch.step == "acceptance" and touch.seen_mm is not None
    }
    places = [held_out.landed_mm for held_out in calibration.acceptance.touches]
    missing = [place for place in places if place not in by_place]
    if missing:
        raise FitRefused(
            f"{len(missing)} of {len(places)} held-out touches have no record of what was sent, the first at "
            f"({missing[0][0]:.2f}, {missing[0][1]:.2f}) mm of the screen; this calibration cannot be solved again"
        )
    return [by_place[place] for place in places]


def _seen_again(touches: Touches, old: CameraModel, new: CameraModel) -> Touches:
    numbers = [number for number, touch in enumerate(touches) if touch.seen_mm is not None]
    places = np.array([touches[number].seen_mm for number in numbers], dtype=np.float64).reshape(-1, 2)
    now = dict(zip(numbers, _moved(places, old, new), strict=True))
    return tuple(
        msgspec.structs.replace(touch, seen_mm=_pair(now[number])) if number in now else touch
        for number, touch in enumerate(touches)
    )


def _moved(places_mm: Points, old: CameraModel, new: CameraModel) -> Points:
    """The same camera px under another model. Nothing changes, not even by rounding, when the model is the same."""
    return places_mm if old == new else new.unproject(old.project(places_mm))


def _pairs(touches: Sequence[TouchRecord], numbers: Sequence[int]) -> tuple[Points, Points]:
    seen = np.array([touches[number].seen_mm for number in numbers], dtype=np.float64).reshape(-1, 2)
    sent = np.array([touches[number].sent for number in numbers], dtype=np.float64).reshape(-1, 2)
    return seen, sent


def _marked(touches: Sequence[TouchRecord], numbers: list[int], outliers: tuple[int, ...]) -> Touches:
    dropped = {numbers[outlier] for outlier in outliers}
    return tuple(
        touch
        if touch.outlier == (number in dropped)
        else msgspec.structs.replace(touch, outlier=number in dropped)
        for number, touch in enumerate(touches)
    )


def _pair(place: Points) -> Pair:
    return float(place[0]), float(place[1])
