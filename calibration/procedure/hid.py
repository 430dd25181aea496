"""What the calibrations of a HID board's touch screen and of its pointer share."""

from collections.abc import Iterable

from calibration.detect import Dot
from calibration.errors import PictureRefused
from calibration.options import Options
from calibration.places import hid_places
from calibration.procedure.place import whole_dot
from calibration.procedure.progress import Work
from calibration.procedure.run import Run, camera_work, touches_work
from calibration.rig import Touch
from calibration.screen import ScreenGeometry
from calibration.session import Attempts

DIRECTION_TOUCHES = 3


def touch_unaimed(run: Run, point: int, touches: Iterable[Touch]) -> Dot:
    """Touch where nobody knows yet where it will land: the first of these that leaves a whole dot.

    touches: variants beside one another, for a dot may fall on a control mark. Asks before each further one, and
    raises the refusal of the last.
    """
    attempts = Attempts(run.rig, run.options, "triangle", point)
    for touch in touches:
        try:
            dot = whole_dot(run, "triangle", touch, None)
        except PictureRefused as refusal:
            run.meter.tell(str(refusal))
            attempts.refused(refusal)
            run.page.settle()
        else:
            run.meter.tell(f"({dot.x_mm:.1f}, {dot.y_mm:.1f}) mm: touched")
            return dot
    raise AssertionError("more variants than attempts")


def hid_work(screen: ScreenGeometry, options: Options) -> dict[str, Work]:
    """The touches to be expected."""
    return {
        **camera_work(options),
        "triangle": touches_work(DIRECTION_TOUCHES),
        "grid": touches_work(len(hid_places(screen, options))),
        "acceptance": touches_work(options.held_out),
        "check": Work(looks=options.mark_looks),
    }
