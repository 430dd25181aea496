"""What the bench's plane asks for: a sequence of actions drawn from a seed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

EDGE_GRID = 25.0
"""Targets keep this far from the screen's edges in grid units: 1.7 mm across, 3.7 mm down; a touch nearer than a
landing error could miss the glass."""
TEXTS = ("Hello, rig 7!", "quick brown fox", "a@b-c.example", "Zebra (100 %)", "2 + 2 = 4; ok?")
KEYS = ("home", "back", "volume_up", "volume_down", "enter", "delete")


@dataclass(frozen=True)
class Step:
    """One thing the plane does. `action` is the wire's action map; None means: look only."""

    action: dict[str, Any] | None
    look_first: bool
    """Takes a leased picture before and binds the action to it."""

    @property
    def kind(self) -> str:
        return "look" if self.action is None else str(self.action["type"])

    @property
    def target(self) -> tuple[float, float] | None:
        """Where the action's contact should begin, in grid units; None for keys, text and looks."""
        if self.action is None:
            return None
        if "x" in self.action:
            return float(self.action["x"]), float(self.action["y"])
        if "fromX" in self.action:
            return float(self.action["fromX"]), float(self.action["fromY"])
        return None

    @property
    def end(self) -> tuple[float, float] | None:
        if self.action is None or "toX" not in self.action:
            return None
        return float(self.action["toX"]), float(self.action["toY"])


def draw_script(count: int, seed: int) -> list[Step]:
    """`count` actions: three quarters taps over the whole screen, the rest swipes, holds, keys and text.

    Every fourth action is preceded by a look and bound to its frame, so that frameNotes are exercised.
    """
    rng = np.random.default_rng([seed, 0xAC7104])
    steps = []
    for number in range(count):
        draw = rng.random()
        if draw < 0.74:
            action = _tap(rng)
        elif draw < 0.82:
            action = _swipe(rng)
        elif draw < 0.88:
            x, y = _place(rng)
            action = {"type": "longPress", "x": x, "y": y, "durationMs": int(rng.integers(300, 900))}
        elif draw < 0.94:
            action = {"type": "pressKey", "key": str(rng.choice(KEYS))}
        else:
            action = {"type": "typeText", "text": str(rng.choice(TEXTS))}
        steps.append(Step(action, look_first=number % 4 == 0))
    return steps


def _tap(rng: np.random.Generator) -> dict[str, Any]:
    x, y = _place(rng)
    return {"type": "tap", "x": x, "y": y}


def _swipe(rng: np.random.Generator) -> dict[str, Any]:
    from_x, from_y = _place(rng)
    to_x, to_y = from_x, from_y
    while abs(to_x - from_x) + abs(to_y - from_y) < 150:
        to_x, to_y = _place(rng)
    duration_ms = int(rng.integers(500, 1200))
    return {
        "type": "swipe",
        "fromX": from_x,
        "fromY": from_y,
        "toX": to_x,
        "toY": to_y,
        "durationMs": duration_ms,
    }


def _place(rng: np.random.Generator) -> tuple[float, float]:
    x, y = rng.uniform(EDGE_GRID, 1000.0 - EDGE_GRID, size=2)
    return round(float(x), 1), round(float(y), 1)
