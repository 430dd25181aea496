"""What plane, staff and chance do to one rig, drawn from a seed: looks, actions bound to frames of any age, jogs,
stops, restarts, shoves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edge_daemon.bench.script import EDGE_GRID, KEYS

EdgeKind = Literal["jog", "calibration touch", "emergency stop", "board restart", "push"]
EDGE_KINDS: tuple[EdgeKind, ...] = (
    "jog",
    "calibration touch",
    "push",
    "emergency stop",
    "jog",
    "push",
    "board restart",
)
PAGES = ("launcher", "panel", "settings", "notes")
EDGE_EVERY = 11
"""One move at the edge in so many bound actions: each takes a second or two."""
LOOK_EVERY = 3
"""One look in so many bound actions, and more by chance."""
NEWEST = 0.45
"""Of the bound actions: bound to the newest frame. The others: to any of the last ones."""


@dataclass(frozen=True)
class LookStep:
    leased: bool
    wait_settled_ms: int


@dataclass(frozen=True)
class ActStep:
    """back: bound to the frame so many looks ago, 0 for the newest; None: not bound, the plane's own move."""

    action: dict[str, Any]
    back: int | None


@dataclass(frozen=True)
class WaitStep:
    seconds: float


@dataclass(frozen=True)
class EdgeStep:
    kind: EdgeKind


@dataclass(frozen=True)
class PageStep:
    """Somebody changes what the phone shows."""

    name: str
    animated: bool


Step = LookStep | ActStep | WaitStep | EdgeStep | PageStep


def draw_schedule(bound: int, seed: int, kept: int = 24) -> Iterator[Step]:
    """Steps with so many bound actions. kept: how many frames the plane may still be bound to."""
    rng = np.random.default_rng([seed, 0xCA3E7A])
    edge = 0
    yield LookStep(leased=True, wait_settled_ms=2000)
    for number in range(bound):
        if number % EDGE_EVERY == EDGE_EVERY - 1:
            yield EdgeStep(EDGE_KINDS[edge % len(EDGE_KINDS)])
            edge += 1
        if number % LOOK_EVERY == 0 or rng.random() < 0.1:
            yield _look(rng)
        if rng.random() < 0.08:
            yield LookStep(leased=False, wait_settled_ms=int(rng.choice((0, 800))))
        if rng.random() < 0.10:
            yield PageStep(str(rng.choice(PAGES)), bool(rng.random() < 0.5))
        if rng.random() < 0.12:
            yield WaitStep(float(rng.uniform(0.02, 0.9)))
        if rng.random() < 0.06:
            yield ActStep(_action(rng), None)
        back = 0 if rng.random() < NEWEST else int(rng.integers(kept))
        yield ActStep(_action(rng), back)


def _look(rng: np.random.Generator) -> LookStep:
    """Mostly settled, as a plane that decides would look; sometimes at once, with the hand still over the screen."""
    return LookStep(leased=True, wait_settled_ms=2000 if rng.random() < 0.7 else 0)


def _action(rng: np.random.Generator) -> dict[str, Any]:
    draw = rng.random()
    if draw < 0.45:
        return {"type": "pressKey", "key": str(rng.choice(KEYS))}
    x, y = _place(rng)
    if draw < 0.88:
        return {"type": "tap", "x": x, "y": y}
    if draw < 0.94:
        return {"type": "longPress", "x": x, "y": y, "durationMs": int(rng.integers(250, 500))}
    return {
        "type": "swipe",
        "fromX": x,
        "fromY": 700.0,
        "toX": x,
        "toY": 350.0,
        "durationMs": int(rng.integers(250, 500)),
    }


def _place(rng: np.random.Generator) -> tuple[float, float]:
    x, y = rng.uniform(EDGE_GRID, 1000.0 - EDGE_GRID, size=2)
    return round(float(x), 1), round(float(y), 1)
