"""The main job: a plane dispatches actions, and every receipt is held against the phone's own log."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import trio

from calibration.options import Options
from calibration.procedure import Progress
from calibration.result import DeviceCalibration
from edge_daemon.bench.pictures import write_pictures
from edge_daemon.bench.plane import Answer, Plane, PlaneError, open_plane
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.script import Step, draw_script
from edge_daemon.bench.stage import SCREEN_MM, Stage, calibrate_stage, open_stage
from edge_daemon.bench.twin.touches import Touch
from edge_daemon.bench.verdict import Attempt, SeenTouch, Verdict, judge

LANDING_LIMIT_MM = 0.6
RECEIPTS_S = 10.0
"""How long the plane waits at the end for receipts that were still on their way."""


class Observer(Protocol):
    """Whoever shows the run to a person."""

    def phase(self, text: str) -> None: ...

    def calibrating(self, progress: Progress) -> None: ...

    def calibrated(self, calibration: DeviceCalibration) -> None: ...

    def attempted(self, attempt: Attempt, count: int) -> None: ...


@dataclass
class TapReport:
    """What a run of the suite found."""

    seed: int
    runtime: str
    attempts: list[Attempt]
    verdict: Verdict
    wall_s: float
    calibration: DeviceCalibration
    pictures: list[Path] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "suite": "tap",
            "verdict": "pass" if verdict.holds else "fail",
            "seed": self.seed,
            "runtime": self.runtime,
            "actions": verdict.actions,
            "committed": verdict.committed,
            "failed": verdict.failed,
            "outcome_unknown": verdict.outcome_unknown,
            "double_touches": verdict.double_touches,
            "missing_touches": verdict.missing_touches,
            "lost_receipts": verdict.lost_receipts,
            "landing_mm": verdict.landing(),
            "landing_count": len(verdict.landing_mm),
            "calibration": _calibration(self.calibration),
            "wall_s": round(self.wall_s, 1),
            "problems": verdict.problems,
        }


def _calibration(calibration: DeviceCalibration) -> dict[str, float]:
    accepted = calibration.acceptance
    assert accepted is not None, "a hand's calibration has a verdict"
    return {
        "touches": len(calibration.touches),
        "held_out": len(accepted.touches),
        "p95_mm": round(accepted.p95_mm, 3),
        "max_mm": round(accepted.max_mm, 3),
    }


async def run_tap_suite(
    actions: int, seed: int, directory: Path, pictures: Path | None, observer: Observer
) -> TapReport:
    """Builds a rig from `seed`, calibrates it, plays `actions` actions and judges them.

    `directory`: for sockets, ledger and logs. `pictures`: where the two PNGs go; None: none are made.
    """
    started = time.monotonic()
    observer.phase("starting the simulated rig and the daemon")
    async with open_stage(seed, directory) as stage:
        observer.phase(f"boards run the firmware in {stage.rig.runtime}")
        calibration = await calibrate_stage(stage, Options(), observer.calibrating)
        observer.calibrated(calibration)
        stage.rig.phone.show_page("launcher")
        async with open_plane("bench-plane", stage.files.plane_socket) as plane:
            player = Player(stage, plane, observer)
            attempts = await player.play(draw_script(actions, seed))
            made = []
            if pictures is not None:
                made = await write_pictures(stage, plane, calibration, attempts, pictures)
        verdict = judge(attempts, SCREEN_MM, stray_touches=player.strays(), landing_limit_mm=LANDING_LIMIT_MM)
        runtime = stage.rig.runtime
    return TapReport(seed, runtime, attempts, verdict, time.monotonic() - started, calibration, made)


class Player:
    """Plays a script from the plane's side and cuts the phone's log into what belongs to which action."""

    def __init__(self, stage: Stage, plane: Plane, observer: Observer) -> None:
        self._stage = stage
        self._plane = plane
        self._observer = observer
        self._touches_before = len(stage.rig.phone.touches)
        self._attributed = 0

    async def play(self, script: Sequence[Step]) -> list[Attempt]:
        attempts = []
        for number, step in enumerate(script, start=1):
            attempt = await self._attempt(number, step)
            attempts.append(attempt)
            self._observer.attempted(attempt, len(script))
        with trio.move_on_after(RECEIPTS_S):
            await self._plane.wait_until(lambda: len(set(self._plane.pushed)) >= len(script))
        return [self._as_the_notebook_has_it(attempt) for attempt in attempts]

    async def _attempt(self, number: int, step: Step) -> Attempt:
        assert step.action is not None
        phone = self._stage.rig.phone
        touches, keys, typed = len(phone.touches), len(phone.keys), len(phone.typed)
        frame_id = None
        if step.look_first:
            frame_id = (await self._plane.look(DEVICE)).get("frameId")
        key = self._plane.new_key()
        answer: Answer | None = None
        error: dict[str, Any] | None = None
        try:
            answer = await self._plane.dispatch(DEVICE, step.action, key=key, observed_frame=frame_id)
            error = answer.error
        except PlaneError as refusal:
            error = refusal.error
        receipt = answer.receipt if answer is not None else None
        seen = phone.touches[touches:]
        self._attributed += len(seen)
        return Attempt(
            number=number,
            key=key,
            step=step,
            receipt=receipt,
            error=error,
            answered=answer is not None,
            touches=[_seen(touch) for touch in seen],
            keys=[press.name for press in phone.keys[keys:]],
            typed=phone.typed[typed:],
            hover_ms=((receipt or {}).get("timing") or {}).get("hoverMs"),
        )

    def _as_the_notebook_has_it(self, attempt: Attempt) -> Attempt:
        """The receipt that was pushed and acknowledged, in place of the answer: both must say the same."""
        pushed = self._plane.notebook.get((DEVICE, attempt.key))
        acknowledged = (DEVICE, attempt.key) in self._plane.pushed
        return Attempt(
            number=attempt.number,
            key=attempt.key,
            step=attempt.step,
            receipt=pushed if acknowledged else None,
            error=attempt.error,
            answered=attempt.answered,
            touches=attempt.touches,
            keys=attempt.keys,
            typed=attempt.typed,
            hover_ms=attempt.hover_ms,
        )

    def strays(self) -> int:
        """Touches that the phone logged while no action was under way."""
        total = len(self._stage.rig.phone.touches) - self._touches_before
        return total - self._attributed


def _seen(touch: Touch) -> SeenTouch:
    end = touch.path[-1][1:] if touch.path else (touch.x_mm, touch.y_mm)
    return SeenTouch(
        down_ns=touch.down_ns,
        up_ns=touch.up_ns if touch.up_ns is not None else touch.down_ns,
        start_mm=(touch.x_mm, touch.y_mm),
        end_mm=(end[0], end[1]),
    )
