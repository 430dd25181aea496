"""What is asked of a rig in one history, and how a history ends: everything heals, and every key is asked for."""

import random
from dataclasses import dataclass, field, replace

import trio

from edge_daemon.bench.crash.notes import Mark, Name, Progressed, Told
from edge_daemon.bench.crash.people import Staff
from edge_daemon.bench.crash.plane import NotedPlane
from edge_daemon.bench.crash.rooms import TOUCH_UNITS, hand_um
from edge_daemon.bench.crash.world import World
from edge_daemon.bench.plane import LEASE_MS, Message, PlaneDisconnected, PlaneError

READY_S = 30.0
ACT_S = 60.0
PUSH_S = 5.0
DUTY_S = 5.0
TAKE_OVER_S = 0.1
FIRST_TOKEN = 10


@dataclass
class Wish:
    """One action under a key of its own, and by what its execution will be known."""

    plane: NotedPlane
    device: str
    key: str
    action: Message
    mark: Mark
    token: int
    expires_in_ms: int | None = None
    lease_ms: int = LEASE_MS

    @property
    def name(self) -> Name:
        return self.device, self.key


class Wishes:
    """Makes actions that can be told apart on a phone: no two of a device share a place, a text's ends, or a key."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._keys = 0
        self._places: dict[str, int] = {}
        self._texts: dict[str, int] = {}

    def tap(self, plane: NotedPlane, device: str, token: int) -> Wish:
        x, y = self._place(device)
        return self._wish(plane, device, {"type": "tap", "x": x, "y": y}, self._mark(device, x, y), token)

    def swipe(self, plane: NotedPlane, device: str, token: int) -> Wish:
        x, y = self._place(device)
        action = {"type": "swipe", "fromX": x, "fromY": y, "toX": 900.0, "toY": y, "durationMs": 80}
        end = self._mark(device, 900.0, y)
        mark = replace(self._mark(device, x, y), to=(end.x, end.y))
        return self._wish(plane, device, action, mark, token)

    def long_press(self, plane: NotedPlane, device: str, token: int) -> Wish:
        x, y = self._place(device)
        action = {"type": "longPress", "x": x, "y": y, "durationMs": 300}
        return self._wish(plane, device, action, self._mark(device, x, y), token)

    def text(self, plane: NotedPlane, device: str, token: int) -> Wish:
        """At most 26 a device."""
        number = self._texts[device] = self._texts.get(device, -1) + 1
        letter = chr(ord("a") + number)
        text = f"{letter}{self._rng.randrange(10**7):07d}{letter.upper()}"
        return self._wish(plane, device, {"type": "typeText", "text": text}, Mark("text", text=text), token)

    def press_key(self, plane: NotedPlane, device: str, token: int, key: str) -> Wish:
        """Each key once a device."""
        return self._wish(plane, device, {"type": "pressKey", "key": key}, Mark("key", key=key), token)

    def _place(self, device: str) -> tuple[float, float]:
        number = self._places[device] = self._places.get(device, -1) + 1
        return 50.0 + 25.0 * (number % 30), 100.0 + 25.0 * (number // 30)

    def _mark(self, device: str, x: float, y: float) -> Mark:
        if self._world.line_of(device).place.kind == "hand":
            return Mark("place", *hand_um(x, y))
        return Mark("place", round(x / 1000 * TOUCH_UNITS), round(y / 1000 * TOUCH_UNITS))

    def _wish(self, plane: NotedPlane, device: str, action: Message, mark: Mark, token: int) -> Wish:
        self._keys += 1
        return Wish(plane, device, f"key-{self._keys}", action, mark, token)


@dataclass
class Stage:
    """A history under way: the world, who acts in it, and what they asked for."""

    world: World
    planes: list[NotedPlane]
    staff: Staff
    wishes: Wishes
    plane: NotedPlane
    """The one on duty."""
    reviewer: Staff
    """Somebody who looks at phones of which nobody knows."""
    asked: list[Wish] = field(default_factory=list)

    def review(self, name: Name) -> None:
        """Soon, or right now while the receipt is pushed and acknowledged, somebody says what became of a key."""
        rng = random.Random(f"{self.world.seed}:{name}:{self.world.points.passed}")
        after_s = rng.choice((rng.uniform(0, 0.002), rng.uniform(0, 0.002), rng.uniform(0, 0.3)))
        outcome = rng.choice(("committed", "not_executed"))

        async def look_and_say() -> None:
            await trio.sleep(after_s)
            await self.reviewer.resolve(name, outcome)

        self.world.soon(look_and_say)

    async def act(self, wish: Wish) -> None:
        """Through whatever happens; see `NotedPlane.act`."""
        self.asked.append(wish)
        await wish.plane.act(
            wish.device,
            wish.key,
            wish.action,
            wish.mark,
            token=wish.token,
            expires_in_ms=wish.expires_in_ms,
            lease_ms=wish.lease_ms,
        )

    def act_soon(self, wish: Wish) -> None:
        self.world.soon(self.act, wish)

    def hand_over_to(self, plane: NotedPlane) -> None:
        """Only one plane is on duty at a time."""
        if plane is not self.plane:
            self.plane.leave()
            self.plane = plane
        plane.on_duty.set()

    async def ready(self, devices: list[str]) -> None:
        """Until these devices are online, as the plane on duty was told."""
        plane = self.plane
        await plane.wait_until(
            lambda: (
                plane.online.is_set()
                and all(plane.devices.get(device, {}).get("status") == "online" for device in devices)
            )
        )

    async def until_all_is_told(self) -> None:
        """Until everybody who began something has finished it; planes off duty come back for what is theirs."""
        while not self.world.idle:
            for plane in self.planes:
                if not self.world.idle:
                    self.hand_over_to(plane)
                with trio.move_on_after(DUTY_S):
                    await self.world.wait_idle()

    async def take_over(self, wish: Wish | None) -> None:
        """The plane on duty connects a second time as well, and leaves that connection soon."""
        twin = NotedPlane(self.world, self.plane.plane_id, token=FIRST_TOKEN, epochs_of=self.plane)
        try:
            await twin.connect()
        except (PlaneDisconnected, PlaneError, OSError):
            return
        self.world.schedule.signs["plane connected twice"] += 1
        twin.online.set()
        if wish is not None:
            with trio.move_on_after(TAKE_OVER_S):
                await twin.send_again(wish.device, wish.key, wish.action, wish.token)
        twin.go(loses_what_it_sent=False)

    def accepted(self) -> list[Wish]:
        """Of which a plane was told that they are durable."""
        told = {
            entry.name
            for entry in self.world.notebook.entries
            if isinstance(entry, Progressed) or (isinstance(entry, Told) and entry.receipt is not None)
        }
        return [wish for wish in self.asked if wish.name in told]


def open_stage(world: World, plane_ids: tuple[str, ...] = ("plane",)) -> Stage:
    """The first plane is on duty."""
    wishes = Wishes(world, random.Random(f"{world.seed}:wishes"))
    planes = [NotedPlane(world, plane_id, token=FIRST_TOKEN) for plane_id in plane_ids]
    planes[0].on_duty.set()
    stage = Stage(
        world,
        planes,
        Staff(world, "jo"),
        wishes,
        planes[0],
        Staff(world, "ann"),
    )
    for plane in planes:
        plane.when_unknown = stage.review
    return stage


async def base(stage: Stage) -> None:
    """A tap and another behind it, the first sent twice, a newer holder's tap and swipe; meanwhile a text elsewhere.

    What waits in line is fenced off once (the second tap) and carried out once (the last).
    """
    hand, keys = stage.world.devices[:2]
    wishes, plane = stage.wishes, stage.plane
    with trio.move_on_after(READY_S):
        await stage.ready([hand, keys])
    await stage.reviewer.come()
    first, second = wishes.tap(plane, hand, FIRST_TOKEN), wishes.tap(plane, hand, FIRST_TOKEN)
    text, newer = wishes.text(plane, keys, FIRST_TOKEN), wishes.tap(plane, hand, FIRST_TOKEN + 1)
    last = wishes.swipe(plane, hand, FIRST_TOKEN + 1)
    with trio.move_on_after(ACT_S):
        async with trio.open_nursery() as acting:
            acting.start_soon(stage.act, first)
            await trio.sleep(0.002)
            acting.start_soon(stage.act, second)
            acting.start_soon(plane.send_again, first.device, first.key, first.action, first.token)
            acting.start_soon(stage.act, text)
            # The second still waits in line.
            await trio.sleep(0.09)
            acting.start_soon(stage.act, newer)
            await trio.sleep(0.002)
            acting.start_soon(stage.act, last)


async def heal_and_ask(stage: Stage) -> None:
    """Nothing goes wrong any more. Every key is asked for, sent once more, and asked for again."""
    world, staff = stage.world, stage.staff
    world.points.disarm()
    world.heal()
    await stage.until_all_is_told()
    for device in world.devices:
        await staff.give_back(device)
        await staff.lift(device)
        await stage.plane.give_screen_back(device)
    for plane in stage.planes:
        stage.hand_over_to(plane)
        await stage.ready(world.devices)
        plane.in_final_round = True
        own = [wish for wish in stage.asked if wish.plane is plane]
        for wish in own:
            await plane.look_up(wish.device, wish.key)
            await plane.send_once_more(wish.device, wish.key, wish.action, wish.token)
        for wish in own:
            await plane.look_up(wish.device, wish.key)
    with trio.move_on_after(PUSH_S):
        await stage.plane.wait_until(lambda: not _missing(stage))


def _missing(stage: Stage) -> set[Name]:
    """Keys whose receipt is final, or was resolved, by what was told, and was never pushed as such."""
    told = [entry for entry in stage.world.notebook.entries if isinstance(entry, Told) and entry.receipt]
    final = {entry.name for entry in told if entry.receipt and entry.receipt["status"] != "pending"}
    resolved = {entry.name for entry in told if entry.receipt and entry.receipt.get("resolution")}
    pushed = [entry for entry in told if entry.by == "push"]
    pushed_resolved = {entry.name for entry in pushed if entry.receipt and entry.receipt.get("resolution")}
    return (final - {entry.name for entry in pushed}) | (resolved - pushed_resolved)
