"""A hand's calibration: from a board on the screen to a calibration accepted by held-out touches.

Nothing is known beforehand but the screen's size, the hand's envelope and that its centre is over the screen.
"""

import time

from calibration.aims import ProductAim, hand_aim
from calibration.errors import RigRefused
from calibration.fit_hand import HandQuality
from calibration.models import HandModel
from calibration.options import Options
from calibration.places import grid_places, held_out_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.glass import Glass, glass_work
from calibration.procedure.judging import judge
from calibration.procedure.place import send_to
from calibration.procedure.play import measure_play
from calibration.procedure.progress import Clock, OnProgress, Work
from calibration.procedure.run import Run, begin_run, camera_work, touches_work
from calibration.procedure.steps import STEPS
from calibration.result import DeviceCalibration, HandPart
from calibration.rig import HandFacts, HandTouch, Rig, Touch
from calibration.screen import Pair, ScreenGeometry
from calibration.solve import solve_backlash, solve_hand

CORNERS = 4


def calibrate(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
    previous: DeviceCalibration | None = None,
    clock: Clock = time.monotonic,
) -> DeviceCalibration:
    """Run the whole procedure and return a calibration that passed its acceptance.

    previous: the calibration that this one is to replace; it is only looked at, to notice a phone that lies the
    other way round. clock: seconds, for the remaining time; it must only grow.

    Raises a CalibrationError that names what was refused: PictureRefused and its kinds, FitRefused, RigRefused,
    Rejected, ContactNotFound, OutOfReach, BacklashTooLarge, RigMoved, AcceptanceFailed, OptionsInvalid. Whatever
    else a rig's verb raises passes through at once; that is how a run is cancelled. Every touch ends at hover, so
    that is where the hand is whenever this returns or raises.
    """
    hand = rig.hand
    if hand is None:
        raise RigRefused("this rig has no hand; use measure_camera for the camera alone")
    chosen = options or Options()
    places = grid_places(screen, chosen)
    run = begin_run(
        rig,
        screen,
        chosen,
        steps=STEPS,
        expected=_expected(hand, chosen, len(places)),
        on_progress=on_progress,
        clock=clock,
        previous=previous.camera.model if previous else None,
    )
    return touch_with_hand(run, hand, places)


def touch_with_hand(run: Run, hand: HandFacts, places: list[Pair]) -> DeviceCalibration:
    """All that comes once the camera is known: glass, play, grid, verdict. Raises as calibrate."""
    session, meter, screen, chosen = run.session, run.meter, run.screen, run.options
    glass = Glass(run, hand)
    meter.begin("contact")
    glass.find_first_contact()
    meter.begin("triangle")
    glass.touch_triangle()
    meter.begin("plane")
    plane, residual_mm = glass.measure_plane(places[:CORNERS])
    session.surface = plane
    meter.begin("backlash")
    measure_play(run, hand, plane, [*places, *held_out_places(screen, chosen)])
    meter.begin("grid")

    def towards(place: Pair, missed: int) -> Touch:
        x, y = send_to(run, place)
        # What left no dot may be glass that is lower than the plane: once more, twice as deep.
        depth_mm = chosen.overtravel_mm * (1 if missed == 0 else 2)
        return HandTouch(x, y, plane.contact_z(x, y) - depth_mm)

    fitting = FittingPlaces(run, places, towards)
    for record, touch in enumerate(session.records):
        if touch.step == "plane" and touch.whole and touch.target_mm is not None:
            fitting.adopt(places.index(touch.target_mm) + 1, record)
    fitting.touch_all()
    solved: list[tuple[HandModel, HandQuality]] = []

    def fit() -> ProductAim:
        model, quality, touches = solve_hand(screen, session.records)
        session.records[:] = touches
        solved.append((model, quality))
        return hand_aim(screen, model, plane, chosen.overtravel_mm)

    acceptance = judge(run, fitting, fit)
    model, quality = solved[-1]
    return DeviceCalibration(
        screen=screen,
        camera=run.camera,
        hand=HandPart(
            model=model,
            contact=plane,
            contact_residual_mm=residual_mm,
            overtravel_mm=chosen.overtravel_mm,
            overtravel_limit_mm=chosen.overtravel_limit_mm,
            quality=quality,
            touches=tuple(session.records),
            approach_mm=hand.approach_mm,
            # Again, by the model that is kept: it knows the hand better than the affine map of then.
            backlash=solve_backlash(screen, model, session.records),
        ),
        acceptance=acceptance,
    )


def _expected(hand: HandFacts, options: Options, places: int) -> dict[str, Work]:
    return {
        **camera_work(options),
        **glass_work(hand, options.coarse_step_mm),
        "backlash": touches_work(3 * options.backlash_touches),
        "grid": touches_work(places - CORNERS),
        "acceptance": touches_work(options.held_out),
        "check": Work(looks=options.mark_looks),
    }
