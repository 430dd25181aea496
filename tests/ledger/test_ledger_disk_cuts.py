"""The ledger at every step that it takes on a disk, × everything that can happen there: dying, power, errors, full.

A life of the ledger is told once for each step and fault. What the ledger answered is written down, and nothing else
counts: afterwards every answer must hold, and nothing may be there that was neither asked for nor refused.
"""

import contextlib
import errno
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import trio

from edge_daemon.bench.crash.disk import DiskError, DiskOp
from edge_daemon.contract import Refused
from edge_daemon.ledger import Accepted, Hold, Ledger

DEVICE = "phone-1"
PATIENCE_S = 3.0
"""Virtual; what the disk still refuses then is given up by whoever waits."""

Told = Literal["no", "asked", "yes", "refused"]


class Fate(msgspec.Struct):
    """What is known from outside about one key."""

    epoch: int
    token: int
    accept: Told = "no"
    settle: Told = "no"
    acknowledge: Told = "no"
    prune: Told = "no"

    def may_be(self) -> set[str]:
        states = set()
        if self.accept != "yes" or "no" not in (self.settle, self.acknowledge, self.prune):
            states.add("absent")
        if self.accept != "no" and self.settle != "yes":
            states.add("pending")
        if self.settle != "no":
            states.add("committed")
        return {"absent"} if self.prune == "yes" else states


