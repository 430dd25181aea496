"""The door between the writer's thread and trio: nothing is left lying, and the loop is kept for a moment at most."""

import threading
import time
from functools import partial

import pytest
import trio
import trio.testing

from edge_daemon.ledger.commit import Job
from edge_daemon.ledger.door import KEPT_S, Door
from edge_daemon.ledger.files import OS_FILES
from edge_daemon.ledger.opening import open_files
from edge_daemon.ledger.schema import connect_file
from edge_daemon.ledger.writer import Writer

QUICK_S = KEPT_S / 10
SLOW_S = KEPT_S * 10


@pytest.fixture
async def taken():
    return []


@pytest.fixture
async def door(taken):
    return Door(taken.append)


async def test_who_waits_at_the_door_has_the_batch_when_it_leaves(door, taken):
    door.attend()
    door.hand_over("first", QUICK_S)
    assert taken == []
    door.wait()
    assert taken == ["first"]


async def test_what_comes_after_the_door_was_left_is_brought_through_the_loop(door, taken):
    door.attend()
    door.wait()
    assert taken == []
    thread = threading.Thread(target=door.hand_over, args=("late", SLOW_S))
    thread.start()
    while not taken:
        await trio.lowlevel.checkpoint()
    thread.join()
    assert taken == ["late"]


async def test_whoever_leaves_the_door_takes_along_all_that_is_there(door, taken):
    door.attend()
    door.hand_over("first", QUICK_S)
    door.hand_over("second", QUICK_S)
    door.wait()
    assert taken == ["first", "second"]


async def test_nobody_keeps_the_loop_before_the_disk_has_shown_that_it_is_quick(door):
    assert not door.is_worth_waiting()
    door.hand_over("quick", QUICK_S)
    assert door.is_worth_waiting()
    door.hand_over("slow", SLOW_S)
    assert not door.is_worth_waiting()


async def test_tasks_that_act_at_the_same_moment_do_not_keep_the_loop_from_each_other(door):
    door.hand_over("quick", QUICK_S)
    answers = []

    async def act() -> None:
        answers.append(door.is_worth_waiting())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(act)
    assert answers == [True, False, False]


async def test_a_job_that_lasts_longer_than_the_loop_is_kept_lets_the_loop_go_on(tmp_path):
    writer = Writer(retry_s=1.0)
    await writer.start(
        partial(open_files, tmp_path / "ledger.db", time.monotonic_ns, "boot", connect_file, OS_FILES, 0)
    )
    await writer.submit(Job(int, "read"))  # a quick one, so that the next is waited for at the door
    release = threading.Event()
    results = []

    async def ask() -> None:
        results.append(await writer.submit(Job(release.wait, "read")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert results == []  # the loop has gone on without it
        release.set()
    assert results == [True]
    await writer.close()
