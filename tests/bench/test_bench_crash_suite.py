"""The suite of `bench crash`: what it tries, that workers lose nothing, that each mutation is caught, its commands."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import trio
from click.testing import CliRunner
from click.testing import Result as Ended

from edge_daemon.bench.crash.directed import DIRECTED
from edge_daemon.bench.crash.faults import FAULTS
from edge_daemon.bench.crash.mutations import MUTATIONS, MutationStale, mutate
from edge_daemon.bench.crash.play import count_points
from edge_daemon.bench.crash.points import POINTS, PointKind
from edge_daemon.bench.crash.report import CrashReport, problems_of
from edge_daemon.bench.crash.suite import (
    FULL,
    QUICK,
    Plan,
    Watch,
    all_cuts,
    run_crash_suite,
    sampled,
    try_mutations,
)
from edge_daemon.bench.crash.tasks import PROMISED_ZERO, Cut, PlayCuts, Played, Result, Task
from edge_daemon.bench.crash.workers import work_off
from edge_daemon.cli.bench import command

POINTS_OF_SEED_1 = dict.fromkeys(POINTS, 7)
_COMMAND = [sys.executable, "-m", "edge_daemon", "bench", "crash"]
WORKERS = os.cpu_count() or 1


class Heard(Watch):
    """What a person would see."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def begins(self, part: str, size: int) -> None:
        self.sizes[part], self.done[part] = size, 0

    def advances(self, part: str, done: int) -> None:
        self.done[part] += done


def test_all_cuts_are_every_point_of_each_kind_before_and_where_it_differs_behind() -> None:
    cuts = all_cuts(1, POINTS_OF_SEED_1, tuple(FAULTS))
    assert len(set(cuts)) == len(cuts)
    for name, fault in FAULTS.items():
        own = {(cut.kind, cut.n, cut.after) for cut in cuts if cut.fault == name}
        sides = (False, True) if fault.after else (False,)
        assert own == {(kind, n, side) for kind in fault.kinds for n in range(1, 8) for side in sides}


def test_a_sample_has_so_many_of_each_fault_and_leaves_out_no_kind_of_point() -> None:
    cuts = all_cuts(1, POINTS_OF_SEED_1, tuple(FAULTS))
    few = sampled(cuts, 5, Random(1))
    for name, fault in FAULTS.items():
        own = [cut for cut in few if cut.fault == name]
        assert len(set(own)) == 5
        assert {cut.kind for cut in own} == fault.kinds
    assert few == sampled(cuts, 5, Random(1))
    assert few != sampled(cuts, 5, Random(2))
    assert sampled(cuts, None, Random(1)) == cuts


@pytest.fixture
def points() -> dict[PointKind, int]:
    """Of the base scenario of seed 1; a history has an event loop of its own."""
    return count_points(1)


async def test_each_mutation_is_caught_by_a_promise_that_the_sound_product_keeps(
    points: dict[PointKind, int],
) -> None:
    plan = Plan(1, QUICK, WORKERS)
    report = CrashReport(1, plan.expected, points=points)
    heard = Heard()
    await try_mutations(plan, report, heard)
    assert report.lost == []
    assert {name: bool(tried.caught_by) for name, tried in report.mutations.items()} == dict.fromkeys(
        MUTATIONS, True
    )
    assert heard.done == heard.sizes == {"mutations": len(MUTATIONS)}


def test_the_six_that_are_promised_come_first_and_each_has_histories_and_a_count_that_tells() -> None:
    assert list(MUTATIONS)[:6] == [
        "no_dedup_check",
        "no_pending_write",
        "no_fsync",
        "blind_resend",
        "token_in_memory_only",
        "found_false_after_restored_ledger",
    ]
    assert list(DIRECTED) == list(MUTATIONS)
    assert {directed.told_by for directed in DIRECTED.values()} <= set(PROMISED_ZERO)


def test_each_fault_names_what_it_must_be_seen_to_do_and_a_sample_of_points_demands_nothing() -> None:
    assert all(fault.effects for fault in FAULTS.values())
    assert set(Plan(1, FULL, 1).expected.effects) == set(FAULTS)
    assert not Plan(1, QUICK, 1).expected.effects


async def test_a_run_of_some_faults_is_no_pass_and_says_nothing_of_the_rest() -> None:
    plan = Plan(1, QUICK, WORKERS, ("frame_lost", "process_death"))
    heard = Heard()
    report = await run_crash_suite(plan, heard)
    assert problems_of(report) == []
    assert report.verdict == "partial"
    assert list(report.faults) == ["frame_lost", "process_death"]
    assert heard.done == heard.sizes == {"faults at points": report.histories}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_of_what_is_loaded_already_is_refused(name: str) -> None:
    with pytest.raises(MutationStale):
        mutate(name)


