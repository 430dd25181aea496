"""The quick check of a calibration: the page's marks, five touches, one word. It changes nothing."""

import time
from typing import Literal

import msgspec
import numpy as np

from calibration.acceptance import Acceptance, HeldOutTouch
from calibration.aims import aim_of
from calibration.dots_page import DotsPage
from calibration.errors import MarksOff, NoDot, RigMoved
from calibration.options import Options
from calibration.places import VERIFY_INSET_MM, verify_places
from calibration.procedure.place import touch_place
from calibration.procedure.progress import Clock, Meter, MeteredRig, OnProgress, Work
from calibration.procedure.run import Run, touches_work
from calibration.procedure.steps import VERIFY_STEPS
from calibration.result import CameraPart, DeviceCalibration, MarkRecord
from calibration.rig import Rig, Touch
from calibration.screen import Pair
from calibration.session import TouchSession

VerifyVerdict = Literal["good", "moved", "off"]
"""good: use it. moved: the camera does not see the page where it did. off: touches do not land where they should."""


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a quick check found.

    camera_shift_px: how far the control marks are from where the calibration saw them, camera px, the median;
    None where they are too far off to be told apart. p50_mm, max_mm, worst: of the touches, None without any, for
    nothing is touched under a camera that has moved. message: a sentence with the number and what to do.
    """

    verdict: VerifyVerdict
    message: str
    camera_shift_px: float | None
    p50_mm: float | None = None
    max_mm: float | None = None
    worst: HeldOutTouch | None = None
    touches: tuple[HeldOutTouch, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the calibration may go on being used."""
        return self.verdict == "good"


def verify(
    rig: Rig,
    calibration: DeviceCalibration,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
    clock: Clock = time.monotonic,
) -> Verification:
    """Check a calibration by the dots page's marks and five fresh touches, near the corners and in the middle.

    Raises RigRefused where nothing touches the device; PictureRefused, RigMoved (during the check), Declined,
    and what the rig raises. A touch that leaves no dot however often it is repeated is a verdict, not an error.
    """
    chosen, camera = options or Options(), calibration.camera
    product = aim_of(calibration)
    places = verify_places(calibration.screen)
    expected = {"marks": Work(looks=chosen.mark_looks), "acceptance": touches_work(len(places))}
    meter = Meter(VERIFY_STEPS, expected, clock, on_progress)
    metered = MeteredRig(rig, meter)
    page = DotsPage(
        metered,
        calibration.screen,
        camera.model,
        chosen,
        reference=camera.reference,
        turn=calibration.digitizer.turn if calibration.digitizer else "portrait",
    )
    meter.begin("marks")
    try:
        marks = page.show()
    except (MarksOff, RigMoved) as off:
        return Verification(verdict="moved", message=str(off), camera_shift_px=None)
    shift_px = _shift_px(camera, marks)
    if not shift_px <= chosen.moved_max_px:
        return Verification(
            verdict="moved",
            message=f"the control marks are {shift_px:.2f} px from where the calibration saw them, the limit is "
            f"{chosen.moved_max_px} px; {_who_moved(page)}",
            camera_shift_px=shift_px,
        )
    run = Run(metered, meter, calibration.screen, chosen, camera, page, TouchSession(metered, page, chosen))
    run.session.surface = calibration.hand.contact if calibration.hand else None
    meter.begin("acceptance")

    def aim(place: Pair, missed: int) -> Touch:
        return product(place)

    landed: list[tuple[Pair, Pair]] = []
    for point, wanted in enumerate(places, start=1):
        try:
            target, dot = touch_place(run, "verify", point, wanted, VERIFY_INSET_MM / 2.0, aim)
        except NoDot as missed:
            return Verification(verdict="off", message=str(missed), camera_shift_px=shift_px)
        landed.append((target, (dot.x_mm, dot.y_mm)))
        off_mm = float(np.hypot(dot.x_mm - target[0], dot.y_mm - target[1]))
        meter.tell(f"({target[0]:.1f}, {target[1]:.1f}) mm: {off_mm:.3f} mm off")
    return _judge(calibration, landed, shift_px, chosen)


def _judge(
    calibration: DeviceCalibration, landed: list[tuple[Pair, Pair]], shift_px: float, options: Options
) -> Verification:
    # Of five touches p95 is all but the largest: the limit of the largest is the one that counts.
    limit_mm = options.acceptance_max_mm
    judged = Acceptance.of(
        calibration.screen, landed, p95_limit_mm=limit_mm, max_limit_mm=limit_mm, touches_min=len(landed)
    )
    worst = judged.worst
    where = f"({worst.target_mm[0]:.1f}, {worst.target_mm[1]:.1f}) mm"
    message = (
        f"{len(landed)} touches landed within {judged.max_mm:.2f} mm, the worst at {where} of the screen; the marks "
        f"are {shift_px:.2f} px from where they were"
        if judged.passed
        else f"a touch landed {judged.max_mm:.2f} mm from {where} of the screen, the limit is {limit_mm} mm; look "
        "for a loose stylus or a phone that was pushed, and calibrate again"
    )
    return Verification(
        verdict="good" if judged.passed else "off",
        message=message,
        camera_shift_px=shift_px,
        p50_mm=judged.p50_mm,
        max_mm=judged.max_mm,
        worst=worst,
        touches=judged.touches,
    )


def _who_moved(page: DotsPage) -> str:
    report = page.moved()
    if report is None or not report.warn:
        return "camera or phone moved: calibrate again"
    return report.message


def _shift_px(camera: CameraPart, marks: tuple[MarkRecord, ...]) -> float:
    """The median of the marks' ways, in camera px, from where the calibration saw them; else from where they belong."""
    then = {mark.drawn_mm: mark.seen_mm for mark in camera.marks}
    now_px = camera.model.project(np.array([mark.seen_mm for mark in marks]))
    then_px = camera.model.project(np.array([then.get(mark.drawn_mm, mark.drawn_mm) for mark in marks]))
    return float(np.hypot(*np.median(now_px - then_px, axis=0)))
