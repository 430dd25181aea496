"""The hand of the virtual rig: the board's own firmware core between commands and the simulated drives."""

from edge_daemon.bench.twin.virtual import MS, VirtualRig
from firmware import wire
from firmware.hand.core import SETPOINT_US, Drives, HandCore, HandLimits
from firmware.ports.unix.options import DEFAULT_LIMITS

# From the daemon's serial port to the board and back: a frame of 40 bytes at 921600 baud, and the loop.
COMMAND_MS = 2


class ArmRefused(Exception):
    """The firmware refused the command; the argument is its FAULT code."""


class _RigDrives(Drives):
    """Setpoints go to the plant at the moment they are written."""

    def __init__(self, rig: VirtualRig) -> None:
        self._rig = rig

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self._rig.command(x_um, y_um, z_um)

    def read(self) -> None:
        return None

    def retained(self) -> None:
        return None


class _Outcome:
    """What the core calls its link: only the end of a command matters here."""

    def __init__(self) -> None:
        self.ended = False
        self.fault_code = 0

    def contact(self, now_us: int) -> None:
        """The press has come to its depth."""

    def moved(self, cause: int, now_us: int) -> None:
        """Homing moves the hand without a command's leave."""

    def done(self, now_us: int, data: bytes = b"") -> None:
        self.ended = True

    def fault(self, code: int, flags: int, now_us: int) -> None:
        self.ended = True
        self.fault_code = code


class Arm:
    """Runs one command at a time to its end; virtual time goes on meanwhile."""

    def __init__(self, rig: VirtualRig) -> None:
        self._rig = rig
        self.limits = HandLimits(*(int(value) for value in DEFAULT_LIMITS.split(",")))
        self._core = HandCore(_RigDrives(rig), self.limits)
        self._outcome = _Outcome()
        self._core.link = self._outcome  # type: ignore[assignment]
        self.do(wire.OP_HOME)

    def do(self, op: int, *fields: int) -> None:
        """One command, from its first byte to the drives at rest. Raises ArmRefused before anything moved."""
        self._rig.pass_ms(COMMAND_MS)
        self._outcome.ended, self._outcome.fault_code = False, 0
        code = self._core.start(op, wire.pack_args(op, *fields), self._now_us())
        if code:
            raise ArmRefused(code)
        while not self._outcome.ended:
            self._rig.pass_ns(SETPOINT_US * 1000)
            self._core.poll(self._now_us())
        if self._outcome.fault_code:
            raise ArmRefused(self._outcome.fault_code)

    def _now_us(self) -> int:
        return self._rig.now_ns * 1000 // MS
