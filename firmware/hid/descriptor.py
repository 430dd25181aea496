"""What the board is to the phone: one HID interface with several kinds of reports, told apart by report id.

HID 1.11 section 6.2.2 gives the item encoding, HID Usage Tables 1.4 the usages. Keyboard, consumer and system
control are for every phone; the fourth is a touch screen for Android or a relative pointer for iOS, never both:
Linux' hid-multitouch, which takes the whole interface as soon as there is a touch screen in it, ignores a mouse
beside it (mt_input_mapping, "if mtclass.export_all_inputs is not set").

The touch collection is a Touch Screen (page 0x0D, usage 0x04) with one finger and a contact id: Android takes an
absolute mouse for a pointer without a cursor, and hid-multitouch wants contact count and contact count maximum.
"""

REPORT_KEYBOARD = 1
REPORT_CONSUMER = 2
REPORT_SYSTEM = 3
REPORT_TOUCH = 4
REPORT_POINTER = 5

TOUCH_MAX = 32767
# Counts that one report of the pointer can carry in each direction.
POINTER_MAX = 127

LED_CAPS_LOCK = 0x02

# Bits of the system control report: usages 0x81 to 0x83 of the Generic Desktop page.
SYSTEM_POWER_DOWN = 0x01
SYSTEM_SLEEP = 0x02
SYSTEM_WAKE_UP = 0x04

MOD_LEFT_SHIFT = 0x02
MOD_RIGHT_ALT = 0x40

# Consumer page (0x0C). Android's are its own choice of AC Home, AC Back and the Page/Desktop switchers;
# Menu (0x40) is what iOS takes for the home button.
CONSUMER_POWER = 0x30
CONSUMER_MENU = 0x40
CONSUMER_VOLUME_UP = 0xE9
CONSUMER_VOLUME_DOWN = 0xEA
CONSUMER_APP_SWITCH = 0x1A2
CONSUMER_AC_HOME = 0x223
CONSUMER_AC_BACK = 0x224

# Short items as bytes: prefix (tag, type, size), then the value, little endian.
_COMMON = (
    # -- keyboard: modifiers, a reserved byte, six keys; five LEDs the other way
    b"\x05\x01\x09\x06"  # Usage Page Generic Desktop, Usage Keyboard
    b"\xa1\x01\x85\x01"  # Collection Application, Report ID 1
    b"\x05\x07\x19\xe0\x29\xe7"  # Usage Page Keyboard, Left Control to Right GUI
    b"\x15\x00\x25\x01"  # Logical 0 to 1
    b"\x75\x01\x95\x08\x81\x02"  # 8 fields of 1 bit, Input Variable
    b"\x75\x08\x95\x01\x81\x03"  # 1 byte, Input Constant
    b"\x05\x08\x19\x01\x29\x05"  # Usage Page LEDs, Num Lock to Kana
    b"\x75\x01\x95\x05\x91\x02"  # 5 fields of 1 bit, Output Variable
    b"\x75\x03\x95\x01\x91\x03"  # 3 bits, Output Constant
    b"\x05\x07\x19\x00\x29\x65"  # Usage Page Keyboard, no key to Application
    b"\x15\x00\x25\x65"  # Logical 0 to 101
    b"\x75\x08\x95\x06\x81\x00"  # 6 bytes, Input Array
    b"\xc0"
    # -- consumer control: one usage of 16 bits
    b"\x05\x0c\x09\x01"  # Usage Page Consumer, Usage Consumer Control
    b"\xa1\x01\x85\x02"  # Collection Application, Report ID 2
    b"\x15\x00\x26\xff\x03"  # Logical 0 to 0x3FF
    b"\x19\x00\x2a\xff\x03"  # Usages 0 to 0x3FF
    b"\x75\x10\x95\x01\x81\x00"  # 1 field of 16 bits, Input Array
    b"\xc0"
    # -- system control: three bits
    b"\x05\x01\x09\x80"  # Usage Page Generic Desktop, Usage System Control
    b"\xa1\x01\x85\x03"  # Collection Application, Report ID 3
    b"\x19\x81\x29\x83"  # System Power Down, Sleep, Wake Up
    b"\x15\x00\x25\x01"  # Logical 0 to 1
    b"\x75\x01\x95\x03\x81\x02"  # 3 fields of 1 bit, Input Variable
    b"\x75\x05\x95\x01\x81\x03"  # 5 bits, Input Constant
    b"\xc0"
)

