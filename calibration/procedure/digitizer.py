"""The calibration of a HID board's touch screen: by the same dots, marks and verdict as a hand's."""

import itertools
import time
from collections.abc import Iterator

import msgspec

from calibration.aims import ProductAim, digitizer_aim
from calibration.errors import FitRefused
from calibration.fit_hid import DigitizerModel
from calibration.options import Options
from calibration.places import hid_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.hid import hid_work, touch_unaimed
from calibration.procedure.judging import judge
from calibration.procedure.place import send_to
from calibration.procedure.progress import Clock, OnProgress
from calibration.procedure.run import Run, begin_run, touches_work
from calibration.procedure.steps import DIGITIZER_STEPS
from calibration.procedure.turned_page import TURN_TOUCHES, area_behaviour
from calibration.result import DeviceCalibration, DigitizerPart
from calibration.rig import DigitizerTouch, Rig, Touch, Turn
from calibration.screen import Pair, ScreenGeometry
from calibration.solve import solve_digitizer

# The first touches, fractions: the middle, and to its right and below it.
_DIRECTIONS: tuple[Pair, ...] = ((0.5, 0.5), (0.65, 0.5), (0.5, 0.62))
# So many grid units at an edge may seem out of reach: the camera's 0.02 mm are 0.3 of them, seen from the middle.
UNREACHABLE_MAX = 2.0
# From one variant of such a touch to the next: two dots' width on most screens.
_VARIANT = 0.03


def calibrate_digitizer(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
    previous: DeviceCalibration | None = None,
    clock: Clock = time.monotonic,
    *,
    turn: Turn = "portrait",
    compare_with: Turn | None = "landscape_left",
) -> DeviceCalibration:
    """Calibrate where a HID board's touch screen must report a contact for a place on the screen.

    turn: how the page is turned meanwhile. compare_with: another turn, in which a few touches show afterwards
    whether this phone's digitizer area turns with the page; None leaves it out. previous, on_progress, clock and
    errors as in `calibrate`, without those of a hand; FitRefused for an area that does not cover the screen, or that
    in the other turn fits neither way.
    """
    chosen = options or Options()
    steps = dict(DIGITIZER_STEPS)
    expected = {**hid_work(screen, chosen), "turn": touches_work(TURN_TOUCHES)}
    if compare_with is None:
        del steps["turn"], expected["turn"]
    run = begin_run(
        rig,
        screen,
        chosen,
        steps=steps,
        expected=expected,
        on_progress=on_progress,
        clock=clock,
        turn=turn,
        previous=previous.camera.model if previous else None,
    )
    return touch_digitizer(run, turn, compare_with)


def touch_digitizer(run: Run, turn: Turn, compare_with: Turn | None) -> DeviceCalibration:
    """All that comes once the camera is known. Raises as calibrate_digitizer."""
    screen = run.screen
    run.meter.begin("triangle")
    for point, fraction in enumerate(_DIRECTIONS, start=1):
        touch_unaimed(run, point, _variants(fraction))
    run.meter.begin("grid")

    def towards(place: Pair, missed: int) -> Touch:
        return DigitizerTouch(*send_to(run, place))

    fitting = FittingPlaces(run, hid_places(screen, run.options), towards)
    fitting.touch_all()
    solved: list[DigitizerPart] = []

    def fit() -> ProductAim:
        solved.append(solve_digitizer(screen, run.session.records))
        run.session.records[:] = solved[-1].touches
        _require_whole_screen(solved[-1].model)
        return digitizer_aim(screen, solved[-1].model)

    acceptance = judge(run, fitting, fit)
    part = solved[-1]
    area = None
    if compare_with is not None:
        run.meter.begin("turn")
        area = area_behaviour(run, part.model, turn, compare_with)
    touches = tuple(run.session.records)
    return DeviceCalibration(
        screen=screen,
        camera=run.camera,
        digitizer=msgspec.structs.replace(part, touches=touches, turn=turn, area=area),
        acceptance=acceptance,
    )


def _require_whole_screen(model: DigitizerModel) -> None:
    short = {edge: margin for edge, margin in model.unreachable_grid().items() if margin > UNREACHABLE_MAX}
    if short:
        edges = ", ".join(f"{edge} {margin:.1f}" for edge, margin in short.items())
        raise FitRefused(
            f"the digitizer's area does not cover the screen, grid units that cannot be touched: {edges}, the limit is "
            f"{UNREACHABLE_MAX}; turn the phone to the orientation the board was set up for, or give the board the "
            "whole screen's area"
        )


def _variants(fraction: Pair) -> Iterator[Touch]:
    for count in itertools.count():
        yield DigitizerTouch(fraction[0] + count * _VARIANT, fraction[1] + count * _VARIANT)
