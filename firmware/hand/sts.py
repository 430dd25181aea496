"""Feetech STS bus servos: their packets, and a master for three of them on one half-duplex line. Sans-IO.

A packet is FF FF id length instruction parameters checksum; length counts instruction, parameters and checksum;
the checksum is the complement of the sum of everything after FF FF. A servo answers with an error byte in place of
the instruction. Numbers of two bytes have the low one first; signs are a bit of their own, not a complement.

Sources: Feetech "SCS communication protocol" and "STS memory table" (doc.feetech.cn, FT-SCS-Protocol and
FT-SMS-STS-emanual); the same registers in huggingface/lerobot, src/lerobot/motors/feetech/tables.py, and in
Feetech's own SMS_STS.h. Never run on hardware so far.
"""

READ = 0x02
WRITE = 0x03
SYNC_WRITE = 0x83
BROADCAST = 0xFE

TORQUE_ENABLE = 40  # u8: 0 off, 1 on
ACCELERATION = 41  # u8: 0 is none of the servo's own, it follows the setpoints as they come
GOAL_POSITION = 42  # u16, sign in bit 15
PRESENT_POSITION = 56  # u16, sign in bit 15; then speed u16, then load u16 with its sign in bit 10
_PRESENT_SIZE = 6
STEPS_PER_TURN = 4096

# Bits of the error byte: voltage, encoder, temperature, current, load.
ERRORS = 0x2F

# A servo answers within 0.5 ms at 1 Mbit/s; the rest is our own loop and its garbage collections.
REPLY_US = 8000
# Without an answer for so long a servo counts as gone.
SILENCE_US = 200000
_PACKET_MAX = 32


def checksum(packet: "bytes | bytearray", end: int) -> int:
    """Of a packet whose checksum belongs at index end."""
    total = 0
    for i in range(2, end):
        total += packet[i]
    return ~total & 0xFF


def packet(servo: int, instruction: int, parameters: "bytes | bytearray") -> bytes:
    """One instruction packet."""
    out = bytearray(6 + len(parameters))
    out[0] = out[1] = 0xFF
    out[2] = servo
    out[3] = len(parameters) + 2
    out[4] = instruction
    out[5:-1] = parameters
    out[-1] = checksum(out, len(out) - 1)
    return bytes(out)


def sync_write(address: int, size: int, servos: "tuple[int, ...]", values: "list[int]") -> bytes:
    """One packet that writes a value of 1 or 2 bytes to each servo; nobody answers it."""
    parameters = bytearray((address, size))
    for i in range(len(servos)):
        parameters.append(servos[i])
        value = values[i]
        parameters.append(value & 0xFF)
        if size == 2:
            parameters.append(value >> 8 & 0xFF)
    return packet(BROADCAST, SYNC_WRITE, parameters)


def signed(value: int, sign_bit: int) -> int:
    """A number with its sign in a bit of its own, and nothing above that."""
    magnitude = value & ((1 << sign_bit) - 1)
    return -magnitude if value >> sign_bit & 1 else magnitude


def sign_magnitude(value: int, sign_bit: int) -> int:
    """The other way round."""
    return 1 << sign_bit | -value if value < 0 else value


class Decoder:
    """Bytes in, one packet at a time out: feed() until it says True, then servo, status, and parameters.

    Resynchronises at any byte. On a single-wire bus it hears our own instructions too; whoever waits for an
    answer tells them by their length (see Bus).
    """

    def __init__(self) -> None:
        self._packet = bytearray(_PACKET_MAX)
        self._n = 0
        self.servo = 0
        self.status = 0
        self.size = 0
        self.checksum_errors = 0

    def feed(self, byte: int) -> bool:
        """Whether this byte completed a valid packet."""
        held = self._packet
        if self._n == 2 and byte == 0xFF:
            # More than two FF: an id is never FF, so the header began later.
            return False
        if self._n < 2 and byte != 0xFF:
            self._n = 0
            return False
        held[self._n] = byte
        self._n += 1
        if self._n == 4 and not 2 <= byte <= _PACKET_MAX - 4:
            self._n = 0
            return False
        if self._n < 4 or self._n < 4 + held[3]:
            return False
        end = self._n - 1
        self._n = 0
        if checksum(held, end) != byte:
            self.checksum_errors += 1
            return False
        self.servo = held[2]
        self.status = held[4]
        self.size = held[3] - 2
        return True

    def word(self, at: int) -> int:
        """Two bytes of the parameters from index at."""
        return self._packet[5 + at] | self._packet[6 + at] << 8


