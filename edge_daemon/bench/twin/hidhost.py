"""The phone's end of the USB cable: takes the descriptor, polls for reports, turns them into input.

Sans-IO: bytes and a time in; what goes back over the wiring comes out of take_answers(). One report is taken a
polling interval, as a host controller does, and means what Linux's hid-input and hid-multitouch make of it.
"""

import unicodedata
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edge_daemon.bench.twin import hid_descriptor, hid_layouts, wiring
from edge_daemon.bench.twin.hid_acceptance import (
    AXIS_X,
    AXIS_Y,
    BUTTON_1,
    CONTACT_COUNT,
    CONTACT_ID,
    TIP_SWITCH,
    application_of,
    usable_inputs,
)
from edge_daemon.bench.twin.hid_cursor import Cursor
from edge_daemon.bench.twin.hid_descriptor import DescriptorError, Field, Report
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.technician_pages import on_screen_mm
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, HidTruth

# A phone's usual pace at a full-speed keyboard.
POLL_NS = 8_000_000
# From the pull-up to SET_CONFIGURATION takes a phone this long.
ENUMERATION_NS = 120_000_000
REPEAT_DELAY_NS = 500_000_000
REPEAT_EVERY_NS = 50_000_000

LED_CAPS_LOCK = 0x02
USAGE_ENTER, USAGE_BACKSPACE, USAGE_CAPS_LOCK = 0x28, 0x2A, 0x39
SHIFTS, ALTGR, META_OR_CTRL = 0x22, 0x40, 0x99
NAMED_KEYS = {
    USAGE_ENTER: "enter",
    USAGE_BACKSPACE: "delete",
    0x29: "escape",
    0x2B: "tab",
    0x4C: "forward_delete",
}

PLAIN_HABITS = HidTruth()
# Until a phone that was restarted takes the board again. A real one takes longer; nothing depends on it.
REBOOT_NS = 2_000_000_000

PhoneOs = Literal["android", "ios"]
# Linux hid-input.c and Android's Generic.kl; 0x1A2 only on new releases. iOS: Apple's accessory guidelines.
CONSUMER_KEYS: dict[PhoneOs, dict[int, str]] = {
    "android": {
        0x30: "power",
        0xE9: "volume_up",
        0xEA: "volume_down",
        0x1A2: "app_switch",
        0x223: "home",
        0x224: "back",
    },
    "ios": {0x30: "power", 0x40: "home", 0xE9: "volume_up", 0xEA: "volume_down"},
}
# Linux: KEY_POWER, KEY_SLEEP, KEY_WAKEUP. What iOS makes of them is not known: it ignores them here.
SYSTEM_KEYS: dict[PhoneOs, dict[int, str]] = {
    "android": {0x81: "power", 0x82: "sleep", 0x83: "wakeup"},
    "ios": {},
}


@dataclass(frozen=True)
class HidFault:
    """A report the phone could make nothing of, or a descriptor it refused."""

    at_ns: int
    message: str


