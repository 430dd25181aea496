"""The HID board's descriptor and reports against Linux's own HID drivers: what the phone's apps would get."""

import pytest
from hid_rig import HidRig
from input_nodes import (
    ABS_MT_POSITION_X,
    ABS_MT_POSITION_Y,
    ABS_MT_TRACKING_ID,
    ABS_X,
    ABS_Y,
    BTN_LEFT,
    BTN_TOUCH,
    EV_ABS,
    EV_KEY,
    EV_LED,
    EV_REL,
    INPUT_PROP_DIRECT,
    LED_CAPSL,
    REL_WHEEL,
    REL_X,
    REL_Y,
    Event,
)
from kernel_phone import KernelPhone
from phone_keys import (
    ANDROID_KEYS,
    CODE_OF_USAGE,
    IOS_KEYS,
    KEY_POWER,
    KEY_SLEEP,
    KEY_WAKEUP,
    ON_KEYBOARD,
    Typist,
)

from edge_daemon.bench.twin import hid_descriptor
from edge_daemon.boards.link_events import CommandDone, CommandFaulted
from firmware import wire
from firmware.hid import descriptor, layouts, profiles

TOUCH_SCREEN, KEYBOARD, CONSUMER, SYSTEM, POINTER = (
    "",
    "Keyboard",
    "Consumer Control",
    "System Control",
    "Mouse",
)
# The node of each application collection that a descriptor may have. hid-generic keeps the controls together
# with the keyboard (hidinput_match_application), hid-multitouch has a node for each report.
NODE_OF_APPLICATION = {
    "android": {
        0x0001_0006: KEYBOARD,
        0x0001_0080: SYSTEM,
        0x000C_0001: CONSUMER,
        0x000D_0004: TOUCH_SCREEN,
    },
    "ios": {0x0001_0002: POINTER, 0x0001_0006: KEYBOARD, 0x0001_0080: KEYBOARD, 0x000C_0001: KEYBOARD},
}
# A touch screen makes hid-multitouch take the whole interface; without one it is the generic driver's.
DRIVER = {"android": "hid-multitouch", "ios": "hid-generic"}
KEYS = {"android": ANDROID_KEYS, "ios": IOS_KEYS}
PROFILES = {"android": wire.PROFILE_ANDROID, "ios": wire.PROFILE_IOS}
PROFILE_DESCRIPTOR = {name: profiles.PROFILES[code].report_descriptor for name, code in PROFILES.items()}
MAX = descriptor.TOUCH_MAX
LAYOUTS = {"us": wire.LAYOUT_US, "uk": wire.LAYOUT_UK, "de": wire.LAYOUT_DE, "fr": wire.LAYOUT_FR}


@pytest.fixture(scope="module")
def phones(figures):
    """One kernel, plugged into a board of each profile."""
    phones = {
        profile: KernelPhone(f"Edge {profile} board", 1 + number, PROFILE_DESCRIPTOR[profile])
        for number, profile in enumerate(PROFILES)
    }
    yield phones
    figures.values["hid_nodes"] = sum(len(phone.nodes) for phone in phones.values())
    figures.values["hid_reports"] = sum(phone.reports_taken for phone in phones.values())
    for phone in phones.values():
        phone.close()


@pytest.fixture
def make_rig(phones):
    """make_rig(profile, layout): a board that has just started. Whatever a test did, nothing may stay down."""
    made = []

    def make(profile: str = "android", layout: str = "us") -> HidRig:
        made.append(HidRig(phones[profile], PROFILES[profile], LAYOUTS[layout]))
        return made[-1]

    yield make
    for rig in made:
        rig.steps(1.0)
        rig.take_events()
    for phone in phones.values():
        assert phone.keys_down() == {}
    assert set(phones["android"].nodes[TOUCH_SCREEN].slots(ABS_MT_TRACKING_ID)) == {-1}


@pytest.fixture
def rig(make_rig):
    """An Android board with the US layout."""
    return make_rig()


@pytest.fixture
def phone(phones):
    """The Android phone."""
    return phones["android"]


class Strokes:
    """Contacts of the touch screen's events: each stroke its points, from touch-down to lift."""

    def __init__(self, phone: KernelPhone) -> None:
        node = phone.nodes[TOUCH_SCREEN]
        # The kernel leaves out what has not changed since the last contact.
        self._x = node.slots(ABS_MT_POSITION_X)[0]
        self._y = node.slots(ABS_MT_POSITION_Y)[0]
        self._is_down = False
        self.strokes: list[list[tuple[int, int]]] = []
        self.lifts = 0

    def take(self, events: list[tuple[str, Event]]) -> None:
        """Events between two states of BTN_TOUCH or coordinates; one contact only."""
        for name, event in events:
            assert name == TOUCH_SCREEN, f"{event} on {name}"
            if event.type == EV_ABS and event.code == ABS_MT_TRACKING_ID:
                self._is_down = event.value >= 0
                if self._is_down:
                    self.strokes.append([])
                else:
                    self.lifts += 1
            elif event.type == EV_ABS and event.code == ABS_MT_POSITION_X:
                self._x = event.value
            elif event.type == EV_ABS and event.code == ABS_MT_POSITION_Y:
                self._y = event.value
            elif event.type == EV_KEY:
                assert event == Event(EV_KEY, BTN_TOUCH, int(self._is_down))
            # The single-touch events end a frame: by then the contact's own coordinates are all in.
            if self._is_down and (event.type == EV_KEY or event.code in (ABS_X, ABS_Y)):
                point = (self._x, self._y)
                if not self.strokes[-1] or self.strokes[-1][-1] != point:
                    self.strokes[-1].append(point)


