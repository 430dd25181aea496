"""kill -9 of the real process tree at random moments, over and over; the phones' own touch logs and the plane's
notebook say what came of it.

Two phones, each with its firmware in a process of its own behind a pty; one daemon process with its files; one plane
that goes on sending whatever happens. The seed draws what is sent and when is killed; the machine's own timing makes
each run another one.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

import trio

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.real_book import Entry, Message, Seen, judge_entries
from edge_daemon.bench.crash.real_hand import RealHand
from edge_daemon.bench.crash.real_rig import RealRig, number_at, open_real_rig, place_grid
from edge_daemon.bench.plane import Plane, PlaneDisconnected, PlaneError

DEVICES = ("phone-1", "phone-2")
CLIENTS = 2
"""Requests at the same time for each phone: one is carried out, one waits in line."""
ONLINE_S = 40.0
"""Longer than the daemon waits for a board before it calls an outcome unknown."""
ACCOUNTS_S = 120.0
"""For every key to be asked about, after a daemon that waits for a board has given it up."""

Moment = Literal["at work", "while starting", "while recovering"]
MOMENTS: tuple[Moment, ...] = ("at work", "while starting", "while recovering")
_WEIGHTS = (6, 2, 2)
_AT_WORK_S = (0.0, 1.0)
"""How long after the first acceptance of this life: an action takes 0.2 s."""
_STARTING_S = (0.02, 0.6)
"""How long after the spawn; at the end of it the daemon is about to say that it is ready."""
_RECOVERING_S = (0.5, 1.8)
"""How long after the spawn: boards are found again, and what was pending is asked about."""
_CUT_SHARE = 0.25
"""How often the plane's connection breaks shortly before the kill."""
_CUT_BEFORE_S = (0.0, 0.05)
_RESET_SHARE = 0.1
"""How often a board loses its memory at the same time, as in a power cut."""


@dataclass
class KillReport:
    """What came of it."""

    seed: int
    kills: int = 0
    moments: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOMENTS, 0))
    board_resets: int = 0
    plane_cuts: int = 0
    keys: int = 0
    touches: int = 0
    committed: int = 0
    counts: Counts = field(default_factory=Counts)
    problems: list[str] = field(default_factory=list)
    wall_s: float = 0.0


class _Sender:
    """The plane's side: one notebook over all connections and all lives of the daemon."""

    def __init__(self, plane: Plane, rng: Random) -> None:
        self._plane = plane
        self._rng = rng
        self.entries: dict[tuple[str, str], Entry] = {}
        self._numbers = dict.fromkeys(DEVICES, 0)
        self._tokens = dict.fromkeys(DEVICES, 1)
        self._accepted_tokens = dict.fromkeys(DEVICES, 0)
        self._sending = True
        self._pushed = 0
        self.accepted = 0
        """How often a plane was told so."""

    def stop(self) -> None:
        """No new keys; what is under way goes on."""
        self._sending = False

    # -- the connection -----------------------------------------------------------------------------------

    async def stay_connected(self) -> None:
        """Until cancelled. A daemon that is away is tried again at once: nothing of its life may be missed."""
        while True:
            with contextlib.suppress(OSError, PlaneDisconnected, PlaneError):
                await self._plane.connect()
                await self._plane.disconnected.wait()
            await trio.sleep(0.01)

    async def listen(self) -> None:
        """Writes down the receipts that are pushed. Until cancelled."""
        while True:
            await self._plane.wait_until(lambda: len(self._plane.pushed) > self._pushed)
            for name in self._plane.pushed[self._pushed :]:
                self.entries[name].tell(self._plane.notebook[name], time.monotonic_ns())
            self._pushed = len(self._plane.pushed)

    async def at_work(self) -> None:
        """Until an action that is sent from now on was accepted. Raises trio.TooSlowError."""
        before = self.accepted
        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(lambda: self.accepted > before)

    async def online(self) -> None:
        """Until the plane was told that every phone is there. Raises trio.TooSlowError."""
        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(
                lambda: (
                    self._connected
                    and all(self._plane.devices[device]["status"] == "online" for device in DEVICES)
                )
            )

    @property
    def _connected(self) -> bool:
        return bool(self._plane.welcome) and not self._plane.disconnected.is_set()

    # -- sending ------------------------------------------------------------------------------------------

    async def keep_busy(self, device: str) -> None:
        """One request after another for a phone, until told to stop."""
        while self._sending:
            await self._plane.wait_until(lambda: self._connected)
            choice = self._rng.random()
            old = [entry for entry in self.entries.values() if entry.device == device]
            if choice < 0.15 and old:
                await self._send(self._rng.choice(old[-20:]))
            elif choice < 0.25 and self._accepted_tokens[device] > 1:
                await self._send(self._new(device, self._accepted_tokens[device] - 1, stale=True))
            elif choice < 0.40:
                twice = self._new(device, self._tokens[device])
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send, twice)
                    nursery.start_soon(self._send, twice)
            else:
                await self._until_taken(self._new(device, self._tokens[device]))

    async def _until_taken(self, entry: Entry) -> None:
        """A refusal means that nothing was done: sent again under the same key, as a plane would."""
        while self._sending and not entry.told:
            await self._plane.wait_until(lambda: self._connected)
            await self._send(entry)
            # A newer holder may have come meanwhile: then this key is refused for good.
            if entry.token < self._tokens[entry.device]:
                return
            await trio.sleep(0.01)

    def _new(self, device: str, token: int, *, stale: bool = False) -> Entry:
        number = self._numbers[device]
        self._numbers[device] += 1
        entry = Entry(device, f"{device}-{number:05d}", number, token, stale, time.monotonic_ns())
        self.entries[device, entry.key] = entry
        return entry

    async def _send(self, entry: Entry) -> None:
        """Once, and what came of it into the book."""
        if not self._connected:
            return

        def heard(progress: Message) -> None:
            if progress["stage"] == "accepted":
                entry.accepted_told = True
                self.accepted += 1
                newest = max(entry.token, self._accepted_tokens[entry.device])
                self._accepted_tokens[entry.device] = newest

        x, y = place_grid(entry.number)
        try:
            answer = await self._plane.dispatch(
                entry.device,
                {"type": "tap", "x": x, "y": y},
                key=entry.key,
                fencing_token=entry.token,
                on_progress=heard,
            )
        except PlaneDisconnected:
            return
        if answer.receipt is not None:
            entry.tell(answer.receipt, time.monotonic_ns())
            if entry.token == self._tokens[entry.device] and self._rng.random() < 0.1:
                self._tokens[entry.device] += 1

    async def settle_accounts(self) -> None:
        """Everything has healed: what became of each key, and each sent once more."""
        for entry in list(self.entries.values()):
            entry.found = await self._plane.get_receipt(entry.device, entry.key)
            if entry.receipt is not None:
                # Answered when it is final: what the last life left pending may still be asked about.
                await self._send(entry)
                entry.found = await self._plane.get_receipt(entry.device, entry.key)


