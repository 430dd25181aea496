"""A simulated board: the firmware's cores on a Unix process, under MicroPython's unix port or CPython.

    micropython -X heapsize=160k firmware/ports/unix/main.py hand --serial FD --wiring SOCKET ...

The serial line is an inherited file descriptor, the hardware is a socket to the bench's simulated rig. The
process ends when that socket closes. See options.py for the arguments.
"""

import errno
import gc
import os
import select
import sys
import time

_HERE = "firmware/ports/unix/main.py"
if __name__ == "__main__" and __file__.endswith(_HERE):
    sys.path.insert(0, __file__[: -len(_HERE)] or ".")

from firmware import wire  # noqa: E402
from firmware.boot_id import boot_id  # noqa: E402
from firmware.link import BoardLink  # noqa: E402
from firmware.ports.unix.options import USAGE, Options, UsageError  # noqa: E402
from firmware.ports.unix.wiring import Wiring, WiringGone  # noqa: E402

MYPY = False
if MYPY:
    from firmware.hand.core import HandCore
    from firmware.hid.core import HidCore

# Fine enough for the link's 100 ms timers, coarse enough to cost nothing.
IDLE_MS = 20
# How often a line that nobody holds is looked at again: the poll would report the hang-up without end.
ABSENT_US = 100_000
COLLECT_US = 1_000_000
# A pty without its other end, a socket without it. MicroPython's errno has no EPIPE: 32 on Linux.
_NOBODY_THERE = (errno.EIO, errno.ECONNRESET, 32)

_ticks_us = getattr(time, "ticks_us", None)


def monotonic_us() -> int:
    return _ticks_us() if _ticks_us is not None else time.monotonic_ns() // 1000


def next_boot_id(path: str, randomness: bytes) -> int:
    """This start's number, counted in the file that stands in for the chip's NVS."""
    try:
        with open(path) as file:
            count = int(file.read())
    except (OSError, ValueError):
        count = 0
    count = (count + 1) & 0xFFFFFFFF
    with open(path + ".new", "w") as file:
        file.write("%d" % count)
    os.rename(path + ".new", path)
    return boot_id(count, randomness)


class SerialLine:
    """The board's end of the line. With nobody at the other end bytes fall off it, as off a real UART."""

    def __init__(self, fd: int, poller: select.poll) -> None:
        self.fd = fd
        self._file = open(fd, "r+b", 0)
        self._poller = poller
        self._buffer = bytearray(256)
        self._view = memoryview(self._buffer)
        self._absent_since_us = -1
        self._poller.register(self._file, select.POLLIN)

    def close(self) -> None:
        self._file.close()

    def owns(self, polled: object) -> bool:
        """Whether this is what the poll reports for the line: the file in MicroPython, its fd in CPython."""
        return polled is self._file or polled == self.fd

    def read(self, now_us: int) -> bytes:
        """What has come, b"" if nothing has. Never raises for a line that nobody holds."""
        try:
            n = self._file.readinto(self._buffer)
        except OSError as err:
            if err.errno not in _NOBODY_THERE:
                raise
            n = 0
        if n == 0:
            # A pty says EIO, a socket says end of file.
            self._poller.unregister(self._file)
            self._absent_since_us = now_us
        return bytes(self._view[:n]) if n else b""

    def look_again(self, now_us: int) -> None:
        """After ABSENT_US of absence let the poll tell again whether somebody is there."""
        if self._absent_since_us >= 0 and now_us - self._absent_since_us >= ABSENT_US:
            self._absent_since_us = -1
            self._poller.register(self._file, select.POLLIN)

    def write(self, data: bytes) -> None:
        """What does not fit at once is lost, as in a UART whose reader is too slow; the link re-sends."""
        if not data or self._absent_since_us >= 0:
            return
        try:
            self._file.write(data)
        except OSError as err:
            if err.errno not in _NOBODY_THERE + (errno.EAGAIN,):
                raise


# A board carries one core, as its flash would: the other one's code must not take up its heap.
def _make_hand(options: Options, wires: Wiring) -> "HandCore | HidCore":
    from firmware.hand.core import HandCore, HandLimits
    from firmware.ports.unix.drives import WiredDrives, make_arm

    was_powered = options.reset_cause != wire.RESET_POWER_ON
    arm = make_arm(options.kinematics, options.limits)
    drives = WiredDrives(wires, options.state_path + ".rtc", was_powered, arm, options.senses)
    return HandCore(drives, HandLimits(*options.limits), arm)


def _make_hid(options: Options, wires: Wiring) -> "HandCore | HidCore":
    from firmware.hid.core import HidCore
    from firmware.hid.profiles import PROFILES
    from firmware.ports.unix.usb import WiredUsb

    usb = WiredUsb(wires, PROFILES[options.profile].report_descriptor)
    return HidCore(usb, options.profile, options.layout)


class Board:
    """One simulated board: its core, its link and the loop that drives them."""

    def __init__(self, options: Options) -> None:
        self._poller = select.poll()
        self._wiring = Wiring(options.wiring_path)
        self._poller.register(self._wiring.stream, select.POLLIN)
        self._serial = SerialLine(options.serial_fd, self._poller)
        make_core = _make_hand if options.kind == wire.KIND_HAND else _make_hid
        self._core = make_core(options, self._wiring)
        gc.collect()
        number = next_boot_id(options.state_path, options.boot_random or os.urandom(3))
        self._link = BoardLink(self._core, options.uid, options.kind, number, options.reset_cause)
        self._started_us = monotonic_us()
        self._collected_us = 0

    def _now_us(self) -> int:
        # A board's clock counts from its own start.
        return monotonic_us() - self._started_us

    def run(self) -> None:
        """Until the wiring closes (WiringGone): wait for bytes or for the next thing due, never spin."""
        # ipoll allocates nothing; CPython has poll only.
        wait = getattr(self._poller, "ipoll", self._poller.poll)
        while True:
            now_us = self._now_us()
            self._link.poll(now_us)
            self._serial.write(self._link.take_output())
            self._serial.look_again(now_us)
            for polled in wait(self._wait_ms()):
                self._on_readable(polled[0])

    def _on_readable(self, polled: object) -> None:
        if self._serial.owns(polled):
            now_us = self._now_us()
            data = self._serial.read(now_us)
            if data:
                self._link.receive(data, now_us)
                # The answer first: motion and events have until the next round.
                self._serial.write(self._link.take_output())
        else:
            self._wiring.receive()

    def _wait_ms(self) -> int:
        now_us = self._now_us()
        due_us = self._core.due_us(now_us)
        if due_us >= 0:
            return min(IDLE_MS, (due_us + 999) // 1000)
        if now_us - self._collected_us >= COLLECT_US:
            self._collected_us = now_us
            gc.collect()
        return IDLE_MS


def main(args: "list[str]") -> int:
    try:
        Board(Options(args)).run()
    except UsageError as err:
        sys.stderr.write("main.py: %s\n%s\n" % (err, USAGE))
        return 2
    except WiringGone:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
