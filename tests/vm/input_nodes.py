"""Input event nodes as a program on the phone reads them: struct input_event and the ioctls of linux/input.h."""

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

EV_SYN, EV_KEY, EV_REL, EV_ABS, EV_MSC, EV_LED, EV_REP = 0, 1, 2, 3, 4, 0x11, 0x14
SYN_DROPPED = 3
LED_CAPSL = 1
BTN_LEFT, BTN_TOUCH = 0x110, 0x14A
REL_X, REL_Y, REL_WHEEL = 0, 1, 8
ABS_X, ABS_Y = 0x00, 0x01
ABS_MT_SLOT, ABS_MT_POSITION_X, ABS_MT_POSITION_Y, ABS_MT_TRACKING_ID = 0x2F, 0x35, 0x36, 0x39
INPUT_PROP_DIRECT = 1

KEY_MAX = 0x2FF
_EVENT = struct.Struct("<qqHHi")  # two longs of time, type, code, value
_READ_EVENTS = 256
# Frame ends, scan codes, and the new repeat rate that __init__ has set.
_NOT_HANDED_ON = (EV_SYN, EV_MSC, EV_REP)

_EVIOCSREP = 0x40084503
_EVIOCGRAB = 0x40044590


def _read_ioctl(number: int, size: int) -> int:
    return 2 << 30 | size << 16 | ord("E") << 8 | number


@dataclass(frozen=True)
class Event:
    """One input_event without its time."""

    type: int
    code: int
    value: int


@dataclass(frozen=True)
class Axis:
    """struct input_absinfo; resolution is in units a millimetre."""

    value: int
    minimum: int
    maximum: int
    fuzz: int
    flat: int
    resolution: int


class InputNode:
    """One /dev/input/event*, opened, grabbed, without key repeat."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        # Nobody else may act on these keys: the guest's own logind would power off on KEY_POWER.
        fcntl.ioctl(self._fd, _EVIOCGRAB, 1)
        # Software repeat runs on the machine's clock, the tests on their own.
        if EV_KEY in self.event_types():
            try:
                fcntl.ioctl(self._fd, _EVIOCSREP, struct.pack("<II", 0, 0))
            except OSError as err:
                if err.errno != errno.ENOSYS:  # a node without EV_REP
                    raise

    def close(self) -> None:
        os.close(self._fd)

    def read(self) -> list[Event]:
        """What has come since the last call, in order. Nothing may have been dropped."""
        events = []
        while True:
            try:
                data = os.read(self._fd, _EVENT.size * _READ_EVENTS)
            except BlockingIOError:
                return events
            for _, _, kind, code, value in _EVENT.iter_unpack(data):
                assert (kind, code) != (EV_SYN, SYN_DROPPED), f"{self.path} dropped events"
                if kind not in _NOT_HANDED_ON:
                    events.append(Event(kind, code, value))

    def set_led(self, led: int, on: bool) -> None:
        """As the phone's input layer does it, which makes the kernel send an output report to the device."""
        os.write(self._fd, _EVENT.pack(0, 0, EV_LED, led, on) + _EVENT.pack(0, 0, EV_SYN, 0, 0))

    def event_types(self) -> set[int]:
        return self._bits(0x20, 0x1F)

    def codes(self, event_type: int) -> set[int]:
        """The codes of that type which this node can send."""
        return self._bits(0x20 + event_type, KEY_MAX)

    def properties(self) -> set[int]:
        return self._bits(0x09, 0x1F)

    def keys_down(self) -> set[int]:
        """What the kernel believes to be pressed now."""
        return self._bits(0x18, KEY_MAX)

    def axis(self, code: int) -> Axis:
        data = bytearray(24)
        fcntl.ioctl(self._fd, _read_ioctl(0x40 + code, len(data)), data)
        return Axis(*struct.unpack("<6i", data))

    def slots(self, code: int) -> list[int]:
        """Each slot's value of one ABS_MT code."""
        count = self.axis(ABS_MT_SLOT).maximum + 1
        data = bytearray(struct.pack(f"<I{count}i", code, *[0] * count))
        fcntl.ioctl(self._fd, _read_ioctl(0x0A, len(data)), data)
        return list(struct.unpack(f"<{count}i", data[4:]))

    def _bits(self, ioctl: int, last: int) -> set[int]:
        data = bytearray(last // 8 + 1)
        fcntl.ioctl(self._fd, _read_ioctl(ioctl, len(data)), data)
        return {bit for bit in range(last + 1) if data[bit // 8] >> bit % 8 & 1}


def nodes_below(device: Path) -> dict[str, str]:
    """{name: /dev/input/event*} of one HID device's folder in sysfs."""
    return {
        (event.parent / "name").read_text().strip(): f"/dev/input/{event.name}"
        for event in device.glob("input/input*/event*")
    }
