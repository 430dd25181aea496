"""The phone's USB side: it takes what a phone takes, refuses what a phone refuses, and reads keys by its layout."""

from collections.abc import Callable

import pytest

from calibration.targets import Turn
from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.hid_descriptor import DescriptorError, parse
from edge_daemon.bench.twin.hidhost import ENUMERATION_NS, PLAIN_HABITS, POLL_NS, REBOOT_NS, HidHost, PhoneOs
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.technician_pages import DotsPage
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, HidTruth, Truth
from firmware import wire
from firmware.hid import descriptor, layouts

MS = 1_000_000
GOOD, IOS = descriptor.ANDROID_DESCRIPTOR, descriptor.IOS_DESCRIPTOR


class Cable:
    """A phone with a board plugged in that sends ready-made reports."""

    def __init__(
        self,
        layout: str = "us",
        os: PhoneOs = "android",
        descriptor_bytes: bytes = GOOD,
        habits: HidTruth = PLAIN_HABITS,
    ) -> None:
        self.now_ns = 1_000 * MS
        self.phone = Phone(Truth(2), self.now_ns)
        self.host = HidHost(self.phone, layout, os, habits=habits)
        for at in range(0, len(descriptor_bytes), 200):
            piece = descriptor_bytes[at : at + 200]
            self.host.descriptor(at, at + len(piece) == len(descriptor_bytes), piece, self.now_ns)
        self.pass_ms(ENUMERATION_NS // MS + 1)

    def pass_ms(self, ms: int) -> None:
        self.now_ns += ms * MS
        self.host.advance(self.now_ns)

    def send(self, report: bytes | bytearray | memoryview) -> None:
        self.host.report(bytes(report), self.now_ns)
        self.pass_ms(POLL_NS // MS)

    def strike(self, modifiers: int, usage: int, held_ms: int = 0) -> None:
        out = bytearray(16)
        self.send(descriptor.keyboard_report(out, modifiers, usage))
        self.pass_ms(held_ms)
        self.send(descriptor.keyboard_report(out, 0, 0))

    def answers(self) -> list[tuple[int, bytes]]:
        return list(wiring.Records().feed(self.host.take_answers()))


def test_the_boards_own_descriptor_is_accepted_and_configured_after_enumeration() -> None:
    cable = Cable()
    assert cable.host.configured
    assert cable.host.faults == []
    assert (wiring.HID_STATE, b"\x01") in cable.answers()


def cut_off() -> bytes:
    return GOOD[:-1]


def without_contact_id() -> bytes:
    return GOOD.replace(b"\x09\x51", b"\x09\x52")


def without_report_id() -> bytes:
    return GOOD.replace(b"\x85\x01", b"", 1)


def with_unpadded_bits() -> bytes:
    return GOOD.replace(b"\x75\x06\x95\x01\x81\x03", b"", 1)


def with_a_range_too_wide_for_its_bits() -> bytes:
    return GOOD.replace(b"\x26\xff\x7f", b"\x27\xff\x7f\x01\x00", 1)


def with_relative_axes() -> bytes:
    return GOOD.replace(b"\x09\x30\x81\x02", b"\x09\x30\x81\x06")


def with_one_end_too_many() -> bytes:
    return GOOD + b"\xc0"


def without_contact_count() -> bytes:
    return GOOD.replace(b"\x09\x54", b"\x09\x56")


def without_contact_count_maximum() -> bytes:
    return GOOD.replace(b"\x09\x55\xb1\x02", b"")


def with_an_array_that_reaches_past_its_usages() -> bytes:
    return GOOD.replace(b"\x2a\xff\x03", b"\x2a\xff\x02", 1)


def with_one_id_for_two_applications() -> bytes:
    return GOOD.replace(b"\x85\x03", b"\x85\x02")


def of_a_keyboard_without_modifiers() -> bytes:
    return GOOD.replace(b"\x19\xe0\x29\xe7", b"\x19\xe0\x29\xe3")


def of_a_joystick() -> bytes:
    return of_an_absolute_mouse().replace(b"\x09\x02", b"\x09\x04", 1)


def of_an_absolute_mouse() -> bytes:
    return IOS.replace(b"\x95\x03\x81\x06", b"\x95\x03\x81\x02")[IOS.index(b"\x05\x01\x09\x02") :]


def of_a_mouse_that_only_goes_right() -> bytes:
    return IOS.replace(b"\x15\x81\x25\x7f", b"\x15\x00\x25\x7f")


def of_a_mouse_without_a_button() -> bytes:
    return IOS.replace(b"\x19\x01\x29\x03\x15\x00", b"\x19\x11\x29\x13\x15\x00")


@pytest.mark.parametrize(
    "broken",
    [
        cut_off,
        without_contact_id,
        without_report_id,
        with_unpadded_bits,
        with_a_range_too_wide_for_its_bits,
        with_relative_axes,
        with_one_end_too_many,
        without_contact_count,
        without_contact_count_maximum,
        with_an_array_that_reaches_past_its_usages,
        with_one_id_for_two_applications,
        of_a_keyboard_without_modifiers,
        of_a_joystick,
        of_an_absolute_mouse,
        of_a_mouse_that_only_goes_right,
        of_a_mouse_without_a_button,
    ],
    ids=lambda broken: broken.__name__,
)
def test_a_broken_descriptor_is_refused_with_a_reason(broken: Callable[[], bytes]) -> None:
    data = broken()
    assert data not in (GOOD, IOS)
    cable = Cable(descriptor_bytes=data)
    assert not cable.host.configured
    assert len(cable.host.faults) == 1
    assert len(cable.host.faults[0].message) > 20
    assert cable.answers() == [(wiring.HID_STATE, b"\x00")]


def test_a_mouse_beside_a_touch_screen_moves_nothing_on_linux() -> None:
    pointer = IOS[IOS.index(b"\x05\x01\x09\x02") :]
    cable = Cable(descriptor_bytes=GOOD + pointer)
    assert cable.host.configured
    out = bytearray(16)
    cable.send(descriptor.pointer_report(out, True, 5, 5))
    cable.send(descriptor.pointer_report(out, False, 0, 0))
    assert cable.phone.touches == []
    assert cable.host.faults == []


def test_errors_of_the_descriptor_name_the_byte() -> None:
    with pytest.raises(DescriptorError, match="byte 0"):
        parse(b"\xc0")


def test_a_signed_logical_maximum_is_read_as_linux_reads_it() -> None:
    # Logical Minimum 0 and Maximum 25 FF: 255, not -1, as hid-core has it.
    data = bytes.fromhex(
        "05010906a101050719e029e7150025017501950881021500 25ff19002aff0075089501 8100c0".replace(" ", "")
    )
    report = parse(data)[0]
    assert report.fields[1].logical_max == 255


def modifiers_of(flags: int) -> int:
    shift = descriptor.MOD_LEFT_SHIFT if flags & layouts.SHIFT else 0
    return shift | (descriptor.MOD_RIGHT_ALT if flags & layouts.ALTGR else 0)


@pytest.mark.parametrize(
    ("layout", "layout_id"),
    [("us", wire.LAYOUT_US), ("uk", wire.LAYOUT_UK), ("de", wire.LAYOUT_DE), ("fr", wire.LAYOUT_FR)],
)
def test_every_character_that_a_board_claims_arrives_as_that_character(layout: str, layout_id: int) -> None:
    cable = Cable(layout)
    claimed = [character for character in layouts.charset(layout_id) if character != "\n"]
    for character in claimed:
        steps = layouts.LAYOUTS[layout_id].steps(character)
        for at in range(0, len(steps), 2):
            cable.strike(modifiers_of(steps[at]), steps[at + 1])
    assert list(cable.phone.typed) == claimed
    assert len(claimed) > 90


def test_the_wrong_layout_types_the_wrong_characters() -> None:
    cable = Cable("de")
    for character in "lazy day?":
        steps = layouts.LAYOUTS[wire.LAYOUT_US].steps(character)
        cable.strike(modifiers_of(steps[0]), steps[1])
    assert cable.phone.typed == "layz daz_"


def test_a_key_that_is_never_released_repeats_itself() -> None:
    cable = Cable()
    cable.strike(0, 0x0F, held_ms=1000)
    assert cable.phone.typed == "l" * 12
    cable.pass_ms(2000)
    assert len(cable.phone.typed) == 12
    assert cable.host.keys_down == 0


def test_caps_lock_turns_letters_around_and_lights_the_led() -> None:
    cable = Cable()
    cable.answers()
    cable.host.set_caps_lock(True)
    assert cable.answers() == [(wiring.HID_LEDS, b"\x02")]
    cable.strike(0, 0x04)
    cable.strike(descriptor.MOD_LEFT_SHIFT, 0x04)
    cable.strike(0, 0x1E)
    assert cable.phone.typed == "Aa1"


ANDROID_KEYS = [
    (descriptor.CONSUMER_AC_HOME, "home"),
    (descriptor.CONSUMER_AC_BACK, "back"),
    (descriptor.CONSUMER_APP_SWITCH, "app_switch"),
    (descriptor.CONSUMER_POWER, "power"),
    (descriptor.CONSUMER_VOLUME_UP, "volume_up"),
    (descriptor.CONSUMER_VOLUME_DOWN, "volume_down"),
]


@pytest.mark.parametrize(("usage", "name"), ANDROID_KEYS)
def test_consumer_controls_are_the_keys_that_android_makes_of_them(usage: int, name: str) -> None:
    cable = Cable()
    out = bytearray(16)
    cable.send(descriptor.consumer_report(out, usage))
    assert cable.host.keys_down == 1
    cable.send(descriptor.consumer_report(out, 0))
    assert [key.name for key in cable.phone.keys] == [name]
    assert cable.host.keys_down == 0


def test_an_iphone_takes_menu_for_home_and_no_touch_screen() -> None:
    cable = Cable(os="ios", descriptor_bytes=GOOD)
    out = bytearray(16)
    cable.send(descriptor.consumer_report(out, descriptor.CONSUMER_MENU))
    cable.send(descriptor.touch_report(out, True, 16384, 16384))
    assert [key.name for key in cable.phone.keys] == ["home"]
    assert cable.phone.touches == []


def test_a_pointer_moves_by_its_scale_stops_at_the_edge_and_presses_where_it_stands() -> None:
    cable = Cable(os="ios", descriptor_bytes=IOS)
    cursor = cable.host.cursor
    out = bytearray(16)
    for _ in range(30):
        cable.send(descriptor.pointer_report(out, False, -127, -127))
    assert (cursor.x_mm, cursor.y_mm) == (0, 0)
    cable.send(descriptor.pointer_report(out, False, 100, 40))
    cable.send(descriptor.pointer_report(out, True, 0, 0))
    assert cable.host.keys_down == 1
    cable.send(descriptor.pointer_report(out, False, 0, 0))
    (touch,) = cable.phone.touches
    assert (touch.x_mm, touch.y_mm) == pytest.approx((100 * cursor.mm_per_count, 40 * cursor.mm_per_count))
    assert cable.host.keys_down == 0


def test_without_assistive_touch_an_iphone_has_no_cursor() -> None:
    cable = Cable(os="ios", descriptor_bytes=IOS)
    cable.host.cursor.works = False
    out = bytearray(16)
    cable.send(descriptor.pointer_report(out, True, 0, 0))
    cable.send(descriptor.pointer_report(out, False, 0, 0))
    assert cable.phone.touches == []


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (descriptor.SYSTEM_POWER_DOWN, "power"),
        (descriptor.SYSTEM_SLEEP, "sleep"),
        (descriptor.SYSTEM_WAKE_UP, "wakeup"),
    ],
)
def test_system_controls_are_what_linux_makes_of_them(bit: int, name: str) -> None:
    cable = Cable()
    out = bytearray(16)
    cable.send(descriptor.system_report(out, bit))
    assert cable.host.keys_down == 1
    cable.send(descriptor.system_report(out, 0))
    assert [key.name for key in cable.phone.keys] == [name]
    assert cable.host.keys_down == 0


