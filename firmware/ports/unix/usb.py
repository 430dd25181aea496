"""The simulated USB plug: reports onto the wiring, what the phone's kernel says from it."""

import struct

from firmware.hid.core import Usb
from firmware.ports.unix import wiring

STATE_DETACHED = 0
STATE_CONFIGURED = 1

_DESCRIPTOR_PART = 200


class WiredUsb(wiring.Handler, Usb):
    """The USB plug: the phone's kernel is at the other end of the wiring."""

    def __init__(self, wires: "wiring.Wiring", report_descriptor: bytes) -> None:
        self._wires = wires
        self._pending = 0
        self._leds = 0
        self._state = STATE_DETACHED
        for kind in (wiring.HID_COMPLETE, wiring.HID_LEDS, wiring.HID_STATE):
            wires.handle(kind, self)
        self._send_descriptor(report_descriptor)

    def _send_descriptor(self, descriptor: bytes) -> None:
        for at in range(0, len(descriptor), _DESCRIPTOR_PART):
            part = descriptor[at : at + _DESCRIPTOR_PART]
            is_last = at + len(part) == len(descriptor)
            self._wires.send(wiring.HID_DESCRIPTOR, struct.pack("<HB", at, is_last) + part)

    def take(self, kind: int, payload: bytes) -> None:
        if kind == wiring.HID_COMPLETE:
            self._pending = max(0, self._pending - payload[0])
        elif kind == wiring.HID_LEDS:
            self._leds = payload[0]
        else:
            self._state = payload[0]
            if self._state == STATE_DETACHED:
                # A bus reset drops what was queued.
                self._pending = 0

    def ready(self) -> bool:
        return self._state == STATE_CONFIGURED

    def send(self, report: "bytes | memoryview") -> bool:
        if self._pending or not self.ready():
            return False
        self._pending += 1
        self._wires.send(wiring.HID_REPORT, report)
        return True

    def pending(self) -> int:
        return self._pending

    def leds(self) -> int:
        return self._leds
