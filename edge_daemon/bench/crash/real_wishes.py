"""What the plane asks for while real processes are killed: actions that can be told apart on a phone afterwards."""

import math
from collections.abc import Collection
from random import Random
from string import ascii_lowercase, ascii_uppercase, digits

from calibration.screen import ScreenGeometry
from edge_daemon.bench.crash.real_notes import Wish, WishKind
from edge_daemon.bench.link.presses import SAME_PLACE_UM
from firmware import wire

SCREEN = ScreenGeometry(width_px=1080, height_px=1800, width_mm=60.0, height_mm=100.0)
ORIGIN_MM = 10.0
"""The screen's top left corner in hand millimetres, both axes; the axes run the same way."""
_FIRST_MM, _PITCH_MM, _ROW = 4.0, 1.0, 50
_DRAG_MM = 6.0
"""How far a swipe goes, down the screen."""
_DRAG_MS = (120, 200)
_LONG_DRAG_MS = (700, 1000)
"""A hand whose host has died breaks off what takes longer than its deadman, 600 ms."""
STARTS = ascii_uppercase + digits
"""A text begins with one of these and has it nowhere else, so that the typed characters fall into texts."""
INSIDE = ascii_lowercase
_LETTERS = (8, 14)
_LONG_LETTERS = (45, 65)
"""At 16 ms a character longer than the deadman too."""
_LONG_SHARE = 0.25

_KINDS: tuple[WishKind, ...] = ("tap", "swipe", "text", "key")
_WEIGHTS = (35, 20, 30, 15)


def place_um(number: int) -> tuple[int, int]:
    """A place of its own for each number, in hand µm, so that a contact says whose it is."""
    x_mm, y_mm = _place_mm(number)
    return round((x_mm + ORIGIN_MM) * 1000), round((y_mm + ORIGIN_MM) * 1000)


def number_at(x_um: int, y_um: int) -> int | None:
    """Whose place this is, of hand µm; None when it is nobody's."""
    x_mm, y_mm = x_um / 1000.0 - ORIGIN_MM, y_um / 1000.0 - ORIGIN_MM
    column, row = round((x_mm - _FIRST_MM) / _PITCH_MM), round((y_mm - _FIRST_MM) / _PITCH_MM)
    number = row * _ROW + column
    near = math.dist((x_um, y_um), place_um(number)) <= SAME_PLACE_UM
    return number if near and 0 <= column < _ROW and row >= 0 else None


def _place_mm(number: int) -> tuple[float, float]:
    row, column = divmod(number, _ROW)
    return _FIRST_MM + _PITCH_MM * column, _FIRST_MM + _PITCH_MM * row


def _grid(x_mm: float, y_mm: float) -> tuple[float, float]:
    return x_mm / SCREEN.width_mm * 1000.0, y_mm / SCREEN.height_mm * 1000.0


class Wishes:
    """Those of one device: no two share a place or a text, and the strokes of one key do not overlap."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._places = 0
        self._texts = 0

    def draw(self, names: Collection[str]) -> Wish:
        """The next one. names: the keys that may be struck now; with none it is another kind."""
        (kind,) = self._rng.choices(_KINDS, _WEIGHTS)
        if kind == "text":
            return self.text()
        if kind == "key" and names:
            return press(self._rng.choice(sorted(names)))
        return self.swipe() if kind == "swipe" else self.tap()

    def tap(self) -> Wish:
        number = self._next_place()
        x, y = _grid(*_place_mm(number))
        return Wish("tap", {"type": "tap", "x": x, "y": y}, number, place_um(number))

    def swipe(self) -> Wish:
        number = self._next_place()
        x_mm, y_mm = _place_mm(number)
        (from_x, from_y), (to_x, to_y) = _grid(x_mm, y_mm), _grid(x_mm, y_mm + _DRAG_MM)
        bounds = _LONG_DRAG_MS if self._rng.random() < _LONG_SHARE else _DRAG_MS
        action = {"type": "swipe", "fromX": from_x, "fromY": from_y, "toX": to_x, "toY": to_y}
        x_um, y_um = place_um(number)
        end_um = (x_um, y_um + round(_DRAG_MM * 1000))
        return Wish("swipe", {**action, "durationMs": self._rng.randint(*bounds)}, number, end_um)

    def text(self) -> Wish:
        turn, start = divmod(self._texts, len(STARTS))
        self._texts += 1
        high, low = divmod(turn, len(INSIDE))
        bounds = _LONG_LETTERS if self._rng.random() < _LONG_SHARE else _LETTERS
        letters = "".join(self._rng.choices(INSIDE, k=self._rng.randint(*bounds)))
        text = f"{STARTS[start]}{INSIDE[low]}{INSIDE[high]}{letters}."
        return Wish("text", {"type": "typeText", "text": text}, text=text)

    def _next_place(self) -> int:
        self._places += 1
        return self._places - 1


KEYS = frozenset(wire.KEY_NAMES)


def press(name: str) -> Wish:
    """A stroke of one of KEYS."""
    return Wish("key", {"type": "pressKey", "key": name}, name=name)
