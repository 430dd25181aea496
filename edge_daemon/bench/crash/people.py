"""Staff at the rig: they hold and stop devices, and say what became of what nobody knows."""

from collections.abc import Callable
from contextlib import suppress

import trio

from edge_daemon.bench.crash.notes import Barred, Name, Resolved
from edge_daemon.bench.crash.plane import AGAIN_S, NO_ADDRESS, WITH_RESOLUTIONS
from edge_daemon.bench.crash.streams import Wire
from edge_daemon.bench.crash.world import World
from edge_daemon.bench.plane import Message, Plane, PlaneDisconnected, PlaneError


class Staff(Plane):
    """A technician at the rig."""

    def __init__(self, world: World, staff_id: str) -> None:
        super().__init__(staff_id, NO_ADDRESS, world.nursery, acknowledge=False)
        self._reviewing = trio.Lock()
        self._connecting = trio.Lock()
        self._world = world
        self._wire: Wire | None = None

    def hello(self) -> Message:
        return {"type": "staffHello", "protocol": WITH_RESOLUTIONS, "staffId": self.plane_id}

    async def open_stream(self) -> trio.abc.HalfCloseableStream:
        await trio.lowlevel.checkpoint()
        self._wire = self._world.connect("staff")
        return self._wire.peer_end

    def go(self) -> None:
        """The console is closed, with everything it held."""
        if self._wire is not None:
            self._wire.peer_died(loses_what_it_sent=False)

    async def hold(self, device: str, for_s: float) -> None:
        """Takes the device, and gives it back after a while; or loses it with the connection."""
        async with self._world.at_the_rig:
            await self._hold(device, for_s)

    async def _hold(self, device: str, for_s: float) -> None:
        await self._until_done({"type": "takeHold", "deviceId": device, "hint": "a check"})
        world, life, from_ns = self._world, self._world.life, self._world.now_ns()
        with trio.move_on_after(for_s):
            await self.disconnected.wait()
        until_ns = self._world.now_ns()
        if self.disconnected.is_set() and life is not None and life.how == "killed":
            # The hold outlives the daemon that died with it, until somebody gives it back by force.
            await trio.sleep(for_s)
            until_ns = self._world.now_ns()
        if world.stopped_ns is not None and world.stopped_ns >= from_ns:
            until_ns = min(until_ns, world.stopped_ns)
        world.notebook.barred.append(Barred(device, from_ns, until_ns, "held"))
        await self.give_back(device)

    async def hold_over(self, device: str, interrupt: Callable[[], None], for_s: float) -> None:
        """As `hold`; the daemon is interrupted as soon as it has said that the device is the staff's."""
        async with self._world.at_the_rig:
            await self._until_done({"type": "takeHold", "deviceId": device, "hint": "a check"})
            from_ns = self._world.now_ns()
            interrupt()
            await trio.sleep(for_s)
            self._world.notebook.barred.append(Barred(device, from_ns, self._world.now_ns(), "held"))
            await self.give_back(device)

    async def give_back(self, device: str) -> None:
        """Whoever holds it."""
        await self._until_done({"type": "releaseHold", "deviceId": device, "force": True})

    async def come(self) -> None:
        """Connects, so that what is said later is said at once; without a daemon it is done then."""
        with suppress(PlaneDisconnected, PlaneError, OSError):
            await self.connect()

    async def resolve(self, name: Name, outcome: str) -> None:
        """A person looked at the phone and says what became of a key, until she is told that it is kept, or refused."""
        device, key = name
        request = {
            "type": "resolveReceipt",
            "deviceId": device,
            "idempotencyKey": key,
            "outcome": outcome,
            "note": "as the phone shows it",
            "actor": {"kind": "staff", "id": self.plane_id},
        }
        async with self._reviewing:
            while True:
                try:
                    await self._ask_connected(request)
                except PlaneError as error:
                    if not error.error["retryable"]:
                        return
                except (PlaneDisconnected, OSError):
                    pass
                else:
                    self._world.notebook.note(Resolved(self._world.now_ns(), name, outcome))
                    return
                await trio.sleep(AGAIN_S)

    async def stop_and_lift(self, device: str, after_s: float, when_stopped: Callable[[], None]) -> None:
        """Presses the emergency stop, and lifts it after a while."""
        stopped = await self._once({"type": "estop", "deviceId": device})
        from_ns = self._world.now_ns()
        when_stopped()
        await trio.sleep(after_s)
        if stopped:
            self._world.notebook.barred.append(Barred(device, from_ns, self._world.now_ns(), "estopped"))
        await self.lift(device)

    async def lift(self, device: str) -> None:
        await self._until_done({"type": "clearEstop", "deviceId": device})

    async def _once(self, request: Message) -> bool:
        """Whether it was done."""
        try:
            await self._ask_connected(request)
        except (PlaneDisconnected, PlaneError, OSError):
            return False
        return True

    async def _until_done(self, request: Message) -> None:
        while True:
            try:
                await self._ask_connected(request)
                return
            except PlaneError as error:
                if error.code == "leased":
                    # Left behind by somebody who is gone.
                    await self._once({"type": "releaseHold", "deviceId": request["deviceId"], "force": True})
            except (PlaneDisconnected, OSError):
                pass
            await trio.sleep(AGAIN_S)

    async def _ask_connected(self, request: Message) -> None:
        # Of two tasks that find it broken one connects, on the same stream for both.
        async with self._connecting:
            if self._wire is None or self._wire.over or self.disconnected.is_set():
                await self.connect()
        await self.ask(request)
