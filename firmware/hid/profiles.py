"""Which report is which key of the contract, on Android and on iOS; and what else a phone's system takes.

Android takes AC Home, AC Back, Power and the volumes from the consumer page; the keyboard's own Home key is
not HOME there. 0x1A2 opens the app switcher on recent releases only. iOS takes Menu for the home button and has
no back and no app switch key. No evidence says that it accepts an external touch screen, so it is not offered
one: it gets a relative pointer, which AssistiveTouch takes.
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
    """A kind of phone: the report descriptor it is offered, its keys, and how its screen is touched."""

    def __init__(
        self, report_descriptor: bytes, own_keys: "dict[str, tuple[int, int]]", touch_cap: int
    ) -> None:
        self.report_descriptor = report_descriptor
        self.caps = wire.CAP_HID_KEY | wire.CAP_HID_TEXT | touch_cap
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


PROFILES = {
    wire.PROFILE_ANDROID: Profile(descriptor.ANDROID_DESCRIPTOR, _ANDROID, wire.CAP_HID_TOUCH),
    wire.PROFILE_IOS: Profile(descriptor.IOS_DESCRIPTOR, _IOS, wire.CAP_HID_POINTER),
}
