"""Drives made of an arm and three motors: setpoints become joints, and joints become what the hand feels."""

from firmware.hand.drives import Drives
from firmware.hand.kinematics import Kinematics

# A tip that is this far from where it came to rest, in two readings, was moved by somebody.
PUSHED_UM = 1500
# From the last setpoint to rest: what the drives and the arm still swing.
REST_US = 300000


class Motors:
    """Three motors of a port. Joints are µm or rad, as the arm counts them."""

    def go(self, joints: "list[float]") -> None:
        """New setpoints for all three; the first call powers the motors."""
        raise NotImplementedError

    def poll(self, now_us: int) -> None:
        """Talk to the motors as far as is due."""

    def ready(self) -> bool:
        """Whether every motor answers and reports no error."""
        return True

    def readings(self) -> int:
        """How often all three positions have been measured since the start; 0 for motors that cannot."""
        return 0

    def present(self, joints: "list[float]") -> None:
        """Fill in the last measured joints. Only where readings() is not 0."""
        raise NotImplementedError

    def load(self) -> int:
        """The last measured load in ‰ of the motor that carries z, or of the most loaded one of a delta."""
        return 0


class Memory:
    """Keeps the last setpoint where it outlives a reset."""

    def keep(self, x_um: int, y_um: int, z_um: int) -> None:
        pass

    def recall(self) -> "tuple[int, int, int] | None":
        return None


class UnreachableSetpoint(Exception):
    """A setpoint inside the envelope that the arm cannot reach: envelope and arm do not belong together."""


class JointDrives(Drives):
    """The drives of a hand with this arm. What the motors measure, if they do, is preferred to memory."""

    def __init__(self, arm: Kinematics, motors: Motors, memory: Memory) -> None:
        self._arm = arm
        self._motors = motors
        self._memory = memory
        self._joints = [0.0, 0.0, 0.0]
        self._place = [0.0, 0.0, 0.0]
        self._now_us = 0
        self._written_us = 0
        self._has_written = False
        self._readings_seen = 0
        self._has_rest = False
        self._rest = [0.0, 0.0, 0.0]
        self._is_suspected = False
        self._awaited = -1

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        if not self._arm.inverse(float(x_um), float(y_um), float(z_um), self._joints):
            raise UnreachableSetpoint("(%d, %d, %d) um" % (x_um, y_um, z_um))
        self._motors.go(self._joints)
        self._memory.keep(x_um, y_um, z_um)
        self._has_written = True
        self._written_us = self._now_us
        self._has_rest = False

    def poll(self, now_us: int) -> None:
        self._now_us = now_us
        self._motors.poll(now_us)

    def ready(self) -> bool:
        return self._motors.ready()

    def retained(self) -> "tuple[int, int, int] | None":
        if self._motors.readings() == 0:
            return self._memory.recall()
        if not self._measure():
            return None
        place = self._place
        return round(place[0]), round(place[1]), round(place[2])

    def _measure(self) -> bool:
        self._motors.present(self._joints)
        return self._arm.forward(self._joints, self._place)

    # -- pushed by hand ------------------------------------------------------------------------------

    def read(self) -> "tuple[int, int, int] | None":
        """How far somebody has moved the resting tip, once for each push; None otherwise.

        Rest is what is measured REST_US after the last setpoint, so that a tip which presses on the glass, or
        a motor that sags a little, is no push.
        """
        readings = self._motors.readings()
        if readings == self._readings_seen:
            return None
        self._readings_seen = readings
        if self._has_written and self._now_us - self._written_us < REST_US:
            return None
        if not self._measure():
            return None
        if not self._has_rest:
            self._set_rest()
            return None
        dx = self._place[0] - self._rest[0]
        dy = self._place[1] - self._rest[1]
        dz = self._place[2] - self._rest[2]
        if max(abs(dx), abs(dy), abs(dz)) < PUSHED_UM:
            self._is_suspected = False
            return None
        if not self._is_suspected:
            # One reading may be a bus error that its checksum did not show.
            self._is_suspected = True
            return None
        self._set_rest()
        return round(dx), round(dy), round(dz)

    def _set_rest(self) -> None:
        self._has_rest = True
        self._is_suspected = False
        for axis in range(3):
            self._rest[axis] = self._place[axis]

    # -- what z feels ----------------------------------------------------------------------------------

    def senses(self) -> bool:
        return self._motors.readings() > 0

    def sense(self) -> None:
        # The reading that is under way began before; the one after it counts.
        self._awaited = self._motors.readings() + 2

    def sensed(self) -> "tuple[int, int] | None":
        if self._awaited < 0 or self._motors.readings() < self._awaited or not self._measure():
            return None
        self._awaited = -1
        return round(self._place[2]), self._motors.load()