class HidHost:
    """One phone as USB host of one board. poll_ns: how often it asks for a report.

    habits: what it makes of coordinates; without them the whole digitizer is the whole screen.
    repeats: whether a key that is held repeats, as phones have it as they come.
    """

    def __init__(
        self,
        phone: Phone,
        layout: str,
        os: PhoneOs = "android",
        *,
        poll_ns: int = POLL_NS,
        habits: HidTruth = PLAIN_HABITS,
        repeats: bool = True,
    ) -> None:
        self._phone = phone
        self._repeats = repeats
        self._habits = habits
        self._poll_ns = poll_ns
        self._layout = hid_layouts.LAYOUTS[layout]
        self._consumer = CONSUMER_KEYS[os]
        self._system = SYSTEM_KEYS[os]
        self._touch_works = os == "android"
        self.cursor = Cursor(phone, works=True, habits=habits)
        self._answers = bytearray()
        self._caps = False
        self._suspended = False
        self.faults: list[HidFault] = []
        self._forget()

    def _forget(self) -> None:
        self._received = bytearray()
        self._reports: Mapping[int, Report] = {}
        self._sizes: dict[int, int] = {}
        self._numbered = True
        self._configure_at_ns: int | None = None
        self._configured = False
        self._queue: deque[bytes] = deque()
        self._next_poll_ns = 0
        self._keys: tuple[int, ...] = ()
        self._modifiers = 0
        self._dead = ""
        self._repeat: tuple[int, int] | None = None
        self._consumer_down: tuple[int, ...] = ()
        self._system_down: tuple[int, ...] = ()
        self._contacts: dict[int, tuple[float, float]] = {}

    @property
    def configured(self) -> bool:
        """Whether the phone has taken the board as an input device."""
        return self._configured

    @property
    def keys_down(self) -> int:
        """How many keys, modifiers, buttons and contacts the phone holds to be pressed now."""
        controls = len(self._consumer_down) + len(self._system_down)
        fingers = len(self._contacts) + self.cursor.pressed
        return len(self._keys) + self._modifiers.bit_count() + controls + fingers

    def take_answers(self) -> bytes:
        """Wiring records for the board."""
        answers, self._answers = bytes(self._answers), bytearray()
        return answers

    def due_ns(self) -> int | None:
        """When advance() next has something to do, None if nothing is planned."""
        times = [self._next_poll_ns] if self._queue and self._configured and not self._suspended else []
        if self._configure_at_ns is not None:
            times.append(self._configure_at_ns)
        if self._repeat is not None:
            times.append(self._repeat[1])
        return min(times, default=None)

    # -- the cable --------------------------------------------------------------------------------

    def unplugged(self, now_ns: int) -> None:
        """The board is gone: the kernel releases everything it held down."""
        self._release_contacts(now_ns)
        self._forget()

    def reboot_phone(self, now_ns: int) -> None:
        """The phone restarts: everything is released, and the board is taken again after REBOOT_NS.

        A pointer's scale may have become another.
        """
        received, reports, sizes, numbered = self._received, self._reports, self._sizes, self._numbered
        self.unplugged(now_ns)
        self.cursor.rebooted(now_ns)
        if not reports:
            return
        self._received, self._reports, self._sizes, self._numbered = received, reports, sizes, numbered
        self._answers += wiring.record(wiring.HID_STATE, b"\x00")
        self._configure_at_ns = now_ns + REBOOT_NS

    def set_suspended(self, suspended: bool, now_ns: int) -> None:
        """The phone lets the bus sleep, or wakes it."""
        self.advance(now_ns)
        self._suspended = suspended
        if self._configured:
            self._answer_state()

    def set_caps_lock(self, on: bool) -> None:
        """As if another keyboard had toggled it: the LED report goes out."""
        self._caps = on
        self._answer_leds()

    def descriptor(self, offset: int, last: bool, data: bytes, now_ns: int) -> None:
        """A piece of the board's report descriptor; offset 0 is a new start."""
        if offset == 0:
            self.unplugged(now_ns)
        if offset != len(self._received):
            self._refuse(f"descriptor piece at {offset}, but {len(self._received)} bytes came before", now_ns)
            return
        self._received += data
        if not last:
            return
        try:
            self._adopt(hid_descriptor.parse(bytes(self._received)))
        except DescriptorError as error:
            self._refuse(str(error), now_ns)
            return
        self._configure_at_ns = now_ns + ENUMERATION_NS

    def report(self, data: bytes, now_ns: int) -> None:
        """The board queued a report (id first)."""
        self.advance(now_ns)
        if not self._configured:
            self.faults.append(HidFault(now_ns, f"report {data.hex()} before the device was configured"))
            return
        if not self._queue:
            self._next_poll_ns = max(now_ns, self._next_poll_ns)
        self._queue.append(data)

    def advance(self, now_ns: int) -> None:
        """Enumerate, poll and repeat keys up to now_ns."""
        while (due := self.due_ns()) is not None and due <= now_ns:
            if due == self._configure_at_ns:
                self._configure_at_ns = None
                self._configured = True
                self._answer_state()
                self._answer_leds()
            elif self._repeat is not None and due == self._repeat[1]:
                usage, at_ns = self._repeat
                self._repeat = (usage, at_ns + REPEAT_EVERY_NS)
                self._key_down(usage, at_ns)
            else:
                data = self._queue.popleft()
                at_ns, self._next_poll_ns = self._next_poll_ns, self._next_poll_ns + self._poll_ns
                self._take(data, at_ns)
                self._answers += wiring.record(wiring.HID_COMPLETE, b"\x01")

    def _answer_state(self) -> None:
        self._answers += wiring.record(wiring.HID_STATE, b"\x02" if self._suspended else b"\x01")

    def _answer_leds(self) -> None:
        self._answers += wiring.record(wiring.HID_LEDS, bytes((LED_CAPS_LOCK if self._caps else 0,)))

    def _refuse(self, why: str, now_ns: int) -> None:
        self.faults.append(HidFault(now_ns, why))
        self._forget()
        self._answers += wiring.record(wiring.HID_STATE, b"\x00")

    # -- the descriptor --------------------------------------------------------------------------------

    def _adopt(self, reports: tuple[Report, ...]) -> None:
        self._reports = usable_inputs(reports)
        self._sizes = {report.ident: report.size for report in reports if report.kind == "input"}
        self._numbered = 0 not in self._sizes

    # -- reports -----------------------------------------------------------------------------------------

    def _take(self, data: bytes, at_ns: int) -> None:
        ident, body = (data[0], data[1:]) if self._numbered and data else (0, data)
        size = self._sizes.get(ident)
        if size is None or len(body) != size:
            expected = "no such report id" if size is None else f"{size} bytes belong to it"
            self.faults.append(HidFault(at_ns, f"report {ident} with {len(body)} bytes: {expected}"))
            return
        report = self._reports.get(ident)
        if report is None:
            return
        application = application_of(report)
        if application == hid_descriptor.APP_KEYBOARD:
            self._keyboard(report, body, at_ns)
        elif application == hid_descriptor.APP_CONSUMER:
            self._consumer_control(report, body, at_ns)
        elif application == hid_descriptor.APP_SYSTEM:
            self._system_control(report, body, at_ns)
        elif application == hid_descriptor.APP_MOUSE:
            self._mouse(report, body, at_ns)
        elif application == hid_descriptor.APP_TOUCH_SCREEN and self._touch_works:
            self._touch(report, body, at_ns)

    def _keyboard(self, report: Report, body: bytes, at_ns: int) -> None:
        down = _pressed(report, body, hid_descriptor.PAGE_KEYBOARD)
        self._modifiers = sum(1 << (usage - 0xE0) for usage in down if 0xE0 <= usage <= 0xE7)
        keys = tuple(usage for usage in down if not 0xE0 <= usage <= 0xE7)
        fresh = [usage for usage in keys if usage not in self._keys and usage > 0x03]
        self._keys = keys
        for usage in fresh:
            if self._repeats:
                self._repeat = (usage, at_ns + REPEAT_DELAY_NS)
            self._key_down(usage, at_ns)
        if self._repeat is not None and self._repeat[0] not in keys:
            self._repeat = None

    def _key_down(self, usage: int, at_ns: int) -> None:
        if usage == USAGE_CAPS_LOCK:
            self.set_caps_lock(not self._caps)
        elif usage in NAMED_KEYS:
            self._flush_dead(at_ns)
            self._phone.press_key(NAMED_KEYS[usage], at_ns)
        elif self._modifiers & META_OR_CTRL:
            self._phone.press_key(f"shortcut_{self._modifiers:02x}_{usage:02x}", at_ns)
        else:
            self._character(usage, at_ns)

    def _character(self, usage: int, at_ns: int) -> None:
        levels = self._layout.get(usage)
        if levels is None:
            self._phone.press_key(f"usage_{usage:02x}", at_ns)
            return
        shift, altgr = bool(self._modifiers & SHIFTS), bool(self._modifiers & ALTGR)
        pair = levels[2:] if altgr else levels[:2]
        if self._caps and pair[0] != pair[1] and pair[0].upper() == pair[1]:
            shift = not shift
        character = pair[1] if shift else pair[0]
        if not character:
            return
        if unicodedata.combining(character):
            self._flush_dead(at_ns)
            self._dead = character
            return
        dead, self._dead = self._dead, ""
        for typed in _joined(dead, character):
            self._phone.type_character(typed, at_ns)

    def _flush_dead(self, at_ns: int) -> None:
        if self._dead:
            self._phone.type_character(hid_layouts.DEAD_ALONE[self._dead], at_ns)
            self._dead = ""

    def _consumer_control(self, report: Report, body: bytes, at_ns: int) -> None:
        down = _pressed(report, body, hid_descriptor.PAGE_CONSUMER)
        for usage in down:
            if usage not in self._consumer_down:
                self._phone.press_key(self._consumer.get(usage, f"consumer_{usage:x}"), at_ns)
        self._consumer_down = down

    def _system_control(self, report: Report, body: bytes, at_ns: int) -> None:
        down = _pressed(report, body, hid_descriptor.PAGE_DESKTOP)
        for usage in down:
            if usage not in self._system_down:
                self._phone.press_key(self._system.get(usage, f"system_{usage:x}"), at_ns)
        self._system_down = down

    def _mouse(self, report: Report, body: bytes, at_ns: int) -> None:
        values = {usage: value for _, usage, value in _variables(report, body)}
        self.cursor.moved(values[AXIS_X], values[AXIS_Y], bool(values[BUTTON_1]), at_ns)

    def _touch(self, report: Report, body: bytes, at_ns: int) -> None:
        values = {usage: (field, value) for field, usage, value in _variables(report, body)}
        if not values[CONTACT_COUNT][1]:
            # A frame of no contacts: hid-multitouch looks at none of them.
            return
        ident = values[CONTACT_ID][1]
        down = bool(values[TIP_SWITCH][1])
        x_mm, y_mm = self._place_mm(_share(*values[AXIS_X]), _share(*values[AXIS_Y]))
        if down and not (0.0 <= x_mm <= SCREEN_WIDTH_MM and 0.0 <= y_mm <= SCREEN_HEIGHT_MM):
            # Android takes no contact that comes down beside the display, and leaves one that wanders off where it was.
            if ident not in self._contacts:
                return
            x_mm, y_mm = self._contacts[ident]
        if down:
            self._contacts[ident] = (x_mm, y_mm)
        else:
            # hid-multitouch reports a lifted contact at its last place on the glass.
            if ident not in self._contacts:
                return
            x_mm, y_mm = self._contacts.pop(ident)
        self._phone.hid_contact(ident, down, x_mm, y_mm, at_ns)

    def _place_mm(self, across: float, down: float) -> tuple[float, float]:
        """Shares of the digitizer's range to portrait screen mm, by the phone's margins and rotation."""
        left, top, right, bottom = self._habits.margins
        x, y = left + across * (1.0 - left - right), top + down * (1.0 - top - bottom)
        turn = self._phone.turn if self._habits.follows_rotation else "portrait"
        if turn in ("landscape_left", "landscape_right"):
            return on_screen_mm((x * SCREEN_HEIGHT_MM, y * SCREEN_WIDTH_MM), turn)
        return on_screen_mm((x * SCREEN_WIDTH_MM, y * SCREEN_HEIGHT_MM), turn)

    def _release_contacts(self, now_ns: int) -> None:
        for ident, (x_mm, y_mm) in self._contacts.items():
            self._phone.hid_contact(ident, False, x_mm, y_mm, now_ns)
        self.cursor.released(now_ns)


