"""The HID core's reports, read by the simulated phone: its key tables were written independently of ours."""

import binascii

import pytest

from edge_daemon.bench.twin.hidhost import HidHost
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from firmware import wire
from firmware.hid import descriptor, layouts
from firmware.hid.core import HidCore, Usb
from firmware.link import BoardLink

BEGIN_US = 1_000_000


class Cable(Usb):
    """A HID core plugged into the simulated phone; time runs by hand. Stands in for link and wiring."""

    def __init__(self, layout_id, caps_lock=False):
        self.phone = Phone(Truth(1), now_ns=0)
        self.host = HidHost(self.phone, layouts.LAYOUTS[layout_id].name)
        self.host.descriptor(0, True, descriptor.REPORT_DESCRIPTOR, 0)
        self.now_us = BEGIN_US
        self.host.advance(self.now_us * 1000)
        self.host.set_caps_lock(caps_lock)
        self.queued = 0
        self.led_bits = descriptor.LED_CAPS_LOCK if caps_lock else 0
        self.host.take_answers()
        self.core = HidCore(self, wire.PROFILE_ANDROID, layout_id)
        self.link = BoardLink(self.core, bytes(8), wire.KIND_HID, 1, wire.RESET_POWER_ON)

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
