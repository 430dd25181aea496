"""Histories by chance: how many devices, which planes and people, what is asked and what goes wrong, by the seed."""

import random
from dataclasses import dataclass
from functools import partial

import trio

from edge_daemon.bench.crash.faults import FAULTS, Hit
from edge_daemon.bench.crash.lines import Line
from edge_daemon.bench.crash.points import PointKind
from edge_daemon.bench.crash.scenario import ACT_S, FIRST_TOKEN, READY_S, Stage, Wish
from firmware import wire

LAYOUTS = ("us", "uk", "de", "fr")
KEYS = tuple(wire.KEY_NAMES)
# As many points as a history of two devices has; a fault whose point never comes does not strike.
POINTS_UP_TO: dict[PointKind, int] = {
    "disk write": 300,
    "disk sync": 100,
    "serial write": 90,
    "serial read": 90,
    "socket write": 90,
}


@dataclass(frozen=True)
class Throw:
    """What the dice gave for one seed."""

    kinds: tuple[str, ...]
    layouts: tuple[str, ...]
    planes: tuple[str, ...]
    faults: int
    actions: int
    hand_overs: int


def throw(seed: int) -> Throw:
    rng = random.Random(f"throw {seed}")
    count = rng.choices((1, 2, 3, 4), (4, 4, 2, 1))[0]
    kinds = tuple(rng.choices(("hand", "hid", "both"), (3, 3, 2), k=count))
    layouts = tuple(rng.choice(LAYOUTS) for kind in kinds if kind != "hand")
    planes = ("east", "west")[: rng.choice((1, 1, 2))]
    return Throw(
        kinds,
        layouts,
        planes,
        faults=rng.randint(1, 6),
        actions=rng.randint(2, 3 + 3 * count),
        hand_overs=rng.randint(1, 3) if len(planes) > 1 else 0,
    )


class Chance:
    """Prepares and plays one such history."""

    def __init__(self, seed: int) -> None:
        self.thrown = throw(seed)
        self.struck = 0
        self._rng = random.Random(f"chance {seed}")
        self._tokens: dict[str, int] = {}
        self._keys: dict[str, list[str]] = {}

    def prepare(self, stage: Stage) -> None:
        """Arms the faults."""
        for _ in range(self.thrown.faults):
            fault = FAULTS[self._rng.choice(sorted(FAULTS))]
            kind = self._rng.choice(sorted(fault.kinds))
            n = self._rng.randint(1, POINTS_UP_TO[kind])
            after = fault.after and self._rng.random() < 0.5
            rng = random.Random(self._rng.getrandbits(64))
            stage.world.points.arm(kind, n, partial(self._strike, stage, fault.name, rng), after=after)

    def _strike(self, stage: Stage, name: str, rng: random.Random) -> None:
        self.struck += 1
        here = stage.world.points.here
        stage.world.note(f"{name} strikes")
        FAULTS[name].strike(Hit(stage, rng, here if isinstance(here, Line) else None))

    async def act(self, stage: Stage) -> None:
        rng, world = self._rng, stage.world
        if rng.random() < 0.8:
            with trio.move_on_after(READY_S):
                await stage.ready(world.devices)
        await stage.reviewer.come()
        when_s = sorted(rng.uniform(0, 1.2) for _ in range(self.thrown.actions))
        hand_overs = sorted(rng.uniform(0, 1.5) for _ in range(self.thrown.hand_overs))
        begun_s = trio.current_time()
        for at_s in when_s:
            await trio.sleep_until(begun_s + at_s)
            while hand_overs and hand_overs[0] <= at_s:
                hand_overs.pop(0)
                stage.hand_over_to(rng.choice(stage.planes))
            wish = self._wish(stage)
            stage.act_soon(wish)
            if rng.random() < 0.2:
                world.soon(wish.plane.send_again, wish.device, wish.key, wish.action, wish.token)
        with trio.move_on_after(ACT_S):
            await stage.until_all_is_told()

    def _wish(self, stage: Stage) -> Wish:
        rng = self._rng
        device = rng.choice(stage.world.devices)
        plane, token = stage.plane, self._token(device)
        wishes = stage.wishes
        has_hand, has_keys = stage.world.has(device, "hand"), stage.world.has(device, "hid")
        makes = [wishes.tap, wishes.tap, wishes.swipe]
        makes += [wishes.long_press] if has_hand else []
        makes += [wishes.text, wishes.text] if has_keys else []
        make = rng.choice(makes)
        keys = self._keys.setdefault(device, list(KEYS))
        if has_keys and keys and rng.random() < 0.2:
            wish = wishes.press_key(plane, device, token, keys.pop(rng.randrange(len(keys))))
        else:
            wish = make(plane, device, token)
        if rng.random() < 0.1:
            wish.expires_in_ms = rng.randint(1, 400)
        return wish

    def _token(self, device: str) -> int:
        """Mostly the present holder's, sometimes a newer one's, sometimes one that is long past."""
        held = self._tokens.setdefault(device, FIRST_TOKEN)
        dice = self._rng.random()
        if dice < 0.2:
            self._tokens[device] = held + 1
            return held + 1
        return held - self._rng.randint(1, 3) if dice > 0.9 else held