def presses(events: list[tuple[str, Event]]) -> list[tuple[str, int, int]]:
    assert {event.type for _, event in events} <= {EV_KEY}
    return [(name, event.code, event.value) for name, event in events]


# -- what the kernel makes of the descriptor --------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_the_kernel_takes_the_board_and_every_collection_becomes_a_node(phones, profile):
    reports = hid_descriptor.parse(PROFILE_DESCRIPTOR[profile])
    applications = {field.application for report in reports for field in report.fields}
    assert phones[profile].driver == DRIVER[profile]
    node_of = NODE_OF_APPLICATION[profile]
    assert {node_of[application] for application in applications} == set(phones[profile].nodes)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_keyboard_has_every_key_of_every_layout_and_its_caps_lock_led(phones, profile):
    usages = {
        usage
        for layout in layouts.LAYOUTS.values()
        for character in layout.charset()
        for usage in layout.steps(character)[1::2]
    }
    keyboard = phones[profile].nodes[KEYBOARD]
    assert {CODE_OF_USAGE[usage] for usage in usages} <= keyboard.codes(EV_KEY)
    assert LED_CAPSL in keyboard.codes(EV_LED)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_system_control_has_power_sleep_and_wake_up(phones, profile):
    system = phones[profile].nodes[NODE_OF_APPLICATION[profile][0x0001_0080]]
    assert {KEY_POWER, KEY_SLEEP, KEY_WAKEUP} <= system.codes(EV_KEY)


def test_the_pointer_has_buttons_both_ways_and_a_wheel(phones):
    pointer = phones["ios"].nodes[POINTER]
    assert {BTN_LEFT, BTN_LEFT + 1, BTN_LEFT + 2} == pointer.codes(EV_KEY)
    assert {REL_X, REL_Y, REL_WHEEL} <= pointer.codes(EV_REL)


def test_the_touch_screen_is_a_direct_device_with_one_slot_and_its_size_in_millimetres(phone):
    node = phone.nodes[TOUCH_SCREEN]
    assert INPUT_PROP_DIRECT in node.properties()
    assert BTN_TOUCH in node.codes(EV_KEY)
    assert len(node.slots(ABS_MT_TRACKING_ID)) == 1
    for code, size_mm in ((ABS_MT_POSITION_X, 70), (ABS_MT_POSITION_Y, 150)):
        axis = node.axis(code)
        assert (axis.minimum, axis.maximum, axis.fuzz) == (0, MAX, 0)
        assert axis.resolution == pytest.approx(MAX / size_mm, abs=1)


# -- operations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_each_key_is_one_press_and_one_release_of_its_code(make_rig, profile):
    rig = make_rig(profile)
    announced = rig.host.info.hid.keys
    assert set(announced) == set(KEYS[profile])
    for name in announced:
        assert isinstance(rig.key(name), CommandDone)
        code = KEYS[profile][name]
        node = NODE_OF_APPLICATION[profile][0x0001_0006 if name in ON_KEYBOARD else 0x000C_0001]
        assert presses(rig.take_events()) == [(node, code, 1), (node, code, 0)], name


@pytest.mark.parametrize(("profile", "layout"), [*(("android", name) for name in LAYOUTS), ("ios", "us")])
def test_every_character_of_every_layout_arrives(make_rig, profile, layout, figures):
    rig = make_rig(profile, layout)
    text = layouts.charset(LAYOUTS[layout])
    assert isinstance(rig.text(text), CommandDone)
    typist = Typist(layout)
    events = rig.take_events()
    assert {name for name, _ in events} == {KEYBOARD}
    typist.take(event for _, event in events)
    assert typist.text == text
    assert typist.nothing_is_down
    figures.values[f"characters_{profile}_{layout}"] = len(text)


def test_with_the_phones_caps_lock_on_the_text_arrives_all_the_same(rig, phone):
    keyboard = phone.nodes[KEYBOARD]
    keyboard.set_led(LED_CAPSL, True)
    phone.wait_for_output()
    keyboard.read()
    assert phone.leds == descriptor.LED_CAPS_LOCK
    try:
        assert isinstance(rig.text("Caps Lock, 1!"), CommandDone)
    finally:
        keyboard.set_led(LED_CAPSL, False)
        phone.wait_for_output()
    typist = Typist("us")
    typist.caps_lock = True
    typist.take(event for _, event in rig.take_events() if event.type == EV_KEY)
    assert typist.text == "Caps Lock, 1!"
    assert phone.leds == 0


