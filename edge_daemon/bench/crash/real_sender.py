"""The plane while real processes are killed: it goes on asking, whatever happens, and writes everything down."""

import contextlib
import time
from collections.abc import Sequence
from random import Random

import trio

from edge_daemon.bench.crash.real_notes import BoardKind, Entry, Message, Wish
from edge_daemon.bench.crash.real_wishes import KEYS, Wishes
from edge_daemon.bench.plane import Plane, PlaneDisconnected, PlaneError

ONLINE_S = 40.0
"""Longer than the daemon waits for a board before it calls an outcome unknown."""


class Sender:
    """One notebook over all connections and all lives of the daemon."""

    def __init__(self, plane: Plane, devices: Sequence[str], rng: Random) -> None:
        self._plane = plane
        self._devices = devices
        self._rng = rng
        self.entries: dict[tuple[str, str], Entry] = {}
        self.said: list[str] = []
        """Every answer, as it came."""
        self._wishes = {device: Wishes(rng) for device in devices}
        self._numbers = dict.fromkeys(devices, 0)
        self._tokens = dict.fromkeys(devices, 1)
        self._accepted_tokens = dict.fromkeys(devices, 0)
        self._sending = True
        self._pushed = 0
        self.accepted = 0
        """How often a plane was told so."""
        self._dispatched: list[Entry] = []
        """Those that a board has, by what a plane was told; the last one last."""

    def stop(self) -> None:
        """No new keys; what is under way goes on."""
        self._sending = False

    def of_device(self, device: str) -> list[Entry]:
        """In the order in which they were first sent."""
        return [entry for entry in self.entries.values() if entry.device == device]

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
                receipt = self._plane.notebook[name]
                self.said.append(repr(receipt))
                self.entries[name].tell(receipt, time.monotonic_ns())
            self._pushed = len(self._plane.pushed)

    async def at_work(self) -> None:
        """Until an action that is sent from now on was accepted. Raises trio.TooSlowError."""
        before = self.accepted
        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(lambda: self.accepted > before)

    async def next_at_a_board(self) -> Entry:
        """The next action that a board has, by what the plane is told. Raises trio.TooSlowError."""
        before = len(self._dispatched)
        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(lambda: len(self._dispatched) > before)
        return self._dispatched[-1]

    async def shown(self) -> None:
        """Until something was committed of a hand and of a keyboard. Raises trio.TooSlowError."""

        def committed() -> set[BoardKind]:
            return {
                entry.wish.board
                for entry in self.entries.values()
                if any(receipt["status"] == "committed" for receipt in entry.told)
            }

        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(lambda: committed() == {"hand", "hid"})

    async def online(self) -> None:
        """Until the plane was told that every phone is there. Raises trio.TooSlowError."""
        with trio.fail_after(ONLINE_S):
            await self._plane.wait_until(
                lambda: (
                    self._connected
                    and all(self._plane.devices[device]["status"] == "online" for device in self._devices)
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
            old = self.of_device(device)
            if choice < 0.15 and old:
                await self._send(self._rng.choice(old[-20:]))
            elif choice < 0.25 and self._accepted_tokens[device] > 1:
                await self._send(self._stale(device))
            elif choice < 0.40:
                twice = self._new(device)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send, twice)
                    nursery.start_soon(self._send, twice)
            else:
                await self._until_taken(self._new(device))

    async def _until_taken(self, entry: Entry) -> None:
        """A refusal means that nothing was done: sent again under the same key, as a plane would."""
        while self._sending and not entry.told:
            await self._plane.wait_until(lambda: self._connected)
            await self._send(entry)
            # A newer holder may have come meanwhile: then this key is refused for good.
            if entry.token < self._tokens[entry.device]:
                return
            await trio.sleep(0.01)

    def _new(self, device: str) -> Entry:
        under_way = {entry.wish.name for entry in self.of_device(device) if not entry.over}
        return self._enter(device, self._wishes[device].draw(KEYS - under_way), self._tokens[device])

    def _stale(self, device: str) -> Entry:
        """By a holder that has been succeeded. No stroke of a key: it would never be known to be over."""
        wish = self._wishes[device].draw(())
        return self._enter(device, wish, self._accepted_tokens[device] - 1, stale=True)

    def _enter(self, device: str, wish: Wish, token: int, *, stale: bool = False) -> Entry:
        key = f"{device}-{self._numbers[device]:05d}"
        self._numbers[device] += 1
        entry = Entry(device, key, wish, token, stale, time.monotonic_ns())
        self.entries[device, key] = entry
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
            elif progress["stage"] == "dispatched":
                self._dispatched.append(entry)

        try:
            answer = await self._plane.dispatch(
                entry.device, entry.wish.action, key=entry.key, fencing_token=entry.token, on_progress=heard
            )
        except PlaneDisconnected:
            return
        self.said.append(repr(answer))
        if answer.receipt is None:
            entry.fenced |= (answer.error or {}).get("code") == "lease_mismatch"
            return
        entry.tell(answer.receipt, time.monotonic_ns())
        if entry.token == self._tokens[entry.device] and self._rng.random() < 0.1:
            self._tokens[entry.device] += 1

    async def settle_accounts(self) -> None:
        """Everything has healed: what became of each key, and each sent once more."""
        for entry in list(self.entries.values()):
            await self._look_up(entry)
            if entry.receipt is not None:
                # Answered when it is final: what the last life left pending may still be asked about.
                await self._send(entry)
                await self._look_up(entry)

    async def _look_up(self, entry: Entry) -> None:
        entry.found = await self._plane.get_receipt(entry.device, entry.key)
        self.said.append(repr(entry.found))
