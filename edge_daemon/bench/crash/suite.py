"""The suite: every fault at every point, random histories, mutations, real kills; spread over worker processes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import trio

from edge_daemon.bench.crash.directed import DIRECTED, directed
from edge_daemon.bench.crash.faults import FAULTS
from edge_daemon.bench.crash.mutations import MUTATIONS
from edge_daemon.bench.crash.points import POINTS, PointKind
from edge_daemon.bench.crash.report import CrashReport, Expected, Tried
from edge_daemon.bench.crash.tasks import (
    Costed,
    CountPoints,
    Cut,
    Killed,
    KillReal,
    MeasureCost,
    PlayCuts,
    Played,
    PlayRandom,
    Points,
    Result,
    Task,
)
from edge_daemon.bench.crash.workers import work_off

CHUNK = 20
"""Histories in one task: about half a second."""
KILLS_CHUNK = 20
KILL_WORKERS = 2
"""Rigs that are killed at the same time: they wait for most of it."""
MUTATION_WORKERS = 2

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How much of everything. cuts_per_fault: None for every fault at every point of the base scenario."""

    cuts_per_fault: int | None
    seeds: int
    kills: int
    cost_actions: int


QUICK = Effort(cuts_per_fault=6, seeds=200, kills=4, cost_actions=500)
FULL = Effort(cuts_per_fault=None, seeds=2_000, kills=200, cost_actions=2_000)
NIGHTLY = Effort(cuts_per_fault=None, seeds=100_000, kills=200, cost_actions=2_000)


@dataclass(frozen=True)
class Plan:
    """What to try. faults: only these, in place of everything else; workers: processes that compute."""

    seed: int
    effort: Effort
    workers: int
    faults: tuple[str, ...] = ()

    @property
    def expected(self) -> Expected:
        if self.faults:
            every = self.effort.cuts_per_fault is None
            effects = effects_of(self.faults) if every else {}
            return Expected(self.faults, 0, (), 0, False, whole=False, effects=effects)
        effort = self.effort
        whole = bool(effort.seeds and effort.kills)
        # A few points of each may by chance be such at which nothing comes of it.
        effects = effects_of(tuple(FAULTS)) if effort.cuts_per_fault is None else {}
        return Expected(
            tuple(FAULTS), effort.seeds, tuple(MUTATIONS), effort.kills, True, whole, effects=effects
        )


def effects_of(faults: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What each of them must be seen to effect at all of its points."""
    return {name: FAULTS[name].effects for name in faults}


class Watch:
    """Told what goes on, for a person; this one says nothing."""

    def begins(self, part: str, size: int) -> None:
        """A part of the suite, with so many histories or kills."""

    def advances(self, part: str, done: int) -> None:
        """So many more of them are done."""


async def run_crash_suite(plan: Plan, watch: Watch) -> CrashReport:
    """All of it. What goes wrong is in the report; cancellation ends every process."""
    begun = time.monotonic()
    report = CrashReport(plan.seed, plan.expected)
    # The cost while the machine has nothing else to do.
    first: list[Task] = [CountPoints(plan.seed)]
    if plan.expected.cost:
        first.append(MeasureCost(plan.effort.cost_actions))
    await work_off(first, 1, _first_into(report), _lost_into(report))
    if report.points:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_play, plan, report, watch)
            nursery.start_soon(_kill, plan, report, watch)
            nursery.start_soon(try_mutations, plan, report, watch)
    report.wall_s = time.monotonic() - begun
    return report


def all_cuts(seed: int, points: dict[PointKind, int], faults: Sequence[str]) -> list[Cut]:
    """Every fault at every point where it can strike, before it and where that differs behind it."""
    return [
        Cut(seed, name, kind, n, after)
        for name in faults
        for kind in POINTS
        if kind in FAULTS[name].kinds
        for n in range(1, points[kind] + 1)
        for after in ((False, True) if FAULTS[name].after else (False,))
    ]


def sampled(cuts: Sequence[Cut], per_fault: int | None, rng: Random) -> list[Cut]:
    """At most so many of each fault's, its kinds of points in turn; None: all of them."""
    if per_fault is None:
        return list(cuts)
    heaps: dict[str, dict[PointKind, list[Cut]]] = {}
    for cut in cuts:
        heaps.setdefault(cut.fault, {}).setdefault(cut.kind, []).append(cut)
    chosen = []
    for kinds in heaps.values():
        shuffled = [rng.sample(heap, len(heap)) for heap in kinds.values()]
        in_turn = [cut for row in _in_turn(shuffled) for cut in row]
        chosen += in_turn[:per_fault]
    return chosen


def random_tasks(seeds: Sequence[int]) -> list[Task]:
    """The random histories of these seeds."""
    return [PlayRandom(chunk) for chunk in _chunks(seeds, CHUNK)]


def _in_turn(heaps: Sequence[Sequence[T]]) -> Iterator[list[T]]:
    for index in range(max(map(len, heaps), default=0)):
        yield [heap[index] for heap in heaps if index < len(heap)]


def _chunks(items: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])


