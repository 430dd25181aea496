"""The host end of the link on its own: whom it talks to, what it repeats, when it gives up, what it tells."""

import binascii
import struct

import pytest

from edge_daemon.boards.inflight import InFlight
from edge_daemon.boards.link import HELLO_WAIT_MS, HIGHEST_ID_USABLE, HostLink, LinkNotReady
from edge_daemon.boards.link_events import (
    CommandAccepted,
    CommandDone,
    CommandFaulted,
    ContactMade,
    Lost,
    MovedByItself,
    Online,
)
from firmware import framing, wire

MS = 1_000_000
BOOT, SESSION = 0x1111, 0x2222
UID = bytes(range(8))


def hello(kind=wire.KIND_HAND, credit=1, tail=None):
    hand_tail = wire.pack_hand_tail(0, 1, 0, 1, 0, 1, 1, 1)
    return wire.Hello(UID, kind, 1, 0, 1, 15, credit, 0, hand_tail if tail is None else tail).pack()


def from_board(frame_type, seq=0, body=b"", session=SESSION, boot=BOOT):
    return wire.encode_frame(frame_type, boot, session, seq, body)


def frames(data):
    return wire.Decoder().feed(data)


def highest(commands=0, housekeeping=0, seq=1):
    body = wire.pack_body(
        wire.RESULT, 0, wire.STATE_FORGOTTEN, tail=wire.pack_highest(commands, housekeeping)
    )
    return from_board(wire.RESULT, seq, body)


def opened_link(now_ns=0, **options):
    link = HostLink(SESSION, now_ns, **options)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), now_ns)
    link.receive(from_board(wire.OPENED, body=b"\x00"), now_ns)
    link.receive(highest(), now_ns)
    link.receive(from_board(wire.BOARD_HEARTBEAT, 1, wire.pack_body(wire.BOARD_HEARTBEAT, 5000, 0)), now_ns)
    return link


@pytest.fixture
def link():
    link = opened_link()
    assert link.online
    link.take_output()
    link.take_events()
    return link


def lost_reason(link):
    (event,) = [event for event in link.take_events() if isinstance(event, Lost)]
    assert link.next_deadline() is None
    assert link.take_output() == b""
    return event.reason


def keep_alive(link, now_ns):
    link.receive(from_board(wire.BOARD_HEARTBEAT, 0, wire.pack_body(wire.BOARD_HEARTBEAT, 1, 0)), now_ns)


# -- who is there ------------------------------------------------------------------------------------------


def test_it_says_nothing_before_a_hello():
    link = HostLink(SESSION, 0)
    link.receive(b"\x00rst:0x1 (POWERON_RESET)\r\n\x00", 0)
    for ms in range(0, HELLO_WAIT_MS, 100):
        link.poll(ms * MS)
    assert link.take_output() == b""


def test_without_a_hello_it_gives_up_and_says_whether_anything_arrived():
    quiet, noisy = HostLink(SESSION, 0), HostLink(SESSION, 0)
    noisy.receive(b"login: \x00\x00", 0)
    for link in (quiet, noisy):
        assert link.next_deadline() == HELLO_WAIT_MS * MS
        link.poll(HELLO_WAIT_MS * MS)
    assert "powered" in lost_reason(quiet)
    assert "7 bytes" in lost_reason(noisy)


def test_it_opens_the_boot_that_said_hello():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    (frame,) = frames(link.take_output())
    assert (frame.type, frame.boot_id, frame.session_id) == (wire.OPEN, BOOT, SESSION)


def test_a_board_that_restarts_before_it_was_opened_is_opened_on_its_new_boot():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.take_output()
    link.receive(from_board(wire.HELLO, body=hello(), session=0, boot=BOOT + 1), 1)
    (frame,) = frames(link.take_output())
    assert (frame.type, frame.boot_id) == (wire.OPEN, BOOT + 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (hello(kind=9), "kind 9"),
        (hello(credit=0), "no credit"),
        (hello()[:10], "10 bytes"),
        (hello(tail=b"short"), "5 bytes"),
        (hello(kind=wire.KIND_HID, tail=wire.pack_hid_tail(7, 1, 0, 0)), "profile 7"),
    ],
)
def test_a_hello_that_cannot_be_read_is_refused_with_its_value(body, words):
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=body, session=0), 0)
    assert words in lost_reason(link)


