"""The execution log: what the drives were told to do, whatever anybody says on the link."""

import math
from collections.abc import Callable

from edge_daemon.bench.link.proxy import NS_PER_MS

# The bench's glass: a setpoint below it is a press. The hand's own zero, so that a tap's depth decides.
GLASS_Z_UM = 0
# Places are 400 µm apart, and a command's own place is met to the micrometre: a flipped bit shows.
SAME_PLACE_UM = 20
# What was to happen at the next press happens after this long without one: then the hand rests.
EVENTUALLY_MS = 1000

PRESS_Z_MM = -0.5
HOVER_Z_MM = 3.0
DWELL_MS = 30
_FIRST_MM = 3.0
_PITCH_MM = 0.4
_ROW = 60


def place_mm(number: int) -> tuple[float, float]:
    """A place of its own for each command, so that a press says whose it is. Close together: travel is short."""
    return _FIRST_MM + _PITCH_MM * (number % _ROW), _FIRST_MM + _PITCH_MM * (number // _ROW)


class PressLog:
    """Setpoints of the drives in, presses of the glass out; it goes on over restarts of the board."""

    def __init__(self) -> None:
        self.pressed = False
        self.presses_um: list[tuple[int, int]] = []

    def setpoint(self, x_um: int, y_um: int, z_um: int) -> None:
        pressed = z_um < GLASS_Z_UM
        if pressed and not self.pressed:
            self.presses_um.append((x_um, y_um))
        self.pressed = pressed

    def count_at(self, place: tuple[float, float]) -> int:
        """How often the glass was pressed there."""
        return sum(_is_at(press, place) for press in self.presses_um)

    def strays(self, places: list[tuple[float, float]]) -> int:
        """Presses that belong to none of these places."""
        return sum(not any(_is_at(press, place) for place in places) for press in self.presses_um)


def _is_at(press_um: tuple[int, int], place: tuple[float, float]) -> bool:
    return math.dist(press_um, (place[0] * 1000, place[1] * 1000)) <= SAME_PLACE_UM


class Watches:
    """What a fault does when the stylus comes down or up, or after a while."""

    def __init__(self, presses: PressLog) -> None:
        self._presses = presses
        self._waiting: list[tuple[bool | None, int, Callable[[], None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def when_pressed(self, pressed: bool, now_ns: int, action: Callable[[], None]) -> None:
        self._waiting.append((pressed, now_ns + EVENTUALLY_MS * NS_PER_MS, action))

    def later(self, due_ns: int, action: Callable[[], None]) -> None:
        self._waiting.append((None, due_ns, action))

    def look(self, now_ns: int) -> list[int]:
        """Do what is due; returns when the others are, at the latest. Actions may add to them."""
        waiting, self._waiting = self._waiting, []
        for pressed, latest_ns, action in waiting:
            if pressed == self._presses.pressed or now_ns >= latest_ns:
                action()
            else:
                self._waiting.append((pressed, latest_ns, action))
        return [latest_ns for _, latest_ns, _ in self._waiting]