def test_a_contact_that_the_report_does_not_count_is_none() -> None:
    cable = Cable()
    report = bytearray(descriptor.touch_report(bytearray(16), True, 8192, 24576))
    report[7] = 0
    cable.send(report)
    assert cable.phone.touches == []


def test_a_digitizer_touch_lands_at_its_share_of_the_screen() -> None:
    cable = Cable()
    out = bytearray(16)
    cable.send(descriptor.touch_report(out, True, 8192, 24576))
    cable.send(descriptor.touch_report(out, False, 8192, 24576))
    (touch,) = cable.phone.touches
    assert cable.phone.touch_at_grid(touch) == pytest.approx((250, 750), abs=0.1)
    assert touch.duration_ms == pytest.approx(POLL_NS / MS)


def tapped_mm(cable: Cable, x: float, y: float) -> tuple[float, float]:
    """Where the phone takes a digitizer's tap at these shares of its range."""
    out = bytearray(16)
    raw = (round(x * 32768), round(y * 32768))
    cable.send(descriptor.touch_report(out, True, *raw))
    cable.send(descriptor.touch_report(out, False, *raw))
    cable.pass_ms(200)
    cable.phone.advance(cable.now_ns)
    touch = cable.phone.touches[-1]
    return touch.x_mm, touch.y_mm