async def _play(plan: Plan, report: CrashReport, watch: Watch) -> None:
    """The faults at their points, then the random histories."""
    cuts = sampled(
        all_cuts(plan.seed, report.points, plan.expected.faults),
        plan.effort.cuts_per_fault,
        Random(plan.seed),
    )
    seeds = range(plan.seed, plan.seed + plan.expected.seeds)

    for part, tasks, size in (
        ("faults at points", [PlayCuts(chunk) for chunk in _chunks(cuts, CHUNK)], len(cuts)),
        ("random histories", random_tasks(seeds), len(seeds)),
    ):
        if size:
            await _part(part, tasks, size, plan.workers, report, watch, _played_into(report.played))


async def _kill(plan: Plan, report: CrashReport, watch: Watch) -> None:
    kills = plan.expected.kills
    if not kills:
        return
    each = min(KILLS_CHUNK, -(-kills // KILL_WORKERS))
    tasks = [
        KillReal(plan.seed * 1000 + number, min(each, kills - start))
        for number, start in enumerate(range(0, kills, each))
    ]

    def killed(task: Task, result: Result) -> None:
        assert isinstance(result, Killed)
        report.killed.add(result)

    await _part("real kills", tasks, kills, KILL_WORKERS, report, watch, killed)


async def try_mutations(plan: Plan, report: CrashReport, watch: Watch) -> None:
    """Each mutation in a process of its own, and the same histories once more in a sound one."""
    names = plan.expected.mutations
    if not names:
        return
    watch.begins("mutations", len(names))
    report.mutations = {name: Tried(told_by=DIRECTED[name].told_by) for name in names}
    tasks = {name: directed(name, plan.seed, report.points) for name in names}
    limiter = trio.CapacityLimiter(MUTATION_WORKERS)

    async def sound() -> None:
        async with limiter:
            await work_off(tasks.values(), 1, played, _lost_into(report))

    def played(task: Task, result: Result) -> None:
        for name in names:
            if tasks[name] == task:
                _played_into(report.mutations[name].sound)(task, result)

    async def mutated(name: str) -> None:
        async with limiter:
            into = _played_into(report.mutations[name].mutated)
            await work_off([tasks[name]], 1, into, _lost_into(report), mutation=name)
        watch.advances("mutations", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sound)
        for name in names:
            nursery.start_soon(mutated, name)


async def _part(
    part: str,
    tasks: Sequence[Task],
    size: int,
    workers: int,
    report: CrashReport,
    watch: Watch,
    on_result: Callable[[Task, Result], None],
) -> None:
    watch.begins(part, size)
    await work_off(tasks, workers, on_result, _lost_into(report), lambda done: watch.advances(part, done))


def _played_into(played: Played) -> Callable[[Task, Result], None]:
    def add(task: Task, result: Result) -> None:
        assert isinstance(result, Played)
        played.add_all(result)

    return add


def _first_into(report: CrashReport) -> Callable[[Task, Result], None]:
    def first(task: Task, result: Result) -> None:
        if isinstance(result, Costed):
            report.cost = result.figures
        else:
            assert isinstance(result, Points)
            report.points = result.points

    return first


def _lost_into(report: CrashReport) -> Callable[[Task, str], None]:
    return lambda task, words: report.lost.append(words)
