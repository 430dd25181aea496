"""The verdict: fresh places that no fit has seen, a last look, and a person who may have places touched again."""

from collections.abc import Callable

import numpy as np

from calibration.acceptance import Acceptance
from calibration.aims import ProductAim
from calibration.errors import AcceptanceFailed, NoDot, Rejected
from calibration.places import held_out_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.place import touch_series
from calibration.procedure.run import Run
from calibration.rig import Judge, RedoPoints, Touch
from calibration.screen import Pair

# Touches without a look between: they come from each other's places, from all sides, as actions do. A hand that is
# parked for a look before each one comes from there each time, and nothing would be seen of its play.
SERIES = 4


def judge(run: Run, places: FittingPlaces, fit: Callable[[], ProductAim]) -> Acceptance:
    """Fit, touch fresh places, look once more, and ask; again for as long as places are to be touched again.

    fit: fits the model to what has been touched and returns how it aims. Returns an acceptance that passed. Raises
    AcceptanceFailed when it did not, Rejected when the person says no all the same, FitRefused, PictureRefused,
    RigMoved, and what the rig raises.
    """
    for verdict in range(run.options.judge_max + 1):
        aim = fit()
        run.meter.begin("acceptance")
        landed = _touch_fresh(run, verdict, aim)
        run.meter.begin("check")
        marks = run.page.require_still()
        acceptance = Acceptance.of(
            run.screen,
            landed,
            p95_limit_mm=run.options.p95_max_mm,
            max_limit_mm=run.options.acceptance_max_mm,
            marks=[(mark.drawn_mm, mark.seen_mm) for mark in marks],
        )
        run.meter.tell(
            f"{acceptance.verdict}: p95 {acceptance.p95_mm:.2f} mm, max {acceptance.max_mm:.2f} mm"
        )
        answer = run.rig.ask(Judge(acceptance, places.places))
        if isinstance(answer, RedoPoints):
            if verdict < run.options.judge_max:
                run.meter.begin("grid")
                places.redo(answer.points)
                continue
            raise Rejected(
                f"places were to be touched again after {verdict + 1} verdicts, judge_max = {verdict}; "
                "look for what is loose, and start again"
            )
        if not acceptance.passed:
            raise AcceptanceFailed(_sentence(acceptance), acceptance)
        if answer != "accept":
            raise Rejected("the person at the rig rejected the verdict; the calibration before stays in use")
        return acceptance
    raise AssertionError("the last round returns or raises")


def _touch_fresh(run: Run, verdict: int, product: ProductAim) -> list[tuple[Pair, Pair]]:
    options = run.options

    def aim(place: Pair, missed: int) -> Touch:
        return product(place)  # just as an action will, however often it is tried

    landed: list[tuple[Pair, Pair]] = []
    wanted = list(enumerate(held_out_places(run.screen, options, verdict), start=1))
    for begin in range(0, len(wanted), SERIES):
        try:
            series = wanted[begin : begin + SERIES]
            touched = touch_series(run, "acceptance", series, options.held_out_inset_mm, aim)
        except NoDot as missed:
            raise AcceptanceFailed(f"a held-out touch did not reach the screen: {missed}") from missed
        for target, dot in touched:
            landed.append((target, (dot.x_mm, dot.y_mm)))
            off = float(np.hypot(dot.x_mm - target[0], dot.y_mm - target[1]))
            run.meter.tell(f"({target[0]:.1f}, {target[1]:.1f}) mm: {off:.3f} mm off")
    return landed


def _sentence(acceptance: Acceptance) -> str:
    worst = acceptance.worst
    return (
        f"refused: {acceptance.failing}; the worst of {len(acceptance.touches)} held-out touches landed "
        f"{worst.error_mm:.2f} mm ({worst.error_grid:.1f} grid units) from "
        f"({worst.target_mm[0]:.1f}, {worst.target_mm[1]:.1f}) mm of the screen (p50 {acceptance.p50_mm:.2f}, "
        f"p95 {acceptance.p95_mm:.2f}); likely cause: {acceptance.cause}"
    )
