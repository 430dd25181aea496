"""The HID board's core: one operation, one release; text as asked; nothing before it is sure."""

import binascii
import struct
from itertools import pairwise

import pytest

from firmware import wire
from firmware.hid import descriptor, layouts
from firmware.hid.core import STALL_US, TEXT_MAX, HidCore, Usb
from firmware.hid.operations import TextBuffer

SHIFT, ALTGR = descriptor.MOD_LEFT_SHIFT, descriptor.MOD_RIGHT_ALT
POLL_US = 8_000


class Plug(Usb):
    """A USB plug with a phone that takes a report each time take() is called."""

    def __init__(self):
        self.reports = []
        self.is_ready = True
        self.queued = 0
        self.led_bits = 0
        self.is_broken = False

    def ready(self):
        return self.is_ready

    def send(self, report):
        assert self.queued == 0, "a report was sent before the one before it was taken"
        if self.is_broken:
            return False
        self.reports.append(bytes(report))
        self.queued = 1
        return True

    def pending(self):
        return self.queued

    def leds(self):
        return self.led_bits

    def take(self):
        self.queued = 0


class Bench:
    """A HID core with its plug and a clock; notes what the core reports, in place of the link."""

    def __init__(self, layout=wire.LAYOUT_US, profile=wire.PROFILE_ANDROID):
        self.plug = Plug()
        self.core = HidCore(self.plug, profile, layout)
        self.core.link = self
        self.now_us = -2 * POLL_US
        self.outcome = []
        self.run()
        assert self.core.flags() & wire.FLAG_USB_READY
        self.plug.reports.clear()
        self.now_us = 1_000

    def contact(self, now_us):
        self.outcome.append(("contact", now_us))

    def done(self, now_us, data=b""):
        self.outcome.append(("done", now_us, data))

    def fault(self, code, flags, now_us):
        self.outcome.append(("fault", code))

    def start(self, op, *args):
        return self.core.start(op, wire.pack_args(op, *args), self.now_us)

    def step(self):
        """The phone polls once."""
        self.now_us += POLL_US
        self.plug.take()
        self.core.poll(self.now_us)

    def run(self):
        for _ in range(10_000):
            if self.core.due_us(self.now_us) < 0 and not self.plug.queued:
                return
            self.step()
        raise AssertionError("the core never comes to rest")

    def load(self, text, chunk=100):
        data = text.encode()
        for at in range(0, len(data), chunk):
            args = wire.pack_args(wire.OP_TEXT_LOAD, at, tail=data[at : at + chunk])
            assert self.core.data(wire.OP_TEXT_LOAD, args) == 0
        return len(data), binascii.crc32(data)

    def type(self, text):
        code = self.start(wire.OP_TEXT_GO, *self.load(text))
        self.run()
        return code

    def strokes(self):
        """(modifiers, usage) of each press; asserts that a release stands between any two."""
        presses, releases = self.plug.reports[0::2], self.plug.reports[1::2]
        assert all(r == bytes((descriptor.REPORT_KEYBOARD,)) + bytes(8) for r in releases)
        assert len(presses) == len(releases)
        return [(p[1], p[3]) for p in presses]


@pytest.fixture
def bench():
    return Bench()


def key_index(name):
    return wire.KEY_NAMES.index(name)


@pytest.mark.parametrize(
    ("profile", "name", "press"),
    [
        (wire.PROFILE_ANDROID, "home", b"\x02\x23\x02"),
        (wire.PROFILE_ANDROID, "back", b"\x02\x24\x02"),
        (wire.PROFILE_ANDROID, "app_switch", b"\x02\xa2\x01"),
        (wire.PROFILE_ANDROID, "power", b"\x02\x30\x00"),
        (wire.PROFILE_ANDROID, "volume_up", b"\x02\xe9\x00"),
        (wire.PROFILE_ANDROID, "volume_down", b"\x02\xea\x00"),
        (wire.PROFILE_ANDROID, "enter", b"\x01\x00\x00\x28\x00\x00\x00\x00\x00"),
        (wire.PROFILE_ANDROID, "delete", b"\x01\x00\x00\x2a\x00\x00\x00\x00\x00"),
        (wire.PROFILE_IOS, "home", b"\x02\x40\x00"),
        (wire.PROFILE_IOS, "power", b"\x02\x30\x00"),
    ],
)
def test_a_key_is_pressed_and_released_and_done_when_the_phone_has_taken_both(profile, name, press):
    bench = Bench(profile=profile)
    assert bench.start(wire.OP_KEY, key_index(name)) == 0
    assert bench.outcome == [("contact", 1_000)]
    bench.step()
    assert bench.plug.reports == [press, press[:1] + bytes(len(press) - 1)]
    assert len(bench.outcome) == 1, "done before the phone has taken the release"
    bench.step()
    assert bench.outcome[1] == ("done", bench.now_us, b"")


