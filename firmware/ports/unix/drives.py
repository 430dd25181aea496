"""The simulated hand's drives: setpoints onto the wiring, pushes and what z feels from it."""

import json
import struct

from firmware.hand.arm_config import arm_from_config
from firmware.hand.drives import Drives
from firmware.hand.joints import UnreachableSetpoint
from firmware.hand.kinematics import Kinematics, KinematicsError, require_reach
from firmware.ports.unix import wiring
from firmware.ports.unix.options import UsageError


def make_arm(text: str, limits: "list[int]") -> Kinematics:
    """The arm that this JSON describes, which reaches the whole envelope. Raises UsageError."""
    try:
        config = json.loads(text)
        if not isinstance(config, dict):
            raise UsageError("--kinematics: %r is no JSON object" % text)
        arm = arm_from_config(config)
        require_reach(arm, tuple(limits[:6]))
    except KinematicsError as err:
        raise UsageError("--kinematics: %s" % err)
    except ValueError as err:
        raise UsageError("--kinematics: %r is no JSON object: %s" % (text, err))
    return arm


class WiredDrives(wiring.Handler, Drives):
    """The hand's drives at the other end of the wiring, with the arm in between.

    The wiring carries where the arm's joints bring the tip, so that another arm than the cartesian one is used
    in full and the rig need not know. retained_path stands in for the RTC memory of the chip, which keeps the
    last setpoint over a reset but not over a power cut: pass was_powered False after a power-on.
    """

    def __init__(
        self, wires: "wiring.Wiring", retained_path: str, was_powered: bool, arm: Kinematics, senses: bool
    ) -> None:
        self._wires = wires
        self._arm = arm
        self._senses = senses
        self._joints = [0.0, 0.0, 0.0]
        self._place = [0.0, 0.0, 0.0]
        self._pushed: tuple[int, int, int] | None = None
        self._sensed: tuple[int, int] | None = None
        self._record = bytearray(12)
        self._retained = _read_setpoint(retained_path) if was_powered else None
        self._memory = open(retained_path, "wb")
        if self._retained is not None:
            self._remember(*self._retained)
        wires.handle(wiring.PUSHED, self)
        wires.handle(wiring.SENSED, self)

    def take(self, kind: int, payload: bytes) -> None:
        if kind == wiring.PUSHED:
            x, y, z = struct.unpack("<iii", payload)
            self._pushed = (x, y, z)
        else:
            z, load = struct.unpack("<ih", payload)
            self._sensed = (z, load)

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self._remember(x_um, y_um, z_um)
        place = self._place
        if not self._arm.inverse(x_um, y_um, z_um, self._joints) or not self._arm.forward(
            self._joints, place
        ):
            raise UnreachableSetpoint("(%d, %d, %d) um" % (x_um, y_um, z_um))
        struct.pack_into("<iii", self._record, 0, round(place[0]), round(place[1]), round(place[2]))
        self._wires.send(wiring.JOINTS, self._record)

    def _remember(self, x_um: int, y_um: int, z_um: int) -> None:
        struct.pack_into("<iii", self._record, 0, x_um, y_um, z_um)
        self._memory.seek(0)
        self._memory.write(self._record)
        self._memory.flush()

    def read(self) -> "tuple[int, int, int] | None":
        pushed = self._pushed
        self._pushed = None
        return pushed

    def retained(self) -> "tuple[int, int, int] | None":
        return self._retained

    def senses(self) -> bool:
        return self._senses

    def sense(self) -> None:
        self._sensed = None
        self._wires.send(wiring.SENSE, b"")

    def sensed(self) -> "tuple[int, int] | None":
        sensed = self._sensed
        self._sensed = None
        return sensed


def _read_setpoint(path: str) -> "tuple[int, int, int] | None":
    try:
        with open(path, "rb") as memory:
            data = memory.read(12)
    except OSError:
        return None
    if len(data) != 12:
        return None
    x, y, z = struct.unpack("<iii", data)
    return x, y, z
