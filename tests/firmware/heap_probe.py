"""Runs under MicroPython: many commands through the link and a core, then says what the heap has left.

    micropython -X heapsize=160k tests/firmware/heap_probe.py ROOT hand|hid

Prints the free bytes after a warm-up and after COMMANDS more. Not a test file: the test that runs it is
test_heap.py.
"""

import binascii
import gc
import sys

sys.path.insert(0, sys.argv[1])

from firmware import wire
from firmware.link import BoardLink

COMMANDS = 300
WARM_UP = 40


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
        else:
            from firmware.hid.core import HidCore

            self.core = HidCore(self, wire.PROFILE_ANDROID, wire.LAYOUT_DE)
            kind_id = wire.KIND_HID
        self.link = BoardLink(self.core, bytes(8), kind_id, 7, wire.RESET_POWER_ON)
        self.send(wire.OPEN)

    # what the cores call
    def write(self, x: int, y: int, z: int) -> None:
        pass

    def read(self) -> None:
        return None

    def retained(self) -> None:
        return None

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
        self.seq += 1
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
        return rig.command(wire.OP_KEY, i % 8)
    if i % 3 == 1:
        return rig.command(wire.OP_HID_SWIPE, 0, 0, 9000, i, 40)
    text = "Grüße é@".encode()
    return rig.command(wire.OP_TEXT_LOAD, 0, tail=text) and rig.command(
        wire.OP_TEXT_GO, len(text), binascii.crc32(text)
    )


def main() -> None:
    kind = sys.argv[2]
    rig = Rig(kind)
    one = hand_command if kind == "hand" else hid_command
    if kind == "hand":
        rig.command(wire.OP_HOME)
    for i in range(WARM_UP):
        assert one(rig, i)
    gc.collect()
    before = gc.mem_free()
    for i in range(COMMANDS):
        assert one(rig, i)
    gc.collect()
    sys.stdout.write(f"{before} {gc.mem_free()}\n")


main()
