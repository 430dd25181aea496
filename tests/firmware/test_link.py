"""The board end of the link on its own: what runs, what never runs, what is remembered, when it makes safe."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from firmware import wire
from firmware.link import BoardLink, Core
from firmware.memory import EVENTS_KEPT, EventQueue, ResultMemory

ROOT = Path(__file__).parents[2]
BOOT, SESSION = 0xB007, 0x5E55
MS = 1000


class ScriptedCore(Core):
    """Does nothing by itself: the test says when it touches and when it is done."""

    def __init__(self):
        self.calls = []
        self.refuse_with = 0

    def caps(self):
        return 15

    def hello_tail(self):
        return b"tail"

    def flags(self):
        return wire.FLAG_HOMED

    def start(self, op, args, now_us):
        self.calls.append(("start", op, bytes(args)))
        return self.refuse_with

    def data(self, op, args):
        self.calls.append(("data", op, bytes(args)))
        return self.refuse_with

    def poll(self, now_us):
        pass

    def deadman(self, now_us):
        self.calls.append("deadman")

    def estop(self, now_us):
        self.calls.append("estop")

    def clear_estop(self, now_us):
        self.calls.append("clear_estop")

    @property
    def starts(self):
        return [call for call in self.calls if call[0] == "start"]


class Bench:
    """A BoardLink with its session open, spoken to frame by frame."""

    def __init__(self, kind=wire.KIND_HAND):
        self.core = ScriptedCore()
        self.link = BoardLink(self.core, bytes(8), kind, BOOT, wire.RESET_WATCHDOG)
        self.now_us = 1_000_000
        self._decoder = wire.Decoder()

    def open(self, session=SESSION):
        self.session = session
        return self.send(wire.OPEN)

    def send(self, frame_type, *fields, seq=0, tail=b"", boot=BOOT, session=None):
        """The board's answer to one frame."""
        body = wire.pack_body(frame_type, *fields, tail=tail)
        frame = wire.encode_frame(frame_type, boot, self.session if session is None else session, seq, body)
        self.link.receive(frame, self.now_us)
        return self.output()

    def cmd(self, cmd_id, seq, op=wire.OP_TAP, args=b"", **header):
        return self.send(wire.CMD, cmd_id, op, seq=seq, tail=args, **header)

    def poll(self, after_ms=0):
        self.now_us += after_ms * MS
        self.link.poll(self.now_us)
        return self.output()

    def stay_heard(self, ms):
        """Let time pass with a host that sends heartbeats; returns what the board said beside its own."""
        said = []
        for seq in range(ms // 50):
            self.now_us += 50 * MS
            self.link.poll(self.now_us)
            said += self.output() + self.send(wire.HOST_HEARTBEAT, 0, seq=seq + 1)
        return [frame for frame in said if frame.type != wire.BOARD_HEARTBEAT]

    def output(self):
        return self._decoder.feed(self.link.take_output())

    def result(self, cmd_id):
        (frame,) = self.send(wire.QUERY, cmd_id, seq=7)
        assert (frame.type, frame.seq) == (wire.RESULT, 7)
        got_id, state = wire.unpack_body(wire.RESULT, frame.body)
        assert got_id == cmd_id
        return state

    def acknowledge(self, seq):
        self.send(wire.EVENT_ACK, seq=seq)


@pytest.fixture
def bench():
    """In a session in which nothing has happened yet; the restart was told in the one before."""
    bench = Bench()
    bench.poll()
    bench.open(SESSION - 1)
    bench.acknowledge(0)
    bench.open()
    bench.poll()
    bench.core.calls.clear()
    return bench


def types(frames):
    return [frame.type for frame in frames]


def body(frame):
    return wire.unpack_body(frame.type, frame.body)


# -- sessions --------------------------------------------------------------------------------------------------


def test_hello_goes_out_each_second_until_a_session_is_open():
    bench = Bench()
    hellos = [frame for _ in range(31) for frame in bench.poll(100)]
    assert types(hellos) == [wire.HELLO] * 4
    hello = wire.unpack_hello(hellos[0].body)
    assert (hello.kind, hello.reset_cause, hello.caps, hello.credit, hello.tail) == (1, 2, 15, 1, b"tail")
    assert (hellos[0].boot_id, hellos[0].session_id) == (BOOT, 0)
    assert types(bench.open())[0] == wire.OPENED
    assert wire.HELLO not in types(bench.stay_heard(3000))


@pytest.mark.parametrize("header", [{"boot": BOOT + 1}, {"session": 0}])
def test_an_open_for_another_boot_or_without_a_session_is_ignored(header):
    bench = Bench()
    assert bench.send(wire.OPEN, **{"session": SESSION, **header}) == []
    assert not bench.link.session_open


def test_the_same_open_again_only_repeats_opened(bench):
    bench.cmd(1, 0)
    assert types(bench.open()) == [wire.OPENED]
    assert types(bench.cmd(1, 0)) == [wire.ACCEPTED]
    assert len(bench.core.starts) == 1
    assert "deadman" not in bench.core.calls


def test_a_session_id_used_before_on_this_boot_is_refused(bench):
    for session in range(1, wire.SESSIONS_REMEMBERED + 1):
        assert types(bench.open(session)) == [wire.OPENED]
    for session in (SESSION, *range(1, wire.SESSIONS_REMEMBERED)):
        assert bench.send(wire.OPEN, session=session) == []


def test_a_new_session_while_one_is_open_makes_safe_first(bench):
    bench.cmd(1, 0)
    assert types(bench.open(SESSION + 1)) == [wire.OPENED]
    assert bench.core.calls[-1] == "deadman"
    assert bench.result(1) == wire.STATE_FAULT


@pytest.mark.parametrize("header", [{"boot": BOOT + 1}, {"session": SESSION + 1}])
def test_frames_of_another_boot_or_session_are_never_executed(bench, header):
    assert bench.cmd(1, 0, **header) == []
    assert bench.send(wire.ESTOP, **header) == []
    assert bench.core.calls == []
    assert bench.link.stale_frames == 2


# -- at most once ----------------------------------------------------------------------------------------------


def test_the_expected_command_runs_and_is_accepted_under_its_own_seq(bench):
    (accepted,) = bench.cmd(41, 0, wire.OP_TAP, b"args")
    assert (accepted.type, accepted.seq, body(accepted)) == (wire.ACCEPTED, 0, (41, bench.now_us))
    assert bench.core.calls == [("start", wire.OP_TAP, b"args")]
    assert bench.result(41) == wire.STATE_RUNNING


def test_a_repeated_command_is_accepted_again_with_the_first_time_and_does_not_run(bench):
    (first,) = bench.cmd(41, 0)
    bench.now_us += 50 * MS
    (second,) = bench.cmd(41, 0)
    assert (second.type, second.seq, second.body) == (first.type, first.seq, first.body)
    assert len(bench.core.starts) == 1


def test_a_repeated_command_gets_its_unacknowledged_outcome_again(bench):
    bench.cmd(41, 0)
    bench.link.done(bench.now_us)
    bench.output()
    assert types(bench.cmd(41, 0)) == [wire.ACCEPTED, wire.DONE]


def test_a_command_id_already_known_does_not_run_under_a_new_seq_nor_in_a_new_session(bench):
    bench.cmd(41, 0)
    bench.link.done(bench.now_us, b"data")
    (done,) = bench.output()
    bench.acknowledge(0)
    accepted, again = bench.cmd(41, 1)
    assert (accepted.type, again.type, again.body) == (wire.ACCEPTED, wire.DONE, done.body)
    bench.open(SESSION + 1)
    accepted, again = bench.cmd(41, 0)
    assert (accepted.type, again.type, again.body) == (wire.ACCEPTED, wire.DONE, done.body)
    assert len(bench.core.starts) == 1


def test_a_gap_is_answered_with_the_expected_seq_and_does_not_run(bench):
    (nak,) = bench.cmd(41, 1)
    assert (nak.type, nak.seq) == (wire.NAK, 0)
    assert bench.core.calls == []
    assert bench.result(41) == wire.STATE_ABSENT


def test_sequence_numbers_go_on_past_65535(bench):
    bench.link._expected_seq = 0xFFFF
    bench.cmd(1, 0xFFFF)
    bench.link.done(bench.now_us)
    bench.output()
    bench.acknowledge(0)
    assert types(bench.cmd(2, 0)) == [wire.ACCEPTED]
    assert types(bench.cmd(1, 0xFFFF)) == [wire.ACCEPTED]
    assert len(bench.core.starts) == 2


def test_a_second_command_while_one_runs_is_refused_as_busy(bench):
    bench.cmd(1, 0)
    accepted, fault = bench.cmd(2, 1)
    assert accepted.type == wire.ACCEPTED
    assert body(fault)[:3] == (2, wire.FAULT_BUSY, wire.FAULT_FLAG_REFUSED)
    assert len(bench.core.starts) == 1
    assert bench.result(1) == wire.STATE_RUNNING


def test_a_command_that_the_core_refuses_never_started(bench):
    bench.core.refuse_with = wire.FAULT_ENVELOPE
    _, fault = bench.cmd(1, 0)
    assert body(fault)[:3] == (1, wire.FAULT_ENVELOPE, wire.FAULT_FLAG_REFUSED)
    bench.core.refuse_with = 0
    assert types(bench.cmd(2, 1)) == [wire.ACCEPTED]


def test_a_command_without_an_operation_is_counted_and_takes_no_seq(bench):
    bench.link.receive(wire.encode_frame(wire.CMD, BOOT, SESSION, 0, b"short"), bench.now_us)
    assert bench.link.malformed_frames == 1
    assert types(bench.cmd(1, 0)) == [wire.ACCEPTED]


# -- results ---------------------------------------------------------------------------------------------------


def test_results_carry_what_the_event_carried(bench):
    bench.cmd(1, 0)
    accepted_us = bench.now_us
    bench.link.contact(accepted_us + 10)
    bench.link.contact(accepted_us + 15)
    bench.link.done(accepted_us + 20, b"data")
    contact, done = bench.output()
    assert body(contact) == (1, accepted_us + 10)
    assert body(done) == (1, accepted_us, accepted_us + 10, accepted_us + 20)
    (result,) = bench.send(wire.QUERY, 1, seq=1)
    assert body(result) == (1, wire.STATE_DONE)
    assert wire.result_as_event(result.body) == done.body


def test_a_fault_after_contact_says_that_there_may_be_an_effect(bench):
    bench.cmd(1, 0)
    bench.link.contact(bench.now_us)
    bench.link.fault(wire.FAULT_USB_NOT_READY, 0, bench.now_us)
    _, fault = bench.output()
    assert body(fault)[:3] == (1, wire.FAULT_USB_NOT_READY, wire.FAULT_FLAG_EFFECT)


def test_a_core_that_reports_without_a_command_reports_nothing(bench):
    bench.link.contact(bench.now_us)
    bench.link.done(bench.now_us)
    bench.link.fault(wire.FAULT_ABORTED, 0, bench.now_us)
    assert bench.output() == []


def test_data_too_long_for_a_frame_is_the_cores_error(bench):
    bench.cmd(1, 0)
    with pytest.raises(wire.BodyError, match="141"):
        bench.link.done(bench.now_us, bytes(wire.DONE_DATA_MAX + 1))
    bench.link.done(bench.now_us, bytes(wire.DONE_DATA_MAX))
    assert len(bench.send(wire.QUERY, 1)[-1].body) == wire.BODY_MAX


def test_absent_is_certain_above_the_ids_that_were_forgotten_and_forgotten_is_said_below():
    memory = ResultMemory()
    for cmd_id in range(10, 10 + wire.RESULTS_KEPT):
        memory.finish(memory.begin(cmd_id, 0), wire.STATE_DONE, b"")
    assert memory.state_of_unknown(3) == wire.STATE_ABSENT
    memory.begin(2**63 + 5, 0)
    assert memory.find(10) == -1
    assert memory.state_of_unknown(10) == wire.STATE_FORGOTTEN
    assert memory.state_of_unknown(3) == wire.STATE_FORGOTTEN
    assert memory.state_of_unknown(11) == wire.STATE_ABSENT
    assert memory.state_of_unknown(2**63 + 4) == wire.STATE_ABSENT


def test_it_tells_the_highest_ids_that_this_boot_was_given_finished_running_or_evicted(bench):
    def told():
        (frame,) = bench.send(wire.QUERY, wire.CMD_ID_OF_HIGHEST, seq=7)
        assert wire.unpack_body(wire.RESULT, frame.body) == (wire.CMD_ID_OF_HIGHEST, wire.STATE_FORGOTTEN)
        return wire.unpack_highest(wire.body_tail(wire.RESULT, frame.body))

    assert told() == (0, 0)
    bench.core.refuse_with = wire.FAULT_DEPTH
    for seq in range(wire.RESULTS_KEPT + 2):
        bench.cmd(100 - seq, seq)
        bench.acknowledge(seq)
    bench.core.refuse_with = 0
    bench.cmd(2**63 + 5, wire.RESULTS_KEPT + 2)
    assert told() == (100, 2**63 + 5)
    bench.open(SESSION + 1)
    assert told() == (100, 2**63 + 5), "another session is told the same"


def test_the_running_command_is_never_forgotten():
    memory = ResultMemory()
    memory.begin(1, 0)
    for cmd_id in range(2, 5 * wire.RESULTS_KEPT):
        memory.finish(memory.begin(cmd_id, 0), wire.STATE_FAULT, b"")
    assert memory.state(memory.find(1)) == wire.STATE_RUNNING


# -- reliable events -------------------------------------------------------------------------------------------


def test_events_are_sent_again_until_they_are_acknowledged(bench):
    bench.cmd(1, 0)
    bench.link.contact(bench.now_us)
    bench.link.done(bench.now_us)
    assert types(bench.output()) == [wire.CONTACT, wire.DONE]
    assert types(bench.stay_heard(100)) == [wire.CONTACT, wire.DONE]
    bench.acknowledge(0)
    (done,) = bench.stay_heard(100)
    assert (done.type, done.seq) == (wire.DONE, 1)
    bench.acknowledge(1)
    assert bench.stay_heard(500) == []


def test_an_acknowledgement_of_nothing_that_waits_changes_nothing():
    queue = EventQueue()
    queue.add(wire.MOVED, b"")
    for seq in (1, 0xFFFF, 77):
        queue.acknowledge(seq)
    assert (queue.count, queue.seq(0)) == (1, 0)


def test_a_host_that_acknowledges_nothing_gets_no_further_commands_through(bench):
    ids = iter(range(1, 100))
    for seq in range(EVENTS_KEPT):
        replies = types(bench.cmd(next(ids), seq))
        bench.link.done(bench.now_us)
        bench.output()
        if replies == [wire.NAK]:
            break
    assert 0 < len(bench.core.starts) < EVENTS_KEPT
    waiting = [frame.seq for frame in bench.stay_heard(100)]
    assert waiting == list(range(len(bench.core.starts)))


def test_moves_without_a_session_are_told_when_one_opens_each_cause_once_with_its_latest_time():
    bench = Bench()
    bench.link.moved(wire.MOVED_PUSHED, 6)
    bench.link.moved(wire.MOVED_PUSHED, 7)
    opened, *moves = bench.open()
    assert opened.type == wire.OPENED
    assert sorted({body(move) for move in moves}) == [(0, wire.MOVED_RESTART), (7, wire.MOVED_PUSHED)]
    bench.acknowledge(1)
    assert types(bench.open(SESSION + 1)) == [wire.OPENED]


def test_a_hand_pushed_without_end_does_not_crowd_out_a_commands_outcome(bench):
    for us in range(1000):
        bench.link.moved(wire.MOVED_PUSHED, us)
    bench.output()
    assert types(bench.cmd(1, 0)) == [wire.ACCEPTED]
    bench.link.contact(bench.now_us)
    bench.link.done(bench.now_us)
    assert types(bench.output()) == [wire.CONTACT, wire.DONE]
    said = []
    for seq in range(8):
        bench.acknowledge(seq)
        said += bench.stay_heard(100)
    assert (999, wire.MOVED_PUSHED) in [body(frame) for frame in said if frame.type == wire.MOVED]


# -- heartbeats and the deadman ----------------------------------------------------------------------------------


def test_a_heartbeat_is_answered_at_once_with_its_seq_and_the_boards_time(bench):
    (answer,) = bench.send(wire.HOST_HEARTBEAT, 12, seq=300)
    assert (answer.type, answer.seq) == (wire.BOARD_HEARTBEAT, 300)
    assert body(answer) == (bench.now_us, wire.FLAG_HOMED)


def test_a_silent_host_makes_the_board_safe_and_latches_held(bench):
    bench.cmd(1, 0)
    bench.link.contact(bench.now_us)
    bench.poll(wire.DEADMAN_MS - 1)
    assert "deadman" not in bench.core.calls
    assert bench.link.session_open
    frames = bench.poll(1)
    assert bench.core.calls.count("deadman") == 1
    assert bench.link.held
    (hello,) = [frame for frame in frames if frame.type == wire.HELLO]
    assert wire.unpack_hello(hello.body).flags & wire.FLAG_HELD
    bench.poll(5000)
    assert bench.core.calls.count("deadman") == 1
    assert bench.send(wire.OPEN, session=SESSION) == []
    (opened,) = bench.open(SESSION + 1)
    assert not body(opened)[0] & wire.FLAG_HELD
    (result,) = bench.send(wire.QUERY, 1)
    assert body(result) == (1, wire.STATE_FAULT)
    fault = wire.result_as_event(result.body)
    assert wire.unpack_body(wire.FAULT, fault)[:3] == (1, wire.FAULT_ABORTED, wire.FAULT_FLAG_EFFECT)


def test_any_valid_frame_of_the_session_keeps_the_deadman_off_and_others_do_not(bench):
    bench.poll(500)
    bench.acknowledge(0)
    bench.poll(500)
    assert bench.link.session_open
    bench.send(wire.HOST_HEARTBEAT, 0, session=SESSION + 1)
    bench.poll(100)
    assert not bench.link.session_open


# -- emergency stop ------------------------------------------------------------------------------------------------


def stop_nonce(frames):
    return next(body(frame)[1] for frame in frames if frame.type == wire.ESTOPPED)


def test_a_stop_skips_the_order_ends_the_command_and_is_latched(bench):
    bench.cmd(1, 0)
    frames = bench.send(wire.ESTOP, seq=999)
    assert types(frames) == [wire.FAULT, wire.MOVED, wire.ESTOPPED]
    assert body(frames[0])[1] == wire.FAULT_ESTOPPED
    assert body(frames[1])[1] == wire.MOVED_ESTOP
    _, refused = bench.cmd(2, 1)
    assert body(refused)[1:3] == (wire.FAULT_ESTOPPED, wire.FAULT_FLAG_REFUSED)
    assert len(bench.core.starts) == 1


def test_a_stop_twice_is_one_stop(bench):
    first = stop_nonce(bench.send(wire.ESTOP))
    bench.send(wire.ESTOP)
    for seq in range(4):
        bench.acknowledge(seq)
    assert stop_nonce(bench.send(wire.ESTOP)) == first
    assert bench.core.calls == ["estop"]


def test_only_the_right_nonce_clears_a_stop_and_each_stop_has_its_own(bench):
    nonce = stop_nonce(bench.send(wire.ESTOP))
    (answer,) = bench.send(wire.CLEAR, nonce ^ 1)
    assert body(answer)[1] & wire.FLAG_ESTOPPED
    (answer,) = bench.send(wire.CLEAR, nonce)
    assert not body(answer)[1] & wire.FLAG_ESTOPPED
    assert bench.core.calls == ["estop", "clear_estop"]
    for seq in range(4):
        bench.acknowledge(seq)
    assert stop_nonce(bench.send(wire.ESTOP)) != nonce
    bench.send(wire.CLEAR, nonce)
    assert bench.link.estopped


def test_a_stop_outlives_the_session_and_is_told_in_the_next(bench):
    nonce = stop_nonce(bench.send(wire.ESTOP))
    bench.poll(wire.DEADMAN_MS)
    frames = bench.open(SESSION + 1)
    assert body(frames[0])[0] & wire.FLAG_ESTOPPED
    assert stop_nonce(frames) == nonce


def test_a_hid_board_that_stops_did_not_move_a_hand():
    bench = Bench(wire.KIND_HID)
    bench.open()
    assert types(bench.send(wire.ESTOP)) == [wire.ESTOPPED]


# -- data ----------------------------------------------------------------------------------------------------------


def test_data_is_taken_once_and_acknowledged_again_when_repeated(bench):
    for _ in range(2):
        assert types(bench.cmd(0, 0, wire.OP_TEXT_LOAD, b"\x00\x00ab")) == [wire.ACCEPTED]
    assert bench.core.calls == [("data", wire.OP_TEXT_LOAD, b"\x00\x00ab")]


def test_refused_data_is_a_fault_and_no_acceptance(bench):
    bench.core.refuse_with = wire.FAULT_BAD_ARGS
    for _ in range(2):
        (fault,) = bench.cmd(0, 0, wire.OP_TEXT_LOAD, b"\x00\x00ab")
        assert body(fault)[:3] == (0, wire.FAULT_BAD_ARGS, wire.FAULT_FLAG_REFUSED)
    assert len(bench.core.calls) == 1


def test_data_while_a_command_runs_is_refused_so_that_the_text_being_typed_stays(bench):
    bench.cmd(1, 0)
    (fault,) = bench.cmd(0, 1, wire.OP_TEXT_LOAD, b"\x00\x00ab")
    assert body(fault)[1] == wire.FAULT_BUSY
    assert not any(call[0] == "data" for call in bench.core.calls)


# -- the line, and the real interpreter --------------------------------------------------------------------------------


def test_output_that_nobody_takes_is_bounded_and_what_matters_comes_again(bench):
    bench.cmd(1, 0)
    for _ in range(100):
        bench.link.receive(
            wire.encode_frame(wire.HOST_HEARTBEAT, BOOT, SESSION, 1, wire.pack_body(wire.HOST_HEARTBEAT, 0)),
            bench.now_us,
        )
    bench.link.done(bench.now_us)
    assert bench.link.output_dropped > 0
    assert wire.DONE not in types(bench.output())
    assert wire.DONE in types(bench.stay_heard(100))


def recording():
    """A session with a command, its repetition, a refusal, a question, a stop, garbage and a silent end."""
    lines = []

    def at(ms, *frames):
        lines.append((ms * MS, b"".join(frames)))

    def frame(frame_type, *fields, seq=0, tail=b""):
        body = wire.pack_body(frame_type, *fields, tail=tail)
        return wire.encode_frame(frame_type, BOOT, SESSION, seq, body)

    tap = frame(wire.CMD, 2**63 + 9, wire.OP_TAP, seq=0, tail=b"x")
    at(1000)
    at(1010, b"\xfe\xffets Jul 29\x00", frame(wire.OPEN))
    at(1020, frame(wire.HOST_HEARTBEAT, 1020, seq=1), tap[:9])
    at(1030, tap[9:])
    at(1050, tap, tap)
    at(1080, frame(wire.EVENT_ACK, seq=0))
    at(1200, frame(wire.CMD, 5, wire.OP_HOME, seq=1), frame(wire.QUERY, 2**63 + 9, seq=4))
    at(1300, frame(wire.ESTOP), frame(wire.CLEAR, 1234))
    at(1500, frame(wire.CMD, 6, wire.OP_TEXT_LOAD, seq=2, tail=bytes(100)))
    at(1600, frame(wire.CMD, 6, wire.OP_TAP, seq=9))
    for ms in range(1700, 4000, 100):
        at(ms)
    return "".join(f"{now_us} {data.hex()}\n" for now_us, data in lines)


def play(command):
    script = str(Path(__file__).parent / "play_board_link.py")
    run = subprocess.run(
        [*command, script, str(ROOT)],
        input=recording(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    return run.stdout


def test_both_interpreters_say_the_same_bytes_in_the_same_conversation():
    search = f"{Path(sys.executable).parent}:{shutil.os.environ.get('PATH', '')}"
    micropython = shutil.which("micropython", path=search)
    if micropython is None:
        pytest.skip("no micropython interpreter: pip install '.[bench]' on x86-64 Linux")
    spoken = play([micropython, "-X", "heapsize=160k"])
    assert spoken == play([sys.executable])
    frames = wire.Decoder().feed(bytes.fromhex(spoken.replace("\n", "")))
    assert {wire.HELLO, wire.OPENED, wire.ACCEPTED, wire.DONE, wire.FAULT, wire.RESULT, wire.NAK} <= {
        frame.type for frame in frames
    }
