"""One run of a procedure in a worker thread, for a device whose hold the caller has."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from calibration.options import Options
from calibration.procedure import OnProgress, Progress
from calibration.result import DeviceCalibration
from edge_daemon.staff.conditions import screen_of
from edge_daemon.staff.plan import Plan
from edge_daemon.staff.rig import Asker, RigVerbs, StaffRig
from edge_daemon.upstream.service import CalibrationStage, RigFacts

T = TypeVar("T")


async def run_plan(
    plan: Plan, verbs: RigVerbs, facts: RigFacts, options: Options, asker: Asker, on_progress: OnProgress
) -> DeviceCalibration:
    """Raises a CalibrationError that names what was refused. `on_progress` is called from the thread."""
    rig = StaffRig(verbs, facts, options, asker)
    return await in_thread(plan.run, rig, screen_of(facts), options, on_progress)


async def in_thread(work: Callable[..., T], *args: object) -> T:
    """Waits for `work`, whose verbs come back to this loop.

    Not abandoned on cancellation: the thread's next verb raises Cancelled and ends the work there, with no touch of it
    under way when the hold is given back.
    """
    return await trio.to_thread.run_sync(partial(work, *args))


def stage_of(progress: Progress) -> CalibrationStage:
    return CalibrationStage(
        number=progress.number,
        steps=progress.steps,
        title=progress.step.title,
        caution=progress.step.caution,
        detail=progress.detail,
        touches=progress.touches,
        fraction=progress.fraction,
        remaining_s=progress.remaining_s,
    )
