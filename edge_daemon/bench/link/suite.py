"""The link suite: every fault at every frame, a million spoiled frames, and what a round trip costs."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import trio

from edge_daemon.bench.link import faults
from edge_daemon.bench.link.fuzz import FuzzResult, fuzz_all
from edge_daemon.bench.link.latency import (
    RoundTrips,
    measure_floor,
    measure_loop_floor,
    measure_round_trips,
)
from edge_daemon.bench.link.process import FirmwareDied, open_process_world
from edge_daemon.bench.link.proxy import DIRECTIONS, Direction
from edge_daemon.bench.link.scenario import Run, make_ready, play, settle, tap
from edge_daemon.bench.link.virtual import count_positions, play_virtual
from edge_daemon.bench.twin.boards import available_runtime
from edge_daemon.leaves import leaves

RATIO_LIMIT = 3.0
BLOCKS = 10


@dataclass(frozen=True)
class Effort:
    """How much of everything. ``variants``: how often each position is struck, with other dice."""

    variants: int
    spoiler_variants: int
    process_positions: int
    fuzz_frames: int
    round_trips: int


FULL = Effort(variants=4, spoiler_variants=12, process_positions=4, fuzz_frames=1_000_000, round_trips=5000)
QUICK = Effort(variants=1, spoiler_variants=2, process_positions=1, fuzz_frames=50_000, round_trips=1000)


@dataclass
class Tally:
    """The runs of one fault."""

    runs: int = 0
    recovered: int = 0
    unknown: int = 0

    def add(self, run: Run) -> None:
        self.runs += 1
        self.recovered += run.recovered
        self.unknown += run.unknown


@dataclass
class LinkReport:
    """What a run of the suite found."""

    seed: int
    runtime: str
    faults: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in faults.FAULTS})
    virtual_runs: int = 0
    process_runs: int = 0
    positions: dict[Direction, int] = field(default_factory=dict)
    process_positions: dict[Direction, int] = field(default_factory=dict)
    not_struck: int = 0
    """Runs that ended before their frame came; they count as no run of the fault."""
    double_executions: int = 0
    lost_results: int = 0
    fuzz: list[FuzzResult] = field(default_factory=list)
    floor: RoundTrips | None = None
    loop_floor: RoundTrips | None = None
    round_trips: RoundTrips | None = None
    wall_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Nothing twice, nothing lost, nothing made of noise. What a round trip costs is reported, not judged."""
        return not self.problems

    @property
    def ratio_p50(self) -> float | None:
        if self.floor is None or self.round_trips is None:
            return None
        return self.round_trips.p50_us / self.floor.p50_us

    def add(self, run: Run, where: str) -> None:
        if run.struck:
            self.faults[run.fault].add(run)
        else:
            self.not_struck += 1
        self.double_executions += run.doubles
        self.lost_results += run.lost
        self.problems += [f"{where}: {problem}" for problem in run.problems]

    def as_json(self) -> dict[str, Any]:
        """The suite's JSON; `rtt_us` and what follows from it are null where nothing was measured."""
        heap = [result.heap_growth_bytes for result in self.fuzz if result.heap_growth_bytes is not None]
        ratio = self.ratio_p50
        return {
            "suite": "link",
            "verdict": "pass" if self.holds else "fail",
            "seed": self.seed,
            "runtime": self.runtime,
            "faults": {
                name: {"runs": tally.runs, "recovered": tally.recovered, "unknown": tally.unknown}
                for name, tally in self.faults.items()
            },
            "double_executions": self.double_executions,
            "lost_results": self.lost_results,
            "rtt_us": _micros(self.round_trips),
            "floor_rtt_us": _micros(self.floor),
            "ratio_p50": None if ratio is None else round(ratio, 2),
            "ratio_limit": RATIO_LIMIT,
            "ratio_within_limit": None if ratio is None else ratio <= RATIO_LIMIT,
            "loop_floor_rtt_us": _micros(self.loop_floor),
            "fuzz_frames": min((result.frames for result in self.fuzz), default=0),
            "crashes": sum(result.crashes for result in self.fuzz),
            "heap_growth_bytes": max(heap, default=None),
            "parts": {
                "virtual_clock": {"runs": self.virtual_runs, "every_position_of": self.positions},
                "process": {"runs": self.process_runs, "sampled_positions_of": self.process_positions},
                "fuzz": {result.receiver: result.frames for result in self.fuzz},
            },
            "not_struck": self.not_struck,
            "wall_s": round(self.wall_s, 1),
            "problems": self.problems,
        }


