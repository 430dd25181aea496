"""A HID board with both ends of its link on the test's own clock, and a kernel as its phone."""

import binascii

from input_nodes import Event
from kernel_phone import KernelPhone, KernelUsb

from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import CommandDone, CommandFaulted, DataTaken, LinkEvent, Online
from firmware import wire
from firmware.hid.core import HidCore
from firmware.link import BoardLink

UID = bytes.fromhex("ed6e000000000001")
STEP_NS = 4_000_000
# bInterval of the board's endpoint.
PHONE_POLLS_EACH_NS = 8_000_000
MAX_STEPS = 30_000
_TEXT_CHUNK = wire.CMD_ARGS_MAX - 2


class HidRig:
    """Online when it is made. ``events`` collects (node name, event) in the order of the reports."""

    def __init__(self, phone: KernelPhone, profile: int = wire.PROFILE_ANDROID, layout: int = wire.LAYOUT_US):
        self.phone = phone
        self.usb = KernelUsb(phone)
        self.link = BoardLink(HidCore(self.usb, profile, layout), UID, wire.KIND_HID, 1, wire.RESET_POWER_ON)
        self.now_ns = 1_000_000_000
        self.host = HostLink(1, self.now_ns)
        self.is_cut = False
        self.events: list[tuple[str, Event]] = []
        self._next_id = 0
        self.until(Online)
        while not self.host.flags & wire.FLAG_USB_READY:
            self.step()

    def step(self) -> list[LinkEvent]:
        self.now_ns += STEP_NS
        now_us = self.now_ns // 1000
        if self.now_ns % PHONE_POLLS_EACH_NS == 0:
            self.usb.poll()
            self._collect()
        due_ns = self.host.next_deadline()
        if not self.is_cut:
            if due_ns is not None and self.now_ns >= due_ns:
                self.host.poll(self.now_ns)
            self.link.receive(self.host.take_output(), now_us)
        self.link.poll(now_us)
        output = self.link.take_output()
        if not self.is_cut:
            self.host.receive(output, self.now_ns)
        return self.host.take_events()

    def steps(self, seconds: float) -> None:
        for _ in range(int(seconds * 1e9) // STEP_NS):
            self.step()

    def until(self, *kinds: type) -> LinkEvent:
        for _ in range(MAX_STEPS):
            for event in self.step():
                if isinstance(event, kinds):
                    return event
        raise AssertionError(f"no {kinds} within {MAX_STEPS} steps")

    def begin(self, op: int, args: bytes) -> int:
        """Give a command and leave it running; returns its id."""
        self._next_id += 1
        self.host.command(self._next_id, op, args, self.now_ns)
        return self._next_id

    def carry_out(self, op: int, *fields: int) -> "CommandDone | CommandFaulted":
        """A command to its end, and the kernel's last event."""
        self.begin(op, wire.pack_args(op, *fields))
        return self.end()

    def end(self) -> "CommandDone | CommandFaulted":
        ended = self.until(CommandDone, CommandFaulted)
        self._collect()
        assert isinstance(ended, CommandDone | CommandFaulted)
        return ended

    def key(self, name: str) -> "CommandDone | CommandFaulted":
        return self.carry_out(wire.OP_KEY, wire.KEY_NAMES.index(name))

    def load(self, text: str) -> bytes:
        """Put a text into the board; returns TEXT_GO's arguments."""
        utf8 = text.encode()
        for at in range(0, len(utf8), _TEXT_CHUNK):
            chunk = wire.pack_args(wire.OP_TEXT_LOAD, at, tail=utf8[at : at + _TEXT_CHUNK])
            self.host.data(wire.OP_TEXT_LOAD, chunk, self.now_ns)
            self.until(DataTaken)
        return wire.pack_args(wire.OP_TEXT_GO, len(utf8), binascii.crc32(utf8))

    def text(self, text: str) -> "CommandDone | CommandFaulted":
        self.begin(wire.OP_TEXT_GO, self.load(text))
        return self.end()

    def take_events(self) -> list[tuple[str, Event]]:
        self._collect()
        events, self.events = self.events, []
        return events

    def _collect(self) -> None:
        self.phone.serve()
        for name, node in self.phone.nodes.items():
            self.events += [(name, event) for event in node.read()]
