"""What a run of the suite found, and whether the promise held. Pure: figures in, verdict and problems out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from edge_daemon.bench.crash.points import POINTS, PointKind
from edge_daemon.bench.crash.tasks import (
    PROMISED_ZERO,
    RANDOM,
    Figures,
    Killed,
    Played,
    Tally,
    Violation,
    violated,
)

FAULTS_MIN = 20
COST_RATIO_MAX = 1.5
REPLAY = "edge-daemon bench crash --replay"
SHOWN = 40
"""Violations and mishaps in words; the counts are complete."""
SHOWN_OF_A_FAULT = 3
"""One that breaks every history must not hide the others."""
NO_CATCH = frozenset({"stuck"})
"""A mutation whose history only never ended was not noticed by what it did."""

Verdict = Literal["pass", "fail", "partial"]


@dataclass(frozen=True)
class Expected:
    """What this run was to try; nothing of it may be missing. Empty or 0: not asked for."""

    faults: tuple[str, ...]
    seeds: int
    mutations: tuple[str, ...]
    kills: int
    cost: bool
    whole: bool = True
    """Whether it is all that the suite has; else even a run without a problem is no pass."""
    effects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By fault, what some of its histories must show, each of it. Of a sample of points nothing is demanded."""


@dataclass
class Tried:
    """One mutation in its histories, and the same histories without it."""

    mutated: Played = field(default_factory=Played)
    sound: Played = field(default_factory=Played)
    told_by: str = ""
    """The figure that must tell; empty: any."""

    @property
    def caught_by(self) -> Figures:
        """Which figures told, and how much; none where the same histories are not clean without the mutation."""
        if violated(total(self.sound)) or self.sound.broken:
            return {}
        told = violated(total(self.mutated))
        if self.told_by and self.told_by not in told:
            return {}
        return {name: count for name, count in told.items() if name not in NO_CATCH}

    @property
    def histories(self) -> int:
        return sum(tally.histories for tally in self.mutated.tallies.values())


@dataclass
class CrashReport:
    """Filled while the suite runs."""

    seed: int
    expected: Expected
    points: dict[PointKind, int] = field(default_factory=dict)
    played: Played = field(default_factory=Played)
    mutations: dict[str, Tried] = field(default_factory=dict)
    killed: Killed = field(default_factory=Killed)
    cost: dict[str, float] | None = None
    lost: list[str] = field(default_factory=list)
    """Tasks without a result, in words."""
    wall_s: float = 0.0

    @property
    def faults(self) -> dict[str, Tally]:
        """By fault, in the order in which they were asked for."""
        tallies = self.played.tallies
        return {name: tallies[name] for name in self.expected.faults if name in tallies}

    @property
    def figures(self) -> Figures:
        """Of all histories and the real kills."""
        figures = total(self.played)
        return {name: count + self.killed.figures[name] for name, count in figures.items()}

    @property
    def histories(self) -> int:
        return sum(tally.histories for tally in self.played.tallies.values())

    @property
    def verdict(self) -> Verdict:
        if problems_of(self):
            return "fail"
        return "pass" if self.expected.whole else "partial"

    def as_json(self) -> dict[str, Any]:
        """The suite's JSON object."""
        caught = [name for name, tried in self.mutations.items() if tried.caught_by]
        return {
            "suite": "crash",
            "verdict": self.verdict,
            "seed": self.seed,
            "cut_points": sum(self.points.values()),
            "faults": len(self.faults),
            "histories": self.histories,
            **self.figures,
            "mutations_caught": len(caught),
            "mutations": len(self.mutations),
            "points": self.points,
            "by_fault": {name: _row(tally) for name, tally in self.faults.items()},
            "random": _row(self.played.tallies.get(RANDOM, Tally())),
            "by_mutation": {
                name: {"caught_by": tried.caught_by, "histories": tried.histories}
                for name, tried in self.mutations.items()
            },
            "real_kills": {
                "kills": self.killed.kills,
                "moments": self.killed.moments,
                "board_resets": self.killed.board_resets,
                "cable_flaps": self.killed.cable_flaps,
                "plane_cuts": self.killed.plane_cuts,
                "keys": self.killed.keys,
                "touches": self.killed.touches,
                "felt": dict(sorted(self.killed.felt.items())),
                "committed": self.killed.committed,
                "s_per_kill": round(self.killed.wall_s / self.killed.kills, 2) if self.killed.kills else None,
                **self.killed.figures,
            },
            "cost": self.cost,
            "problems": problems_of(self),
            "wall_s": round(self.wall_s, 1),
        }


