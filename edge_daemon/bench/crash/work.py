"""What a worker process does for each task. Loaded after the product was broken, where it is to be."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import trio

from edge_daemon.bench.crash.play import count_points, play, play_random
from edge_daemon.bench.crash.tasks import (
    RANDOM,
    Costed,
    CountPoints,
    Killed,
    KillReal,
    MeasureCost,
    PlayCuts,
    Played,
    PlayRandom,
    Points,
    Result,
    Task,
    figures_of,
)

_STDIN = 0


class SuiteGone(Exception):
    """Nobody waits for the result."""


def do(task: Task, on_progress: Callable[[int], None]) -> Result:
    """`on_progress`: so much more of a long task is done."""
    match task:
        case PlayCuts():
            return play_cuts(task)
        case PlayRandom():
            return play_seeds(task)
        case CountPoints():
            return Points(count_points(task.seed))
        case MeasureCost():
            return _measure(task)
        case KillReal():
            return trio.run(_kill, task, on_progress)


def play_cuts(task: PlayCuts) -> Played:
    """Each of them, whatever became of the one before."""
    played = Played()
    for cut in task.cuts:
        try:
            history = play(cut.seed, cut.fault, cut.kind, cut.n, cut.after)
        except Exception as error:  # noqa: BLE001 - the others still have something to show
            played.broken.append(f"{cut.name}: {type(error).__name__}: {error}")
        else:
            played.add(cut.fault, cut.name, history)
    return played


def play_seeds(task: PlayRandom) -> Played:
    """As `play_cuts`."""
    played = Played()
    for seed in task.seeds:
        try:
            history = play_random(seed)
        except Exception as error:  # noqa: BLE001 - the others still have something to show
            played.broken.append(f"{seed}: {type(error).__name__}: {error}")
        else:
            played.add(RANDOM, str(seed), history)
    return played


def _measure(task: MeasureCost) -> Costed:
    from edge_daemon.bench.crash.cost import measure_cost

    kept = Path("/var/tmp")
    # Where files outlive a restart there is a disk; elsewhere temporary ones may be in memory, where syncs are free.
    folder = kept if kept.is_dir() else Path(tempfile.gettempdir())
    return Costed(msgspec.structs.asdict(measure_cost(folder, task.actions)))


async def _kill(task: KillReal, on_progress: Callable[[int], None]) -> Killed:
    # Loaded where it is needed: it brings OpenCV.
    from edge_daemon.bench.crash.real_kills import kill_many

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_with_the_suite)
        with tempfile.TemporaryDirectory(prefix="edge-kills-") as directory:
            report = await kill_many(task.seed, task.kills, Path(directory), lambda moment: on_progress(1))
        nursery.cancel_scope.cancel()
    return Killed(
        report.kills,
        report.moments,
        report.board_resets,
        report.cable_flaps,
        report.plane_cuts,
        report.keys,
        report.touches,
        report.felt,
        report.committed,
        figures_of(report.counts),
        report.problems,
        report.wall_s,
    )


async def _end_with_the_suite() -> None:
    """No task comes while one is worked on: when there is something to read, it is the end of the input."""
    await trio.lowlevel.wait_readable(_STDIN)
    raise SuiteGone
