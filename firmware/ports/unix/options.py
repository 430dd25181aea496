"""The command line of a simulated board."""

from firmware import wire

USAGE = """usage: main.py hand|hid --serial FD --wiring SOCKET --uid HEX16 --state FILE
    [--reset-cause power_on|watchdog|brownout|soft|unknown]
    [--boot-random HEX6]   fixes the random part of the boot id
    [--limits X0,X1,Y0,Y1,Z0,Z1,V,A]   hand: um, mm/s, mm/s2
    [--kinematics JSON]   hand: as board_config's KINEMATICS
    [--senses no|yes]   hand: drives that feel contact, so that it can probe
    [--profile android|ios] [--layout us|uk|de|fr]   hid

FD is an inherited, non-blocking file descriptor: the board's end of the serial line."""

_KINDS = {"hand": wire.KIND_HAND, "hid": wire.KIND_HID}
_RESET_CAUSES = {
    "power_on": wire.RESET_POWER_ON,
    "watchdog": wire.RESET_WATCHDOG,
    "brownout": wire.RESET_BROWNOUT,
    "soft": wire.RESET_SOFT,
    "unknown": wire.RESET_UNKNOWN,
}
_PROFILES = {"android": wire.PROFILE_ANDROID, "ios": wire.PROFILE_IOS}
_LAYOUTS = {"us": wire.LAYOUT_US, "uk": wire.LAYOUT_UK, "de": wire.LAYOUT_DE, "fr": wire.LAYOUT_FR}

# A desk-top gantry over one phone lying across: 200 by 130 mm, 30 mm of lift; the glass is nominally at z 0
# and the tip, sprung, may be driven 3 mm deeper.
DEFAULT_LIMITS = "0,200000,0,130000,-3000,30000,300,4000"


class UsageError(Exception):
    """A command line that does not say what to be; the message says what is wrong with which argument."""


class Options:
    """What the command line asked for. Raises UsageError."""

    def __init__(self, args: "list[str]") -> None:
        values = _pairs(args[1:])
        self.kind = _choice("kind", args[0] if args else "", _KINDS)
        self.serial_fd = _number("--serial", _required(values, "--serial"))
        self.wiring_path = _required(values, "--wiring")
        self.state_path = _required(values, "--state")
        self.uid = _hex("--uid", _required(values, "--uid"), (wire.UID_SIZE,))
        self.reset_cause = _choice("--reset-cause", values.pop("--reset-cause", "power_on"), _RESET_CAUSES)
        self.boot_random = _hex("--boot-random", values.pop("--boot-random", ""), (0, 3))
        self.limits = _limits(values.pop("--limits", DEFAULT_LIMITS))
        self.kinematics = values.pop("--kinematics", '{"kind": "cartesian"}')
        self.senses = _choice("--senses", values.pop("--senses", "no"), {"no": 0, "yes": 1}) == 1
        self.profile = _choice("--profile", values.pop("--profile", "android"), _PROFILES)
        self.layout = _choice("--layout", values.pop("--layout", "us"), _LAYOUTS)
        for name in values:
            raise UsageError("unknown option %s" % name)


def _pairs(args: "list[str]") -> "dict[str, str]":
    values = {}
    for i in range(0, len(args), 2):
        if not args[i].startswith("--") or i + 1 == len(args):
            raise UsageError("expected --option value, got %r" % args[i])
        values[args[i]] = args[i + 1]
    return values


def _required(values: "dict[str, str]", name: str) -> str:
    if name not in values:
        raise UsageError("%s is missing" % name)
    return values.pop(name)


def _choice(name: str, value: str, choices: "dict[str, int]") -> int:
    if value not in choices:
        raise UsageError("%s: %r is none of %s" % (name, value, ", ".join(sorted(choices))))
    return choices[value]


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError("%s: %r is not a whole number" % (name, value))


def _hex(name: str, value: str, sizes: "tuple[int, ...]") -> bytes:
    try:
        data = bytes.fromhex(value)
    except ValueError:
        data = b"?"
    if len(data) not in sizes:
        raise UsageError("%s: %r is not %d hex digits" % (name, value, 2 * sizes[-1]))
    return data


def _limits(value: str) -> "list[int]":
    numbers = [_number("--limits", part) for part in value.split(",")]
    if len(numbers) != 8:
        raise UsageError("--limits: %r has %d numbers, not 8" % (value, len(numbers)))
    return numbers
