"""All devices of the rig, as the session upstream sees them: the `Service` of `edge_daemon.upstream`."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import msgspec
import trio

from edge_daemon.contract import (
    Actor,
    DeviceDescription,
    Dispatch,
    Look,
    Outcome,
    Picture,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Refused,
    ResolvedAs,
)
from edge_daemon.devices.device import Device
from edge_daemon.devices.recovery import Recovery
from edge_daemon.devices.reviews import Reviews
from edge_daemon.devices.staff import StaffDesk
from edge_daemon.ledger import Ledger
from edge_daemon.staff.unattended import Unattended
from edge_daemon.upstream.service import (
    CalibrationKind,
    CalibrationOutcome,
    Change,
    DriftFound,
    ProgressCallback,
    RawPicture,
    RigFacts,
    StaffTouchAt,
    StageCallback,
    WantedOrientation,
)

logger = logging.getLogger(__name__)

CHANGES_KEPT = 256
"""Changes a subscriber may lag behind before its channel is ended and it reads everything anew."""


class Changes:
    """Tells subscribers what became final and what changed. Never blocks, never drops one change silently."""

    def __init__(self) -> None:
        self._subscribers: set[trio.MemorySendChannel[Change]] = set()

    @contextmanager
    def subscribe(self) -> Iterator[trio.MemoryReceiveChannel[Change]]:
        send, receive = trio.open_memory_channel[Change](CHANGES_KEPT)
        self._subscribers.add(send)
        try:
            with receive:
                yield receive
        finally:
            self._subscribers.discard(send)
            send.close()

    def tell(self, change: Change) -> None:
        for send in tuple(self._subscribers):
            try:
                send.send_nowait(change)
            except trio.WouldBlock:
                self._subscribers.discard(send)
                send.close()
            except trio.BrokenResourceError:
                self._subscribers.discard(send)


class Looks:
    """Those under way, which end when a person takes the screen: what they would show is the person's by then."""

    def __init__(self) -> None:
        self._scopes: dict[str, set[trio.CancelScope]] = {}

    @contextmanager
    def under_way(self, device_id: str) -> Iterator[None]:
        """Around a look. Raises `Refused` when it was ended."""
        scopes = self._scopes.setdefault(device_id, set())
        scope = trio.CancelScope()
        scopes.add(scope)
        try:
            with scope:
                yield
        finally:
            scopes.remove(scope)
        # Also one that was over before it noticed, and whose screen has been given back since.
        if scope.cancel_called:
            raise Refused(
                "needs_user_control",
                f"a person took the screen of {device_id} meanwhile: nothing of it is shown",
            )

    def end(self, device_id: str) -> None:
        for scope in self._scopes.get(device_id, ()):
            scope.cancel()