_TOUCH = (
    # -- touch screen: one finger; the physical size is nominal, 70 by 150 mm
    b"\x05\x0d\x09\x04"  # Usage Page Digitizers, Usage Touch Screen
    b"\xa1\x01\x85\x04"  # Collection Application, Report ID 4
    b"\x09\x22\xa1\x02"  # Usage Finger, Collection Logical
    b"\x09\x42\x09\x32"  # Tip Switch, In Range
    b"\x15\x00\x25\x01"  # Logical 0 to 1
    b"\x75\x01\x95\x02\x81\x02"  # 2 fields of 1 bit, Input Variable
    b"\x75\x06\x95\x01\x81\x03"  # 6 bits, Input Constant
    b"\x09\x51\x25\x7f"  # Contact Identifier, Logical to 127
    b"\x75\x08\x95\x01\x81\x02"  # 1 byte, Input Variable
    b"\x05\x01\x26\xff\x7f"  # Usage Page Generic Desktop, Logical to 32767
    b"\x65\x11\x55\x0d"  # Unit centimetre, exponent -3: physical values are 0.01 mm
    b"\x75\x10\x95\x01"  # 1 field of 16 bits
    b"\x35\x00\x46\x58\x1b\x09\x30\x81\x02"  # Physical 0 to 7000, X, Input Variable
    b"\x35\x00\x46\x98\x3a\x09\x31\x81\x02"  # Physical 0 to 15000, Y, Input Variable
    b"\xc0"
    b"\x05\x0d\x45\x00\x65\x00\x55\x00"  # Usage Page Digitizers; physical size and unit are global: off
    b"\x09\x54\x25\x01"  # Contact Count, Logical to 1
    b"\x75\x08\x95\x01\x81\x02"  # 1 byte, Input Variable
    b"\x09\x55\xb1\x02"  # Contact Count Maximum, Feature Variable: a host that never reads it takes 1 from the range
    b"\xc0"
)

_POINTER = (
    # -- relative pointer: three buttons, x, y, wheel
    b"\x05\x01\x09\x02"  # Usage Page Generic Desktop, Usage Mouse
    b"\xa1\x01\x85\x05"  # Collection Application, Report ID 5
    b"\x09\x01\xa1\x00"  # Usage Pointer, Collection Physical
    b"\x05\x09\x19\x01\x29\x03"  # Usage Page Button, Button 1 to 3
    b"\x15\x00\x25\x01"  # Logical 0 to 1
    b"\x75\x01\x95\x03\x81\x02"  # 3 fields of 1 bit, Input Variable
    b"\x75\x05\x95\x01\x81\x03"  # 5 bits, Input Constant
    b"\x05\x01\x09\x30\x09\x31\x09\x38"  # Usage Page Generic Desktop, X, Y, Wheel
    b"\x15\x81\x25\x7f"  # Logical -127 to 127
    b"\x75\x08\x95\x03\x81\x06"  # 3 bytes, Input Variable Relative
    b"\xc0\xc0"
)

# What a phone is offered; which one, says its profile.
ANDROID_DESCRIPTOR = _COMMON + _TOUCH
IOS_DESCRIPTOR = _COMMON + _POINTER

# What GET_REPORT answers for the touch feature: one contact at most.
TOUCH_FEATURE = bytes((REPORT_TOUCH, 1))


def keyboard_report(out: bytearray, modifiers: int, usage: int) -> memoryview:
    """One key (usage 0: none) with its modifiers, written into out; returns the report with its id."""
    for i in range(9):
        out[i] = 0
    out[0] = REPORT_KEYBOARD
    out[1] = modifiers
    out[3] = usage
    return memoryview(out)[:9]


def consumer_report(out: bytearray, usage: int) -> memoryview:
    """One consumer control (0: none)."""
    out[0] = REPORT_CONSUMER
    out[1] = usage & 0xFF
    out[2] = usage >> 8
    return memoryview(out)[:3]


def system_report(out: bytearray, bits: int) -> memoryview:
    """SYSTEM_ bits (0: none)."""
    out[0] = REPORT_SYSTEM
    out[1] = bits
    return memoryview(out)[:2]


def touch_report(out: bytearray, touching: bool, x: int, y: int) -> memoryview:
    """The one contact at x, y (0..TOUCH_MAX), on the glass or just lifted."""
    out[0] = REPORT_TOUCH
    out[1] = 0x03 if touching else 0x00
    out[2] = 0
    out[3] = x & 0xFF
    out[4] = x >> 8
    out[5] = y & 0xFF
    out[6] = y >> 8
    out[7] = 1
    return memoryview(out)[:8]


def pointer_report(out: bytearray, pressed: bool, dx: int, dy: int) -> memoryview:
    """The main button, and a move of dx, dy counts (-POINTER_MAX..POINTER_MAX); the wheel stands still."""
    out[0] = REPORT_POINTER
    out[1] = 0x01 if pressed else 0x00
    out[2] = dx & 0xFF
    out[3] = dy & 0xFF
    out[4] = 0
    return memoryview(out)[:5]


def is_pressing(report: "bytes | memoryview") -> bool:
    """Whether a report leaves something down: a key, a control, a button, the finger."""
    kind = report[0]
    if kind == REPORT_KEYBOARD:
        return report[1] != 0 or report[3] != 0
    if kind == REPORT_CONSUMER:
        return report[1] != 0 or report[2] != 0
    return report[1] != 0
