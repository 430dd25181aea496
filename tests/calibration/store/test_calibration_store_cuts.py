"""A power cut, a full disk, a killed writer, a second writer: what is left is the old state or the new one."""

import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import Invalidated, StoreCorrupt, StoreError
from calibration.store import Invalidation, LogLine, Stamp
from calibration.store.chain import LOST, PARTS
from calibration.store.state import LOG_KEPT, State, read_state, write_state

# How often a change of the state calls each; a save writes an entry first, and takes the lock once as they do.
CALLS = {"open": 3, "write": 1, "fsync": 2, "replace": 1}


@pytest.fixture
def failing(monkeypatch):
    """failing(call, n): the n-th os.<call> from now on fails with a full disk; failing(None) ends that."""

    def fail(call, n=0):
        monkeypatch.undo()
        if call is None:
            return
        real, countdown = getattr(os, call), n

        def counted(*arguments, **named):
            nonlocal countdown
            countdown -= 1
            if countdown == 0:
                raise OSError(28, "No space left on device")
            return real(*arguments, **named)

        monkeypatch.setattr(os, call, counted)

    return fail


def until_none_fails(failing, call, act, check):
    """Acts with the 1st, 2nd, … call failing until one act passes; checks after each failure. How often it failed."""
    for n in range(1, 30):
        failing(call, n)
        try:
            act()
        except StoreError:
            failing(None)
            check()
        else:
            failing(None)
            return n - 1
    raise AssertionError("it never passed")


@pytest.mark.parametrize("call", CALLS)
def test_a_save_that_fails_at_its_nth_call_leaves_the_old_or_the_new_one_in_use(
    call, store, calibration, shifted, conditions, failing
):
    store.save(calibration, conditions, origin="calibrated")
    new = shifted(0.1)

    def check():
        assert store.current(conditions).calibration in (calibration, new)
        assert not any(line.problem for line in store.history())
        assert not [file for file in store.folder.iterdir() if file.suffix == ".new"]

    def act():
        store.save(new, conditions, origin="calibrated")

    locked_once = 1 if call == "open" else 0
    assert until_none_fails(failing, call, act, check) == 2 * CALLS[call] - locked_once
    assert store.current(conditions).calibration == new


@pytest.mark.parametrize("call", CALLS)
def test_an_invalidation_that_fails_at_its_nth_call_is_made_or_not_made(
    call, store, calibration, conditions, make_stamp, failing
):
    entry = store.save(calibration, conditions, origin="calibrated")

    def check():
        try:
            assert store.current(conditions) == entry
        except Invalidated:
            pass
        # Back to how it was, whichever it is, for the next call to fail.
        write_state(store.folder, State(current=entry.id))

    def act():
        store.invalidate("phone_moved", make_stamp(2))

    assert until_none_fails(failing, call, act, check) == CALLS[call]
    with pytest.raises(Invalidated):
        store.current(conditions)


@pytest.mark.parametrize("call", CALLS)
def test_a_rollback_that_fails_at_its_nth_call_leaves_the_old_or_the_new_one_in_use(
    call, store, calibration, shifted, conditions, failing
):
    first = store.save(calibration, conditions, origin="calibrated")
    second = store.save(shifted(0.1), conditions, origin="calibrated")

    def check():
        assert store.current(conditions) in (first, second)

    def act():
        store.rollback(1, conditions)

    assert until_none_fails(failing, call, act, check) == CALLS[call]
    assert store.current(conditions) == first


KILLED = """
import os, signal, sys
from pathlib import Path
import msgspec
from calibration.store import CalibrationStore, Conditions
real, where, when = os.replace, sys.argv[2], sys.argv[3]
def replace(source, target):
    if Path(target).name.startswith(where) and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
    if Path(target).name.startswith(where):
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
store = CalibrationStore(Path(sys.argv[1]), "phone-3")
conditions = msgspec.json.decode(sys.stdin.read(), type=Conditions)
store.save(store.load(1).calibration, conditions, origin="calibrated", note="the new one")
"""


