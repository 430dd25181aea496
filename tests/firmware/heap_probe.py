"""Runs under MicroPython: many commands through the link and a core, then says what the heap has left.

    micropython -X heapsize=160k tests/firmware/heap_probe.py ROOT KIND [COMMANDS]

Prints the free bytes after a warm-up and after COMMANDS (300) more. Not a test file: the test that runs it is
test_heap.py.
"""

import binascii
import gc
import sys

sys.path.insert(0, sys.argv[1])

from firmware import wire
from firmware.link import BoardLink

COMMANDS = int(sys.argv[3]) if len(sys.argv) > 3 else 300
WARM_UP = 40


BOX = (0, 160000, 0, 90000, -2000, 20000)
ARMS = {
    "hand-scara": {
        "kind": "scara",
        "base_um": [80000, -60000],
        "upper_um": 110000,
        "fore_um": 110000,
        "elbow": "left",
        "joints": [[0.0, 4.0, 6.0], [-2.8, -0.2, 6.0], [-2000, 20000, 300]],
    },
    "hand-linear": {
        "kind": "linear_delta",
        "base_um": [80000, 45000],
        "rod_um": 260000,
        "radius_um": 130000,
        "joints": [[0, 400000, 500]] * 3,
    },
    "hand-rotary": {
        "kind": "rotary_delta",
        "base_um": [80000, 45000, 210000],
        "arm_um": 100000,
        "forearm_um": 230000,
        "base_radius_um": 70000,
        "effector_radius_um": 30000,
        "joints": [[-1.6, 1.2, 8.0]] * 3,
    },
}


class Servos:
    """Three bus servos that are where they were told to be: the line's other end."""

    def __init__(self, positions) -> None:
        self.positions = positions
        self.answer = b""

    def any(self) -> int:
        return len(self.answer)

    def readinto(self, buffer: bytearray) -> int:
        n = len(self.answer)
        buffer[:n] = self.answer
        self.answer = b""
        return n

    def write(self, data: bytes) -> int:
        if data[4] == 2:
            from firmware.hand import sts

            low, high = self.positions[data[2] - 1] & 0xFF, self.positions[data[2] - 1] >> 8
            self.answer = sts.packet(data[2], 0, bytes((low, high, 0, 0, 0, 0)))
        elif data[5] == 42:
            for i in range(3):
                self.positions[i] = data[8 + 3 * i] | data[9 + 3 * i] << 8
        return len(data)


def bus_hand(config):
    """All that a hand can be: an arm on three bus servos."""
    from firmware.hand.arm_config import arm_from_config
    from firmware.hand.bus_motors import BusMotors
    from firmware.hand.core import HandCore, HandLimits
    from firmware.hand.joints import JointDrives, Memory
    from firmware.hand.kinematics import require_reach
    from firmware.hand.servo_axis import ServoAxis

    arm = arm_from_config(config)
    require_reach(arm, BOX)
    axes = [
        ServoAxis(slides, 1200 if slides else 2048, 7 if slides else 400, 0, 4095) for slides in arm.slides
    ]
    joints = [0.0, 0.0, 0.0]
    arm.inverse(float(BOX[0]), float(BOX[2]), float(BOX[5]), joints)
    servos = Servos([round(axes[i].count(joints[i])) for i in range(3)])
    motors = BusMotors(servos, (1, 2, 3), axes, arm.z_joint)
    for ms in range(50):
        motors.poll(ms * 1000)
    return HandCore(JointDrives(arm, motors, Memory()), HandLimits(*BOX, 300, 4000), arm)