def problems_of(report: CrashReport) -> list[str]:
    """Everything that keeps the verdict from being a pass, the worst first. Empty: every promise was kept."""
    return [
        *(_violation(violation) for violation in _of_each_fault(report.played.violations)[:SHOWN]),
        *(f"real kills: {problem}" for problem in report.killed.problems[:SHOWN]),
        *_nonzero(report.figures),
        *_mutations(report),
        *_cost(report),
        *_unmeasured(report),
    ]


def total(played: Played) -> Figures:
    """Over all tallies."""
    everything = Tally()
    for tally in played.tallies.values():
        everything.add(tally)
    return everything.figures


def _row(tally: Tally) -> dict[str, Any]:
    told = {name: tally.figures[name] for name in ("unknown", *violated(tally.figures))}
    seen = dict(sorted(tally.signs.items(), key=lambda sign: -sign[1]))
    return {
        "histories": tally.histories,
        "struck": tally.struck,
        "keys": tally.keys,
        **told,
        "seen_in_histories": seen,
    }


def _of_each_fault(violations: Sequence[Violation]) -> list[Violation]:
    shown: Counter[str] = Counter()
    chosen = []
    for violation in violations:
        # Of a random history the name is its seed alone.
        _, _, fault = violation.replay.partition(":")
        name = fault.partition(":")[0]
        shown[name] += 1
        if shown[name] <= SHOWN_OF_A_FAULT:
            chosen.append(violation)
    return chosen


def _violation(violation: Violation) -> str:
    words = "; ".join(violation.problems) or "a count that must be zero is not, and nobody said why"
    return f"{words}. Repeat: {REPLAY} {violation.replay}" if violation.replay else words


def _nonzero(figures: Figures) -> list[str]:
    return [
        f"{name.replace('_', ' ')}: {figures[name]}, promised is none"
        for name in PROMISED_ZERO
        if figures[name]
    ]


def _mutations(report: CrashReport) -> list[str]:
    found = []
    for name in report.expected.mutations:
        tried = report.mutations.get(name)
        if tried is None or not tried.histories:
            found.append(f"mutation {name} was not tried")
        elif not tried.caught_by:
            sound = violated(total(tried.sound))
            why = f": its histories are not clean without it either, {sound}" if sound else ""
            by = f" by {tried.told_by}" if tried.told_by else ""
            found.append(f"mutation {name} was not caught{by} in {tried.histories} histories{why}")
    return found


def _cost(report: CrashReport) -> list[str]:
    if not report.expected.cost:
        return []
    ratio = None if report.cost is None else report.cost.get("ratio")
    if ratio is None:
        return ["the cost of a commit was not measured"]
    if not ratio <= COST_RATIO_MAX:
        return [f"a commit costs {ratio:.2f} times a bare one, the limit is {COST_RATIO_MAX}"]
    return []


def _unmeasured(report: CrashReport) -> list[str]:
    expected = report.expected
    found = [*report.lost, *(f"a history ended by a mistake: {broken}" for broken in report.played.broken)][
        :SHOWN
    ]
    found += [
        f"the base scenario has no {kind} to strike at"
        for kind in POINTS
        if expected.faults and not report.points.get(kind)
    ]
    found += [f"{name} was not tried" for name in expected.faults if name not in report.faults]
    found += [
        f"{name} never came about in {tally.histories} histories"
        for name, tally in report.faults.items()
        if not tally.struck
    ]
    found += [
        f"{name} struck in {tally.struck} of {tally.histories} histories: its other points never came"
        for name, tally in report.faults.items()
        if 0 < tally.struck < tally.histories
    ]
    found += [
        f"{name} had no effect: in {report.faults[name].histories} histories nobody saw {effect!r}"
        for name, effects in expected.effects.items()
        for effect in effects
        if name in report.faults and not report.faults[name].signs.get(effect)
    ]
    if expected.whole and len(expected.faults) < FAULTS_MIN:
        found.append(f"only {len(expected.faults)} faults are known; {FAULTS_MIN} are promised")
    seeds = report.played.tallies.get(RANDOM, Tally()).histories
    if seeds < expected.seeds:
        found.append(f"{seeds} of {expected.seeds} random histories were played")
    if report.killed.kills < expected.kills:
        found.append(f"{report.killed.kills} of {expected.kills} real kills were done")
    elif expected.kills and not report.killed.touches:
        found.append("in the real kills no phone was touched, so nothing was shown")
    return found
