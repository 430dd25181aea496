"""Three hobby servos as the hand's drives: setpoints become pulse widths. Never run on hardware so far."""

import struct

import machine

from firmware.hand.core import Drives

_MAGIC = b"HND1"
_RECORD = "<4siii"


class _Servo:
    """One axis: a straight line between two (um, ns) points."""

    def __init__(self, axis: "tuple[int, int, int, int, int]", hz: int) -> None:
        self._pin, self._um0, self._ns0, self._um1, self._ns1 = axis
        self._hz = hz
        self._pwm = None

    def go(self, um: int) -> None:
        ns = self._ns0 + (um - self._um0) * (self._ns1 - self._ns0) // (self._um1 - self._um0)
        if self._pwm is None:
            self._pwm = machine.PWM(machine.Pin(self._pin), freq=self._hz, duty_ns=ns)
        else:
            self._pwm.duty_ns(ns)

    def relax(self) -> None:
        """No more pulses: the servo goes limp."""
        if self._pwm is not None:
            self._pwm.deinit()
            self._pwm = None


class ServoDrives(Drives):
    """x, y and z servos. They sense nothing: read() stays None.

    A servo without pulses is limp, and jumps to the first pulse it gets. So the first setpoint powers z alone,
    which brings the stylus up; x and y get theirs with the second one, after the core has let z settle.
    """

    def __init__(self, x: tuple, y: tuple, z: tuple, hz: int) -> None:
        self._x = _Servo(x, hz)
        self._y = _Servo(y, hz)
        self._z = _Servo(z, hz)
        self._has_lifted = False
        self._rtc = machine.RTC()
        self._record = bytearray(struct.calcsize(_RECORD))

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self._z.go(z_um)
        if self._has_lifted:
            self._x.go(x_um)
            self._y.go(y_um)
        self._has_lifted = True
        struct.pack_into(_RECORD, self._record, 0, _MAGIC, x_um, y_um, z_um)
        self._rtc.memory(self._record)

    def retained(self) -> "tuple[int, int, int] | None":
        """The last setpoint, where RTC memory kept it: over a soft reset on the generic image; over a watchdog
        reset too where MicroPython was built with MICROPY_HW_RTC_USER_MEM_NOINIT."""
        memory = self._rtc.memory()
        if len(memory) != len(self._record) or memory[:4] != _MAGIC:
            return None
        return struct.unpack(_RECORD, memory)[1:]

    def relax(self) -> None:
        for servo in (self._z, self._x, self._y):
            servo.relax()
