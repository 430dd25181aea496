"""Two thousand random histories of many devices, planes, people and faults, on every core there is.

`edge-daemon bench crash --nightly` plays a hundred thousand.
"""

import os

from edge_daemon.bench.crash.report import CrashReport, Expected, problems_of
from edge_daemon.bench.crash.suite import random_tasks
from edge_daemon.bench.crash.tasks import RANDOM, Played, Result, Task
from edge_daemon.bench.crash.workers import work_off

SEEDS = range(1, 2001)


async def test_in_two_thousand_random_histories_nothing_is_touched_twice_and_no_receipt_is_lost() -> None:
    report = CrashReport(SEEDS.start, Expected((), len(SEEDS), (), 0, cost=False, whole=False))

    def result(task: Task, done: Result) -> None:
        assert isinstance(done, Played)
        report.played.add_all(done)

    lost: list[str] = []
    await work_off(random_tasks(SEEDS), os.cpu_count() or 1, result, lambda task, words: lost.append(words))
    assert lost == []
    assert problems_of(report) == [], "each says how to play it again"
    tally = report.played.tallies[RANDOM]
    assert tally.histories == len(SEEDS)
    assert tally.keys > 3 * len(SEEDS), "else little was asked of them"
    assert tally.struck > len(SEEDS) / 2, "else little went wrong in them"
