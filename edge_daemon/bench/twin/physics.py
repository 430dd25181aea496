"""The one thread in which the simulated world happens: wires are read, the hand moves, the phone is polled.

It is a thread and not a task because physics must not stop while the bench's event loop computes. Everything
that touches the hand's plant or the HID host holds `lock`.
"""

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path

from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.frames import Placement
from edge_daemon.bench.twin.hidhost import HidHost
from edge_daemon.bench.twin.line import SerialLine
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.phone import Phone

# How often the hand is stepped on while it moves: a touch is never noticed later than this.
TICK_NS = 4_000_000
# The hand's board writes a setpoint each 4 ms (firmware/hand/core.py).
SETPOINT_NS = 4_000_000


class Wire:
    """One board's end of the wiring: a listening unix socket and the connection of the process of the moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(2)
        self.listener.setblocking(False)
        self.connection: socket.socket | None = None
        self.records = wiring.Records()

    def accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self.listener.accept()
            self.drop()
            connection.setblocking(False)
            self.connection = connection
            self.records = wiring.Records()

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def send(self, data: bytes) -> None:
        if self.connection is not None and data:
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                self.connection.sendall(data)

    def receive(self) -> list[tuple[int, bytes]]:
        """Records that have come; closes the connection at its end."""
        if self.connection is None:
            return []
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            data = b""
        if not data:
            self.drop()
        return list(self.records.feed(data))

    def close(self) -> None:
        self.drop()
        self.listener.close()
        self.path.unlink(missing_ok=True)


class Physics:
    """Owns time for the hand and the HID host, and moves the bytes on all lines and wires."""

    def __init__(
        self, phone: Phone, hand: Hand, hid_host: HidHost, directory: Path, on_turn: Callable[[], None]
    ) -> None:
        """on_turn is called, on the world's thread, after each time something may have happened."""
        self._on_turn = on_turn
        self.lock = threading.RLock()
        self.phone = phone
        self.hand = hand
        self.hid_host = hid_host
        self.hand_wire = Wire(directory / "hand.wire")
        self.hid_wire = Wire(directory / "hid.wire")
        self.lines: list[SerialLine] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._stopping = False
        self._stepped_ns = time.monotonic_ns()

    def stop(self) -> None:
        """Make run() return soon; from any thread."""
        self._stopping = True
        self.wake()

    def close(self) -> None:
        """Close every wire. Only after run() has returned."""
        for wire in (self.hand_wire, self.hid_wire):
            wire.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def wake(self) -> None:
        """Look again at what to wait for: call it after changing a line."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"w")

    # -- from other threads --------------------------------------------------------------------------

    def push_hand(self, dx_mm: float, dy_mm: float, dz_mm: float) -> None:
        """Somebody shoves the arm; its board senses it."""
        with self.lock:
            self.phone.glass(self.hand.push(dx_mm, dy_mm, dz_mm, self._now()))
            shove_um = [round(mm * 1000) for mm in (dx_mm, dy_mm, dz_mm)]
            self.hand_wire.send(wiring.record(wiring.PUSHED, struct.pack("<iii", *shove_um)))

    def place_phone(self, placement: Placement) -> None:
        """The phone lies elsewhere under the hand."""
        with self.lock:
            self.phone.glass(self.hand.place_phone(placement, self._now()))

    def reboot_phone(self) -> None:
        """The phone restarts: its USB host takes the board again later."""
        with self.lock:
            self.hid_host.reboot_phone(self._now())
        self.wake()

    def power_off_hand(self) -> None:
        """The drives let go: a spring lifts the stylus."""
        with self.lock:
            self.hand_wire.drop()
            self.phone.glass(self.hand.let_go(self._now()))
        self.wake()

    def unplug_usb(self) -> None:
        """The HID board is gone from the phone."""
        with self.lock:
            self.hid_wire.drop()
            self.hid_host.unplugged(self._now())

    def suspend_usb(self, suspended: bool) -> None:
        """The phone lets the HID board's bus sleep, or wakes it."""
        with self.lock:
            self.hid_host.set_suspended(suspended, self._now())
        self.wake()

    def set_caps_lock(self, on: bool) -> None:
        """Somebody toggles caps lock on the phone: the board hears of it by its LED report."""
        with self.lock:
            self.hid_host.set_caps_lock(on)
        self.wake()

    # -- the loop ----------------------------------------------------------------------------------------

    def _now(self) -> int:
        return time.monotonic_ns()

    def run(self) -> None:
        """Let the world happen until stop(); blocks."""
        while not self._stopping:
            with self.lock:
                watched = self._watched()
                timeout_s = self._timeout_s()
            poller = select.poll()
            for fd in watched:
                poller.register(fd, select.POLLIN)
            # A descriptor closed by another thread meanwhile only ends this wait early.
            ready = {fd for fd, _ in poller.poll(None if timeout_s is None else ceil(timeout_s * 1000))}
            with self.lock:
                self._turn(ready)
            self._on_turn()

    def _watched(self) -> list[int]:
        fds = [self._wake_read]
        for wire in (self.hand_wire, self.hid_wire):
            ends = (wire.listener, wire.connection)
            fds.extend(end.fileno() for end in ends if end is not None)
        for line in self.lines:
            fds.extend(line.fds())
        return fds

    def _timeout_s(self) -> float | None:
        dues = [self.hid_host.due_ns(), self.phone.due_ns()]
        if not self.hand.at_rest:
            dues.append(self._stepped_ns + TICK_NS)
        due_ns = min((due for due in dues if due is not None), default=None)
        return None if due_ns is None else max(0.0, (due_ns - self._now()) / 1e9)

    def _turn(self, ready: set[int]) -> None:
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        for line in self.lines:
            # A line may have changed under the selector: only descriptors that are still its own count.
            for fd in ready & set(line.fds()):
                line.pump(fd)
        for wire in (self.hand_wire, self.hid_wire):
            wire.accept()
        now_ns = self._now()
        self._take_joints(now_ns)
        self._take_hid(now_ns)
        self.phone.glass(self.hand.advance(now_ns))
        self.hid_host.advance(now_ns)
        self.hid_wire.send(self.hid_host.take_answers())
        self.phone.advance(now_ns)
        self._stepped_ns = now_ns

    def _take_joints(self, now_ns: int) -> None:
        """Setpoints that came in one piece were written one after another, while this thread had no core."""
        records = self.hand_wire.receive()
        setpoints = [struct.unpack("<iii", payload) for kind, payload in records if kind == wiring.JOINTS]
        count = len(setpoints)
        since_ns = max(self._stepped_ns, now_ns - count * SETPOINT_NS)
        for index, (x_um, y_um, z_um) in enumerate(setpoints, start=1):
            at_ns = since_ns + (now_ns - since_ns) * index // count
            self.phone.glass(self.hand.command(x_um, y_um, z_um, at_ns))
        if any(kind == wiring.SENSE for kind, _ in records):
            self.phone.glass(self.hand.advance(now_ns))
            self.hand_wire.send(wiring.record(wiring.SENSED, struct.pack("<ih", *self.hand.feel())))

    def _take_hid(self, now_ns: int) -> None:
        had_board = self.hid_wire.connection is not None
        for kind, payload in self.hid_wire.receive():
            if kind == wiring.HID_DESCRIPTOR:
                offset, last = struct.unpack_from("<HB", payload)
                self.hid_host.descriptor(offset, bool(last), payload[3:], now_ns)
            elif kind == wiring.HID_REPORT:
                self.hid_host.report(payload, now_ns)
        if had_board and self.hid_wire.connection is None:
            self.hid_host.unplugged(now_ns)
