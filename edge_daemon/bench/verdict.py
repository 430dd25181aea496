"""The verdict: the plane's receipts held against the phone's own log, which the daemon cannot see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edge_daemon.bench.script import Step


@dataclass(frozen=True)
class SeenTouch:
    """One contact as the phone logged it; positions are true screen millimetres."""

    down_ns: int
    up_ns: int
    start_mm: tuple[float, float]
    end_mm: tuple[float, float]


@dataclass(frozen=True)
class Attempt:
    """One action from the plane's side, and what the phone logged between its dispatch and its answer."""

    number: int
    key: str
    step: Step
    receipt: dict[str, Any] | None
    """The receipt as the plane holds it at the end; None: none was ever received."""
    error: dict[str, Any] | None
    answered: bool
    touches: Sequence[SeenTouch]
    keys: Sequence[str]
    typed: str
    hover_ms: float | None = None

    @property
    def status(self) -> str:
        if self.receipt is not None:
            if self.receipt.get("reason") == "outcome_unknown":
                return "outcome_unknown"
            return str(self.receipt["status"])
        return "refused" if self.error is not None else "no answer"

    def effects(self) -> int:
        """How often the phone saw this action happen."""
        assert self.step.action is not None
        match self.step.kind:
            case "pressKey":
                return sum(key == self.step.action["key"] for key in self.keys)
            case "typeText":
                return self.typed.count(self.step.action["text"])
            case _:
                return len(self.touches)

    def besides(self) -> str | None:
        """What the phone saw beside the action itself, in words; None when nothing."""
        assert self.step.action is not None
        others = []
        if self.step.target is None and self.touches:
            others.append(f"{len(self.touches)} touch(es)")
        strange = [key for key in self.keys if key != self.step.action.get("key")]
        if strange:
            others.append(f"the key(s) {', '.join(strange)}")
        rest = len(self.typed) - self.effects() * len(self.step.action.get("text", ""))
        if (self.step.kind == "typeText" and rest) or (self.step.kind != "typeText" and self.typed):
            others.append("characters that were not asked for")
        return " and ".join(others) or None


@dataclass
class Verdict:
    """Counts over a run; `problems` says each disagreement in words."""

    actions: int = 0
    committed: int = 0
    failed: int = 0
    outcome_unknown: int = 0
    double_touches: int = 0
    missing_touches: int = 0
    lost_receipts: int = 0
    landing_mm: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems

    def landing(self) -> dict[str, float | None]:
        """p50, p95 and max of the landing error in mm; None without a touch."""
        if not self.landing_mm:
            return {"p50": None, "p95": None, "max": None}
        errors = np.array(self.landing_mm)
        p50, p95 = np.percentile(errors, [50, 95])
        return {
            "p50": round(float(p50), 3),
            "p95": round(float(p95), 3),
            "max": round(float(errors.max()), 3),
        }


def landing_error_mm(
    attempt: Attempt, screen_mm: tuple[float, float]
) -> tuple[float, tuple[float, float]] | None:
    """(distance, touched point in grid units) of the attempt's first contact; None when there is none."""
    target = attempt.step.target
    if target is None or not attempt.touches:
        return None
    x_mm, y_mm = attempt.touches[0].start_mm
    error = math.hypot(x_mm - target[0] * screen_mm[0] / 1000.0, y_mm - target[1] * screen_mm[1] / 1000.0)
    return error, (x_mm / screen_mm[0] * 1000.0, y_mm / screen_mm[1] * 1000.0)


def judge(
    attempts: Sequence[Attempt],
    screen_mm: tuple[float, float],
    *,
    stray_touches: int,
    landing_limit_mm: float,
) -> Verdict:
    """`stray_touches`: contacts the phone logged while no action was under way."""
    verdict = Verdict(actions=len(attempts))
    for attempt in attempts:
        _judge_one(attempt, verdict)
        landing = landing_error_mm(attempt, screen_mm)
        if landing is not None and attempt.status == "committed":
            verdict.landing_mm.append(landing[0])
            if landing[0] > landing_limit_mm:
                verdict.problems.append(
                    f"#{attempt.number} landed {landing[0]:.2f} mm off; the limit is {landing_limit_mm} mm"
                )
    if stray_touches:
        verdict.double_touches += stray_touches
        verdict.problems.append(f"{stray_touches} touch(es) on the glass belong to no action")
    return verdict


def _judge_one(attempt: Attempt, verdict: Verdict) -> None:
    effects = attempt.effects()
    name = f"#{attempt.number} {attempt.step.kind} (key {attempt.key})"
    match attempt.status:
        case "committed":
            verdict.committed += 1
            if effects == 0:
                verdict.missing_touches += 1
                verdict.problems.append(f"{name}: committed, but the phone saw nothing")
        case "outcome_unknown":
            verdict.outcome_unknown += 1
            verdict.problems.append(f"{name}: outcome unknown in a run without faults")
        case "failed":
            verdict.failed += 1
            verdict.problems.append(f"{name}: failed in a run without faults: {_message(attempt)}")
            if effects:
                verdict.double_touches += effects
                verdict.problems.append(f"{name}: reported as not executed, but the phone saw it")
        case _:
            verdict.lost_receipts += 1
            verdict.problems.append(f"{name}: no receipt ({attempt.status}): {_message(attempt)}")
    if besides := attempt.besides():
        verdict.problems.append(f"{name}: the phone also saw {besides}")
    if effects > 1:
        verdict.double_touches += effects - 1
        verdict.problems.append(f"{name}: the phone saw it {effects} times")


def _message(attempt: Attempt) -> str:
    error = attempt.error or (attempt.receipt or {}).get("error") or {}
    return str(error.get("message", "no reason given"))