class Life:
    """What the plane would see of the ledger, written down as it comes."""

    def __init__(self, simulated: Any, samples: Any) -> None:
        self.simulated = simulated
        self.samples = samples
        self.fates: dict[str, Fate] = {}
        self.epoch = 0
        self.held: set[Hold | None] = {None}
        self.scope = trio.CancelScope()
        self.heard = True

    async def begin(self) -> None:
        """Where there is no ledger yet. Until its end, or until it dies."""
        with self.scope:
            await self._opened(self._first_action)

    async def work(self) -> None:
        """On the ledger that there is. Until its end, or until it dies."""
        with self.scope:
            await self._opened(self._first_half)
            await self._opened(self._second_half)

    def die(self) -> None:
        self.simulated.disk.process_death()
        self.fall_silent()

    def fall_silent(self) -> None:
        """Nothing that a dead daemon says is heard."""
        self.heard = False
        self.scope.cancel()

    async def _opened(self, go_on: Callable[[Ledger], Awaitable[None]]) -> None:
        """Somebody starts the daemon again if the ledger could not be opened."""
        for _ in range(2):
            try:
                async with self.simulated.open() as ledger:
                    self.epoch = max(self.epoch, ledger.epoch)
                    await go_on(ledger)
                return
            except Refused as refused:
                assert refused.code == "storage_unavailable"

    async def _first_action(self, ledger: Ledger) -> None:
        await self.accept(ledger, "a", 1)

    async def _first_half(self, ledger: Ledger) -> None:
        await self.accept(ledger, "a", 1)
        await self.accept(ledger, "b", 2)
        await self.settle(ledger, "a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.settle, ledger, "b")
            nursery.start_soon(self.accept, ledger, "c", 5)
            nursery.start_soon(self.accept, ledger, "d", 5)
        await self.acknowledge(ledger, "a")
        await self.prune(ledger, "a")
        await self.hold(ledger, Hold("a check", "technician"))

    async def _second_half(self, ledger: Ledger) -> None:
        if await self._told(ledger.raise_epoch(ledger.epoch + 2)) == "yes":
            self.epoch = ledger.epoch
        await self.accept(ledger, "e", 6)
        await self.settle(ledger, "c")

    async def accept(self, ledger: Ledger, key: str, token: int) -> None:
        fate = self.fates[key] = Fate(ledger.epoch, token, accept="asked")
        fate.accept = await self._told(self.samples.accept(ledger, self.samples.pending(key), token=token))

    async def settle(self, ledger: Ledger, key: str) -> None:
        if self.fates[key].accept == "yes":
            self.fates[key].settle = "asked"
            receipt = self.samples.committed(self.samples.pending(key))
            self.fates[key].settle = await self._told(ledger.settle(receipt))

    async def acknowledge(self, ledger: Ledger, key: str) -> None:
        if self.fates[key].settle == "yes":
            self.fates[key].acknowledge = "asked"
            self.fates[key].acknowledge = await self._told(ledger.acknowledge(DEVICE, key))

    async def prune(self, ledger: Ledger, key: str) -> None:
        if self.fates[key].acknowledge != "no":
            self.fates[key].prune = "asked"
            self.fates[key].prune = await self._told(ledger.prune(0, 0))
            if self.fates[key].acknowledge != "yes" and self.fates[key].prune == "yes":
                self.fates[key].prune = "asked"

    async def hold(self, ledger: Ledger, hold: Hold) -> None:
        self.held.add(hold)
        if await self._told(ledger.set_hold(DEVICE, hold)) == "yes":
            self.held = {hold}

    async def _told(self, asked: Awaitable[object]) -> Told:
        told: Told = "asked"
        with trio.move_on_after(PATIENCE_S):
            try:
                await asked
                told = "yes"
            except Refused as refused:
                assert refused.code == "storage_unavailable"
                told = "refused"
        return told if self.heard else "asked"

    async def must_hold(self, ledger: Ledger) -> None:
        assert ledger.epoch >= self.epoch
        assert ledger.renewed is None
        assert ledger.hold(DEVICE) in self.held
        tokens = [fate.token for fate in self.fates.values() if fate.accept == "yes"]
        assert ledger.highest_token(DEVICE) >= max(tokens, default=0)
        pending = {entry.receipt.idempotency_key for entry in await ledger.pending()}
        outbox = {receipt.idempotency_key for receipt in await ledger.unacknowledged(99)}
        for key, fate in self.fates.items():
            answer = await ledger.lookup(DEVICE, key, fate.epoch)
            state = "absent" if answer.receipt is None else answer.receipt.status
            assert state in fate.may_be(), (key, state, fate)
            if answer.receipt is None:
                assert not (answer.known and fate.accept == "yes"), f"{key}: a false 'not found'"
            else:
                pending_receipt = self.samples.pending(key)
                committed = self.samples.committed(pending_receipt)
                assert answer.receipt == (pending_receipt if state == "pending" else committed)
            assert (key in pending) == (state == "pending")
            assert key in outbox or state != "committed" or fate.acknowledge != "no"
        assert pending | outbox <= set(self.fates)

    async def must_go_on(self, ledger: Ledger, key: str) -> None:
        """New actions are taken, and whoever was accepted before is not accepted again."""
        for known, fate in self.fates.items():
            if fate.accept == "yes":
                try:
                    again = await self.samples.accept(ledger, self.samples.pending(known), token=9)
                except Refused as refused:
                    assert (refused.code, fate.prune) != ("idempotency_conflict", "no")
                else:
                    assert not isinstance(again, Accepted), f"{known} would be executed twice"
        await self.accept(ledger, key, 9)
        await self.settle(ledger, key)
        assert self.fates[key].settle == "yes"


Strike = Callable[[Life, DiskOp, random.Random], None]
Live = Callable[[], Awaitable[None]]


def dies(life: Life, op: DiskOp, rng: random.Random) -> None:
    life.die()


def power(keep: Literal["nothing", "all", "torn"]) -> Strike:
    def strike(life: Life, op: DiskOp, rng: random.Random) -> None:
        life.simulated.disk.power_cut(keep, rng)
        life.fall_silent()

    return strike


def fails(number: int) -> Strike:
    """Once; of a write a part may get through."""

    def strike(life: Life, op: DiskOp, rng: random.Random) -> None:
        raise DiskError(number, rng.randrange(op.size + 1))

    return strike


def fails_and_dies(life: Life, op: DiskOp, rng: random.Random) -> None:
    def die(later: DiskOp) -> None:
        life.die()

    life.simulated.disk.hook = die
    raise DiskError(errno.EIO)


def fills_up(life: Life, op: DiskOp, rng: random.Random) -> None:
    """For good."""
    life.simulated.disk.free_bytes = 0


def no_sync_succeeds(life: Life, op: DiskOp, rng: random.Random) -> None:
    """For good."""

    def fail(later: DiskOp) -> None:
        if later.kind in ("sync", "dirsync"):
            raise DiskError(errno.EIO)

    life.simulated.disk.hook = fail
    fail(op)


STRIKES: dict[str, Strike] = {
    "process death": dies,
    "power cut, nothing kept": power("nothing"),
    "power cut, all kept": power("all"),
    "power cut, torn": power("torn"),
    "power cut, torn otherwise": power("torn"),
    "error": fails(errno.EIO),
    "error, then process death": fails_and_dies,
    "no room once": fails(errno.ENOSPC),
    "disk full for good": fills_up,
    "no sync for good": no_sync_succeeds,
}


NEED_ROOM = ("write", "create", "rename")
SYNCS = ("sync", "dirsync")


def may_strike(name: str, op: DiskOp) -> bool:
    """A disk that fails for good from another operation on fails at the next of these."""
    if name == "no room once":
        return op.kind in NEED_ROOM
    return name != "no sync for good" or op.kind in SYNCS


async def struck_at(number: int, strike: Strike, life: Life, live: Live, rng: random.Random) -> None:
    struck = False

    def hook(op: DiskOp) -> None:
        nonlocal struck
        if op.number == number:
            struck = True
            strike(life, op, rng)

    life.simulated.disk.hook = hook
    await live()
    assert struck
    life.simulated.disk.hook = None
    life.simulated.disk.free_bytes = 2**30
    life.heard = True


async def undisturbed(life: Life, live: Live) -> list[DiskOp]:
    """What there is to strike at."""
    steps: list[DiskOp] = []
    life.simulated.disk.hook = steps.append
    await live()
    return steps


async def must_be_sound(life: Life, power_was_cut: bool) -> None:
    async with life.simulated.open("after") as ledger:
        await life.must_hold(ledger)
        await life.must_go_on(ledger, "after")
        life.simulated.disk.power_cut("nothing")
    if not power_was_cut:
        # What was not synced before, or a failing sync has lost, must not take with it what was answered since.
        async with life.simulated.open("after all") as ledger:
            await life.must_hold(ledger)


@pytest.mark.parametrize("name", STRIKES)
async def test_at_every_step_of_making_a_ledger_what_was_answered_holds(
    name, simulated_ledger, samples, autojump_clock
):
    whole = Life(simulated_ledger(0), samples)
    steps = await undisturbed(whole, whole.begin)
    assert len(steps) > 100
    for step in steps:
        if may_strike(name, step):
            rng = random.Random(f"{name} {step.number}")
            life = Life(simulated_ledger(step.number), samples)
            await struck_at(step.number, STRIKES[name], life, life.begin, rng)
            await must_be_sound(life, name.startswith("power cut"))


@pytest.mark.parametrize("name", STRIKES)
async def test_at_every_step_of_its_work_what_was_answered_holds(
    name, simulated_ledger, samples, autojump_clock
):
    new = simulated_ledger(0)
    async with new.open():
        pass
    made = new.disk.snapshot()
    whole = Life(simulated_ledger(0), samples)
    whole.simulated.disk.restore(made)
    steps = await undisturbed(whole, whole.work)
    assert len(steps) > 150
    for step in steps:
        if may_strike(name, step):
            rng = random.Random(f"{name} {step.number}")
            life = Life(simulated_ledger(step.number), samples)
            life.simulated.disk.restore(made)
            await struck_at(step.number, STRIKES[name], life, life.work, rng)
            await must_be_sound(life, name.startswith("power cut"))


async def test_a_directory_that_was_refused_its_sync_when_it_was_made_is_not_lost_with_what_is_kept_in_it_later(
    simulated_ledger, samples
):
    refused = True
    at = 0
    while refused:
        at += 1
        refused = await refused_at_first(simulated_ledger(at), samples, at)
    assert at > 5


async def refused_at_first(simulated: Any, samples: Any, at: int) -> bool:
    """The `at`-th sync of a directory fails in the first life. Whether there are so many."""
    simulated.path = Path("/var/lib/edge/ledger.db")
    syncs = itertools.count(1)
    refused = False

    def refuse(op: DiskOp) -> None:
        nonlocal refused
        if op.kind == "dirsync" and next(syncs) == at:
            refused = True
            raise DiskError(errno.EIO)

    simulated.disk.hook = refuse
    with contextlib.suppress(Refused):
        async with simulated.open():
            pass
    simulated.disk.hook = None
    async with simulated.open() as ledger:
        done = await samples.finished(ledger, "key")
        simulated.disk.power_cut("nothing")
    async with simulated.open() as ledger:
        assert ledger.renewed is None
        assert await ledger.unacknowledged(9) == [done]
    return refused