def _micros(trips: RoundTrips | None) -> dict[str, float] | None:
    return None if trips is None else {"p50": round(trips.p50_us, 1), "p99": round(trips.p99_us, 1)}


Say = Callable[[str], None]


def run_link_suite(seed: int, effort: Effort, directory: Path, say: Say) -> LinkReport:
    """All of it. `directory`: for ports and sockets, a short path; `say`: what is going on, for a person."""
    begun = time.monotonic()
    report = LinkReport(seed, available_runtime())
    with quiet_boards():
        measure(report, effort, directory, say)
        play_every_position(report, effort, say)
        try:
            trio.run(_play_processes, report, effort, directory, say)
        except* FirmwareDied as died:
            report.problems += [str(error) for error in leaves(died)]
        say(f"{effort.fuzz_frames} spoiled frames into each receiver")
        report.fuzz = fuzz_all(effort.fuzz_frames, seed)
    report.problems += [problem for result in report.fuzz for problem in result.problems]
    report.wall_s = time.monotonic() - begun
    return report


def measure(report: LinkReport, effort: Effort, directory: Path, say: Say) -> None:
    """Round trips first, while the machine is quiet."""
    say(f"round trips of an exchange that does nothing, firmware in {report.runtime}")
    count = effort.round_trips // BLOCKS
    floors, loop_floors, round_trips = [], [], []
    for _ in range(BLOCKS):
        floors.append(measure_floor(count))
        loop_floors.append(trio.run(measure_loop_floor, count))
        round_trips.append(trio.run(measure_round_trips, directory, count))
    report.floor, report.loop_floor = min(floors), min(loop_floors)
    report.round_trips = min(round_trips)


def play_every_position(
    report: LinkReport, effort: Effort, say: Say = lambda text: None, names: list[str] | None = None
) -> None:
    """Each fault (or those named) at each frame of the conversation, both ways, on the virtual clock."""
    report.positions = count_positions()
    for name in names or list(faults.FAULTS):
        say(f"virtual clock: {name} at each of {sum(report.positions.values())} frames")
        number = list(faults.FAULTS).index(name)
        variants = effort.spoiler_variants if name in faults.SPOILERS else effort.variants
        for variant in range(variants):
            for direction, index in _each(report.positions):
                dice = (report.seed, number, variant, DIRECTIONS.index(direction), index)
                report.virtual_runs += 1
                report.add(
                    play_virtual(name, direction, index, dice),
                    f"{name} at frame {index} {direction}, dice {dice}, virtual clock",
                )


def _each(positions: dict[Direction, int]) -> Iterator[tuple[Direction, int]]:
    for direction, count in positions.items():
        for index in range(count):
            yield direction, index


async def _play_processes(report: LinkReport, effort: Effort, directory: Path, say: Say) -> None:
    rng = np.random.default_rng((report.seed, 1))
    async with open_process_world(directory, rng) as world:
        await make_ready(world)
        await settle(world)
        world.proxy.count_from_here()
        for _ in range(2):
            await tap(world)
        report.process_positions = dict(world.proxy.frames)
        for name in faults.FAULTS:
            say(f"real time, firmware in {report.runtime}: {name}")
            for sample in range(effort.process_positions):
                direction = DIRECTIONS[(sample + int(rng.integers(2))) % 2]
                # The last frames of a run may be heartbeats that another run does not have.
                index = int(rng.integers(report.process_positions[direction] - 2))
                arm = partial(faults.arm, name, direction, index, world.proxy, world, rng)
                run = await play(world, name, arm, armed_first=False)
                report.process_runs += 1
                report.add(run, f"{name} at frame {index} {direction}, real time")


@contextmanager
def quiet_boards() -> Iterator[None]:
    """Else each lost link would put its last two hundred frames on the terminal."""
    logger = logging.getLogger("edge_daemon.boards")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
