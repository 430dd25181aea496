"""kill -9 of real processes: what it shows, how it is judged, and that nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.real_book import Entry, Seen, judge_entries
from edge_daemon.bench.crash.real_hand import Press
from edge_daemon.bench.crash.real_kills import kill_many
from edge_daemon.bench.crash.real_rig import number_at, place_grid
from edge_daemon.bench.crash.tasks import KillReal, encode
from edge_daemon.bench.undertaker import Undertaker, left_at_the_end

COMMITTED = {"status": "committed", "requiresManualReview": False}
FAILED = {"status": "failed", "error": {"code": "device_offline", "message": "nothing was sent"}}
UNKNOWN = {"status": "failed", "reason": "outcome_unknown", "requiresManualReview": True}
NONE: dict[str, Any] = {"known": True, "found": False}


def entry(receipt: dict[str, Any] | None, *, told: list[dict[str, Any]] | None = None, **more: Any) -> Entry:
    found = NONE if receipt is None else {"known": True, "found": True, "receipt": receipt}
    return Entry("phone-1", "key-1", 0, 1, first_sent_ns=100, told=told or [], found=found, **more)


def judged(one: Entry, touches: int, *, strays: int = 0, resets_ns: tuple[int, ...] = ()) -> Counts:
    said: list[str] = []
    counts = judge_entries([one], {"phone-1": Seen({0: touches}, strays, resets_ns)}, said.append)
    assert bool(said) == bool(counts.violations), "each violation is said in words, and nothing else"
    return counts


def test_one_touch_and_the_right_words_are_no_violation() -> None:
    assert judged(entry(COMMITTED, told=[COMMITTED, COMMITTED], accepted_told=True), 1) == Counts()
    assert judged(entry(FAILED, told=[FAILED]), 0) == Counts()
    assert judged(entry(None), 0) == Counts()


VIOLATIONS = {
    "a second touch": (entry(COMMITTED), 2, {}, {"double_touches": 1}),
    "a touch at nobody's place": (entry(COMMITTED), 1, {"strays": 2}, {"stray_touches": 2}),
    "committed without a touch": (entry(COMMITTED), 0, {}, {"wrong_words": 1}),
    "not executed, but touched": (entry(FAILED), 1, {}, {"wrong_words": 1}),
    "accepted and then not found": (entry(None, accepted_told=True), 0, {}, {"lost_receipts": 1}),
    "never final": (entry({"status": "pending"}), 1, {}, {"lost_receipts": 1}),
    "another word than before": (entry(COMMITTED, told=[UNKNOWN]), 1, {}, {"lost_receipts": 1}),
    "not found, but touched": (entry(None), 1, {}, {"wrong_not_found": 1}),
    "a stale holder's touch": (entry(COMMITTED, stale=True), 1, {}, {"fencing_violations": 1}),
    "unknown of a board that stayed up": (
        entry(UNKNOWN, final_ns=300),
        1,
        {"resets_ns": (50, 400)},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "never answered": (Entry("phone-1", "key-1", 0, 1), 0, {}, {"stuck": 1}),
}


@pytest.mark.parametrize("what", VIOLATIONS)
def test_each_violation_is_counted(what: str) -> None:
    one, touches, world, expected = VIOLATIONS[what]
    assert judged(one, touches, **world) == Counts(**expected)


def test_unknown_is_allowed_where_the_board_restarted_between_dispatch_and_outcome() -> None:
    counts = judged(entry(UNKNOWN, final_ns=300), 1, resets_ns=(200,))
    assert counts == Counts(unknown=1)


def test_each_place_belongs_to_one_key() -> None:
    for number in (0, 49, 50, 777):
        x, y = place_grid(number)
        press = Press(0, round((x / 1000 * 60 + 10) * 1000), round((y / 1000 * 100 + 10) * 1000))
        assert number_at(press) == number
        assert number_at(Press(0, press.x_um + 300, press.y_um)) is None


async def test_killed_again_and_again_nothing_is_touched_twice_and_no_receipt_is_lost() -> None:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        report = await kill_many(1, 3, Path(directory))
    assert report.problems == []
    assert report.counts.violations == 0
    assert report.kills == sum(report.moments.values()) == 3
    assert report.touches > 0, "else nothing was shown"
    assert report.committed > 0


async def test_kill_9_of_the_bench_leaves_no_process_behind() -> None:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        worker = await trio.lowlevel.open_process(
            [sys.executable, "-m", "edge_daemon.bench.crash.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": directory},
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        async with worker.stdin, worker.stdout:
            await worker.stdin.send_all(encode(KillReal(seed=1, kills=1000)))
            with trio.fail_after(30):
                while not {"run", "hand"} <= {role(pid) for pid in descendants(worker.pid)}:
                    await trio.sleep(0.01)
            left = [os.pidfd_open(pid) for pid in descendants(worker.pid)]
            worker.kill()
            await worker.wait()
        with trio.fail_after(10):
            for pidfd in left:
                await trio.lowlevel.wait_readable(pidfd)
                os.close(pidfd)


def test_the_undertaker_ends_what_was_not_released_and_nothing_else() -> None:
    with Undertaker() as undertaker:
        watched, released = (start(undertaker, "cat; sleep 60 & wait") for _ in range(2))
        undertaker.release(released.pid)
    assert watched.wait(10) == -signal.SIGKILL
    assert released.poll() is None
    os.killpg(released.pid, signal.SIGKILL)
    released.wait(10)


def test_only_those_that_were_not_released_are_left() -> None:
    assert left_at_the_end([b"+7\n", b"+8\n", b"-7\n", b"+9\n", b"-9\n"]) == [8]


def start(undertaker: Undertaker, script: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        undertaker.command(["/bin/sh", "-c", f"echo up; {script}"]),
        stdin=undertaker.fd,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n", "enrolled before it runs"
    return process


def role(pid: int) -> str:
    """What kind of process this is, by the argument that tells; "" for others and for one that is gone."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((word for word in ("run", "hand") if word.encode() in arguments), "")


def descendants(pid: int) -> Iterator[int]:
    parents = {}
    for entry_path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry_path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry_path.parent.name)] = int(fields[1])
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    yield from family - {pid}
