"""Three STS bus servos as a hand's motors. The line is whatever has any(), readinto() and write(): a UART."""

from firmware.hand.joints import Motors
from firmware.hand.servo_axis import ServoAxis
from firmware.hand.sts import Bus

MYPY = False
if MYPY:
    from typing import Protocol

    class Line(Protocol):
        """The part of machine.UART that is used. None of it waits."""

        def any(self) -> int: ...

        def readinto(self, buffer: bytearray) -> "int | None": ...

        def write(self, data: bytes) -> "int | None": ...


# All three servos' loads count, for arms that have no motor of their own for z.
EVERY_MOTOR = -1


class BusMotors(Motors):
    """ids and axes in the order of the arm's joints. z_motor: whose load is z's, or EVERY_MOTOR.

    Powered up the servos are limp, and stay so until the first go(). What they measured says where that one
    starts from, so it moves nothing: the goal is there before the torque is.
    """

    def __init__(
        self, line: "Line", ids: "tuple[int, int, int]", axes: "list[ServoAxis]", z_motor: int
    ) -> None:
        self._line = line
        self._bus = Bus(ids)
        self._axes = axes
        self._z_motor = z_motor
        self._received = bytearray(64)
        self._view = memoryview(self._received)
        self._goals = [0, 0, 0]

    def go(self, joints: "list[float]") -> None:
        for i in range(3):
            self._goals[i] = round(self._axes[i].count(joints[i]))
        self._bus.go(self._goals)

    def poll(self, now_us: int) -> None:
        # Bounded: at most what fits the buffer, and one packet.
        if self._line.any():
            n = self._line.readinto(self._received)
            if n:
                self._bus.receive(self._view[:n], now_us)
        out = self._bus.poll(now_us)
        if out:
            self._line.write(out)

    def ready(self) -> bool:
        return self._bus.ready()

    def readings(self) -> int:
        return self._bus.readings

    def present(self, joints: "list[float]") -> None:
        for i in range(3):
            joints[i] = self._axes[i].value(self._bus.position[i])

    def load(self) -> int:
        if self._z_motor >= 0:
            return self._bus.load[self._z_motor]
        loads = self._bus.load
        return max(abs(loads[0]), abs(loads[1]), abs(loads[2]))

    def relax(self) -> None:
        """No more torque: whoever holds the arm can move it, and a spring lifts the stylus.

        Only when no answer can be on the line any more: sts.REPLY_US after the last poll().
        """
        self._line.readinto(self._received)
        self._line.write(self._bus.relax())
