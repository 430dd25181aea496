"""What a fault is: its name, the kinds of points at which it can strike, and what it may use when it does."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from edge_daemon.bench.crash.lines import Line
from edge_daemon.bench.crash.notes import Progressed, Told
from edge_daemon.bench.crash.points import POINTS, PointKind
from edge_daemon.bench.crash.scenario import Stage, Wish
from edge_daemon.bench.crash.world import World

EVERYWHERE: frozenset[PointKind] = frozenset(POINTS)


@dataclass(frozen=True)
class Hit:
    """Where a fault strikes, and what it may use."""

    stage: Stage
    rng: random.Random
    here: Line | None
    """The line at a serial point."""

    @property
    def world(self) -> World:
        return self.stage.world

    @property
    def line(self) -> Line:
        """The one that is struck: where the point is, else any."""
        return self.here if self.here is not None else self.rng.choice(list(self.world.lines.values()))

    @property
    def device(self) -> str:
        """The one that has the most to do, mostly."""
        devices = self.world.devices
        return devices[0] if self.rng.random() < 0.75 else self.rng.choice(devices)

    def ms(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def last_wish(self) -> Wish | None:
        asked = self.stage.asked
        return self.rng.choice(asked) if asked else None

    def waiting_wish(self) -> Wish | None:
        """One that waits in line, as far as anybody was told, mostly the last; else any."""
        begun = {
            entry.name
            for entry in self.world.notebook.entries
            if (isinstance(entry, Progressed) and entry.stage == "dispatched")
            or (isinstance(entry, Told) and (entry.receipt or {}).get("status") in ("committed", "failed"))
        }
        waiting = [wish for wish in self.stage.asked if wish.name not in begun]
        if not waiting:
            return self.last_wish()
        return waiting[-1] if self.rng.random() < 0.75 else self.rng.choice(waiting)

    def wish(self, token: int, device: str | None = None) -> Wish:
        """A new one, of the kind that its device can do."""
        device, stage = device or self.device, self.stage
        if self.rng.random() < 0.75:
            return stage.wishes.tap(stage.plane, device, token)
        makes = [stage.wishes.swipe] if self.world.has(device, "hand") else []
        if self.world.has(device, "hid"):
            makes.append(stage.wishes.text)
        make = self.rng.choice(makes)
        return make(stage.plane, device, token)


@dataclass(frozen=True)
class Fault:
    """`kinds`: where it strikes. `after`: whether striking right behind a point differs from right before it.

    `effects`: what at least one history of all its points must show, as `effects.signs_of` names it; each of them.
    """

    name: str
    kinds: frozenset[PointKind]
    after: bool
    strike: Callable[[Hit], None]
    about: str
    effects: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {}
Strike = Callable[[Hit], None]


def fault(
    *effects: str, kinds: frozenset[PointKind] = EVERYWHERE, after: bool = False
) -> Callable[[Strike], Strike]:
    """Puts a function into FAULTS under its name."""

    def register(strike: Strike) -> Strike:
        FAULTS[strike.__name__] = Fault(strike.__name__, kinds, after, strike, strike.__doc__ or "", effects)
        return strike

    return register
