"""What a Linux phone makes of the board's keys: key codes by HID usage, and characters by key code.

Codes: linux/input-event-codes.h. The table of usages is drivers/hid/hid-input.c's hid_keyboard[], the
consumer usages are from its hidinput_configure_usage(). Characters come from the twin's layouts, which were
written down from Android's, not from the firmware's own tables.
"""

import unicodedata
from collections.abc import Iterable

from input_nodes import EV_KEY, Event

from edge_daemon.bench.twin import hid_layouts

# Usage page 0x07 from usage 0x04 on.
_CODES_FROM_0X04 = (
    30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44,
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41, 51, 52, 53, 58,
)  # fmt: skip
CODE_OF_USAGE = {0x04 + at: code for at, code in enumerate(_CODES_FROM_0X04)} | {0x64: 86}
USAGE_OF_CODE = {code: usage for usage, code in reversed(CODE_OF_USAGE.items())}

KEY_ENTER, KEY_BACKSPACE, KEY_LEFTSHIFT, KEY_RIGHTALT = 28, 14, 42, 100
KEY_VOLUMEDOWN, KEY_VOLUMEUP, KEY_POWER, KEY_MENU = 114, 115, 116, 139
KEY_SLEEP, KEY_WAKEUP, KEY_BACK, KEY_HOMEPAGE, KEY_APPSELECT = 142, 143, 158, 172, 0x244
MODIFIERS = {KEY_LEFTSHIFT, KEY_RIGHTALT}

# Each of the contract's keys as a key code; a consumer usage where it is not a key of the keyboard.
_COMMON = {
    "enter": KEY_ENTER,
    "delete": KEY_BACKSPACE,
    "power": KEY_POWER,
    "volume_up": KEY_VOLUMEUP,
    "volume_down": KEY_VOLUMEDOWN,
}
ANDROID_KEYS = _COMMON | {"home": KEY_HOMEPAGE, "back": KEY_BACK, "app_switch": KEY_APPSELECT}
IOS_KEYS = _COMMON | {"home": KEY_MENU}
ON_KEYBOARD = {"enter", "delete"}


class Typist:
    """Key events in, text out, as an app behind the phone's keyboard layout gets it."""

    def __init__(self, layout: str) -> None:
        self._layout = hid_layouts.LAYOUTS[layout]
        self._down: set[int] = set()
        self._dead = ""
        self.caps_lock = False
        self.text = ""

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            assert event.type == EV_KEY
            assert event.value in (0, 1), "a key repeated"
            assert (event.code in self._down) == (event.value == 0), (
                f"key {event.code} changed to what it was"
            )
            if event.value == 0:
                self._down.remove(event.code)
                continue
            self._down.add(event.code)
            if event.code not in MODIFIERS:
                assert self._down <= MODIFIERS | {event.code}, "two keys at once"
                self._press(event.code)

    @property
    def nothing_is_down(self) -> bool:
        return not self._down

    def _press(self, code: int) -> None:
        if code == KEY_ENTER:
            self.text += "\n"
            return
        levels = self._layout[USAGE_OF_CODE[code]]
        pair = levels[2:] if KEY_RIGHTALT in self._down else levels[:2]
        shifted = KEY_LEFTSHIFT in self._down
        if self.caps_lock and pair[0] != pair[1] and pair[0].upper() == pair[1]:
            shifted = not shifted
        character = pair[shifted]
        assert character, f"key {code} makes nothing on this level"
        if unicodedata.combining(character):
            self._dead = character
            return
        dead, self._dead = self._dead, ""
        if dead:
            character = hid_layouts.DEAD_ALONE[dead] if character == " " else _joined(character, dead)
        self.text += character


def _joined(character: str, dead: str) -> str:
    return unicodedata.normalize("NFC", character + dead)
