"""The simulated hand's drives: setpoints onto the wiring, pushes from it."""

import struct

from firmware.hand.core import Drives
from firmware.ports.unix import wiring


class WiredDrives(wiring.Handler, Drives):
    """The hand's drives at the other end of the wiring.

    retained_path stands in for the RTC memory of the chip, which keeps the last setpoint over a reset but not
    over a power cut: pass was_powered False after a power-on.
    """

    def __init__(self, wires: "wiring.Wiring", retained_path: str, was_powered: bool) -> None:
        self._wires = wires
        self._pushed: tuple[int, int, int] | None = None
        self._record = bytearray(12)
        self._retained = _read_setpoint(retained_path) if was_powered else None
        self._memory = open(retained_path, "wb")
        if self._retained is not None:
            self._remember(self._retained)
        wires.handle(wiring.PUSHED, self)

    def take(self, kind: int, payload: bytes) -> None:
        x, y, z = struct.unpack("<iii", payload)
        self._pushed = (x, y, z)

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        self._remember((x_um, y_um, z_um))
        self._wires.send(wiring.JOINTS, self._record)

    def _remember(self, setpoint: "tuple[int, int, int]") -> None:
        struct.pack_into("<iii", self._record, 0, *setpoint)
        self._memory.seek(0)
        self._memory.write(self._record)
        self._memory.flush()

    def read(self) -> "tuple[int, int, int] | None":
        pushed = self._pushed
        self._pushed = None
        return pushed

    def retained(self) -> "tuple[int, int, int] | None":
        return self._retained


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
