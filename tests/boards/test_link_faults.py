"""Whatever one frame suffers, and wherever the line is cut: at most once, and the host knows the truth."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_daemon.boards.link_events import CommandAccepted, CommandDone, ContactMade

FIRST, SECOND = b"first", b"second"


def flip(frame: bytes, at: int) -> bytes:
    """One bit of one byte turned over, without making it a delimiter."""
    flipped = frame[at] ^ 0x10
    return frame[:at] + bytes([flipped or 0x11]) + frame[at + 1 :]


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "dropped": lambda frame: b"",
    "doubled": lambda frame: frame + frame,
    "bit flipped in the header": lambda frame: flip(frame, 9),
    "bit flipped in the body": lambda frame: flip(frame, len(frame) - 9),
    "truncated": lambda frame: frame[: len(frame) // 2],
    "garbled in front": lambda frame: b"\xff\x13ets Jul 29 2019\r\n" + frame,
    "split by a zero": lambda frame: frame[:7] + b"\x00" + frame[7:],
}


def run_two_commands(line):
    """Two commands one after the other; asserts what must hold whatever happened on the line."""
    line.go_online()
    stories = {}
    for cmd_id, args in ((11, FIRST), (12, SECOND)):
        if not line.host.online:
            line.new_session()
            line.go_online()
        story = stories[args] = line.carry_out(cmd_id, args)
        assert line.core.started.count(args) <= 1
        if story.verdict == "done":
            assert args in line.core.finished
        elif story.verdict == "aborted":
            assert args in line.core.started
            assert args not in line.core.finished
        else:
            assert story.verdict == "absent"
            assert args not in line.core.started
    return stories


def frames_of_a_clean_run(make_line):
    line = make_line()
    run_two_commands(line)
    return line.to_board.sent, line.to_host.sent


@pytest.mark.parametrize("fault", FAULTS)
def test_one_spoiled_frame_never_runs_a_command_twice_nor_loses_its_outcome(make_line, fault):
    to_board, to_host = frames_of_a_clean_run(make_line)
    assert to_board > 6
    assert to_host > 6
    for direction, count in (("to_board", to_board), ("to_host", to_host)):
        for index in range(count):
            line = make_line()
            getattr(line, direction).faults[index] = FAULTS[fault]
            stories = run_two_commands(line)
            assert {story.verdict for story in stories.values()} == {"done"}, (direction, index)


@pytest.mark.parametrize("fault", FAULTS)
def test_two_spoiled_frames_never_run_a_command_twice(make_line, fault):
    to_board, to_host = frames_of_a_clean_run(make_line)
    for index in range(max(to_board, to_host)):
        line = make_line()
        line.to_board.faults[index] = FAULTS[fault]
        line.to_host.faults[index] = FAULTS["dropped"]
        run_two_commands(line)


@pytest.mark.parametrize("direction", ["to_board", "to_host", "both"])
@pytest.mark.parametrize("cut_steps", [30, 150, 400])
@pytest.mark.parametrize("duration_ms", [60, 900])
def test_a_line_cut_at_any_moment_leaves_the_command_askable(make_line, direction, cut_steps, duration_ms):
    for cut_at in range(0, 20, 2):
        line = make_line(duration_ms)
        line.go_online()
        pipes = [line.to_board, line.to_host] if direction == "both" else [getattr(line, direction)]
        line.host.command(11, 0x12, FIRST, line.now_ns)
        for _ in range(cut_at):
            line.step()
        for pipe in pipes:
            pipe.cut = True
        for _ in range(cut_steps):
            line.step()
        for pipe in pipes:
            pipe.cut = False
        verdict = line.ask(11, line.board._boot_id)
        started = line.core.started.count(FIRST)
        assert (verdict, started) in {("done", 1), ("aborted", 1), ("absent", 0)}, cut_at
        assert (FIRST in line.core.finished) == (verdict == "done")


def test_a_board_restarted_at_any_moment_never_runs_the_command_again(make_line):
    for reset_at in range(20):
        line = make_line()
        line.go_online()
        line.host.command(11, 0x12, FIRST, line.now_ns)
        for _ in range(reset_at):
            line.step()
        boot_id = line.board._boot_id
        done_before = any(isinstance(event, CommandDone) for event in line.events)
        line.reset_board()
        for _ in range(400):
            line.step()
        assert line.core.started.count(FIRST) <= 1
        assert not line.host.online
        assert done_before or line.ask(11, boot_id) == "restarted"


def test_stages_come_in_order_whatever_frame_was_lost(make_line):
    _, to_host = frames_of_a_clean_run(make_line)
    for index in range(to_host):
        line = make_line()
        line.to_host.faults[index] = FAULTS["dropped"]
        for story in run_two_commands(line).values():
            stages = [
                type(event)
                for event in story.stages
                if isinstance(event, (CommandAccepted, ContactMade, CommandDone))
            ]
            assert stages == [CommandAccepted, ContactMade, CommandDone], index


spoiled = st.dictionaries(st.integers(0, 40), st.sampled_from(sorted(FAULTS)), max_size=25)


# The fixture only makes lines; nothing of it is kept from one example to the next.
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(to_board=spoiled, to_host=spoiled, duration_ms=st.sampled_from([0, 60, 300, 900]))
def test_any_mixture_of_faults_never_runs_a_command_twice(make_line, to_board, to_host, duration_ms):
    line = make_line(duration_ms)
    line.to_board.faults = {index: FAULTS[fault] for index, fault in to_board.items()}
    line.to_host.faults = {index: FAULTS[fault] for index, fault in to_host.items()}
    run_two_commands(line)