@pytest.mark.parametrize("name", ["back", "app_switch"])
def test_ios_has_no_such_key_and_refuses_it(name):
    bench = Bench(profile=wire.PROFILE_IOS)
    assert bench.start(wire.OP_KEY, key_index(name)) == wire.FAULT_UNSUPPORTED
    mask = wire.unpack_hid_tail(bench.core.hello_tail())[2]
    assert not mask & 1 << key_index(name)
    assert not bench.core.caps() & wire.CAP_HID_TOUCH
    assert bench.start(wire.OP_HID_TAP, 1, 1, 60) == wire.FAULT_UNSUPPORTED
    assert bench.plug.reports == []


def test_a_text_is_typed_key_by_key_with_a_release_after_each(bench):
    assert bench.type("Hi, aa!") == 0
    assert bench.strokes() == [(SHIFT, 0x0B), (0, 0x0C), (0, 0x36), (0, 0x2C), (0, 4), (0, 4), (SHIFT, 0x1E)]
    assert bench.outcome[-1] == ("done", bench.now_us, struct.pack("<H", 7))


def test_dead_keys_and_altgr_are_typed_in_order():
    bench = Bench(wire.LAYOUT_DE)
    bench.type("é@Ü\n")
    assert bench.strokes() == [(0, 0x2E), (0, 0x08), (ALTGR, 0x14), (SHIFT, 0x2F), (0, 0x28)]
    assert bench.outcome[-1][2] == struct.pack("<H", 4)


def test_with_caps_lock_on_the_text_still_comes_out_as_asked():
    bench = Bench(wire.LAYOUT_FR)
    bench.plug.led_bits = descriptor.LED_CAPS_LOCK
    assert bench.core.flags() & wire.FLAG_CAPS_LOCK
    bench.type("aA1é.ê")
    assert bench.strokes() == [
        (SHIFT, 0x14),
        (0, 0x14),
        (SHIFT, 0x1E),  # digits and the rest keep their level
        (0, 0x1F),
        (SHIFT, 0x36),
        (0, 0x2F),
        (SHIFT, 0x08),
    ]


def test_a_character_that_cannot_be_typed_is_refused_before_the_first_key(bench):
    assert bench.type("hello é") == wire.FAULT_CHARSET
    assert bench.plug.reports == []


def test_a_character_split_between_two_chunks_is_typed():
    bench = Bench(wire.LAYOUT_DE)
    size, crc = bench.load("aß€", chunk=2)
    assert bench.start(wire.OP_TEXT_GO, size, crc) == 0
    bench.run()
    assert bench.strokes() == [(0, 4), (0, 0x2D), (ALTGR, 0x08)]