def test_another_protocol_is_named():
    content = struct.pack(framing.HEADER, 2, wire.HELLO, BOOT, 0, 0)
    content += struct.pack("<I", binascii.crc32(content))
    coded = bytearray(b"\x00" + content + b"\x00")
    framing.cobs_encode(coded, 0, len(content) + 1)
    link = HostLink(SESSION, 0)
    link.receive(b"\x00" + bytes(coded), 0)
    assert "protocol 2" in lost_reason(link)


def test_online_means_that_the_boards_clock_is_known():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.receive(from_board(wire.OPENED, body=b"\x00"), 0)
    link.receive(highest(), 0)
    unsolicited = wire.pack_body(wire.BOARD_HEARTBEAT, 7000, 0)
    link.receive(from_board(wire.BOARD_HEARTBEAT, 0, unsolicited), 0)
    assert not link.online
    link.receive(from_board(wire.BOARD_HEARTBEAT, 1, unsolicited), 2 * MS)
    assert link.online
    assert link.clock.to_host_ns(7000) == 1 * MS
    assert link.clock.error_ns == 1 * MS
    assert any(isinstance(event, Online) for event in link.take_events())


def test_online_means_that_the_board_has_told_which_ids_it_was_given():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.receive(from_board(wire.OPENED, body=b"\x00"), 0)
    keep_alive(link, 0)
    link.receive(from_board(wire.BOARD_HEARTBEAT, 1, wire.pack_body(wire.BOARD_HEARTBEAT, 7, 0)), 0)
    asked = [frame for frame in frames(link.take_output()) if frame.type == wire.QUERY]
    assert [wire.unpack_body(wire.QUERY, frame.body) for frame in asked] == [(wire.CMD_ID_OF_HIGHEST,)]
    assert not link.online
    link.poll(wire.RETRANSMIT_MS[0] * MS)
    assert wire.QUERY in [frame.type for frame in frames(link.take_output())], (
        "a lost answer is asked for again"
    )
    link.receive(highest(41, 1 << 63 | 7), 1)
    (online,) = [event for event in link.take_events() if isinstance(event, Online)]
    assert online.info.highest_cmd_ids == (41, 1 << 63 | 7)


def test_a_firmware_that_does_not_tell_its_highest_ids_is_used_all_the_same():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.receive(from_board(wire.OPENED, body=b"\x00"), 0)
    link.receive(from_board(wire.BOARD_HEARTBEAT, 1, wire.pack_body(wire.BOARD_HEARTBEAT, 7, 0)), 0)
    link.receive(from_board(wire.RESULT, 1, wire.pack_body(wire.RESULT, 0, wire.STATE_FORGOTTEN)), 0)
    assert link.online
    assert link.info.highest_cmd_ids == (0, 0)


def test_a_board_with_ids_that_leave_no_room_above_them_is_refused_with_the_way_out():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.receive(from_board(wire.OPENED, body=b"\x00"), 0)
    link.receive(highest(HIGHEST_ID_USABLE), 0)
    assert "take its power away" in lost_reason(link)


def test_what_the_board_tells_before_its_clock_is_known_comes_after_online():
    link = HostLink(SESSION, 0)
    link.receive(from_board(wire.HELLO, body=hello(), session=0), 0)
    link.receive(from_board(wire.OPENED, body=b"\x00"), 0)
    link.receive(from_board(wire.MOVED, 0, wire.pack_body(wire.MOVED, 0, wire.MOVED_RESTART)), 0)
    link.receive(highest(), 0)
    assert link.take_events() == []
    link.receive(from_board(wire.BOARD_HEARTBEAT, 1, wire.pack_body(wire.BOARD_HEARTBEAT, 7, 0)), 0)
    assert [type(event) for event in link.take_events()] == [Online, MovedByItself]