async def kill_many(
    seed: int, kills: int, directory: Path, on_kill: Callable[[Moment], None] = lambda moment: None
) -> KillReport:
    """`kills` times kill -9; returns when everything has healed and every key has been asked about.

    directory: a short path, it holds sockets. Raises what a rig raises that does not come up.
    """
    begun, rng = time.monotonic(), Random(seed)
    report = KillReport(seed)
    async with open_real_rig(directory, DEVICES) as rig, trio.open_nursery() as nursery:
        plane = Plane(f"plane-{seed}", rig.files.plane_socket, nursery)
        sender = _Sender(plane, rng)
        nursery.start_soon(sender.stay_connected)
        nursery.start_soon(sender.listen)
        killer = _Killer(rig, plane, sender, rng, report)
        async with trio.open_nursery() as clients:
            for device in DEVICES:
                for _ in range(CLIENTS):
                    clients.start_soon(sender.keep_busy, device)
            await killer.kill_running()
            while report.kills < kills:
                on_kill(await killer.live_and_kill())
            sender.stop()
            await rig.daemon.start()
        await sender.online()
        with trio.fail_after(ACCOUNTS_S):
            await sender.settle_accounts()
        seen = {device: _seen(hand, killer.resets_ns[device]) for device, hand in rig.hands.items()}
        entries = list(sender.entries.values())
        report.counts = judge_entries(entries, seen, report.problems.append)
        report.keys = len(entries)
        report.touches = sum(len(hand.glass.presses) for hand in rig.hands.values())
        report.committed = sum((entry.receipt or {}).get("status") == "committed" for entry in entries)
        nursery.cancel_scope.cancel()
    report.wall_s = time.monotonic() - begun
    return report


class _Killer:
    """Each life of the daemon ends with kill -9."""

    def __init__(self, rig: RealRig, plane: Plane, sender: _Sender, rng: Random, report: KillReport) -> None:
        self._rig = rig
        self._plane = plane
        self._sender = sender
        self._rng = rng
        self._report = report
        self.resets_ns: dict[str, list[int]] = {device: [] for device in DEVICES}

    async def live_and_kill(self) -> Moment:
        """One life from its start to its end, and when that was."""
        (moment,) = self._rng.choices(MOMENTS, _WEIGHTS)
        if moment == "at work":
            await self._rig.daemon.start()
            await self.kill_running()
        else:
            bounds = _STARTING_S if moment == "while starting" else _RECOVERING_S
            await self._rig.daemon.start_and_kill(self._rng.uniform(*bounds))
            await self._killed(moment)
        return moment

    async def kill_running(self) -> None:
        """The daemon is running: when every phone is there and has been asked, at a random moment of the work."""
        await self._sender.online()
        await self._sender.at_work()
        await trio.sleep(self._rng.uniform(*_AT_WORK_S))
        if self._rng.random() < _CUT_SHARE:
            self._report.plane_cuts += 1
            await self._plane.disconnect()
            await trio.sleep(self._rng.uniform(*_CUT_BEFORE_S))
        await self._rig.daemon.kill()
        await self._killed("at work")

    async def _killed(self, moment: Moment) -> None:
        self._report.kills += 1
        self._report.moments[moment] += 1
        if self._rng.random() < _RESET_SHARE:
            device = self._rng.choice(DEVICES)
            self._report.board_resets += 1
            self.resets_ns[device].append(time.monotonic_ns())
            await self._rig.hands[device].reset()


def _seen(hand: RealHand, resets_ns: list[int]) -> Seen:
    numbers = Counter(number_at(press) for press in hand.glass.presses)
    strays = numbers.pop(None, 0)
    return Seen({number: times for number, times in numbers.items() if number is not None}, strays, resets_ns)
