"""What all parts of one run share."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from calibration.acceptance import judge_marks
from calibration.dots_page import DotsPage
from calibration.errors import MarksOff
from calibration.models import CameraModel
from calibration.options import Options
from calibration.procedure.board import look_at_board
from calibration.procedure.progress import Clock, Meter, MeteredRig, OnProgress, Work
from calibration.procedure.steps import Step
from calibration.result import CameraPart
from calibration.rig import Rig, Turn
from calibration.screen import ScreenGeometry
from calibration.session import TouchSession


@dataclass(frozen=True)
class Run:
    """One run from the moment the camera is known: the rig (counted and timed), the page and its touches."""

    rig: MeteredRig
    meter: Meter
    screen: ScreenGeometry
    options: Options
    camera: CameraPart
    page: DotsPage
    session: TouchSession


def begin_run(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options,
    *,
    steps: Mapping[str, Step],
    expected: Mapping[str, Work],
    on_progress: OnProgress | None,
    clock: Clock,
    turn: Turn = "portrait",
    previous: CameraModel | None = None,
) -> Run:
    """The steps that all procedures begin with: the board fits the camera's model, the dots page's marks judge it.

    Nothing touches the phone yet. Raises PictureRefused, RigMoved, FitRefused, and what the rig raises.
    """
    meter = Meter(steps, expected, clock, on_progress)
    metered = MeteredRig(rig, meter)
    meter.begin("board")
    camera = look_at_board(metered, screen, options, turn, previous)
    meter.begin("marks")
    page = DotsPage(metered, screen, camera.model, options, turn=turn, reference=camera.reference)
    camera = msgspec.structs.replace(camera, marks=page.show())
    failing = judge_marks(
        [mark.drawn_mm for mark in camera.marks],
        [mark.seen_mm for mark in camera.marks],
        options.marks_mean_max_mm,
        options.marks_max_mm,
    )
    if failing:
        raise MarksOff(failing)
    return Run(metered, meter, screen, options, camera, page, TouchSession(metered, page, options))


def camera_work(options: Options) -> dict[str, Work]:
    """The looks that those steps need."""
    return {"board": Work(looks=options.board_looks), "marks": Work(looks=options.mark_looks)}


def touches_work(touches: int) -> Work:
    """So many touches, each with the look that follows it."""
    return Work(touches=touches, looks=touches)