def test_the_hello_that_ends_a_session_opens_the_next_one_at_once(link):
    link.receive(from_board(wire.HELLO, body=hello(), session=0, boot=BOOT + 1), 0)
    after = HostLink(SESSION + 1, 0, hello=link.next_hello)
    (frame,) = frames(after.take_output())
    assert (frame.type, frame.boot_id, frame.session_id) == (wire.OPEN, BOOT + 1, SESSION + 1)


def test_a_session_that_ends_without_a_hello_leaves_none_behind(link):
    link.poll(wire.HOST_SILENCE_MS * MS)
    assert "silent" in lost_reason(link)
    assert link.next_hello is None


def test_a_hello_of_the_wrong_board_is_refused_also_where_it_begins_the_link():
    (frame,) = frames(from_board(wire.HELLO, body=hello(), session=0))
    link = HostLink(SESSION, 0, expected_uid="ff" * 8, hello=frame)
    assert "swapped" in lost_reason(link)


# -- repeating and giving up ---------------------------------------------------------------------------------


def test_a_command_is_repeated_byte_for_byte_at_growing_pauses_and_then_given_up(link):
    link.command(1, wire.OP_HOME, b"", 0)
    sent_at, sent = [0], [link.take_output()]
    for ms in range(0, 3000, 10):
        keep_alive(link, ms * MS)
        link.poll(ms * MS)
        commands = b"".join(
            wire.encode_frame(f.type, f.boot_id, f.session_id, f.seq, f.body)
            for f in frames(link.take_output())
            if f.type == wire.CMD
        )
        if commands:
            sent_at.append(ms)
            sent.append(commands)
        if not link.online:
            break
    assert sent_at == [0, 50, 150, 350, 750]
    assert len(set(sent)) == 1
    assert ms == 1550
    assert "did not answer CMD, sent 5 times" in lost_reason(link)


def test_an_accepted_command_is_not_repeated(link):
    link.command(1, wire.OP_HOME, b"", 0)
    link.take_output()
    link.receive(from_board(wire.ACCEPTED, 0, wire.pack_body(wire.ACCEPTED, 1, 10)), 0)
    link.poll((wire.HEARTBEAT_MS - 1) * MS)
    assert link.take_output() == b""


def test_only_one_command_is_in_flight(link):
    link.command(1, wire.OP_HOME, b"", 0)
    with pytest.raises(LinkNotReady, match="command 1"):
        link.command(2, wire.OP_HOME, b"", 0)


def test_a_silent_board_is_lost_after_a_second(link):
    while link.online:
        now_ns = link.next_deadline()
        link.poll(now_ns)
        link.take_output()
    assert now_ns == wire.HOST_SILENCE_MS * MS
    assert "silent" in lost_reason(link)


def test_heartbeats_go_out_while_the_board_answers(link):
    sent = 0
    for ms in range(0, 2000, 50):
        keep_alive(link, ms * MS)
        link.poll(ms * MS)
        sent += sum(frame.type == wire.HOST_HEARTBEAT for frame in frames(link.take_output()))
    assert sent == (2000 - 50) // wire.HEARTBEAT_MS


@pytest.mark.parametrize(("boot", "words"), [(BOOT, "closed the session"), (BOOT + 1, "restarted")])
def test_a_hello_in_a_session_ends_it(link, boot, words):
    link.receive(from_board(wire.HELLO, body=hello(), session=0, boot=boot), 0)
    assert words in lost_reason(link)


@pytest.mark.parametrize("stale", [{"session": SESSION + 1}, {"boot": BOOT + 1}])
def test_frames_of_another_session_or_boot_do_not_count_as_life(link, stale):
    body = wire.pack_body(wire.BOARD_HEARTBEAT, 1, 0)
    link.receive(from_board(wire.BOARD_HEARTBEAT, 0, body, **stale), 900 * MS)
    link.poll(1000 * MS)
    assert link.counters.stale_frames == 1
    lost_reason(link)