MARGINS = (0.01, 0.004, -0.006, 0.008)


def test_a_phone_with_margins_takes_a_digitizer_for_a_part_of_its_screen_or_a_little_more() -> None:
    cable = Cable(habits=HidTruth(margins=MARGINS))
    across = (0.01 + 0.25 * (1 - 0.01 + 0.006)) * SCREEN_WIDTH_MM
    down = (0.004 + 0.75 * (1 - 0.004 - 0.008)) * SCREEN_HEIGHT_MM
    assert tapped_mm(cable, 0.25, 0.75) == pytest.approx((across, down), abs=0.01)
    assert tapped_mm(cable, 0.0, 0.0) == pytest.approx(
        (0.01 * SCREEN_WIDTH_MM, 0.004 * SCREEN_HEIGHT_MM), abs=0.01
    )


def test_a_contact_that_comes_down_beside_the_screen_is_no_touch() -> None:
    cable = Cable(habits=HidTruth(margins=MARGINS))
    out = bytearray(16)
    cable.send(descriptor.touch_report(out, True, 32767, 16384))
    assert cable.host.keys_down == 0
    cable.send(descriptor.touch_report(out, False, 32767, 16384))
    assert cable.phone.touches == []


TURNED: list[tuple[Turn, tuple[float, float]]] = [
    ("portrait", (0.2, 0.1)),
    ("landscape_left", (0.9, 0.2)),
    ("portrait_upside_down", (0.8, 0.9)),
    ("landscape_right", (0.1, 0.8)),
]


