"""The HID core's reports, read by the simulated phone: its key tables were written independently of ours."""

import binascii

import pytest

from edge_daemon.bench.twin.hidhost import HidHost
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from firmware import wire
from firmware.hid import descriptor, layouts, profiles
from firmware.hid.core import HidCore, Usb
from firmware.link import BoardLink

BEGIN_US = 1_000_000


class Cable(Usb):
    """A HID core plugged into the simulated phone; time runs by hand. Stands in for link and wiring."""

    def __init__(self, layout_id, caps_lock=False, profile_id=wire.PROFILE_ANDROID):
        self.phone = Phone(Truth(1), now_ns=0)
        is_ios = profile_id == wire.PROFILE_IOS
        self.host = HidHost(self.phone, layouts.LAYOUTS[layout_id].name, "ios" if is_ios else "android")
        self.host.descriptor(0, True, profiles.PROFILES[profile_id].report_descriptor, 0)
        self.now_us = BEGIN_US
        self.host.advance(self.now_us * 1000)
        self.host.set_caps_lock(caps_lock)
        self.queued = 0
        self.led_bits = descriptor.LED_CAPS_LOCK if caps_lock else 0
        self.host.take_answers()
        self.core = HidCore(self, profile_id, layout_id)
        self.link = BoardLink(self.core, bytes(8), wire.KIND_HID, 1, wire.RESET_POWER_ON)
        self.run()

    def ready(self):
        return self.host.configured

    def send(self, report):
        self.queued = 1
        self.host.report(bytes(report), self.now_us * 1000)
        return True

    def pending(self):
        return self.queued

    def leds(self):
        return self.led_bits

    def run(self):
        """Poll until the core rests and the phone has taken everything."""
        for _ in range(100_000):
            if self.core.due_us(self.now_us) < 0 and not self.queued:
                return
            self.now_us += 1_000
            self.host.advance(self.now_us * 1000)
            if self.host.take_answers():
                self.queued = 0
            self.core.poll(self.now_us)
        raise AssertionError("the core never comes to rest")

    def type(self, text):
        data = text.encode()
        for at in range(0, len(data), 150):
            chunk = wire.pack_args(wire.OP_TEXT_LOAD, at, tail=data[at : at + 150])
            assert self.core.data(wire.OP_TEXT_LOAD, chunk) == 0
        go = wire.pack_args(wire.OP_TEXT_GO, len(data), binascii.crc32(data))
        assert self.core.start(wire.OP_TEXT_GO, go, self.now_us) == 0
        self.run()


@pytest.mark.parametrize("caps_lock", [False, True])
@pytest.mark.parametrize("layout_id", sorted(layouts.LAYOUTS))
def test_the_phone_reads_every_character_of_the_charset_as_it_was_asked(layout_id, caps_lock):
    cable = Cable(layout_id, caps_lock)
    text = layouts.charset(layout_id).replace("\n", "")
    # Backwards too: what a dead key leaves behind would show in the next character.
    text += text[::-1]
    cable.type(text)
    assert cable.phone.typed == text
    assert cable.host.faults == []
    assert cable.host.keys_down == 0


@pytest.mark.parametrize("name", wire.KEY_NAMES)
def test_the_phone_reads_every_key_by_its_name(name):
    cable = Cable(wire.LAYOUT_US)
    cable.core.start(wire.OP_KEY, bytes((wire.KEY_NAMES.index(name),)), cable.now_us)
    cable.run()
    assert [key.name for key in cable.phone.keys] == [name]
    assert cable.host.keys_down == 0


def test_the_phone_sees_a_tap_where_it_was_asked_and_as_long_as_its_dwell():
    cable = Cable(wire.LAYOUT_US)
    cable.core.start(wire.OP_HID_TAP, wire.pack_args(wire.OP_HID_TAP, 8_192, 24_576, 80), cable.now_us)
    cable.run()
    (touch,) = cable.phone.touches
    x_mm, y_mm = touch.path[0][-2:]
    assert (x_mm, y_mm) == pytest.approx((SCREEN_WIDTH_MM / 4, SCREEN_HEIGHT_MM * 3 / 4), abs=0.05)
    assert 72e6 <= touch.up_ns - touch.down_ns <= 96e6
    assert cable.host.keys_down == 0