# -- replies -------------------------------------------------------------------------------------------------


def test_a_late_reply_of_the_previous_command_does_not_end_this_one(link):
    link.command(2, wire.OP_HOME, b"", 0)
    link.receive(from_board(wire.ACCEPTED, 0xFFFF, wire.pack_body(wire.ACCEPTED, 1, 10)), 0)
    link.receive(from_board(wire.CONTACT, 0, wire.pack_body(wire.CONTACT, 1, 11)), 0)
    link.receive(from_board(wire.DONE, 1, wire.pack_body(wire.DONE, 1, 10, 11, 12)), 0)
    link.receive(from_board(wire.FAULT, 2, wire.pack_body(wire.FAULT, 1, 7, 0, 12)), 0)
    assert link.take_events() == []
    assert link.late_replies == 4
    link.receive(from_board(wire.DONE, 3, wire.pack_body(wire.DONE, 2, 20, 0, 22)), 0)
    assert link.take_events() == [CommandAccepted(2, 20), CommandDone(2, 20, None, 22, b"")]


def test_a_late_answer_to_an_earlier_question_is_not_taken_for_this_one(link):
    link.query(5, 0)
    link.query(6, 0)
    link.receive(from_board(wire.RESULT, 2, wire.pack_body(wire.RESULT, 5, wire.STATE_ABSENT)), 0)
    assert link.take_events() == []


def test_a_repeated_event_is_told_once_and_acknowledged_again(link):
    moved = from_board(wire.MOVED, 0, wire.pack_body(wire.MOVED, 9, wire.MOVED_PUSHED))
    for _ in range(2):
        link.receive(moved, 0)
        (ack,) = frames(link.take_output())
        assert (ack.type, ack.seq) == (wire.EVENT_ACK, 0)
    assert link.take_events() == [MovedByItself(9, wire.MOVED_PUSHED)]


def test_an_event_with_one_missing_before_it_is_neither_told_nor_acknowledged(link):
    link.receive(from_board(wire.MOVED, 1, wire.pack_body(wire.MOVED, 9, wire.MOVED_PUSHED)), 0)
    assert link.take_events() == []
    assert link.take_output() == b""


def test_a_body_that_does_not_fit_its_type_is_counted_and_ignored(link):
    link.receive(from_board(wire.DONE, 0, b"short"), 0)
    link.receive(from_board(0x77, 0, b""), 0)
    assert link.counters.malformed_frames == 2
    assert link.online


def test_a_stop_is_repeated_until_it_is_latched_and_cleared_with_its_nonce(link):
    with pytest.raises(LinkNotReady):
        link.clear_estop(0)
    link.estop(0)
    link.take_output()
    link.poll(50 * MS)
    assert [frame.type for frame in frames(link.take_output())] == [wire.ESTOP]
    link.receive(from_board(wire.ESTOPPED, 0, wire.pack_body(wire.ESTOPPED, 1, 4711)), 60 * MS)
    link.take_output()
    link.clear_estop(70 * MS)
    (clear,) = frames(link.take_output())
    assert wire.unpack_body(wire.CLEAR, clear.body) == (4711,)


def test_contact_before_acceptance_waits_for_it_so_that_stages_keep_their_order():
    in_flight = InFlight()
    in_flight.begin(1, 0)
    assert in_flight.contact(1, 20) == []
    assert in_flight.awaits_acceptance
    assert in_flight.accepted(1, 0, 10) == [CommandAccepted(1, 10), ContactMade(1, 20)]
    assert in_flight.accepted(1, 0, 10) == []


def test_a_fault_after_a_contact_that_nobody_accepted_still_tells_the_contact():
    in_flight = InFlight()
    in_flight.begin(1, 0)
    in_flight.contact(1, 20)
    fault = CommandFaulted(1, wire.FAULT_ABORTED, False, True, 30)
    assert in_flight.fault(fault) == [ContactMade(1, 20), fault]