def test_a_mutation_whose_lines_the_product_no_longer_has_is_an_error_and_not_a_sound_run() -> None:
    script = (
        "from edge_daemon.bench.crash import mutations\n"
        "edit = mutations.Edit('edge_daemon.ledger.schema', 'no such line', '')\n"
        "mutations.MUTATIONS['stale'] = (edit,)\n"
        "mutations.mutate('stale')\n"
        "import edge_daemon.ledger\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "adapt the mutation" in ended.stderr


async def played_by_workers(tasks: list[Task], workers: int) -> tuple[Played, list[str]]:
    played, lost = Played(), []

    def result(task: Task, done: Result) -> None:
        assert isinstance(done, Played)
        played.add_all(done)

    await work_off(tasks, workers, result, lambda task, words: lost.append(words))
    return played, lost


async def test_a_daemon_that_ends_by_a_mistake_is_a_violation_and_the_other_histories_are_played() -> None:
    cuts = (Cut(1, "no_such_fault", "serial read", 1, False), Cut(1, "frame_lost", "serial read", 9, False))
    played, lost = await played_by_workers([PlayCuts(cuts)], 1)
    assert lost == []
    assert played.tallies["frame_lost"].histories == 1
    report = CrashReport(1, Plan(1, QUICK, 1, ("frame_lost",)).expected, played=played)
    assert report.figures["crashes"] == 1
    assert any("--replay 1:no_such_fault:serial-read:1" in problem for problem in problems_of(report))
    assert report.verdict == "fail"


async def test_a_worker_that_dies_costs_its_task_and_the_next_one_is_done_by_another() -> None:
    cut = Cut(1, "frame_lost", "serial read", 9, False)
    long, short = PlayCuts((cut,) * 600), PlayCuts((cut,))
    done: list[Task] = []
    lost: list[str] = []
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            await work_off(
                [long, short],
                1,
                lambda task, result: done.append(task),
                lambda task, words: lost.append(words),
            )
            nursery.cancel_scope.cancel()

        nursery.start_soon(work)
        while not (found := workers_of(os.getpid())):
            await trio.sleep(0.01)
        os.kill(found[0], signal.SIGKILL)
    assert done == [short]
    assert len(lost) == 1
    assert "1:frame_lost:serial-read:9" in lost[0], "says which one"


def workers_of(pid: int) -> list[int]:
    """Of any thread of that process."""
    children = [
        child for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
    ]
    return [
        int(child)
        for child in children
        if b"edge_daemon.bench.crash.worker" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    ]


def run(*arguments: str) -> Ended:
    return CliRunner().invoke(command, ["crash", *arguments])


def test_a_history_is_played_again_by_the_name_that_a_problem_has_for_it() -> None:
    cut = Cut(1, "process_death", "serial write", 20, True)
    sound = run("--replay", cut.name, "--json")
    assert sound.exit_code == 0, sound.output
    history = json.loads(sound.stdout)
    assert (history["fault"], history["kind"], history["n"], history["after"]) == (
        "process_death",
        "serial write",
        20,
        True,
    )
    assert history["struck"]
    assert history["trace"]
    # In a process of its own: here the sound product is loaded.
    broken = subprocess.run(
        [*_COMMAND, "--replay", cut.name, "--mutation", "no_pending_write"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert broken.returncode == 1, "the same history with the product broken"
    assert "✗" in broken.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--replay", "x"), "is no history"),
        (("--replay", "1:frame_lost"), "is no history"),
        (("--replay", "1:nothing:disk-sync:1"), "no fault is called 'nothing'"),
        (("--replay", "1:frame_lost:disk:1"), "no kind of point"),
        (("--replay", "1:frame_lost:serial-read:0"), "count from 1"),
        (("--replay", "1:frame_lost:disk-sync:1"), "does not strike at a disk sync"),
        (("--replay", "1", "--mutation", "nothing"), "no mutation is called 'nothing'"),
        (("--mutation", "no_fsync"), "goes with --replay"),
        (("--fault", "nothing"), "no fault is called 'nothing'"),
        (("--quick", "--nightly"), "exclude each other"),
    ],
)
def test_what_cannot_be_played_is_refused_with_what_can(arguments: tuple[str, ...], words: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert words in " ".join(ended.stderr.split())
