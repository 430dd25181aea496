"""The suite: many seeds, then the mutations; the verdict and its figures."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from edge_daemon.bench.calibrate.harm import harmful_seeds
from edge_daemon.bench.calibrate.judge import Landing
from edge_daemon.bench.calibrate.mutations import MUTATIONS
from edge_daemon.bench.calibrate.run import Outcome, calibrate_seed
from edge_daemon.bench.calibrate.solver import MAX_LIMIT_MM, P95_LIMIT_MM

CAMERA_LIMIT_MM = 0.10
RIG_TIME_LIMIT_S = 180.0
TAPS = 1000
# Twelve held-out touches refuse a sound rig by chance about once in fifty; more than this would be a lottery.
REFUSED_MAX, REFUSED_SHARE_MAX = 1, 0.1


@dataclass
class CalibrateReport:
    """What came of it; `problems` is why the verdict is not a pass."""

    first_seed: int
    outcomes: list[Outcome] = field(default_factory=list)
    mutants: list[Outcome] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def accepted(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.accepted]

    @property
    def problems(self) -> list[str]:
        found = [problem for outcome in self.accepted for problem in _untrue(outcome)]
        refused = [outcome for outcome in self.outcomes if not outcome.accepted]
        if len(refused) > max(REFUSED_MAX, REFUSED_SHARE_MAX * len(self.outcomes)):
            found.append(
                f"{len(refused)} of {len(self.outcomes)} sound rigs were refused: {refused[0].because}"
            )
        for mutant in self.mutants:
            if mutant.accepted:
                found.append(
                    f"seed {mutant.seed} was accepted with the calibration broken by {mutant.mutation}"
                )
        if not self.accepted:
            found.append("no rig was accepted, so nothing was shown")
        return found

    @property
    def holds(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The suite's JSON object; the taps' figures are each the worst of any accepted seed."""
        worst = max(self.accepted, key=_max_mm, default=None)
        return {
            "suite": "calibrate",
            "verdict": "pass" if self.holds else "fail",
            "seeds": len(self.outcomes),
            "first_seed": self.first_seed,
            "accepted": len(self.accepted),
            "refused": len(self.outcomes) - len(self.accepted),
            "refusals": {str(o.seed): f"{o.refusal}: {o.because}" for o in self.outcomes if not o.accepted},
            "camera_to_screen_max_mm": self._worst(lambda outcome: outcome.camera_max_mm),
            "tap_p50_mm": self._worst_landing(lambda landing: landing.p50_mm),
            "tap_p95_mm": self._worst_landing(lambda landing: landing.p95_mm),
            "tap_max_mm": self._worst_landing(lambda landing: landing.max_mm),
            "worst_seed": worst.seed if worst else None,
            "taps_per_seed": max((o.landing.taps for o in self.accepted if o.landing), default=0),
            "taps_per_calibration": max((outcome.touches for outcome in self.outcomes), default=0),
            "rig_time_s": self._worst(lambda outcome: outcome.rig_time_s, 1),
            "rig_time_parts_s": {
                "hand": self._worst(lambda outcome: outcome.hand_s, 1),
                "camera": self._worst(lambda outcome: outcome.camera_s, 1),
                "person_assumed": self._worst(lambda outcome: outcome.person_s, 1),
            },
            "models": _model_counts(self.accepted),
            "mutations": {
                name: {
                    "caught": sum(not m.accepted for m in self.mutants if m.mutation == name),
                    "runs": sum(m.mutation == name for m in self.mutants),
                    "refused_by": sorted(
                        {m.refusal for m in self.mutants if m.mutation == name and m.refusal}
                    ),
                }
                for name in MUTATIONS
                if any(m.mutation == name for m in self.mutants)
            },
            "problems": self.problems,
            "wall_s": round(self.wall_s, 1),
        }

    def _worst_landing(self, figure: Callable[[Landing], float]) -> float | None:
        return self._worst(lambda outcome: figure(outcome.landing) if outcome.landing else None)

    def _worst(self, figure: Callable[[Outcome], float | None], digits: int = 3) -> float | None:
        figures = [value for outcome in self.accepted if (value := figure(outcome)) is not None]
        return round(max(figures), digits) if figures else None


async def run_calibrate_suite(
    first_seed: int, seeds: int, mutants: int, workers: int, on_outcome: Callable[[Outcome], None]
) -> CalibrateReport:
    """Calibrate `seeds` rigs from first_seed on, and each mutation on `mutants` rigs where it does harm.

    Raises RunFailed when a process broke down: that is no verdict on anything.
    """
    report, started = CalibrateReport(first_seed), time.monotonic()
    limiter = trio.CapacityLimiter(workers)

    async def one(seed: int, mutation: str, taps: int, into: list[Outcome]) -> None:
        async with limiter:
            outcome = await calibrate_seed(seed, mutation, taps)
        into.append(outcome)
        on_outcome(outcome)

    async with trio.open_nursery() as nursery:
        for seed in range(first_seed, first_seed + seeds):
            nursery.start_soon(one, seed, "", TAPS, report.outcomes)
        for name in MUTATIONS:
            for seed in harmful_seeds(name, first_seed, mutants):
                nursery.start_soon(one, seed, name, 0, report.mutants)
    report.outcomes.sort(key=lambda outcome: outcome.seed)
    report.mutants.sort(key=lambda outcome: (outcome.mutation, outcome.seed))
    report.wall_s = time.monotonic() - started
    return report


def _untrue(outcome: Outcome) -> list[str]:
    """Where an accepted calibration did not keep what it promised."""
    landing, camera = outcome.landing, outcome.camera_max_mm
    assert landing is not None
    assert camera is not None
    found = [
        f"seed {outcome.seed}: {name} {value:.3f} {unit}, the limit is {limit} {unit}"
        for name, value, limit, unit in (
            ("camera to screen", camera, CAMERA_LIMIT_MM, "mm"),
            ("p95 of later taps", landing.p95_mm, P95_LIMIT_MM, "mm"),
            ("worst later tap", landing.max_mm, MAX_LIMIT_MM, "mm"),
            ("time at the rig", outcome.rig_time_s, RIG_TIME_LIMIT_S, "s"),
        )
        if not value <= limit
    ]
    if landing.missing or landing.extra:
        found.append(
            f"seed {outcome.seed}: {landing.missing} taps left no touch, {landing.extra} left more than one"
        )
    return found


def _max_mm(outcome: Outcome) -> float:
    return outcome.landing.max_mm if outcome.landing else 0.0


def _model_counts(accepted: list[Outcome]) -> dict[str, int]:
    """How often each kind of hand model was chosen."""
    counts: Counter[str] = Counter()
    for outcome in accepted:
        if outcome.calibration is not None and outcome.calibration.hand is not None:
            counts[outcome.calibration.hand.model.kind] += 1
    return dict(counts)
