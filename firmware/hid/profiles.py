"""Which report is which key of the contract, on Android and on iOS; and what else a phone's system takes.

Android takes AC Home, AC Back, Power and the volumes from the consumer page; the keyboard's own Home key is
not HOME there. 0x1A2 opens the app switcher on recent releases only. iOS takes Menu for the home button, has
no back and no app switch key, and no evidence says that it accepts an external touch screen.
"""

from firmware import wire
from firmware.hid import descriptor, layouts

_KEYBOARD = descriptor.REPORT_KEYBOARD
_CONSUMER = descriptor.REPORT_CONSUMER

# (report id, usage) by name; the wire's order is wire.KEY_NAMES.
_COMMON = {
    "enter": (_KEYBOARD, layouts.USAGE_ENTER),
    "delete": (_KEYBOARD, layouts.USAGE_BACKSPACE),
    "power": (_CONSUMER, descriptor.CONSUMER_POWER),
    "volume_up": (_CONSUMER, descriptor.CONSUMER_VOLUME_UP),
    "volume_down": (_CONSUMER, descriptor.CONSUMER_VOLUME_DOWN),
}
_ANDROID = {
    "home": (_CONSUMER, descriptor.CONSUMER_AC_HOME),
    "back": (_CONSUMER, descriptor.CONSUMER_AC_BACK),
    "app_switch": (_CONSUMER, descriptor.CONSUMER_APP_SWITCH),
}
_IOS = {"home": (_CONSUMER, descriptor.CONSUMER_MENU)}


class Profile:
    """A kind of phone: its keys and whether it takes our touch screen."""

    def __init__(self, own_keys: "dict[str, tuple[int, int]]", has_touch: bool) -> None:
        self.has_touch = has_touch
        self._keys = [own_keys.get(name) or _COMMON.get(name) for name in wire.KEY_NAMES]

    def key(self, index: int) -> "tuple[int, int] | None":
        """(report id, usage) of wire.KEY_NAMES[index], None where this phone has no such key."""
        return self._keys[index] if index < len(self._keys) else None

    def mask(self) -> int:
        """Bit i is set where this phone has wire.KEY_NAMES[i]."""
        bits = 0
        for index, key in enumerate(self._keys):
            if key is not None:
                bits |= 1 << index
        return bits


PROFILES = {wire.PROFILE_ANDROID: Profile(_ANDROID, True), wire.PROFILE_IOS: Profile(_IOS, False)}