@pytest.mark.parametrize(("turn", "share"), TURNED)
def test_digitizer_axes_turn_with_the_display_on_phones_that_do_so_and_else_keep_the_portrait_area(
    turn: Turn, share: tuple[float, float]
) -> None:
    for follows in (True, False):
        cable = Cable(habits=HidTruth(follows_rotation=follows))
        cable.phone.show_page("dots", cable.now_ns, turn)
        x, y = share if follows else (0.2, 0.1)
        wanted = (x * SCREEN_WIDTH_MM, y * SCREEN_HEIGHT_MM)
        assert tapped_mm(cable, 0.2, 0.1) == pytest.approx(wanted, abs=0.02)
        page = cable.phone.page("dots")
        assert isinstance(page, DotsPage)
        assert page.places_mm == [pytest.approx(wanted, abs=0.02)]


@pytest.mark.parametrize(("turn", "share"), TURNED)
def test_a_pointer_goes_right_and_down_as_the_display_is_read(turn: Turn, share: tuple[float, float]) -> None:
    cable = Cable(os="ios", descriptor_bytes=IOS)
    cable.phone.show_page("dots", cable.now_ns, turn)
    out = bytearray(16)
    for _ in range(30):
        cable.send(descriptor.pointer_report(out, False, -127, -127))
    cursor = cable.host.cursor
    corner = {
        "portrait": (0, 0),
        "landscape_left": (1, 0),
        "portrait_upside_down": (1, 1),
        "landscape_right": (0, 1),
    }
    assert (cursor.x_mm, cursor.y_mm) == (
        corner[turn][0] * SCREEN_WIDTH_MM,
        corner[turn][1] * SCREEN_HEIGHT_MM,
    )
    before = (cursor.x_mm, cursor.y_mm)
    cable.send(descriptor.pointer_report(out, False, 10, 0))
    moved = (cursor.x_mm - before[0], cursor.y_mm - before[1])
    along = {
        "portrait": (1, 0),
        "landscape_left": (0, 1),
        "portrait_upside_down": (-1, 0),
        "landscape_right": (0, -1),
    }
    assert moved == pytest.approx(tuple(10 * cursor.mm_per_count * part for part in along[turn]))


