"""The calibration of a relative pointer: how far a count carries it, from the corner it is homed into."""

import time

import msgspec

from calibration.aims import ProductAim, pointer_aim
from calibration.detect import Dot
from calibration.errors import NoDot, PageChanged, PictureRefused, UpsideDown
from calibration.options import Options
from calibration.places import hid_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.hid import hid_work, touch_unaimed
from calibration.procedure.judging import judge
from calibration.procedure.place import send_to, whole_dot
from calibration.procedure.progress import Clock, OnProgress
from calibration.procedure.run import Run, begin_run
from calibration.procedure.steps import POINTER_STEPS
from calibration.result import DeviceCalibration, PointerPart
from calibration.rig import PointerTouch, Rig, Touch, Turn
from calibration.screen import Pair, ScreenGeometry
from calibration.solve import solve_pointer

# The first click: so many counts right and down, twice as many as long as it is too near the corner to be seen.
FIRST_COUNTS = (24, 48, 96, 192, 384)
# Then two that lie well apart, shares of the screen.
_DIRECTIONS: tuple[Pair, ...] = ((0.35, 0.45), (0.65, 0.2))
# From one variant of such a click to the next, share of the screen's width.
_VARIANT = 0.05


def calibrate_pointer(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
    previous: DeviceCalibration | None = None,
    clock: Clock = time.monotonic,
    *,
    turn: Turn = "portrait",
) -> DeviceCalibration:
    """Calibrate how many counts carry a HID board's pointer from its corner to a place on the screen.

    The rig must send every touch in reports of options.pointer_step_counts, after homing by pointer_home_counts;
    the result keeps both, for the counts are true for them only. turn: how the page is turned. previous,
    on_progress, clock and errors as in `calibrate`, without those of a hand.
    """
    chosen = options or Options()
    run = begin_run(
        rig,
        screen,
        chosen,
        steps=POINTER_STEPS,
        expected=hid_work(screen, chosen),
        on_progress=on_progress,
        clock=clock,
        turn=turn,
        previous=previous.camera.model if previous else None,
    )
    return click_pointer(run)


def click_pointer(run: Run) -> DeviceCalibration:
    """All that comes once the camera is known. Raises as calibrate_pointer."""
    screen, chosen = run.screen, run.options
    run.meter.begin("triangle")
    _find_gain(run)
    run.meter.begin("grid")

    def towards(place: Pair, missed: int) -> Touch:
        x, y = send_to(run, place)
        return PointerTouch(round(x), round(y))

    fitting = FittingPlaces(run, hid_places(screen, chosen), towards)
    fitting.touch_all()
    solved: list[PointerPart] = []

    def fit() -> ProductAim:
        solved.append(
            solve_pointer(
                screen,
                run.session.records,
                step_counts=chosen.pointer_step_counts,
                home_counts=chosen.pointer_home_counts,
            )
        )
        run.session.records[:] = solved[-1].touches
        return pointer_aim(solved[-1].model)

    acceptance = judge(run, fitting, fit)
    touches = tuple(run.session.records)
    return DeviceCalibration(
        screen=screen,
        camera=run.camera,
        pointer=msgspec.structs.replace(solved[-1], touches=touches),
        acceptance=acceptance,
    )


def _find_gain(run: Run) -> None:
    """Click near the corner, then, by the gain that this shows, at two places well apart."""
    counts, dot = _first_click(run)
    gain = (dot.x_mm / counts, dot.y_mm / counts)
    for point, (across, down) in enumerate(_DIRECTIONS, start=2):
        variants = (
            PointerTouch(
                round((across + k * _VARIANT) * run.screen.width_mm / gain[0]),
                round(down * run.screen.height_mm / gain[1]),
            )
            for k in range(run.options.redo_max + 1)
        )
        touch_unaimed(run, point, variants)


def _first_click(run: Run) -> tuple[int, Dot]:
    """The fewest counts that leave a whole dot, and the dot. Nobody is asked: the gain is simply not known yet."""
    refusal: PictureRefused | None = None
    for counts in FIRST_COUNTS:
        try:
            dot = whole_dot(run, "triangle", PointerTouch(counts, counts), None)
        except (UpsideDown, PageChanged):
            raise
        except PictureRefused as refused:
            refusal = refused
            run.page.settle()
        else:
            run.meter.tell(f"{counts} counts: ({dot.x_mm:.1f}, {dot.y_mm:.1f}) mm")
            return counts, dot
    raise NoDot(
        f"no whole dot after clicks {FIRST_COUNTS[0]} to {FIRST_COUNTS[-1]} counts from the corner; check that the "
        "phone shows a pointer, and that a click of it leaves a dot on the page"
    ) from refusal
