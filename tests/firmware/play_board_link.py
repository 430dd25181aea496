"""A recorded conversation played to a BoardLink: INTERPRETER play_board_link.py ROOT < RECORDING.

Each line is a time in microseconds and hex bytes from the host; prints the board's output after each, as hex.
"""

import sys

sys.path.insert(0, sys.argv[1])

from firmware import wire
from firmware.link import BoardLink, Core


class PlayedCore(Core):
    """Contact 20 ms after the start, done after 40 ms."""

    def __init__(self):
        self._started_us = -1

    def caps(self):
        return wire.CAP_HAND_TAP

    def hello_tail(self):
        return wire.pack_hand_tail(0, 100000, 0, 200000, -5000, 20000, 200, 3000)

    def flags(self):
        return wire.FLAG_HOMED

    def start(self, op, args, now_us):
        if op != wire.OP_TAP:
            return wire.FAULT_UNSUPPORTED
        self._started_us = now_us
        return 0

    def data(self, op, args):
        return 0

    def poll(self, now_us):
        if self._started_us >= 0 and now_us - self._started_us >= 20000:
            self.link.contact(now_us)
        if self._started_us >= 0 and now_us - self._started_us >= 40000:
            self._started_us = -1
            self.link.done(now_us)

    def deadman(self, now_us):
        self._started_us = -1

    estop = deadman

    def clear_estop(self, now_us):
        pass


def unhex(text):
    return bytes(int(text[i : i + 2], 16) for i in range(0, len(text), 2))


def main():
    link = BoardLink(PlayedCore(), b"playback", wire.KIND_HAND, 0xB007, wire.RESET_POWER_ON)
    for line in sys.stdin:
        now_us, _, data = line.strip().partition(" ")
        link.receive(unhex(data), int(now_us))
        link.poll(int(now_us))
        sys.stdout.write("".join(f"{byte:02x}" for byte in link.take_output()) + "\n")


if __name__ == "__main__":
    main()