IOS_KEYS = ("home", "enter", "delete", "power", "volume_up", "volume_down")


@pytest.mark.parametrize("name", IOS_KEYS)
def test_an_iphone_reads_every_key_of_its_profile_by_its_name(name):
    cable = Cable(wire.LAYOUT_US, profile_id=wire.PROFILE_IOS)
    cable.core.start(wire.OP_KEY, bytes((wire.KEY_NAMES.index(name),)), cable.now_us)
    cable.run()
    assert [key.name for key in cable.phone.keys] == [name]
    assert wire.unpack_hid_tail(cable.core.hello_tail())[2] == sum(
        1 << wire.KEY_NAMES.index(key) for key in IOS_KEYS
    )


@pytest.mark.parametrize(("x", "y"), [(0, 0), (8_192, 24_576), (32_767, 32_767), (32_767, 0)])
@pytest.mark.parametrize("step", [127, 10])
def test_a_pointer_tap_goes_home_then_to_its_place_by_the_given_scale(x, y, step):
    cable = Cable(wire.LAYOUT_US, profile_id=wire.PROFILE_IOS)
    scale = cable.host.cursor.mm_per_count
    spans = [round(size / scale) for size in (SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM)]
    # Wherever the cursor is, and however often: the corner makes every tap start from the same place.
    for repetition in range(2):
        args = wire.pack_args(wire.OP_POINTER_TAP, x, y, *spans, 2_000, step, 80)
        assert cable.core.start(wire.OP_POINTER_TAP, args, cable.now_us) == 0
        cable.run()
        touch = cable.phone.touches[repetition]
        wanted = (x / 32_767 * SCREEN_WIDTH_MM, y / 32_767 * SCREEN_HEIGHT_MM)
        assert (touch.x_mm, touch.y_mm) == pytest.approx(wanted, abs=2 * scale)
        assert 72e6 <= touch.up_ns - touch.down_ns <= 100e6
        assert len(touch.path) == 1
    assert cable.host.keys_down == 0
    assert cable.host.faults == []


def test_a_pointer_tap_given_up_on_its_way_has_touched_nothing():
    cable = Cable(wire.LAYOUT_US, profile_id=wire.PROFILE_IOS)
    args = wire.pack_args(wire.OP_POINTER_TAP, 30_000, 30_000, 750, 1_600, 2_000, 10, 80)
    contacts = []
    cable.link.contact = contacts.append
    assert cable.core.start(wire.OP_POINTER_TAP, args, cable.now_us) == 0
    for _ in range(20):
        cable.now_us += 8_000
        cable.host.advance(cable.now_us * 1000)
        cable.queued = 0
        cable.core.poll(cable.now_us)
    assert cable.host.cursor.x_mm < SCREEN_WIDTH_MM / 2
    cable.core.deadman(cable.now_us)
    cable.run()
    assert cable.phone.touches == contacts == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((32_768, 0, 750, 1_600, 2_000, 10, 80), wire.FAULT_ENVELOPE),
        ((1, 1, 0, 1_600, 2_000, 10, 80), wire.FAULT_BAD_ARGS),
        ((1, 1, 750, 1_600, 1_599, 10, 80), wire.FAULT_BAD_ARGS),
        ((1, 1, 750, 1_600, 2_000, 0, 80), wire.FAULT_BAD_ARGS),
        ((1, 1, 750, 1_600, 2_000, 128, 80), wire.FAULT_BAD_ARGS),
        ((32_767, 1, 60_000, 1_600, 65_000, 1, 80), wire.FAULT_BAD_ARGS),
    ],
)
def test_a_pointer_tap_whose_scale_makes_no_sense_is_refused_before_any_report(args, code):
    cable = Cable(wire.LAYOUT_US, profile_id=wire.PROFILE_IOS)
    packed = wire.pack_args(wire.OP_POINTER_TAP, *args)
    assert cable.core.start(wire.OP_POINTER_TAP, packed, cable.now_us) == code
    android = Cable(wire.LAYOUT_US)
    assert android.core.start(wire.OP_POINTER_TAP, packed, android.now_us) == wire.FAULT_UNSUPPORTED
