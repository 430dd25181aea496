"""The simulated world: one seed is one history, and single faults end as the contract says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_daemon.bench.crash.faults import FAULTS
from edge_daemon.bench.crash.play import History, count_points, play, play_random
from edge_daemon.bench.crash.points import POINTS

ROOT = Path(__file__).parents[2]
IN_ANOTHER_PROCESS = """
from edge_daemon.bench.crash.play import play, play_random
print(*play(3, "restart_storm", "disk sync", 30, True, trace=True).trace, sep="\\n")
print(*play_random(8, trace=True).trace, sep="\\n")
"""


def said(history: History, key: str) -> list[str]:
    """Of one key, what was told and felt, without the times."""
    return [line[14:] for line in history.trace if key in line]


def kept(history: History) -> History:
    assert history.struck
    assert history.counts.violations == 0, history.problems
    return history


def at(history: History, words: str) -> int:
    """When a line with these words first stands in the trace, µs."""
    line = next(line for line in history.trace if words in line)
    return round(float(line[:12]) * 1000)


# -- one seed, one history -----------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_history_also_in_another_process() -> None:
    here = [
        *play(3, "restart_storm", "disk sync", 30, True, trace=True).trace,
        *play_random(8, trace=True).trace,
    ]
    again = [
        *play(3, "restart_storm", "disk sync", 30, True, trace=True).trace,
        *play_random(8, trace=True).trace,
    ]
    assert here == again
    for hash_seed in ("1", "2"):
        elsewhere = subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert elsewhere.stdout.splitlines() == here


def test_another_seed_is_another_history() -> None:
    assert play(3, trace=True).trace != play(4, trace=True).trace


def test_without_a_fault_everything_asked_for_is_done_or_refused_for_a_reason() -> None:
    history = play(1, trace=True)
    assert not history.struck
    assert history.counts.violations == history.counts.unknown == 0, history.problems
    assert "told by push: phone-1 key-1 committed" in said(history, "key-1")
    assert "told by push: phone-2 key-3 committed" in said(history, "key-3")
    # The second waited in line when a newer holder came: fencing is looked at when its turn comes.
    assert "told by push: phone-1 key-2 failed  lease_mismatch" in said(history, "key-2")
    assert "told by push: phone-1 key-4 committed" in said(history, "key-4")


def test_points_of_every_kind_pass_and_the_n_th_is_the_n_th_of_the_whole_history() -> None:
    points = count_points(1)
    assert all(points[kind] > 20 for kind in POINTS)
    for kind in POINTS:
        assert play(1, "wall_clock_back", kind, points[kind]).struck
        assert not play(1, "wall_clock_back", kind, 10 * points[kind]).struck


def test_there_are_thirty_faults_and_more_and_each_strikes_at_a_kind_of_its_points() -> None:
    """At every kind and every point: that is the suite's."""
    assert len(FAULTS) >= 30
    for number, name in enumerate(sorted(FAULTS)):
        fault = FAULTS[name]
        assert fault.about, name
        kind = sorted(fault.kinds)[number % len(fault.kinds)]
        kept(play(1, name, kind, 21))


# -- single faults ---------------------------------------------------------------------------------------------------


def first_serial_write_after(words: str) -> int:
    """The number of the serial write that follows what the undisturbed history's trace says."""
    good = play(1, trace=True)
    moment = at(good, words)
    for n in range(1, good.points["serial write"] + 1):
        struck = play(1, "wall_clock_back", "serial write", n, trace=True)
        if at(struck, "wall_clock_back strikes") > moment:
            return n
    raise AssertionError(f"nothing is written after {words!r}")


@pytest.fixture(scope="module")
def command_write() -> int:
    """The serial write that carries the first tap."""
    return first_serial_write_after("first byte to the board of phone-1") - 1


def test_a_process_that_dies_right_behind_the_first_byte_asks_the_board_and_commits(
    command_write: int,
) -> None:
    history = kept(play(1, "process_death", "serial write", command_write, True, trace=True))
    assert sum("phone-1 feels place (7500" in line for line in history.trace) == 1
    assert "told by push: phone-1 key-1 committed" in said(history, "key-1")


def test_a_process_that_dies_right_before_the_first_byte_asks_the_board_and_touches_nothing(
    command_write: int,
) -> None:
    history = kept(play(1, "process_death", "serial write", command_write, trace=True))
    assert not any("phone-1 feels place (7500" in line for line in history.trace)
    assert "told by push: phone-1 key-1 failed interrupted_by_restart interrupted_by_restart" in said(
        history, "key-1"
    )


def test_when_rig_and_boards_lose_power_behind_the_first_byte_a_person_is_asked(command_write: int) -> None:
    history = kept(play(1, "power_cut_with_boards", "serial write", command_write, True, trace=True))
    assert "told by push: phone-1 key-1 failed outcome_unknown outcome_unknown" in said(history, "key-1")
    assert history.counts.unknown_unsent == 0


def test_when_daemon_and_board_are_lost_before_the_first_byte_the_unknown_is_counted_apart(
    command_write: int,
) -> None:
    history = kept(play(1, "power_cut_with_boards", "serial write", command_write, trace=True))
    assert history.counts.unknown_unsent == 1


@pytest.mark.parametrize("fault", ["ledger_deleted", "card_replaced"])
def test_a_ledger_that_was_made_anew_answers_not_known_and_executes_nothing_again(fault: str) -> None:
    history = kept(play(1, fault, "socket write", 23, trace=True))
    assert "told by lookup: phone-1 key-1 not found, known: False" in said(history, "key-1")
    assert sum("phone-1 feels place (7500" in line for line in history.trace) == 1


def test_a_full_disk_refuses_new_actions_and_loses_nothing() -> None:
    history = kept(play(1, "disk_full", "socket write", 9, trace=True))
    assert any("storage_unavailable" in line for line in history.trace)


# -- faults of the product that the simulation found ---------------------------------------------------------------


def test_a_board_that_restarts_while_its_hand_is_homed_is_homed_again() -> None:
    """The keeper waited for news of a board that had come back already and had none."""
    for fault, kind, n in (
        ("board_reset", "serial read", 8),
        ("board_reset", "serial write", 13),
        ("cable_pull_with_power", "serial read", 17),
        ("line_silent", "serial write", 5),
    ):
        assert kind in POINTS
        kept(play(1, fault, kind, n))


def test_what_waits_in_line_in_an_older_copy_of_the_ledger_is_asked_about_before_it_is_called_not_begun() -> (
    None
):
    """It had been done since the copy was taken, and was called not executed."""
    struck = 0
    for n in range(118, 140, 3):
        history = kept(play(1, "ledger_restored", "disk write", n))
        struck += history.struck
    assert struck
