"""The frame log: bounded, readable by an engineer, and without anybody's text."""

import binascii

from edge_daemon.boards.clock import SAMPLES_KEPT, ClockMap
from edge_daemon.boards.framelog import FRAMES_KEPT, FrameLog, describe_frame
from firmware import wire


def frame(frame_type, *fields, tail=b""):
    return wire.Frame(frame_type, 0xB007, 0x5E55, 3, wire.pack_body(frame_type, *fields, tail=tail))


def test_it_keeps_the_last_frames_of_each_direction_in_the_order_of_time():
    log = FrameLog()
    for at_ns in range(2 * FRAMES_KEPT):
        log.sent(frame(wire.ESTOP), 2 * at_ns)
        log.received(frame(wire.NAK), 2 * at_ns + 1)
    entries = log.entries()
    assert len(entries) == 2 * FRAMES_KEPT
    assert [entry.at_ns for entry in entries] == list(range(2 * FRAMES_KEPT, 4 * FRAMES_KEPT))
    assert [entry.sent for entry in entries[:2]] == [True, False]


def test_the_dump_says_when_which_way_and_what():
    log = FrameLog()
    tap = wire.pack_args(wire.OP_TAP, 1000, 2000, 5000, -1200, 80)
    log.sent(frame(wire.CMD, 7, wire.OP_TAP, tail=tap), 1_000_000)
    log.received(frame(wire.FAULT, 7, wire.FAULT_ENVELOPE, wire.FAULT_FLAG_REFUSED, 9), 3_500_000)
    sent, received = log.dump().splitlines()
    assert sent == (
        "      -2.5 ms host → board  CMD seq=3 session=00005e55 boot=0000b007 cmd_id=7 TAP "
        "x_um=1000 y_um=2000 hover_z_um=5000 press_z_um=-1200 dwell_ms=80"
    )
    assert received == (
        "      +0.0 ms board → host  FAULT seq=3 session=00005e55 boot=0000b007 cmd_id=7 "
        "code=envelope flags=refused board_us=9"
    )
    assert FrameLog().dump() == "no frames"


def test_typed_text_never_appears():
    load = wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=b"hunter2")
    line = describe_frame(frame(wire.CMD, 0, wire.OP_TEXT_LOAD, tail=load))
    assert "TEXT_LOAD offset=0 (7 bytes of text)" in line
    assert "hunter2" not in line
    assert b"hunter2".hex() not in line


def test_nothing_that_was_made_from_a_text_appears_but_its_length():
    crc = binascii.crc32(b"1234")
    line = describe_frame(frame(wire.CMD, 7, wire.OP_TEXT_GO, tail=wire.pack_args(wire.OP_TEXT_GO, 4, crc)))
    assert line.endswith("cmd_id=7 TEXT_GO bytes=4")
    broken = describe_frame(frame(wire.CMD, 7, wire.OP_TEXT_GO, tail=b"hunter2"))
    assert "BAD BODY of 16 bytes" in broken
    assert b"hunter2".hex() not in broken


def test_every_frame_type_can_be_described():
    for frame_type, (layout, _) in wire.BODY_FORMATS.items():
        if frame_type != wire.CMD:
            fields = [1] * (len(layout) - 1)
            assert "BAD BODY" not in describe_frame(frame(frame_type, *fields))
    for op, (layout, _) in wire.ARGS_FORMATS.items():
        args = wire.pack_args(op, *[1] * (len(layout) - 1))
        assert "BAD BODY" not in describe_frame(frame(wire.CMD, 1, op, tail=args))
    assert "op 0x7f (3 bytes)" in describe_frame(frame(wire.CMD, 1, 0x7F, tail=b"abc"))


def test_a_body_that_does_not_fit_is_shown_as_it_came():
    assert "BAD BODY 0102" in describe_frame(wire.Frame(wire.DONE, 1, 2, 3, b"\x01\x02"))
    assert "type 0x77" in describe_frame(wire.Frame(0x77, 1, 2, 3, b""))


def test_the_clock_uses_the_narrowest_bracket_and_forgets_old_ones():
    clock = ClockMap()
    assert not clock.known
    clock.sample(0, 10_000, 0)
    clock.sample(1_000_000, 1_002_000, 1_000)
    clock.sample(2_000_000, 2_500_000, 2_000)
    assert clock.error_ns == 1_000
    assert clock.to_host_ns(5_000) == 5_001_000
    for n in range(SAMPLES_KEPT):
        clock.sample(n * 1_000_000, n * 1_000_000 + 8_000, n * 1_000)
    assert clock.to_host_ns(0) == 4_000
