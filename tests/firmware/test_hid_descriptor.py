"""The report descriptor says what the reports are: parsed here as a host would."""

import struct

from firmware.hid import descriptor


def parse(data: bytes) -> dict[tuple[str, int], list[tuple[int, int, int, list[int]]]]:
    """Fields by (direction, report id): (bits, count, flags, usages with their page)."""
    fields: dict[tuple[str, int], list[tuple[int, int, int, list[int]]]] = {}
    state = {"page": 0, "bits": 0, "count": 0, "id": 0}
    usages: list[int] = []
    depth = 0
    at = 0
    while at < len(data):
        prefix = data[at]
        size = (0, 1, 2, 4)[prefix & 3]
        value = int.from_bytes(data[at + 1 : at + 1 + size], "little")
        at += 1 + size
        tag = prefix & 0xFC
        if tag == 0x04:
            state["page"] = value
        elif tag == 0x74:
            state["bits"] = value
        elif tag == 0x94:
            state["count"] = value
        elif tag == 0x84:
            state["id"] = value
        elif tag in (0x08, 0x18, 0x28):
            usages.append(state["page"] << 16 | value)
        elif tag in (0x80, 0x90, 0xB0):
            direction = {0x80: "in", 0x90: "out", 0xB0: "feature"}[tag]
            fields.setdefault((direction, state["id"]), []).append(
                (state["bits"], state["count"], value, usages)
            )
            usages = []
        elif tag in (0xA0, 0xC0):
            depth += 1 if tag == 0xA0 else -1
            usages = []
    assert depth == 0
    return fields


ANDROID, IOS = parse(descriptor.ANDROID_DESCRIPTOR), parse(descriptor.IOS_DESCRIPTOR)
FIELDS = {**IOS, **ANDROID}


def bytes_of(direction: str, report_id: int) -> int:
    bits = sum(size * count for size, count, _, _ in FIELDS[direction, report_id])
    assert bits % 8 == 0
    return bits // 8


def test_each_report_has_the_length_that_its_descriptor_declares():
    out = bytearray(16)
    reports = [
        bytes(descriptor.keyboard_report(out, 0, 4)),
        bytes(descriptor.consumer_report(out, 0x223)),
        bytes(descriptor.system_report(out, descriptor.SYSTEM_SLEEP)),
        bytes(descriptor.touch_report(out, True, 1, 2)),
        bytes(descriptor.pointer_report(out, True, -1, 2)),
    ]
    for report in reports:
        assert len(report) == 1 + bytes_of("in", report[0])


def test_system_control_is_one_byte_of_power_down_sleep_and_wake_up():
    assert bytes_of("in", descriptor.REPORT_SYSTEM) == 1
    assert FIELDS["in", descriptor.REPORT_SYSTEM][0][3] == [0x010081, 0x010083]


def test_android_is_offered_a_touch_screen_and_ios_a_pointer_never_both():
    common = {("in", 1), ("out", 1), ("in", 2), ("in", 3)}
    assert set(ANDROID) == common | {("in", descriptor.REPORT_TOUCH), ("feature", descriptor.REPORT_TOUCH)}
    assert set(IOS) == common | {("in", descriptor.REPORT_POINTER)}


def test_the_pointer_has_three_buttons_and_relative_axes_and_wheel():
    fields = [field for field in FIELDS["in", descriptor.REPORT_POINTER] if not field[2] & 1]
    assert [usages for _, _, _, usages in fields] == [[0x090001, 0x090003], [0x010030, 0x010031, 0x010038]]
    assert fields[1][2] & 4
    report = bytes(descriptor.pointer_report(bytearray(16), True, -127, 127))
    assert struct.unpack("<BBbbb", report) == (descriptor.REPORT_POINTER, 1, -127, 127, 0)


def test_the_phone_can_set_five_keyboard_leds():
    assert bytes_of("out", descriptor.REPORT_KEYBOARD) == 1


def test_the_touch_screen_has_tip_contact_id_position_and_count():
    usages = [
        usage
        for _, _, flags, found in FIELDS["in", descriptor.REPORT_TOUCH]
        for usage in found
        if not flags & 1
    ]
    assert usages == [0x0D0042, 0x0D0032, 0x0D0051, 0x010030, 0x010031, 0x0D0054]
    assert FIELDS["feature", descriptor.REPORT_TOUCH][0][3] == [0x0D0055]
    assert len(descriptor.TOUCH_FEATURE) == 1 + bytes_of("feature", descriptor.REPORT_TOUCH)


def test_a_touch_report_carries_its_coordinates_little_endian():
    report = bytes(descriptor.touch_report(bytearray(16), True, 0x1234, 32767))
    assert struct.unpack("<BBBHHB", report) == (descriptor.REPORT_TOUCH, 3, 0, 0x1234, 32767, 1)