class Fleet:
    """Implements `edge_daemon.upstream.Service`; every method may raise `Refused`."""

    def __init__(
        self,
        devices: Mapping[str, Device],
        desks: Mapping[str, StaffDesk],
        ledger: Ledger,
        changes: Changes,
        unattended: Unattended,
        reviews: Reviews,
        removed: Sequence[Recovery] = (),
    ) -> None:
        """removed: the pending receipts of devices that are not configured any more."""
        self._devices = dict(devices)
        self._desks = dict(desks)
        self._ledger = ledger
        self._changes = changes
        self._looks = Looks()
        self._unattended = unattended
        self._reviews = reviews
        self._removed = tuple(removed)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Works until cancelled; each hand is then parked within a bound."""
        for desk in self._desks.values():
            await desk.drop_orphaned_hold()
        async with trio.open_nursery() as nursery:
            for device in self._devices.values():
                await nursery.start(device.run)
            for recovery in self._removed:
                nursery.start_soon(recovery.run)
            task_status.started()

    async def drain(self) -> None:
        """Nothing new begins, what is under way may finish, hands are parked; all devices side by side."""
        async with trio.open_nursery() as nursery:
            for device in self._devices.values():
                nursery.start_soon(device.drain)

    # -- what is there ------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self._ledger.epoch

    @property
    def epoch_raised(self) -> str | None:
        return self._ledger.renewed

    @property
    def ledger_id(self) -> str:
        return self._ledger.ledger_id

    def devices(self) -> list[DeviceDescription]:
        return [desk.describe() for desk in self._desks.values()]

    def subscribe(self) -> AbstractContextManager[trio.MemoryReceiveChannel[Change]]:
        return self._changes.subscribe()

    def device_changed(self, device_id: str) -> None:
        self._changes.tell(self._desks[device_id].describe())

    # -- the plane ----------------------------------------------------------------------------------------

    async def dispatch(self, dispatch: Dispatch, on_progress: ProgressCallback) -> Outcome:
        return await self._device(dispatch.device_id).submit(dispatch, on_progress)

    async def look(self, look: Look) -> Picture:
        device = self._device(look.device_id)
        if look.lease is not None:
            await self._ledger.note_token(look.device_id, look.lease.fencing_token)
        device.gate.refuse_look(look.lease)
        with self._looks.under_way(look.device_id):
            picture = await device.eye.look(look)
        # Nothing is awaited from here until it is on its way to the plane.
        device.gate.refuse_look(look.lease)
        return picture

    async def get_receipt(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer:
        if device_id not in self._devices:
            # One that is no longer configured may have receipts.
            answer = await self._ledger.lookup(device_id, key, epoch)
            if answer.found:
                return answer
        return await self._device(device_id).receipt(key, epoch)

    async def cancel(self, device_id: str, key: str) -> Outcome:
        return await self._device(device_id).cancel(key)

    async def set_parked(self, device_id: str, parked: bool, actor: Actor) -> None:
        self._device(device_id)
        if not parked and actor.kind != "person":
            raise Refused(
                "permission_denied",
                f"only a person lifts a request for a person; the actor is {actor.kind!r}",
                field="actor.kind",
            )
        await self._ledger.set_parked(device_id, parked, f"{actor.kind} {actor.id or ''}".strip())
        if parked:
            self._looks.end(device_id)
        self.device_changed(device_id)

    async def unacknowledged(self, limit: int) -> list[Receipt]:
        return await self._ledger.unacknowledged(limit)

    async def acknowledge(self, device_id: str, key: str, resolved: bool) -> None:
        await self._ledger.acknowledge(device_id, key, resolved=resolved)

    async def raise_epoch(self, remembered: int) -> None:
        await self._ledger.raise_epoch(remembered)

    # -- staff --------------------------------------------------------------------------------------------

    async def take_hold(self, device_id: str, hint: str, owner: str) -> None:
        await self._desk(device_id).take_hold(hint, owner)
        self.device_changed(device_id)

    async def release_hold(self, device_id: str, owner: str | None) -> None:
        await self._desk(device_id).release_hold(owner)
        self.device_changed(device_id)

    async def set_orientation(self, device_id: str, orientation: WantedOrientation) -> None:
        if orientation == "found":
            orientation = await self._device(device_id).eye.found_orientation()
        await self._desk(device_id).set_orientation(orientation)
        self.device_changed(device_id)

    async def list_receipts(self, query: ReceiptQuery) -> ReceiptPage:
        return await self._reviews.page(query)

    async def resolve_receipt(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        return await self._reviews.resolve(device_id, key, outcome, note, actor)

    async def rig_facts(self, device_id: str) -> RigFacts:
        facts = self._desk(device_id).facts()
        return msgspec.structs.replace(facts, page_url=self._unattended.page_url(device_id))

    async def staff_look(self, device_id: str) -> RawPicture:
        return await self._desk(device_id).look()

    async def staff_touch(self, device_id: str, touch: StaffTouchAt, owner: str) -> None:
        await self._desk(device_id).touch(touch, owner)

    async def staff_park(self, device_id: str, owner: str) -> None:
        await self._desk(device_id).park(owner)

    async def estop(self, device_id: str) -> None:
        await self._desk(device_id).estop()

    async def clear_estop(self, device_id: str) -> None:
        await self._desk(device_id).clear_estop()

    async def adopt_calibration(self, device_id: str) -> None:
        await self._desk(device_id).adopt_calibration()
        self.device_changed(device_id)

    async def check_drift(self, device_id: str) -> DriftFound:
        return await self._desk(device_id).check_drift()

    async def calibrate(
        self, device_id: str, kind: CalibrationKind, actor: Actor, on_stage: StageCallback
    ) -> CalibrationOutcome:
        return await self._unattended.calibrate(
            self._desk(device_id), kind, actor, on_stage, partial(self.device_changed, device_id)
        )

    async def stop_calibration(self, device_id: str, actor: Actor) -> None:
        self._device(device_id)
        await self._unattended.stop(device_id)

    # -- inside -------------------------------------------------------------------------------------------

    def _device(self, device_id: str) -> Device:
        device = self._devices.get(device_id)
        if device is None:
            known = ", ".join(sorted(self._devices))
            raise Refused(
                "unknown_device", f"this edge has no device {device_id!r}; it has: {known}", field="deviceId"
            )
        return device

    def _desk(self, device_id: str) -> StaffDesk:
        self._device(device_id)
        return self._desks[device_id]
