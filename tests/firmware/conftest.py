"""What several of the firmware's tests put at the other end of its wires."""

import pytest


class SimulatedServos:
    """Feetech servos on one half-duplex line, as machine.UART shows it: any(), readinto(), write().

    Decodes packets on its own, from the manual's words. A servo with torque is at its goal at once, unless it is
    `held`; what a held one misses is its load. echo: a single-wire bus, on which we hear ourselves. An answer takes
    ANSWER_LOOKS looks at the line to arrive.
    """

    ANSWER_LOOKS = 2

    def __init__(self, positions, echo=False):
        self.position = dict(positions)
        self.goal = dict(positions)
        self.torque = dict.fromkeys(positions, 0)
        self.held = {}
        self.error = dict.fromkeys(positions, 0)
        self.mute = set()
        self.snap_steps = 0
        self.writes = []
        self.echo = echo
        self._line = bytearray()
        self._answer = b""
        self._looks = 0

    def any(self):
        if self._answer:
            self._looks += 1
            if self._looks >= self.ANSWER_LOOKS:
                self._arrive()
        return len(self._line)

    def _arrive(self):
        self._line += self._answer
        self._answer = b""

    def readinto(self, buffer):
        self._arrive()
        n = min(len(buffer), len(self._line))
        buffer[:n] = self._line[:n]
        del self._line[:n]
        return n

    def write(self, data):
        assert not self._answer, "somebody talks while an answer is on its way"
        self.writes.append(bytes(data))
        if self.echo:
            self._line += data
        assert data[:2] == b"\xff\xff"
        assert len(data) == 4 + data[3]
        assert sum(data[2:]) & 0xFF == 0xFF, "checksum"
        servo, instruction, parameters = data[2], data[4], data[5:-1]
        if instruction == 0x02:
            self._read(servo, *parameters)
        else:
            assert (servo, instruction) == (0xFE, 0x83), "only reads and sync writes are expected"
            self._sync_write(parameters[0], parameters[1], parameters[2:])

    def _read(self, servo, address, size):
        assert (address, size) == (56, 6)
        if servo not in self.position or servo in self.mute:
            return
        self.settle()
        load = max(-1000, min(1000, (self.position[servo] - self.goal[servo]) * 10))
        load = abs(load) | (0x400 if load < 0 else 0)
        body = self.position[servo].to_bytes(2, "little") + b"\0\0" + load.to_bytes(2, "little")
        answer = bytes([servo, 2 + len(body), self.error[servo]]) + body
        self._answer = b"\xff\xff" + answer + bytes([~sum(answer) & 0xFF])
        self._looks = 0

    def _sync_write(self, address, size, rows):
        for at in range(0, len(rows), 1 + size):
            servo, value = rows[at], int.from_bytes(rows[at + 1 : at + 1 + size], "little")
            if servo not in self.position:
                continue
            if address == 40:
                self.torque[servo] = value
            else:
                assert (address, size) == (42, 2)
                self.goal[servo] = value
            if not self.torque[servo]:
                self.snap_steps = max(self.snap_steps, abs(self.goal[servo] - self.position[servo]))
        self.settle()

    def settle(self):
        for servo, torque in self.torque.items():
            if torque:
                low, high = self.held.get(servo, (0, 4095))
                self.position[servo] = min(max(self.goal[servo], low), high)


@pytest.fixture
def simulated_servos():
    """The class, for a test to put on its line."""
    return SimulatedServos
