"""The chip's side of a hand: hobby servos on PWM pins, bus servos on a UART, memory over a reset.

Never run on hardware so far.
"""

import struct
import time

import machine

from firmware.hand.bus_motors import BusMotors
from firmware.hand.joints import Memory, Motors
from firmware.hand.servo_axis import ServoAxis

_MAGIC = b"HND1"
_RECORD = "<4siii"
# Servos boot within this time after power-up, and then answer in a few ms.
WAKE_MS = 500


class PwmMotors(Motors):
    """Three hobby servos. They sense nothing.

    A servo without pulses is limp, and jumps to the first pulse it gets. So the first setpoint powers the motor
    that carries z alone, which brings the stylus up; the others get theirs with the second one, after the core
    has let z settle. An arm without such a motor (z_motor -1, a delta) gets all three at once and jumps.
    """

    def __init__(self, pins: "tuple[int, int, int]", axes: "list[ServoAxis]", hz: int, z_motor: int) -> None:
        self._pins = pins
        self._axes = axes
        self._hz = hz
        self._z_motor = z_motor
        self._pwm = [None, None, None]
        self._has_lifted = z_motor < 0

    def go(self, joints: "list[float]") -> None:
        for i in range(3):
            if self._has_lifted or i == self._z_motor:
                self._pulse(i, round(self._axes[i].count(joints[i]) * 1000))
        self._has_lifted = True

    def _pulse(self, i: int, ns: int) -> None:
        if self._pwm[i] is None:
            self._pwm[i] = machine.PWM(machine.Pin(self._pins[i]), freq=self._hz, duty_ns=ns)
        else:
            self._pwm[i].duty_ns(ns)

    def relax(self) -> None:
        """No more pulses: the servos go limp."""
        for i in range(3):
            if self._pwm[i] is not None:
                self._pwm[i].deinit()
                self._pwm[i] = None


def bus_motors(
    uart: int,
    tx: int,
    rx: int,
    baud: int,
    ids: "tuple[int, int, int]",
    axes: "list[ServoAxis]",
    z_motor: int,
) -> BusMotors:
    """The bus servos, asked once where they are: bounded by WAKE_MS, then the hand starts without an answer.

    A hand whose servos do not answer says so (FAULT_DRIVE) to each command until they do.
    """
    line = machine.UART(uart, baudrate=baud, tx=tx, rx=rx, rxbuf=256, txbuf=256, timeout=0)
    motors = BusMotors(line, ids, axes, z_motor)
    started_ms = time.ticks_ms()
    while motors.readings() == 0 and time.ticks_diff(time.ticks_ms(), started_ms) < WAKE_MS:
        motors.poll(time.ticks_diff(time.ticks_ms(), started_ms) * 1000)
        time.sleep_ms(1)
    return motors


class RtcMemory(Memory):
    """The last setpoint in RTC memory: kept over a soft reset on the generic image; over a watchdog reset too
    where MicroPython was built with MICROPY_HW_RTC_USER_MEM_NOINIT."""

    def __init__(self) -> None:
        self._rtc = machine.RTC()
        self._record = bytearray(struct.calcsize(_RECORD))

    def keep(self, x_um: int, y_um: int, z_um: int) -> None:
        struct.pack_into(_RECORD, self._record, 0, _MAGIC, x_um, y_um, z_um)
        self._rtc.memory(self._record)

    def recall(self) -> "tuple[int, int, int] | None":
        memory = self._rtc.memory()
        if len(memory) != len(self._record) or memory[:4] != _MAGIC:
            return None
        return struct.unpack(_RECORD, memory)[1:]
