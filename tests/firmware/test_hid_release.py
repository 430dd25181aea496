"""Whatever cuts an operation short, the phone ends with nothing down: random operations, random aborts."""

import binascii

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_daemon.bench.twin.hidhost import HidHost
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import Truth
from firmware import wire
from firmware.hid import descriptor, profiles
from firmware.hid.core import HidCore, Usb
from firmware.hid.operations import KeyPress, PointerTap, Touch, TypeText

TURN_US = 2_000
# A stalled report is given up after half a second, and a phone enumerates in 120 ms.
PATIENCE_TURNS = 4_000


class Rig(Usb):
    """A core plugged into a phone that may sleep, go away or refuse reports; stands in for link and wiring."""

    def __init__(self, profile_id, core_class=HidCore):
        self.now_us = 1_000_000
        self.phone = Phone(Truth(1), now_ns=0)
        os = "ios" if profile_id == wire.PROFILE_IOS else "android"
        self.host = HidHost(self.phone, "de", os)
        self.profile = profiles.PROFILES[profile_id]
        self.queued = 0
        self.is_asleep = self.is_away = self.is_broken = False
        self.begun = 0
        self.ended = 0
        self.plug_in()
        self.core = core_class(self, profile_id, wire.LAYOUT_DE)
        self.core.link = self
        self.turns(100)

    def plug_in(self):
        self.queued = 0
        self.host.descriptor(0, True, self.profile.report_descriptor, self.now_us * 1000)

    # what the core calls
    def ready(self):
        return self.host.configured and not self.is_asleep

    def send(self, report):
        assert self.queued == 0
        if self.is_broken:
            return False
        self.queued = 1
        self.host.report(bytes(report), self.now_us * 1000)
        return True

    def pending(self):
        return self.queued

    def leds(self):
        return 0

    def contact(self, now_us):
        pass

    def done(self, now_us, data=b""):
        self.ended += 1

    def fault(self, code, flags, now_us):
        self.ended += 1

    # what happens to it
    def turns(self, count):
        for _ in range(count):
            self.now_us += TURN_US
            self.host.advance(self.now_us * 1000)
            # HID_COMPLETE is the one record with this kind byte; the rest is state and LEDs.
            if b"\x81\x01\x01" in self.host.take_answers():
                self.queued = 0
            self.core.poll(self.now_us)

    def start(self, op, args):
        if self.core.start(op, args, self.now_us) == 0:
            self.begun += 1

    def text(self, text):
        data = text.encode()
        load = wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=data)
        if self.core.data(wire.OP_TEXT_LOAD, load) == 0:
            self.start(wire.OP_TEXT_GO, wire.pack_args(wire.OP_TEXT_GO, len(data), binascii.crc32(data)))

    def happen(self, what):
        if what == "deadman":
            self.core.deadman(self.now_us)
        elif what == "estop":
            self.core.estop(self.now_us)
            self.core.clear_estop(self.now_us)
        elif what in ("sleep", "wake"):
            self.is_asleep = what == "sleep"
            self.host.set_suspended(self.is_asleep, self.now_us * 1000)
        elif what in ("break", "mend"):
            self.is_broken = what == "break"
        elif what == "unplug":
            self.host.unplugged(self.now_us * 1000)
            self.queued = 0
            self.is_away = True
        elif what == "plug" and self.is_away:
            self.is_away = False
            self.plug_in()

    def come_to_rest(self):
        for what in ("mend", "wake", "plug"):
            self.happen(what)
        self.turns(PATIENCE_TURNS)


def operations():
    fraction = st.integers(0, descriptor.TOUCH_MAX)
    ms = st.integers(1, 200)
    return st.one_of(
        st.tuples(st.just(wire.OP_KEY), st.tuples(st.integers(0, 8))),
        st.tuples(st.just(wire.OP_HID_TAP), st.tuples(fraction, fraction, ms)),
        st.tuples(st.just(wire.OP_HID_SWIPE), st.tuples(fraction, fraction, fraction, fraction, ms)),
        st.tuples(
            st.just(wire.OP_POINTER_TAP),
            st.tuples(
                fraction, fraction, st.just(750), st.just(1600), st.just(1600), st.integers(20, 127), ms
            ),
        ),
        st.text("aÄé@\n", min_size=1, max_size=6),
    )


def steps():
    happening = st.sampled_from(
        ["deadman", "estop", "sleep", "wake", "break", "mend", "unplug", "plug", "wake", "mend", "plug"]
    )
    return st.lists(st.one_of(operations(), happening, st.integers(1, 60)), max_size=12)