class Bus:
    """Asks three servos in turn where they are and what they carry, and tells them where to go in between.

    The line is half duplex: nothing is sent while an answer is awaited.
    """

    def __init__(self, servos: "tuple[int, int, int]") -> None:
        self._servos = servos
        self._decoder = Decoder()
        self._asks = [packet(servo, READ, bytes((PRESENT_POSITION, _PRESENT_SIZE))) for servo in servos]
        self._goals = [0, 0, 0]
        self._has_goals = False
        self._must_ask = False
        self._is_powered = False
        self._is_torque_due = False
        self._asked = -1
        self._asked_us = 0
        self._turn = 0
        self._measured = [False, False, False]
        self._heard_us = [-SILENCE_US, -SILENCE_US, -SILENCE_US]
        self._now_us = 0
        self.position = [0, 0, 0]
        self.load = [0, 0, 0]
        self.error = [0, 0, 0]
        self.readings = 0
        self.timeouts = 0

    def go(self, goals: "list[int]") -> None:
        """New goals in steps; sent as soon as the line is free. The first ones are sent before torque."""
        for i in range(3):
            self._goals[i] = sign_magnitude(goals[i], 15)
        self._has_goals = True

    def relax(self) -> bytes:
        """The packet that makes all three limp, for a program that ends."""
        return sync_write(TORQUE_ENABLE, 1, self._servos, [0, 0, 0])

    def ready(self) -> bool:
        """Whether all three have answered lately and none reports an error."""
        for i in range(3):
            if self._now_us - self._heard_us[i] >= SILENCE_US or self.error[i]:
                return False
        return True

    def receive(self, data: "bytes | bytearray | memoryview", now_us: int) -> None:
        """Take bytes from the line."""
        for byte in data:
            if self._decoder.feed(byte):
                self._take(now_us)

    def _take(self, now_us: int) -> None:
        decoder = self._decoder
        i = self._asked
        if i < 0 or decoder.servo != self._servos[i] or decoder.size != _PRESENT_SIZE:
            # Our own instruction on a single-wire bus, or an answer that came too late.
            return
        self._asked = -1
        self.position[i] = signed(decoder.word(0), 15)
        self.load[i] = signed(decoder.word(4) & 0x7FF, 10)
        self.error[i] = decoder.status & ERRORS
        self._heard_us[i] = now_us
        self._measured[i] = True
        if self._measured[0] and self._measured[1] and self._measured[2]:
            self._measured[0] = self._measured[1] = self._measured[2] = False
            self.readings += 1

    def poll(self, now_us: int) -> bytes:
        """What to put on the line now, b"" for nothing."""
        self._now_us = now_us
        if self._asked >= 0:
            if now_us - self._asked_us < REPLY_US:
                return b""
            self.timeouts += 1
            self._asked = -1
        if self._is_torque_due:
            # After the first goals: what was limp wakes up where it stands.
            self._is_torque_due = False
            return sync_write(TORQUE_ENABLE, 1, self._servos, [1, 1, 1])
        if self._has_goals and not self._must_ask:
            self._has_goals = False
            # A loop as slow as the setpoints come would never hear of the servos otherwise.
            self._must_ask = True
            if not self._is_powered:
                self._is_powered = self._is_torque_due = True
            return sync_write(GOAL_POSITION, 2, self._servos, self._goals)
        self._must_ask = False
        self._asked = self._turn
        self._asked_us = now_us
        self._turn = (self._turn + 1) % 3
        return self._asks[self._asked]