def test_big_steps_of_a_pointer_go_further_than_their_counts_and_small_ones_do_not() -> None:
    cable = Cable(os="ios", descriptor_bytes=IOS, habits=HidTruth(mm_per_count=0.07, fast_gain=1.6))
    cursor, out = cable.host.cursor, bytearray(16)

    def moved_mm(counts: int, reports: int) -> float:
        before = cursor.x_mm
        for _ in range(reports):
            cable.send(descriptor.pointer_report(out, False, counts, 0))
        return cursor.x_mm - before

    assert moved_mm(10, 12) == pytest.approx(120 * 0.07)
    assert moved_mm(16, 1) == pytest.approx(16 * 0.07)
    assert moved_mm(-120, 1) < -120 * 0.07 * 1.4


def test_a_restarted_phone_takes_the_board_again_and_may_scale_its_pointer_otherwise() -> None:
    cable = Cable(os="ios", descriptor_bytes=IOS, habits=HidTruth(mm_per_count=0.07, reboot_gain=2.0))
    cable.answers()
    cable.host.reboot_phone(cable.now_ns)
    assert not cable.host.configured
    assert cable.answers() == [(wiring.HID_STATE, b"\x00")]
    cable.pass_ms(REBOOT_NS // MS + 1)
    assert cable.host.configured
    assert cable.host.cursor.mm_per_count == pytest.approx(0.14)
    before = cable.host.cursor.x_mm
    cable.send(descriptor.pointer_report(bytearray(16), False, 10, 0))
    assert cable.host.cursor.x_mm - before == pytest.approx(1.4)


def test_the_drawn_habits_differ_from_seed_to_seed_within_what_phones_have() -> None:
    drawn = [Truth(seed).hid for seed in range(40)]
    assert len({habits.mm_per_count for habits in drawn}) == 40
    assert all(0.003 <= abs(margin) <= 0.010 for habits in drawn for margin in habits.margins)
    assert {habits.follows_rotation for habits in drawn} == {True, False}
    assert {habits.reboot_gain for habits in drawn} == {0.5, 2.0}


def test_reports_are_taken_one_a_polling_interval_and_completed_one_by_one() -> None:
    cable = Cable()
    cable.answers()
    out = bytearray(16)
    for usage in (0x04, 0, 0x05, 0):
        cable.host.report(bytes(descriptor.keyboard_report(out, 0, usage)), cable.now_ns)
    cable.host.advance(cable.now_ns)
    assert cable.phone.typed == "a"
    cable.pass_ms(2 * POLL_NS // MS)
    assert cable.phone.typed == "ab"
    completions = [payload for kind, payload in cable.answers() if kind == wiring.HID_COMPLETE]
    assert completions == [b"\x01"] * 3


def test_a_report_that_does_not_fit_the_descriptor_is_a_fault_and_no_input() -> None:
    cable = Cable()
    cable.send(bytes((descriptor.REPORT_KEYBOARD, 0, 0, 4)))
    cable.send(bytes((9, 1, 2)))
    assert cable.phone.typed == ""
    assert len(cable.host.faults) == 2


def test_a_sleeping_phone_takes_nothing_until_it_wakes() -> None:
    cable = Cable()
    cable.host.set_suspended(True, cable.now_ns)
    cable.strike(0, 0x04)
    assert cable.phone.typed == ""
    cable.host.set_suspended(False, cable.now_ns)
    cable.pass_ms(20)
    assert cable.phone.typed == "a"


def test_pulling_the_plug_releases_everything() -> None:
    cable = Cable()
    out = bytearray(16)
    cable.send(descriptor.touch_report(out, True, 8192, 8192))
    cable.send(descriptor.keyboard_report(out, descriptor.MOD_LEFT_SHIFT, 0x04))
    cable.host.unplugged(cable.now_ns)
    cable.pass_ms(2000)
    assert cable.host.keys_down == 0
    assert cable.phone.touches[0].up_ns is not None
    assert cable.phone.typed == "A"
