"""One history: a rig, its planes and staff, and a fault, in one process on a virtual clock; one seed, one history.

history = play(7, "power_cut_torn", "disk sync", 12)
history.counts.violations        # 0 where every promise was kept
count_points(7)                  # how many points of each kind the same history has without a fault
play_random(4711)                # many devices, planes, people and faults, chosen by the seed
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache

import trio

from edge_daemon.bench.crash.chance import Chance
from edge_daemon.bench.crash.determinism import run_seeded
from edge_daemon.bench.crash.effects import Signs, signs_of
from edge_daemon.bench.crash.faults import FAULTS, Hit
from edge_daemon.bench.crash.lines import Line
from edge_daemon.bench.crash.listening import Listening
from edge_daemon.bench.crash.oracle import Counts, judge
from edge_daemon.bench.crash.points import PointKind
from edge_daemon.bench.crash.scenario import Stage, base, heal_and_ask, open_stage
from edge_daemon.bench.crash.tracing import trace_of
from edge_daemon.bench.crash.world import World

HISTORY_S = 300.0
"""Virtual; a history that has not come to its end by then is stuck."""
BASE_KINDS = ("hand", "hid")


@dataclass(frozen=True)
class History:
    """What one run showed. `trace` is empty unless it was asked for."""

    seed: int
    fault: str | None
    kind: PointKind | None
    n: int
    after: bool
    struck: bool
    counts: Counts = field(default_factory=Counts)
    problems: tuple[str, ...] = ()
    keys: int = 0
    virtual_s: float = 0.0
    signs: dict[str, int] = field(default_factory=dict)
    """As `effects.signs_of`; of a fault in the base scenario only what that has not by itself."""
    points: dict[PointKind, int] = field(default_factory=dict)
    """Passed until everything healed."""
    trace: tuple[str, ...] = ()


@dataclass
class _Run:
    """A history in the making."""

    world: World
    planes: tuple[str, ...]
    prepare: Callable[[Stage], None]
    act: Callable[[Stage], Awaitable[None]]
    points: dict[PointKind, int] = field(default_factory=dict)
    keys: int = 0
    finished: bool = False
    virtual_s: float = 0.0

    async def play(self) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.world.run)
            stage = open_stage(self.world, self.planes)
            for plane in stage.planes:
                nursery.start_soon(plane.keep_connected)
            self.prepare(stage)
            self.world.switch_on()
            with trio.move_on_after(HISTORY_S):
                await self.act(stage)
                self.points = dict(self.world.points.passed)
                await heal_and_ask(stage)
                self.finished = True
            self.keys = len(stage.asked)
            self.virtual_s = trio.current_time()
            nursery.cancel_scope.cancel()


def play(
    seed: int,
    fault: str | None = None,
    kind: PointKind | None = None,
    n: int = 0,
    after: bool = False,
    *,
    trace: bool = False,
) -> History:
    """The base scenario with one fault at the n-th point of that kind; without a fault: as it should go."""
    struck: list[str] = []

    def prepare(stage: Stage) -> None:
        if fault is not None and kind is not None:
            arm(stage, fault, kind, n, after, struck.append)

    name = f"base {seed}"
    run, listening = _played(seed, name, lambda: _Run(World(name, BASE_KINDS), ("plane",), prepare, base))
    history = _history(run, listening, History(seed, fault, kind, n, after, bool(struck)), trace)
    if fault is None:
        return history
    return replace(history, signs=dict(Counter(history.signs) - _signs_of_base(seed)))


@cache
def _signs_of_base(seed: int) -> Signs:
    return Counter(play(seed).signs)


def play_random(seed: int, *, trace: bool = False) -> History:
    """Devices, planes, people and faults as the seed says."""
    name, chance = f"random {seed}", Chance(seed)
    thrown = chance.thrown
    run, listening = _played(
        seed,
        name,
        lambda: _Run(World(name, thrown.kinds, thrown.layouts), thrown.planes, chance.prepare, chance.act),
    )
    return _history(run, listening, History(seed, None, None, 0, False, bool(chance.struck)), trace)


def count_points(seed: int) -> dict[PointKind, int]:
    """How many points of each kind the base scenario of this seed passes when nothing goes wrong."""
    return play(seed).points


def arm(
    stage: Stage, fault: str, kind: PointKind, n: int, after: bool, on_strike: Callable[[str], None]
) -> None:
    """Let the fault of that name strike at the n-th point of that kind."""
    rng = random.Random(f"{stage.world.seed}:{fault}:{kind}:{n}:{after}")

    def strike() -> None:
        here = stage.world.points.here
        stage.world.note(f"{fault} strikes {'behind' if after else 'before'} {kind} {n}")
        on_strike(fault)
        FAULTS[fault].strike(Hit(stage, rng, here if isinstance(here, Line) else None))

    stage.world.points.arm(kind, n, strike, after=after)


def _played(seed: int, name: str, make: Callable[[], _Run]) -> tuple[_Run, Listening]:
    """The world is made under trio's clock, which it reads."""
    runs: list[_Run] = []

    async def main() -> None:
        runs.append(make())
        await runs[0].play()

    with Listening(seed) as listening:
        run_seeded(name, main)
    return runs[0], listening


def _history(run: _Run, listening: Listening, asked: History, trace: bool) -> History:
    """With what the run showed."""
    world = run.world
    touches = [touch for phone in world.phones.values() for touch in phone.touches]
    verdict = judge(
        world.notebook,
        world.schedule,
        touches,
        finished=run.finished,
        remains=dict(world.disk.snapshot()) | {"the log": listening.heard()},
    )
    return replace(
        asked,
        counts=verdict.counts,
        problems=tuple(verdict.problems),
        keys=run.keys,
        virtual_s=run.virtual_s,
        signs=dict(signs_of(world.notebook, world.schedule)),
        points=run.points,
        trace=trace_of(world.notebook, world.schedule, touches, world.ledger_path.parent) if trace else (),
    )