@pytest.mark.parametrize(
    ("where", "when", "numbers", "in_use"),
    [
        ("0002-", "before", [1], 1),
        ("0002-", "after", [1, 2], 1),
        ("state", "before", [1, 2], 1),
        ("state", "after", [1, 2], 2),
    ],
)
def test_a_writer_killed_anywhere_leaves_one_whole_entry_in_use_and_blocks_nobody(
    where, when, numbers, in_use, store, calibration, conditions
):
    store.save(calibration, conditions, origin="calibrated")
    writer = [sys.executable, "-c", KILLED, str(store.folder.parent), where, when]
    killed = subprocess.run(writer, input=msgspec.json.encode(conditions), capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert [line.number for line in store.history()] == numbers
    assert store.current(conditions).number == in_use
    assert not any(line.problem for line in store.history())
    next_one = store.save(calibration, conditions, origin="calibrated")
    assert next_one.number == numbers[-1] + 1
    assert store.current(conditions) == next_one


SAVING = """
import sys
from pathlib import Path
import msgspec
from calibration.store import CalibrationStore, Conditions
store = CalibrationStore(Path(sys.argv[1]), "phone-3")
conditions = msgspec.json.decode(sys.stdin.readline(), type=Conditions)
made = store.load(1).calibration
print("ready", flush=True)
sys.stdin.readline()
for _ in range(8):
    store.save(made, conditions, origin="calibrated")
"""


def test_two_writers_at_once_lose_nothing_and_give_no_number_twice(store, calibration, conditions):
    store.save(calibration, conditions, origin="calibrated")
    command = [sys.executable, "-c", SAVING, str(store.folder.parent)]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for writer in writers:
        writer.stdin.write(msgspec.json.encode(conditions).decode() + "\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    lines = store.history()
    assert [line.number for line in lines] == list(range(1, 18))
    assert not any(line.problem for line in lines)
    assert [line.number for line in lines if line.current] == [17]


# -- a damaged state --------------------------------------------------------------------------------------


@pytest.fixture
def damaged(store, calibration, shifted, conditions):
    """A store with two entries whose state cannot be read."""
    entries = [store.save(made, conditions, origin="calibrated") for made in (calibration, shifted(0.1))]
    path = store.folder / "state.json"
    path.write_bytes(path.read_bytes()[:-9])
    return entries


def test_a_damaged_state_is_refused_and_the_history_still_lists_every_entry(store, damaged, conditions):
    with pytest.raises(StoreCorrupt, match=r"state\.json"):
        store.current(conditions)
    lines = store.history()
    assert [(line.number, line.current) for line in lines] == [(0, False), (1, False), (2, False)]
    assert "state.json" in lines[0].problem
    assert not lines[1].problem


def test_over_a_damaged_state_a_person_may_vouch_for_one_entry_and_only_for_that(store, damaged, conditions):
    first, _ = damaged
    assert store.rollback(1, conditions) == first
    assert store.current(conditions) == first
    with pytest.raises(Invalidated, match="state_lost"):
        store.rollback(2, conditions)
    assert [line.what for line in store.log()] == ["state lost", "rolled back"]


def test_a_new_calibration_over_a_damaged_state_is_in_use_and_the_old_ones_are_not_trusted(
    store, damaged, calibration, conditions
):
    fresh = store.save(calibration, conditions, origin="calibrated")
    assert store.current(conditions) == fresh
    with pytest.raises(Invalidated, match="state_lost"):
        store.rollback(1, conditions)


# -- the state's round trip -------------------------------------------------------------------------------

TEXT = st.text(max_size=20)
STAMPS = st.builds(
    Stamp,
    wall_utc=st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
    clock_synced=st.booleans(),
    boot_id=TEXT,
    monotonic_ns=st.integers(0, 2**63 - 1),
)
FOUND = st.builds(
    Invalidation, by=st.sampled_from(sorted(LOST)), at=STAMPS, lost=st.frozensets(st.sampled_from(PARTS))
)
LINES = st.builds(
    LogLine,
    what=st.sampled_from(["rolled back", "invalidated", "state lost"]),
    entry=TEXT,
    why=TEXT,
    at=STAMPS,
)
STATES = st.builds(
    State,
    current=st.none() | TEXT,
    invalidated=st.dictionaries(TEXT, st.lists(FOUND, max_size=3).map(tuple), max_size=3),
    log=st.lists(LINES, max_size=3).map(tuple),
)


@given(state=STATES)
def test_any_state_is_read_as_it_was_written(state, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    write_state(folder, state)
    assert read_state(folder) == state


@given(state=STATES, found=FOUND)
def test_an_entry_once_lost_stays_lost_and_saying_it_twice_changes_nothing(state, found):
    once = state.invalidating(["a", "b"], found)
    assert once.invalidating(["b", "a"], found) == once
    for entry in ("a", "b"):
        lost = frozenset().union(*(event.lost for event in once.invalidated.get(entry, ())))
        assert found.lost <= lost
    for entry, before in state.invalidated.items():
        assert once.invalidated[entry][: len(before)] == before


def test_the_log_keeps_its_newest_lines(make_stamp):
    state = State()
    for n in range(LOG_KEPT + 7):
        state = state.noting(LogLine(what="rolled back", entry=str(n), why="", at=make_stamp()))
    assert [line.entry for line in state.log] == [str(n) for n in range(7, LOG_KEPT + 7)]