def _pressed(report: Report, body: bytes, page: int) -> tuple[int, ...]:
    """Usages of `page` that are down: variables that are set, array elements by their index."""
    down: list[int] = [
        usage & 0xFFFF for _, usage, value in _variables(report, body) if usage >> 16 == page and value
    ]
    for field in report.fields:
        if field.constant or field.variable:
            continue
        for value in report.values(field, body):
            if field.logical_min <= value <= field.logical_max:
                usage = field.usages[value - field.logical_min]
                if usage >> 16 == page and usage & 0xFFFF:
                    down.append(usage & 0xFFFF)
    return tuple(down)


def _variables(report: Report, body: bytes) -> list[tuple[Field, int, int]]:
    """(field, usage, value) of every variable element; the last usage goes for all further ones."""
    found: list[tuple[Field, int, int]] = []
    for field in report.fields:
        if field.variable and not field.constant:
            for index, value in enumerate(report.values(field, body)):
                found.append((field, field.usages[min(index, len(field.usages) - 1)], value))
    return found


def _share(field: Field, value: int) -> float:
    """Android maps the logical range onto the display: (value - min) / (max - min + 1) of its size."""
    return (value - field.logical_min) / (field.logical_max - field.logical_min + 1)


def _joined(dead: str, character: str) -> str:
    """What a dead key and the next character give: one letter, the accent alone, or both."""
    if not dead:
        return character
    if character == " ":
        return hid_layouts.DEAD_ALONE[dead]
    joined = unicodedata.normalize("NFC", character + dead)
    return joined if len(joined) == 1 else hid_layouts.DEAD_ALONE[dead] + character