class Rig:
    """A host and the hardware in one: the core's calls come here, frames go out by hand."""

    def __init__(self, kind: str) -> None:
        self.now_us = 1000
        self.seq = 0
        self.cmd_id = 0
        self.decoder = wire.Decoder()
        if kind == "hand":
            from firmware.hand.core import HandCore, HandLimits

            self.core = HandCore(self, HandLimits(0, 200000, 0, 130000, -3000, 30000, 300, 4000))
            kind_id = wire.KIND_HAND
        elif kind in ARMS:
            self.core = bus_hand(ARMS[kind])
            kind_id = wire.KIND_HAND
        else:
            from firmware.hid.core import HidCore

            profile = wire.PROFILE_IOS if kind == "hid-ios" else wire.PROFILE_ANDROID
            self.core = HidCore(self, profile, wire.LAYOUT_DE)
            kind_id = wire.KIND_HID
        self.link = BoardLink(self.core, bytes(8), kind_id, 7, wire.RESET_POWER_ON)
        self.send(wire.OPEN)
        # A HID board asks its phone first whether it listens.
        self.link.poll(self.now_us)
        self.link.poll(self.now_us)

    # what the cores call
    def write(self, x: int, y: int, z: int) -> None:
        pass

    def poll(self, now_us: int) -> None:
        pass

    def read(self) -> None:
        return None

    def retained(self) -> None:
        return None

    def senses(self) -> bool:
        return False

    def ready(self) -> bool:
        return True

    def pending(self) -> int:
        return 0

    def leds(self) -> int:
        return 0

    def send(self, frame_type: int, *fields: int, seq: int = 0, tail: bytes = b"") -> bool:
        if not isinstance(frame_type, int):
            return True  # a report: the phone takes it at once
        body = wire.pack_body(frame_type, *fields, tail=tail)
        self.link.receive(wire.encode_frame(frame_type, 7, 1, seq, body), self.now_us)
        return True

    def command(self, op: int, *args: int, tail: bytes = b"") -> bool:
        """Send one command and run the board until its outcome; whether that is DONE."""
        self.cmd_id += 1
        self.send(wire.CMD, self.cmd_id, op, seq=self.seq, tail=wire.pack_args(op, *args, tail=tail))
        self.seq = (self.seq + 1) & 0xFFFF
        while True:
            for frame in self.decoder.feed(self.link.take_output()):
                if frame.type >= wire.CONTACT:
                    self.send(wire.EVENT_ACK, seq=frame.seq)
                if frame.type in (wire.DONE, wire.FAULT):
                    return frame.type == wire.DONE
                if frame.type == wire.ACCEPTED and op >= wire.OP_DATA_FIRST:
                    return True
            self.now_us += 4000
            self.send(wire.HOST_HEARTBEAT, 0)
            self.link.poll(self.now_us)


def hand_command(rig: Rig, i: int) -> bool:
    if i % 3 == 2:
        return rig.command(wire.OP_SWIPE, 50000, 50000, -500, 52000, 50000, -500, 4000, 60)
    return rig.command(wire.OP_TAP, 50000 + i % 7 * 300, 50000, 4000, -500, 20)


def hid_command(rig: Rig, i: int) -> bool:
    if i % 3 == 0:
        return rig.command(wire.OP_KEY, 0 if i % 2 else 6)
    if i % 3 == 1 and sys.argv[2] == "hid-ios":
        return rig.command(wire.OP_POINTER_TAP, 9000, i, 750, 1600, 2000, 40, 60)
    if i % 3 == 1:
        return rig.command(wire.OP_HID_SWIPE, 0, 0, 9000, i, 40)
    text = "Grüße é@".encode()
    return rig.command(wire.OP_TEXT_LOAD, 0, tail=text) and rig.command(
        wire.OP_TEXT_GO, len(text), binascii.crc32(text)
    )


def main() -> None:
    kind = sys.argv[2]
    rig = Rig(kind)
    one = hand_command if kind.startswith("hand") else hid_command
    if kind.startswith("hand"):
        rig.command(wire.OP_HOME)
    for i in range(WARM_UP):
        assert one(rig, i)
    gc.collect()
    before = gc.mem_free()
    for i in range(COMMANDS):
        assert one(rig, i)
    gc.collect()
    after = gc.mem_free()
    sys.stdout.write(f"{before} {after}\n")
    # A result memory of odd-sized objects breathes by a block or two.
    sys.exit(0 if after >= before - 64 else 1)


main()
