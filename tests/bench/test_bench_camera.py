"""The camera suite's verdict: each figure that is not as promised fails it, in words."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from calibration.targets import TURNS
from edge_daemon.bench.camera.faults import FaultRun
from edge_daemon.bench.camera.idle import IdleCost
from edge_daemon.bench.camera.notes import Judged
from edge_daemon.bench.camera.rig_run import RigFindings
from edge_daemon.bench.camera.scene import SceneVerdict
from edge_daemon.bench.camera.screenshot import ScreenshotCost
from edge_daemon.bench.camera.suite import CameraReport
from edge_daemon.bench.camera.turns import TurnRun

ASKED = (
    *("suite", "verdict", "seed", "wall_s", "problems", "scenes", "kinds", "samples", "frame_interval_ms"),
    *(
        "false_settled_pct",
        "false_moving_pct",
        "edge_moved_errors",
        "age_ms_error_p99",
        "newer_frames_errors",
    ),
    *("stale_frames_served", "recover_s", "orientation_errors", "cpu_pct_idle", "cpu_ok"),
    *("screenshot_ms", "floor_ms", "ratio"),
)
SCENE = SceneVerdict("still", False, False, False, 20, 15)
TRUE_NOTES = Judged(5.0, False, False, False, (3, 3), 0, moved=True, settled=True, words=())
SHOT = ScreenshotCost(1280, 720, 200, 12.0, 15.0, 11.0, 1.09)
RECOVERED = FaultRun("unplugged", told_s=0.3, recover_s=1.0, cleared_s=1.0, longest_look_s=3.0, looks=9)


def good() -> CameraReport:
    """A run in which everything was as promised."""
    rig = RigFindings(
        judged=[TRUE_NOTES] * 300,
        looks=150,
        faults=[replace(RECOVERED)],
        turns=[TurnRun(turn, "dots", checks=8) for turn in TURNS],
        frame_interval_ms=66.7,
        runtime="micropython",
    )
    return CameraReport(
        seed=1,
        scenes=[SCENE] * 2000,
        rig=rig,
        idle=IdleCost(1.0, 1.5, 10.0, 300, 200_000),
        screenshots=[SHOT],
        wall_s=400.0,
    )


def spoil_scenes(count: int, **changes: Any) -> Callable[[CameraReport], None]:
    def spoil(report: CameraReport) -> None:
        report.scenes[:count] = [replace(SCENE, **changes)] * count

    return spoil


def spoil_notes(count: int, **changes: Any) -> Callable[[CameraReport], None]:
    def spoil(report: CameraReport) -> None:
        report.rig.judged[:count] = [replace(TRUE_NOTES, **changes)] * count

    return spoil


def spoil_rig(**changes: Any) -> Callable[[CameraReport], None]:
    def spoil(report: CameraReport) -> None:
        report.rig = replace(report.rig, **changes)

    return spoil


def spoil_fault(**changes: Any) -> Callable[[CameraReport], None]:
    return spoil_rig(faults=[replace(RECOVERED, **changes)])


def spoil(**changes: Any) -> Callable[[CameraReport], None]:
    def spoil_it(report: CameraReport) -> None:
        for name, value in changes.items():
            setattr(report, name, value)

    return spoil_it


def test_a_run_in_which_everything_is_as_promised_holds() -> None:
    report = good()
    assert report.problems == []
    assert report.as_json()["verdict"] == "pass"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (spoil_scenes(3, false_settled=True), "falsely called settled"),
        (spoil_scenes(21, false_moving=True), "falsely called moving"),
        (spoil(scenes=[]), "no scene"),
        (spoil_notes(4, age_error_ms=70.0), "age error p99"),
        (spoil_notes(1, edge_error=True), "edgeMovedSince"),
        (spoil_notes(1, newer_error=True), "newerFrames"),
        (spoil_notes(1, settled_error=True), "wrong settled"),
        (spoil_notes(300, moved=False), "edgeMovedSince was not tested"),
        (spoil_notes(300, settled=False), "settled was not tested"),
        (spoil_rig(judged=[]), "no bound action"),
        (spoil_rig(unjudged=40), "nobody could judge"),
        (spoil_rig(looks_unread=31), "nobody could read"),
        (spoil_rig(stale=1), "stale"),
        (spoil_rig(interrupted=40), "lost each other"),
        (spoil_rig(paused_s=5.0), "stood still"),
        (spoil_rig(problems=["a tap was not committed"]), "a tap was not committed"),
        (spoil_rig(faults=[]), "no trouble"),
        (spoil_fault(stale=1), "stale"),
        (spoil_fault(recover_s=3.1), "to a fresh picture"),
        (spoil_fault(recover_s=None), "no fresh picture"),
        (spoil_fault(told_s=3.6), "until the device names it"),
        (spoil_fault(told_s=None), "did not say"),
        (spoil_fault(cleared_s=3.6), "no longer names it"),
        (spoil_fault(cleared_s=None), "went on saying"),
        (spoil_fault(longest_look_s=3.6), "longest wait"),
        (spoil_fault(looks=0), "nobody looked"),
        (spoil_rig(turns=[TurnRun(turn, "dots", checks=8) for turn in TURNS[:3]]), "never turned"),
        (
            spoil_rig(turns=[TurnRun(turn, "dots", checks=8, wrong=["landed elsewhere"]) for turn in TURNS]),
            "landed elsewhere",
        ),
        (spoil(idle=IdleCost(1.6, 1.5, 10.0, 300, 200_000)), "idle capture"),
        (spoil(screenshots=[SHOT, replace(SHOT, ratio=1.21)]), "a screenshot"),
        (spoil(screenshots=[]), "screenshot costs was not measured"),
        (spoil(idle=None), "idle capture costs was not measured"),
        (spoil(idle=None, not_measured=["idle capture: too busy"]), "too busy"),
    ],
)
def test_a_figure_that_is_not_as_promised_fails_and_is_said(
    spoil: Callable[[CameraReport], None], word: str
) -> None:
    report = good()
    spoil(report)
    assert report.as_json()["verdict"] == "fail"
    assert any(word in problem for problem in report.problems), report.problems


def test_two_false_verdicts_of_two_thousand_are_within_the_promise() -> None:
    report = good()
    spoil_scenes(2, false_settled=True)(report)
    assert report.holds
    assert report.as_json()["false_settled_pct"] == 0.1


def test_the_json_has_every_figure_that_was_asked_for() -> None:
    figures = good().as_json()
    assert [name for name in ASKED if figures.get(name) is None] == []
    assert figures["recover_s"] == {"unplugged": 1.0}
    assert set(figures["screenshot_ms"]) == {"p50", "p99"}
