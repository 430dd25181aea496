"""Who is at the far end of the wires: a plane that writes everything down."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import trio

from edge_daemon.bench.crash.notes import (
    WAIT_MS,
    Acknowledged,
    Barred,
    Mark,
    Name,
    Notebook,
    Progressed,
    Sent,
    Told,
)
from edge_daemon.bench.crash.streams import Wire
from edge_daemon.bench.crash.world import World
from edge_daemon.bench.plane import LEASE_MS, Message, Plane, PlaneDisconnected, PlaneError

WITH_RESOLUTIONS = 3
"""The version of the protocol from which on people may say what became of an unknown outcome."""
AGAIN_S = 0.05
"""How soon somebody who lost the daemon tries again."""
UNIX_MS = 1_767_225_600_000.0


class NotedPlane(Plane):
    """A plane whose notebook has every word, each with its time; it reconnects for as long as it is kept connected."""

    def __init__(
        self, world: World, plane_id: str, *, token: int, epochs_of: "NotedPlane | None" = None
    ) -> None:
        """epochs_of: whose memory of epochs it shares: a second connection of one plane."""
        super().__init__(
            plane_id,
            NO_ADDRESS,
            world.nursery,
            fencing_token=token,
            unix_ms=lambda: UNIX_MS + trio.current_time() * 1000,
        )
        if epochs_of is not None:
            self.share_epochs(epochs_of)
        self._world = world
        self._notes: Notebook = world.notebook
        self._wire: Wire | None = None
        self._asked: dict[int, _Asked] = {}
        self._dispatched = 0
        self._actions: dict[Name, str] = {} if epochs_of is None else epochs_of._actions
        """By key, what was sent first under it."""
        self._lose_acknowledgements = 0
        self.online = trio.Event()
        self.on_duty = trio.Event()
        self.in_final_round = False
        self.when_unknown: Callable[[Name], None] = lambda name: None
        """Called when it is told for the first time that nobody knows what became of a key."""
        self._unknown: set[Name] = set()

    # -- the connection ----------------------------------------------------------------------------------------

    def hello(self) -> Message:
        return {**super().hello(), "protocol": WITH_RESOLUTIONS}

    async def open_stream(self) -> trio.abc.HalfCloseableStream:
        await trio.lowlevel.checkpoint()
        self._wire = self._world.connect("plane")
        return self._wire.peer_end

    async def keep_connected(self) -> None:
        """While it is on duty; until cancelled."""
        while True:
            await self.on_duty.wait()
            try:
                await self.connect()
            except (PlaneDisconnected, PlaneError, OSError):
                await trio.sleep(AGAIN_S)
                continue
            self._world.note(f"{self.plane_id} connected, epoch {self.welcome['epoch']}")
            if self.on_duty.is_set():
                self.online.set()
                await self.disconnected.wait()
                self.online = trio.Event()
            else:
                # Sent off while it shook hands.
                self.go(loses_what_it_sent=False)
                await self.disconnected.wait()
            await trio.sleep(AGAIN_S)

    def go(self, *, loses_what_it_sent: bool) -> None:
        """Its process dies, or the line to it breaks, at this moment; it is back soon."""
        if self._wire is not None:
            self._world.note(f"{self.plane_id} is gone")
            if not self._wire.over and not self.in_final_round:
                self._world.schedule.signs["plane cut off"] += 1
            self._wire.peer_died(loses_what_it_sent=loses_what_it_sent)

    def leave(self) -> None:
        """Another plane is on duty from now on."""
        if self.on_duty.is_set():
            self.on_duty = trio.Event()
        self.go(loses_what_it_sent=False)

    def lose_acknowledgements(self, count: int) -> None:
        """The next so many acknowledgements do not leave; the connection breaks behind each."""
        self._lose_acknowledgements = count

    # -- what is written down ----------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "dispatch":
            self._note_dispatch(message)
        elif kind in ("getReceipt", "cancel"):
            self._note_question(message)
        elif kind == "ackReceipt":
            name = (message["deviceId"], message["idempotencyKey"])
            if self._lose_acknowledgements:
                self._lose_acknowledgements -= 1
                self.go(loses_what_it_sent=True)
                raise PlaneDisconnected("the acknowledgement was lost")
            if self.notebook[name].get("resolution") is not None:
                message = {**message, "resolved": True}
            self._notes.note(Acknowledged(self._world.now_ns(), name))
        await super().send(message)
        if kind == "dispatch":
            self._dispatched += 1
            if self._dispatched % 2 == 0:
                await self._ask_behind(message)

    async def _ask_behind(self, dispatch: Message) -> None:
        """What is known of it while it is being accepted; the answer stands in the notebook."""
        question: Message = {
            "type": "getReceipt",
            "id": _BEHIND + self._dispatched,
            "deviceId": dispatch["deviceId"],
            "idempotencyKey": dispatch["idempotencyKey"],
        }
        if "epoch" in dispatch:
            question["epoch"] = dispatch["epoch"]
        await self.send(question)

    def _note_dispatch(self, message: Message) -> None:
        at_ns, lease = self._world.now_ns(), message["lease"]
        name = (message["deviceId"], message["idempotencyKey"])
        action = repr(message["action"])
        other = action != self._actions.setdefault(name, action)
        self._asked[message["id"]] = _Asked(
            name, "other" if other else "dispatch", at_ns, lease["fencingToken"]
        )
        self._notes.note(
            Sent(
                at_ns,
                self.plane_id,
                name,
                lease["fencingToken"],
                min(message.get("expiresInMs", WAIT_MS), lease["remainingMs"]),
                action,
                message.get("epoch"),
            )
        )

    def _note_question(self, message: Message) -> None:
        name = (message["deviceId"], message["idempotencyKey"])
        kind: Question = "cancel" if message["type"] == "cancel" else "lookup"
        self._asked[message["id"]] = _Asked(name, kind, self._world.now_ns())

    async def on_message(self, message: Message) -> None:
        self._write_down(message)
        await super().on_message(message)

    def _write_down(self, message: Message) -> None:
        match message["type"]:
            case "progress":
                told = message["progress"]
                name = (told["deviceId"], told["idempotencyKey"])
                self._notes.note(Progressed(self._world.now_ns(), name, told["stage"]))
            case "receipt":
                self._hear("push", _name_of(message["receipt"]), message["receipt"])
            case "result":
                outcome = message["outcome"]
                asked = self._asked[message["replyTo"]]
                self._hear(
                    "result",
                    asked.name,
                    outcome.get("receipt"),
                    asked,
                    error=outcome.get("error"),
                    deduplicated=outcome.get("deduplicated", False),
                )
            case "receiptAnswer":
                answer = message["answer"]
                asked = self._asked[message["replyTo"]]
                self._hear(
                    "lookup",
                    asked.name,
                    answer.get("receipt"),
                    asked,
                    known=answer["known"],
                    epoch=answer["epoch"],
                )

    def _hear(
        self,
        by: Any,
        name: Name,
        receipt: Message | None,
        asked: "_Asked | None" = None,
        *,
        error: Message | None = None,
        known: bool = True,
        epoch: int | None = None,
        deduplicated: bool = False,
    ) -> None:
        told = Told(
            self._world.now_ns(),
            name,
            by,
            receipt,
            error,
            known,
            self.in_final_round,
            epoch=epoch,
            deduplicated=deduplicated,
        )
        if asked is not None:
            told = replace(told, to=asked.kind, asked_ns=asked.at_ns, token=asked.token)
        self._notes.note(told)
        if receipt is not None and receipt.get("requiresManualReview") and name not in self._unknown:
            self._unknown.add(name)
            self.when_unknown(name)

    # -- acting ------------------------------------------------------------------------------------------------

    async def act(
        self,
        device: str,
        key: str,
        action: Message,
        mark: Mark,
        *,
        token: int | None = None,
        patience_s: float = 40.0,
        expires_in_ms: int | None = None,
        lease_ms: int = LEASE_MS,
    ) -> Message | None:
        """Has one action done, through whatever happens: asked again after each break, sent again where nothing is
        known of it, until a final receipt or a refusal that repeating does not help against. The receipt, if any.
        """
        self._notes.marks[device, key] = mark
        with trio.move_on_after(patience_s):
            while True:
                await self.online.wait()
                try:
                    answer = await self.dispatch(
                        device,
                        action,
                        key=key,
                        fencing_token=token,
                        remaining_ms=lease_ms,
                        expires_in_ms=expires_in_ms,
                    )
                    if answer.receipt is not None:
                        return answer.receipt
                    if answer.error is not None and not answer.error["retryable"]:
                        return None
                    await trio.sleep(0.2)
                    continue
                except (PlaneDisconnected, PlaneError):
                    pass
                known = await self._asked_again(device, key)
                if known is not None:
                    return known
        return None

    async def _asked_again(self, device: str, key: str) -> Message | None:
        """After a break: the final receipt, None where there is none yet or no answer came."""
        await self.online.wait()
        try:
            answer = await self.get_receipt(device, key, epoch=self.first_epoch(key))
        except (PlaneDisconnected, PlaneError):
            await trio.sleep(AGAIN_S)
            return None
        receipt: Message | None = answer.get("receipt")
        return receipt if receipt is not None and receipt["status"] != "pending" else None

    async def send_again(self, device: str, key: str, action: Message, token: int | None) -> None:
        """The same once more, whatever comes of it."""
        await self.online.wait()
        try:
            await self.dispatch(device, action, key=key, fencing_token=token)
        except (PlaneDisconnected, PlaneError):
            return

    async def take_back(self, device: str, key: str) -> None:
        await self.online.wait()
        try:
            await self.cancel(device, key)
        except (PlaneDisconnected, PlaneError):
            return

    async def park(self, device: str, for_s: float, then: Callable[[], None] = lambda: None) -> None:
        """A person takes the screen, and gives it back after a while. then: done as soon as the screen is hers."""
        async with self._world.at_the_rig:
            await self._insist(lambda: self.set_parked(device, True))
            from_ns = self._world.now_ns()
            then()
            await trio.sleep(for_s)
            self._notes.barred.append(Barred(device, from_ns, self._world.now_ns(), "parked"))
            await self.give_screen_back(device)

    async def give_screen_back(self, device: str) -> None:
        await self._insist(lambda: self.set_parked(device, False))

    async def look_up(self, device: str, key: str) -> None:
        """Asks until there is an answer that is not `pending`; what it says stands in the notebook."""

        async def ask() -> None:
            while True:
                answer = await self.get_receipt(device, key, epoch=self.first_epoch(key))
                if (answer.get("receipt") or {}).get("status") != "pending":
                    return
                await trio.sleep(AGAIN_S)

        await self._insist(ask)

    async def send_once_more(self, device: str, key: str, action: Message, token: int | None) -> None:
        """The same arguments until there is an answer that repeating would not change."""

        async def ask() -> None:
            while True:
                answer = await self.dispatch(device, action, key=key, fencing_token=token)
                if answer.receipt is not None or not (answer.error or {}).get("retryable"):
                    return
                await trio.sleep(0.2)

        await self._insist(ask)

    async def _insist(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Through breaks, until it is answered."""
        while True:
            await self.online.wait()
            try:
                return await ask()
            except (PlaneDisconnected, PlaneError):
                await trio.sleep(AGAIN_S)


NO_ADDRESS: Any = None
_BEHIND = 1_000_000
"""Added to the number of a dispatch: the id of the question behind it, which no other request has."""

Question = Literal["dispatch", "other", "cancel", "lookup"]


@dataclass(frozen=True)
class _Asked:
    """What a request was, for its answer. token: a dispatch's."""

    name: Name
    kind: Question
    at_ns: int
    token: int = 0


def _name_of(receipt: Mapping[str, Any]) -> Name:
    return receipt["deviceId"], receipt["idempotencyKey"]
