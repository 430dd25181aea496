"""The phones' own logs: what touched the glass and which keys came over USB, whatever anybody says on a link."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from edge_daemon.bench.link.presses import GLASS_Z_UM, PressLog
from edge_daemon.bench.twin import hid_layouts
from edge_daemon.bench.twin.hidhost import CONSUMER_KEYS
from firmware.hid import descriptor
from firmware.hid.core import Usb

NS_PER_MS = 1_000_000

POLL_NS = 4 * NS_PER_MS
"""How often a phone asks its keyboard for a report."""
ENUMERATION_NS = 30 * NS_PER_MS
"""From a board's start to the phone having taken it as a keyboard. A real phone takes longer; nothing depends on it."""
SHIFTS, ALTGR = 0x22, 0x40
NAMED_KEYS = {0x28: "enter", 0x2A: "delete"}

TouchKind = Literal["place", "lift", "symbol", "key"]


@dataclass(frozen=True)
class Touch:
    """One thing that reached a phone: a contact's beginning or end at a place (hand µm, or units of the touch screen),
    a character that was typed, or a key by its name."""

    at_ns: int
    device: str
    kind: TouchKind
    x: int = 0
    y: int = 0
    name: str = ""


class Phone:
    """One phone's log; it goes on over restarts of everything."""

    def __init__(self, device: str, now_ns: Callable[[], int]) -> None:
        self.device = device
        self.touches: list[Touch] = []
        self._now_ns = now_ns

    def touched(self, x: int, y: int) -> None:
        self.touches.append(Touch(self._now_ns(), self.device, "place", x, y))

    def let_go(self, x: int, y: int) -> None:
        self.touches.append(Touch(self._now_ns(), self.device, "lift", x, y))

    def typed(self, symbol: str) -> None:
        self.touches.append(Touch(self._now_ns(), self.device, "symbol", name=symbol))

    def key_pressed(self, name: str) -> None:
        self.touches.append(Touch(self._now_ns(), self.device, "key", name=name))


class Glass(PressLog):
    """Setpoints of a hand's drives in, contacts out."""

    def __init__(self, phone: Phone) -> None:
        super().__init__()
        self._phone = phone

    def setpoint(self, x_um: int, y_um: int, z_um: int) -> None:
        if z_um < GLASS_Z_UM and not self.pressed:
            self._phone.touched(x_um, y_um)
        if z_um >= GLASS_Z_UM and self.pressed:
            self._phone.let_go(x_um, y_um)
        super().setpoint(x_um, y_um, z_um)


class Cable(Usb):
    """USB between one start of a HID board and its phone: the phone takes one report each `POLL_NS`."""

    def __init__(self, phone: Phone, layout: str, now_ns: Callable[[], int], down: PressLog) -> None:
        """down: told whether the phone holds anything to be pressed."""
        self._phone = phone
        self._down = down
        self.presses = 0
        """Reports handed over in which something is pressed."""
        self._layout = hid_layouts.LAYOUTS[layout]
        self._now_ns = now_ns
        self._ready_ns = now_ns() + ENUMERATION_NS
        self._queued: bytes | None = None
        self._taken_ns = 0
        self._keys: frozenset[int] = frozenset()
        self._consumer = 0
        self._tip = False

    def ready(self) -> bool:
        return self._now_ns() >= self._ready_ns

    def send(self, report: bytes | memoryview) -> bool:
        if self._queued is not None:
            return False
        self._queued = bytes(report)
        self.presses += descriptor.is_pressing(memoryview(self._queued))
        self._taken_ns = self._now_ns() + POLL_NS
        return True

    def pending(self) -> int:
        return self._queued is not None

    def leds(self) -> int:
        return 0

    def due_ns(self) -> int | None:
        """When `advance` has something to do."""
        if not self.ready():
            return self._ready_ns
        return self._taken_ns if self._queued is not None else None

    def advance(self) -> None:
        """The phone asks for a report, when it is time."""
        if self._queued is not None and self._now_ns() >= self._taken_ns:
            report, self._queued = self._queued, None
            self._take(report)

    def _take(self, report: bytes) -> None:
        match report[0]:
            case descriptor.REPORT_KEYBOARD:
                self._keyboard(report[1], report[3:])
            case descriptor.REPORT_CONSUMER:
                usage = int.from_bytes(report[1:3], "little")
                if usage and usage != self._consumer:
                    self._phone.key_pressed(CONSUMER_KEYS["android"].get(usage, f"consumer {usage:#x}"))
                self._consumer = usage
            case descriptor.REPORT_TOUCH:
                tip = bool(report[1] & 1)
                place = report[3] | report[4] << 8, report[5] | report[6] << 8
                if tip and not self._tip:
                    self._phone.touched(*place)
                if self._tip and not tip:
                    self._phone.let_go(*place)
                self._tip = tip
        self._down.pressed = bool(self._keys or self._consumer or self._tip)

    def _keyboard(self, modifiers: int, usages: bytes) -> None:
        keys = frozenset(usages) - {0}
        for usage in sorted(keys - self._keys):
            if usage in NAMED_KEYS:
                self._phone.key_pressed(NAMED_KEYS[usage])
            else:
                level = (1 if modifiers & SHIFTS else 0) + (2 if modifiers & ALTGR else 0)
                self._phone.typed(self._layout.get(usage, ("",) * 4)[level] or f"usage {usage:#x}")
        self._keys = keys


def near(a: tuple[int, int], b: tuple[int, int], tolerance: int) -> bool:
    """Whether two places are one, in their own unit."""
    return math.dist(a, b) <= tolerance