@pytest.mark.parametrize("place", [(0, 0), (MAX, MAX), (12345, 23456)], ids=str)
def test_a_tap_is_one_contact_at_its_place_that_lifts(rig, phone, place):
    strokes = Strokes(phone)
    assert isinstance(rig.carry_out(wire.OP_HID_TAP, *place, 50), CommandDone)
    strokes.take(rig.take_events())
    assert strokes.strokes == [[place]]
    assert strokes.lifts == 1


def test_a_hold_stays_down_for_its_time_and_not_longer(rig, phone):
    strokes = Strokes(phone)
    rig.begin(wire.OP_HID_TAP, wire.pack_args(wire.OP_HID_TAP, 5000, 6000, 2000))
    rig.steps(1.9)
    strokes.take(rig.take_events())
    assert (strokes.strokes, strokes.lifts) == ([[(5000, 6000)]], 0)
    rig.end()
    strokes.take(rig.take_events())
    assert (strokes.strokes, strokes.lifts) == ([[(5000, 6000)]], 1)


def test_a_swipe_is_one_contact_along_its_line(rig, phone):
    strokes = Strokes(phone)
    assert isinstance(rig.carry_out(wire.OP_HID_SWIPE, 3000, 30000, 27000, 6000, 400), CommandDone)
    strokes.take(rig.take_events())
    (path,) = strokes.strokes
    assert strokes.lifts == 1
    assert (path[0], path[-1]) == ((3000, 30000), (27000, 6000))
    assert len(path) >= 400 // 8
    assert path == sorted(path)
    assert all(abs((x - 3000) - (30000 - y)) <= 1 for x, y in path)


def test_a_pointer_tap_goes_home_to_the_place_and_clicks_once(make_rig):
    rig = make_rig("ios")
    span_x, span_y, home, step = 800, 1600, 2000, 20
    ended = rig.carry_out(wire.OP_POINTER_TAP, MAX // 4, MAX // 2, span_x, span_y, home, step, 80)
    assert isinstance(ended, CommandDone)
    x = y = 0
    clicks = []
    for name, event in rig.take_events():
        assert name == POINTER
        if event.type == EV_KEY:
            clicks.append((event.code, event.value, x, y))
        elif event.code == REL_X:
            x = max(0, x + event.value)
        elif event.code == REL_Y:
            y = max(0, y + event.value)
    assert clicks == [(BTN_LEFT, 1, 200, 800), (BTN_LEFT, 0, 200, 800)]


# -- operations that come to nothing --------------------------------------------------------------------------


def test_a_contact_lifts_when_the_host_falls_silent(rig, phone):
    strokes = Strokes(phone)
    rig.begin(wire.OP_HID_TAP, wire.pack_args(wire.OP_HID_TAP, 9000, 9000, 10_000))
    rig.steps(0.2)
    rig.is_cut = True
    rig.steps(0.4)
    strokes.take(rig.take_events())
    assert (len(strokes.strokes), strokes.lifts) == (1, 0)
    rig.steps(0.4)
    strokes.take(rig.take_events())
    assert (strokes.strokes, strokes.lifts) == ([[(9000, 9000)]], 1)


def test_a_stop_in_the_middle_of_a_text_leaves_a_beginning_of_it_and_no_key_down(rig):
    text = "Stop In The Middle Of THIS"
    rig.begin(wire.OP_TEXT_GO, rig.load(text))
    rig.steps(0.15)
    rig.host.estop(rig.now_ns)
    ended = rig.end()
    assert isinstance(ended, CommandFaulted)
    assert (ended.code, ended.effect) == (wire.FAULT_ESTOPPED, True)
    rig.steps(1.0)
    typist = Typist("us")
    typist.take(event for _, event in rig.take_events())
    assert typist.nothing_is_down
    assert text.startswith(typist.text)
    assert 0 < len(typist.text) < len(text)


def test_a_phone_that_stops_taking_reports_finds_the_key_released_when_it_takes_them_again(rig):
    rig.begin(wire.OP_TEXT_GO, rig.load("A"))
    rig.steps(0.008)
    while not rig.events:
        rig.step()
    rig.usb.asleep = True
    ended = rig.end()
    assert isinstance(ended, CommandFaulted)
    assert (ended.code, ended.effect) == (wire.FAULT_USB_NOT_READY, True)
    typist = Typist("us")
    typist.take(event for _, event in rig.take_events())
    assert not typist.nothing_is_down
    rig.usb.asleep = False
    rig.steps(0.1)
    typist.take(event for _, event in rig.take_events())
    assert typist.nothing_is_down
    assert typist.text == "A"