HAPPENINGS = ("deadman", "estop", "sleep", "wake", "break", "mend", "unplug", "plug")


def play(rig, script):
    """Each element: turns to wait, something that happens, a text to type or an operation to start."""
    for element in script:
        if isinstance(element, int):
            rig.turns(element)
        elif element in HAPPENINGS:
            rig.happen(element)
        elif isinstance(element, str):
            rig.text(element)
        else:
            rig.start(element[0], wire.pack_args(element[0], *element[1]))


def check_nothing_is_down(rig):
    rig.come_to_rest()
    assert rig.host.keys_down == 0
    assert all(touch.up_ns is not None for touch in rig.phone.touches)
    assert rig.host.faults == []
    assert rig.ended >= rig.begun, "an operation that began never ended"


@pytest.mark.parametrize("profile_id", sorted(profiles.PROFILES))
@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(script=steps())
def test_whatever_happens_to_random_operations_nothing_stays_down(profile_id, script):
    rig = Rig(profile_id)
    play(rig, script)
    check_nothing_is_down(rig)


TAP = (wire.OP_HID_TAP, (5, 5, 200))
CLICK = (wire.OP_POINTER_TAP, (50, 50, 750, 1600, 1600, 127, 200))
KEY = (wire.OP_KEY, (0,))
CUT_SHORT = [
    (wire.PROFILE_ANDROID, [TAP, 10, "deadman"]),
    (wire.PROFILE_ANDROID, [KEY, "estop"]),
    (wire.PROFILE_ANDROID, ["aaa", "deadman"]),
    (wire.PROFILE_ANDROID, [TAP, 10, "sleep", 10, "wake"]),
    (wire.PROFILE_ANDROID, [TAP, 10, "break", 500, "mend"]),
    (wire.PROFILE_IOS, [CLICK, 80, "deadman"]),
]


@pytest.mark.parametrize(("profile_id", "script"), CUT_SHORT)
def test_an_operation_cut_short_is_released(profile_id, script):
    rig = Rig(profile_id)
    play(rig, script[:-1])
    assert rig.host.keys_down or rig.queued, "the script must cut while something is down, or on its way"
    play(rig, script[-1:])
    check_nothing_is_down(rig)


class WithoutRelease(HidCore):
    """The core as it would be without the release report after an abort."""

    def _send_release(self, now_us):
        if not self._probed:
            super()._send_release(now_us)


@pytest.mark.parametrize(("profile_id", "script"), CUT_SHORT)
def test_without_the_release_after_an_abort_this_suite_fails(profile_id, script):
    rig = Rig(profile_id, WithoutRelease)
    play(rig, script)
    with pytest.raises(AssertionError):
        check_nothing_is_down(rig)


class KeyWithoutRelease(KeyPress):
    def sent(self, now_us):
        self.finished = True


class TouchWithoutRelease(Touch):
    def next_report(self, out, now_us, leds):
        report = super().next_report(out, now_us, leds)
        self.finished = self._lifting
        return None if self._lifting else report


class TextWithoutRelease(TypeText):
    def sent(self, now_us):
        super().sent(now_us)
        self.finished = self._at >= self._text.filled


class ClickWithoutRelease(PointerTap):
    def sent(self, now_us):
        super().sent(now_us)
        self.finished = self._pressed


@pytest.mark.parametrize(
    ("name", "mutant", "profile_id", "script"),
    [
        ("KeyPress", KeyWithoutRelease, wire.PROFILE_ANDROID, [KEY]),
        ("Touch", TouchWithoutRelease, wire.PROFILE_ANDROID, [TAP]),
        ("TypeText", TextWithoutRelease, wire.PROFILE_ANDROID, ["a"]),
        ("PointerTap", ClickWithoutRelease, wire.PROFILE_IOS, [CLICK]),
    ],
)
def test_an_operation_that_forgets_its_own_release_is_caught_up_by_the_core(
    monkeypatch, name, mutant, profile_id, script
):
    """Two nets: each operation ends in a release of its own, and the core releases what it sees down."""
    monkeypatch.setattr(f"firmware.hid.core.{name}", mutant)
    rig = Rig(profile_id, WithoutRelease)
    play(rig, script)
    with pytest.raises(AssertionError):
        check_nothing_is_down(rig)
    rig = Rig(profile_id)
    play(rig, script)
    check_nothing_is_down(rig)