@pytest.mark.parametrize("data", [b"a\xff", b"a\xc3", b"\xe2\x82", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf8_are_refused(bench, data):
    bench.core.data(wire.OP_TEXT_LOAD, wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=data))
    code = bench.start(wire.OP_TEXT_GO, len(data), binascii.crc32(data))
    assert code in (wire.FAULT_BAD_ARGS, wire.FAULT_CHARSET)
    assert bench.plug.reports == []


def test_a_text_with_a_gap_or_another_checksum_is_not_typed(bench):
    size, crc = bench.load("hello")
    gap = wire.pack_args(wire.OP_TEXT_LOAD, 9, tail=b"x")
    assert bench.core.data(wire.OP_TEXT_LOAD, gap) == wire.FAULT_BAD_ARGS
    assert bench.start(wire.OP_TEXT_GO, size, crc ^ 1) == wire.FAULT_TEXT_INCOMPLETE
    assert bench.start(wire.OP_TEXT_GO, size + 1, crc) == wire.FAULT_TEXT_INCOMPLETE
    assert bench.plug.reports == []


def test_a_text_longer_than_the_buffer_is_refused(bench):
    bench.load("x" * TEXT_MAX, chunk=160)
    more = wire.pack_args(wire.OP_TEXT_LOAD, TEXT_MAX, tail=b"x")
    assert bench.core.data(wire.OP_TEXT_LOAD, more) == wire.FAULT_BAD_ARGS


def test_a_text_is_typed_once_and_then_forgotten(bench):
    size, crc = bench.load("secret")
    bench.start(wire.OP_TEXT_GO, size, crc)
    bench.run()
    assert bench.start(wire.OP_TEXT_GO, size, crc) == wire.FAULT_TEXT_INCOMPLETE


def test_a_text_that_was_given_up_leaves_no_byte_of_it_behind():
    text = TextBuffer(512, layouts.LAYOUTS[wire.LAYOUT_US])
    assert text.load(0, b"secret")
    text.clear()
    assert all(text.char_at(at)[0] == "\0" for at in range(6))


def test_a_tap_stays_down_for_its_dwell_and_lifts_where_it_came_down(bench):
    assert bench.start(wire.OP_HID_TAP, 1_000, 30_000, 60) == 0
    bench.step()
    began_us = bench.now_us
    while len(bench.plug.reports) == 1:
        bench.step()
    assert bench.now_us - began_us >= 60_000
    down, up = bench.plug.reports
    assert (down[1], up[1]) == (3, 0)
    assert down[3:7] == up[3:7] == struct.pack("<HH", 1_000, 30_000)
    bench.step()
    assert bench.outcome[-1][0] == "done"


def test_a_swipe_runs_evenly_from_end_to_end_in_its_time(bench):
    bench.start(wire.OP_HID_SWIPE, 1_000, 2_000, 31_000, 2_000, 300)
    bench.step()
    began_us = bench.now_us
    while bench.plug.reports[-1][1]:
        bench.step()
    assert 300_000 <= bench.now_us - began_us <= 300_000 + 2 * POLL_US
    xs = [struct.unpack_from("<H", r, 3)[0] for r in bench.plug.reports]
    assert (xs[0], xs[-1]) == (1_000, 31_000)
    # The first move follows the first look at the clock; from there on the steps are even.
    steps = [b - a for a, b in pairwise(xs[2:-2])]
    assert max(steps) - min(steps) <= 1


@pytest.mark.parametrize(
    ("op", "args", "code"),
    [
        (wire.OP_HID_TAP, (32_768, 0, 60), wire.FAULT_ENVELOPE),
        (wire.OP_HID_SWIPE, (0, 0, 5, 40_000, 60), wire.FAULT_ENVELOPE),
        (wire.OP_HID_SWIPE, (7, 7, 7, 7, 60), wire.FAULT_BAD_ARGS),
        (wire.OP_HID_SWIPE, (7, 7, 8, 7, 0), wire.FAULT_BAD_ARGS),
        (wire.OP_KEY, (8,), wire.FAULT_UNSUPPORTED),
        (wire.OP_TAP, (0, 0, 0, 0, 0), wire.FAULT_UNSUPPORTED),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_report(bench, op, args, code):
    assert bench.start(op, *args) == code
    assert bench.plug.reports == bench.outcome == []


def test_without_a_phone_every_command_is_refused(bench):
    bench.plug.is_ready = False
    assert bench.start(wire.OP_KEY, 0) == wire.FAULT_USB_NOT_READY
    assert not bench.core.flags() & wire.FLAG_USB_READY


def test_a_phone_that_has_configured_the_device_is_ready_once_it_has_taken_a_report():
    bench = Bench()
    bench.plug.is_ready = False
    bench.core.poll(bench.now_us)
    bench.plug.is_ready = True
    bench.core.poll(bench.now_us)
    assert bench.plug.reports == [b"\x01" + bytes(8)], "asked with a report that presses nothing"
    assert not bench.core.flags() & wire.FLAG_USB_READY
    assert bench.start(wire.OP_KEY, 0) == wire.FAULT_USB_NOT_READY
    bench.step()
    assert bench.core.flags() & wire.FLAG_USB_READY
    assert bench.start(wire.OP_KEY, 0) == 0


def test_a_phone_that_leaves_a_report_lying_is_not_ready_until_it_takes_it(bench):
    bench.start(wire.OP_KEY, 0)
    bench.now_us += STALL_US
    bench.core.poll(bench.now_us)
    assert not bench.core.flags() & wire.FLAG_USB_READY
    bench.step()
    assert bench.core.flags() & wire.FLAG_USB_READY


def test_what_was_left_down_goes_up_before_the_next_operation_begins(bench):
    bench.start(wire.OP_KEY, 0)
    bench.core.deadman(bench.now_us)
    bench.plug.take()
    assert bench.start(wire.OP_KEY, key_index("enter")) == 0
    bench.run()
    assert [report[:4] for report in bench.plug.reports] == [
        b"\x02\x23\x02",
        b"\x02\x00\x00",
        b"\x01\x00\x00\x28",
        b"\x01\x00\x00\x00",
    ]


def test_a_port_that_cannot_queue_is_not_asked_without_pause(bench):
    bench.plug.is_broken = True
    assert bench.start(wire.OP_KEY, 0) == 0
    assert bench.core.due_us(bench.now_us) > 0
    bench.now_us += STALL_US
    bench.core.poll(bench.now_us)
    assert bench.outcome == [("fault", wire.FAULT_USB_NOT_READY)], "nothing went out: no contact"


def test_a_phone_that_is_away_is_not_polled_for(bench):
    bench.start(wire.OP_KEY, 0)
    bench.plug.is_ready = False
    bench.step()
    assert bench.core.due_us(bench.now_us) == -1


def test_a_second_command_is_refused_while_one_runs(bench):
    bench.start(wire.OP_KEY, 0)
    assert bench.start(wire.OP_KEY, 0) == wire.FAULT_BUSY
    assert bench.core.data(wire.OP_TEXT_LOAD, struct.pack("<H", 0) + b"x") == wire.FAULT_BUSY


def release_of(report):
    """What undoes a press: the same report with nothing pressed, the finger lifted where it is."""
    if report[0] == descriptor.REPORT_TOUCH:
        return report[:1] + b"\x00" + report[2:]
    return report[:1] + bytes(len(report) - 1)


RUNNING = [
    (wire.OP_KEY, (0,)),
    (wire.OP_KEY, (2,)),
    (wire.OP_HID_TAP, (100, 200, 5_000)),
    (wire.OP_HID_SWIPE, (100, 200, 30_000, 200, 5_000)),
]


@pytest.mark.parametrize("safe_state", ["deadman", "estop"])
@pytest.mark.parametrize(("op", "args"), RUNNING)
def test_what_is_pressed_is_released_after_a_silent_host_or_a_stop(bench, op, args, safe_state):
    bench.start(op, *args)
    pressed = bench.plug.reports[-1]
    getattr(bench.core, safe_state)(bench.now_us)
    assert bench.outcome[-1][0] == "fault"
    bench.run()
    assert bench.plug.reports == [pressed, release_of(pressed)]


def test_the_release_waits_for_the_phone_however_long_it_takes(bench):
    bench.start(wire.OP_KEY, 0)
    bench.core.deadman(bench.now_us)
    for _ in range(100):
        bench.now_us += POLL_US
        bench.core.poll(bench.now_us)
    assert len(bench.plug.reports) == 1
    bench.run()
    assert bench.plug.reports[-1] == b"\x02\x00\x00"


def test_a_text_given_up_in_the_middle_ends_in_a_release_and_is_forgotten(bench):
    size, crc = bench.load("AAAA")
    bench.start(wire.OP_TEXT_GO, size, crc)
    bench.step()
    bench.step()
    assert bench.plug.reports[-1][1] == SHIFT
    bench.core.deadman(bench.now_us)
    bench.run()
    assert bench.plug.reports[-1] == b"\x01" + bytes(8)
    assert len(bench.strokes()) == 2
    assert bench.start(wire.OP_TEXT_GO, size, crc) == wire.FAULT_TEXT_INCOMPLETE


def test_a_phone_that_stops_taking_reports_is_a_fault_and_gets_its_release_later(bench):
    bench.start(wire.OP_KEY, 0)
    bench.now_us += STALL_US
    bench.core.poll(bench.now_us)
    assert bench.outcome[-1] == ("fault", wire.FAULT_USB_NOT_READY)
    bench.run()
    assert bench.plug.reports[-1] == b"\x02\x00\x00"


def test_a_phone_that_goes_away_in_the_middle_gets_its_release_when_it_is_back(bench):
    bench.start(wire.OP_HID_TAP, 5, 6, 1_000)
    bench.step()
    bench.plug.is_ready = False
    bench.step()
    assert bench.outcome[-1] == ("fault", wire.FAULT_USB_NOT_READY)
    bench.plug.is_ready = True
    bench.run()
    assert bench.plug.reports[-2] == b"\x01" + bytes(8)
    assert bench.plug.reports[-1][:2] == bytes((descriptor.REPORT_TOUCH, 0))


def test_an_emergency_stop_latches_until_it_is_cleared(bench):
    bench.core.estop(bench.now_us)
    assert bench.start(wire.OP_KEY, 0) == wire.FAULT_ESTOPPED
    bench.core.clear_estop(bench.now_us)
    assert bench.start(wire.OP_KEY, 0) == 0
