"""The suite: scenes for the settle detector, a rig for everything else, then what it all costs; the verdict."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import trio

from calibration.targets import TURNS, Turn
from edge_daemon.bench.camera.faults import FAULTS, QUICK, Fault, FaultRun
from edge_daemon.bench.camera.idle import IdleCost, measure_idle_cost
from edge_daemon.bench.camera.rig_run import Observer, RigFindings, run_rig
from edge_daemon.bench.camera.scene import SceneVerdict
from edge_daemon.bench.camera.scene_runs import run_scenes
from edge_daemon.bench.camera.screenshot import SIZES, ScreenshotCost, measure
from edge_daemon.bench.camera.turns import pages
from edge_daemon.bench.twin.camera import FPS

FALSE_SETTLED_PCT, FALSE_MOVING_PCT = 0.1, 1.0
FRAME_INTERVAL_MS = 1000.0 / FPS
RECOVER_S, TOLD_S, LOOK_S = 3.0, 3.5, 3.5
SCREENSHOT_RATIO = 1.2
IDLE_PCT = 3.0
# More than this that nobody could judge, and the figures say nothing about the rest.
UNJUDGED_SHARE, UNREAD_SHARE = 0.1, 0.2


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    scenes: int
    bound: int
    turned: tuple[tuple[str, Turn], ...]
    faults: tuple[Fault, ...]
    idle_s: float
    screenshots: int


FULL = Plan(2000, 300, tuple(pages(quick=False)), FAULTS, 10.0, 200)
QUICK_PLAN = Plan(
    120,
    40,
    tuple(pages(quick=True)),
    tuple(fault for fault in FAULTS if fault.name in QUICK),
    5.0,
    40,
)


@dataclass
class CameraReport:
    """What came of it; `problems` is why the verdict is not a pass. None: it could not be measured."""

    seed: int
    scenes: list[SceneVerdict] = field(default_factory=list)
    rig: RigFindings = field(default_factory=RigFindings)
    idle: IdleCost | None = None
    screenshots: list[ScreenshotCost] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)
    wall_s: float = 0.0

    # -- figures ----------------------------------------------------------------------------------------------

    @property
    def false_settled_pct(self) -> float | None:
        return _pct(sum(scene.false_settled for scene in self.scenes), len(self.scenes))

    @property
    def false_moving_pct(self) -> float | None:
        return _pct(sum(scene.false_moving for scene in self.scenes), len(self.scenes))

    @property
    def age_errors_ms(self) -> list[float]:
        return [judged.age_error_ms for judged in self.rig.judged]

    @property
    def age_ms_error_p99(self) -> float | None:
        return float(np.percentile(self.age_errors_ms, 99)) if self.rig.judged else None

    @property
    def edge_moved_errors(self) -> int:
        return sum(judged.edge_error for judged in self.rig.judged)

    @property
    def newer_frames_errors(self) -> int:
        return sum(judged.newer_error for judged in self.rig.judged)

    @property
    def settled_errors(self) -> int:
        return sum(judged.settled_error for judged in self.rig.judged)

    @property
    def stale_frames_served(self) -> int:
        return self.rig.stale + sum(fault.stale for fault in self.rig.faults)

    @property
    def orientation_errors(self) -> int:
        return sum(len(run.wrong) for run in self.rig.turns)

    # -- verdict ----------------------------------------------------------------------------------------------

    @property
    def problems(self) -> list[str]:
        return [
            *self._scene_problems(),
            *self._note_problems(),
            *self._trouble_problems(),
            *self._turn_problems(),
            *self._cost_problems(),
            *self.not_measured,
            *_over(("time for which this machine stood still meanwhile", self.rig.paused_s, 0.0, "s")),
            *self.rig.problems,
        ]

    @property
    def holds(self) -> bool:
        return not self.problems

    def _scene_problems(self) -> list[str]:
        if not self.scenes:
            return ["no scene was judged"]
        return _over(
            ("scenes falsely called settled", self.false_settled_pct, FALSE_SETTLED_PCT, "%"),
            ("scenes falsely called moving", self.false_moving_pct, FALSE_MOVING_PCT, "%"),
        )

    def _note_problems(self) -> list[str]:
        rig = self.rig
        bound = len(rig.judged) + rig.unjudged + rig.interrupted
        if not rig.judged:
            return ["no bound action was judged"]
        found = _over(
            ("age error p99", self.age_ms_error_p99, FRAME_INTERVAL_MS, "ms"),
            ("receipts with a wrong edgeMovedSince", self.edge_moved_errors, 0, ""),
            ("receipts with a wrong newerFrames", self.newer_frames_errors, 0, ""),
            ("receipts with a wrong settled", self.settled_errors, 0, ""),
            ("stale pictures served", self.stale_frames_served, 0, ""),
            ("share of bound actions that nobody could judge", rig.unjudged / bound, UNJUDGED_SHARE, ""),
            (
                "share of steps at which daemon and board lost each other",
                rig.interrupted / bound,
                UNJUDGED_SHARE,
                "",
            ),
            ("share of looks that nobody could read", rig.looks_unread / max(rig.looks, 1), UNREAD_SHARE, ""),
        )
        if not any(judged.moved for judged in rig.judged):
            found.append(
                "no move at the edge came between a frame and its action: edgeMovedSince was not tested"
            )
        if not any(judged.settled for judged in rig.judged):
            found.append("no receipt said settled: settled was not tested")
        return found

    def _trouble_problems(self) -> list[str]:
        if not self.rig.faults:
            return ["no trouble of the camera was tried"]
        return [problem for run in self.rig.faults for problem in _fault_problems(run)]

    def _turn_problems(self) -> list[str]:
        missing = sorted(set(TURNS) - {run.turn for run in self.rig.turns if run.checks})
        found = [words for run in self.rig.turns for words in run.wrong]
        return [*found, f"the screen was never turned {', '.join(missing)}"] if missing else found

    def _cost_problems(self) -> list[str]:
        found = [] if self.screenshots else ["what a screenshot costs was not measured"]
        for shot in self.screenshots:
            name = f"a screenshot of {shot.width} x {shot.height} against decode, remap and encode"
            found += _over((name, shot.ratio, SCREENSHOT_RATIO, ""))
        if self.idle is None:
            return [*found, "what idle capture costs was not measured"]
        return [*found, *_over(("idle capture", self.idle.total_pct, IDLE_PCT, "% of a core"))]

    # -- JSON -------------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """The suite's JSON object; a figure is null where it could not be measured. Of the screenshots of several
        sizes the one with the worst ratio is told."""
        rig, idle = self.rig, self.idle
        shot = max(self.screenshots, key=lambda cost: cost.ratio, default=None)
        return {
            "suite": "camera",
            "verdict": "pass" if self.holds else "fail",
            "seed": self.seed,
            "scenes": len(self.scenes),
            "pictures": sum(scene.pictures for scene in self.scenes),
            "false_settled_pct": _rounded(self.false_settled_pct),
            "false_moving_pct": _rounded(self.false_moving_pct),
            "kinds": _kinds(self.scenes),
            "edge_moved_errors": self.edge_moved_errors,
            "age_ms_error_p99": _rounded(self.age_ms_error_p99, 1),
            "age_ms_error_max": _rounded(max(self.age_errors_ms, default=None), 1),
            "newer_frames_errors": self.newer_frames_errors,
            "settled_errors": self.settled_errors,
            "stale_frames_served": self.stale_frames_served,
            "samples": {
                "notes": len(rig.judged),
                "notes_not_judged": rig.unjudged,
                "notes_after_an_edge_move": sum(judged.moved for judged in rig.judged),
                "notes_settled": sum(judged.settled for judged in rig.judged),
                "frames_skipped_by_the_server": sum(judged.skipped > 0 for judged in rig.judged),
                "looks": rig.looks + sum(fault.served for fault in rig.faults),
                "looks_unread": rig.looks_unread,
                "steps_interrupted": rig.interrupted,
                "orientation_checks": sum(run.checks for run in rig.turns),
                "orientations": len(rig.turns),
                "orientations_found": sum(run.found for run in rig.turns),
                "screenshots": sum(cost.count for cost in self.screenshots),
            },
            "orientation_errors": self.orientation_errors,
            "recover_s": {run.name: _rounded(run.recover_s, 2) for run in rig.faults},
            "faults": {run.name: _fault_figures(run) for run in rig.faults},
            "cpu_pct_idle": _rounded(idle.total_pct if idle else None, 2),
            "cpu_ok": idle is not None and idle.total_pct <= IDLE_PCT,
            "screenshot_ms": {"p50": shot.screenshot_p50_ms, "p99": shot.screenshot_p99_ms} if shot else None,
            "floor_ms": shot.floor_ms if shot else None,
            "ratio": shot.ratio if shot else None,
            "screenshots": {f"{cost.width}x{cost.height}": asdict(cost) for cost in self.screenshots},
            "frame_interval_ms": _rounded(FRAME_INTERVAL_MS, 1),
            "frame_interval_seen_ms": _rounded(rig.frame_interval_ms, 1),
            "runtime": rig.runtime,
            "machine_paused_s": round(rig.paused_s, 1),
            "problems": self.problems,
            "wall_s": round(self.wall_s, 1),
        }


async def run_camera_suite(
    seed: int, plan: Plan, workers: int, directory: Path, observer: Observer
) -> CameraReport:
    """Scenes and rig beside each other, then the costs with nothing else running. directory: a short path.

    Raises what a rig that does not come up raises, and RunFailed.
    """
    report, started = CameraReport(seed), time.monotonic()

    def judged(verdict: SceneVerdict) -> None:
        seen.append(verdict)
        observer.progress("scenes", len(seen), plan.scenes)

    async def judge_scenes() -> None:
        report.scenes = await run_scenes(seed, plan.scenes, workers, judged)

    seen: list[SceneVerdict] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(judge_scenes)
        report.rig = await run_rig(seed, plan.bound, plan.turned, plan.faults, directory, observer)
        observer.phase("the remaining scenes")
    await _measure_costs(report, plan, observer)
    report.wall_s = time.monotonic() - started
    return report


async def _measure_costs(report: CameraReport, plan: Plan, observer: Observer) -> None:
    observer.phase("what a screenshot costs")
    for size in SIZES:
        report.screenshots.append(await trio.to_thread.run_sync(measure, plan.screenshots, size))
    observer.phase("what idle capture costs")
    try:
        report.idle = await trio.to_thread.run_sync(measure_idle_cost, plan.idle_s)
    except RuntimeError as error:
        report.not_measured.append(f"idle capture: {error}")


def _over(*figures: tuple[str, float | None, float, str]) -> list[str]:
    return [
        f"{name}: {value:.4g}{f' {unit}' if unit else ''}, the limit is {limit:.4g}{f' {unit}' if unit else ''}"
        for name, value, limit, unit in figures
        if value is not None and not value <= limit
    ]


def _fault_problems(run: FaultRun) -> list[str]:
    found = _over(
        (f"{run.name}: from its end to a fresh picture", run.recover_s, RECOVER_S, "s"),
        (f"{run.name}: until the device names it", run.told_s, TOLD_S, "s"),
        (f"{run.name}: until the device no longer names it", run.cleared_s, TOLD_S, "s"),
        (f"{run.name}: longest wait of a look", run.longest_look_s, LOOK_S, "s"),
    )
    if run.recover_s is None:
        found.append(f"{run.name}: no fresh picture came any more after it had ended")
    if run.told_s is None:
        said = ", ".join(run.said) or "nothing"
        found.append(f"{run.name}: the device did not say what was wrong while it lasted; it said {said}")
    if run.cleared_s is None:
        found.append(f"{run.name}: the device went on saying so after it had ended")
    if not run.looks:
        found.append(f"{run.name}: nobody looked meanwhile")
    return found


def _fault_figures(run: FaultRun) -> dict[str, Any]:
    return {
        "told_s": _rounded(run.told_s, 2),
        "cleared_s": _rounded(run.cleared_s, 2),
        "longest_look_s": round(run.longest_look_s, 2),
        "looks": run.looks,
        "served": run.served,
        "stale": run.stale,
        "said": run.said,
    }


def _kinds(scenes: Sequence[SceneVerdict]) -> dict[str, dict[str, Any]]:
    """The rates of each kind of scene."""
    kinds: dict[str, list[SceneVerdict]] = {}
    for scene in scenes:
        kinds.setdefault(scene.kind, []).append(scene)
    return {
        kind: {
            "scenes": len(several),
            "false_settled_pct": _rounded(_pct(sum(one.false_settled for one in several), len(several))),
            "false_moving_pct": _rounded(_pct(sum(one.false_moving for one in several), len(several))),
        }
        for kind, several in sorted(kinds.items())
    }


def _pct(count: int, of: int) -> float | None:
    return 100.0 * count / of if of else None


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
