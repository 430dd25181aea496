"""The other side of the upstream room for its tests: a rig in memory, honest about receipts, without hardware."""

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest
import trio

from edge_daemon.bench.plane import TcpAddress
from edge_daemon.clock import PlaneClock
from edge_daemon.contract import (
    Actions,
    Actor,
    DeviceDescription,
    Dispatch,
    FrameNotes,
    Look,
    Outcome,
    PhysicalCapabilities,
    Picture,
    PixelSize,
    Progress,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Refused,
    Resolution,
    ResolvedAs,
    StaffHold,
    Timing,
    args_summary,
    canonical,
    error_info,
    receipt_action,
)
from edge_daemon.ledger.epoch import raised_for
from edge_daemon.upstream import (
    CalibrationOutcome,
    CalibrationStage,
    Change,
    DriftFound,
    EdgeIdentity,
    Endpoints,
    HandEnvelope,
    HandPoint,
    Listening,
    ProgressCallback,
    RawPicture,
    RigCamera,
    RigFacts,
    RigHand,
    RigMoment,
    ScreenSize,
    SessionLimits,
    StaffTouchAt,
    StageCallback,
    TcpEndpoint,
    serve,
)

# No verdict may depend on how loaded the machine is, or on the luck of the draw.

SUBSCRIBER_BUFFER = 4
JPEG = b"\xff\xd8 a picture \xff\xd9"


def device(device_id: str) -> DeviceDescription:
    return DeviceDescription(
        device_id=device_id,
        backend_kind="robot_hand",
        kind="robot",
        status="online",
        status_reason=None,
        capabilities=PhysicalCapabilities(
            actions=Actions(
                tap=True,
                swipe=True,
                long_press=True,
                type_text=True,
                press_key=True,
                open_app=False,
                wake=False,
                screenshot=True,
            ),
            keys=("home", "back"),
            text_charset="abc",
            text_max_characters=100,
        ),
        orientation="portrait",
        calibrated=True,
        parked=False,
        metadata={},
    )


@dataclass
class _Entry:
    receipt: Receipt
    action: bytes
    finished: trio.Event = field(default_factory=trio.Event)


class MemoryRig:
    """Implements `Service`. Executes nothing, keeps the promises of a ledger in a dict, and can be held up:
    while `gate` is not set, actions wait at their contact.
    """

    def __init__(self) -> None:
        self.epoch = 3
        self.epoch_raised: str | None = None
        self.ledger_id = "ledger-1"
        self.described = {name: device(name) for name in ("phone-1", "phone-2")}
        self.executed: list[str] = []
        self.gate = trio.Event()
        self.gate.set()
        self.disk_refuses = False
        self.begun = trio.Event()
        self.picture = JPEG
        self.looks_gate = trio.Event()
        self.looks_gate.set()
        self.holds: dict[str, str] = {}
        self.touches: list[tuple[str, StaffTouchAt]] = []
        self.stopped: set[str] = set()
        self.parked_hands: list[str] = []
        self.adopted: list[str] = []
        self.calibrated_for: list[tuple[str, str, Actor]] = []
        self.taken_back: list[str] = []
        self.ledger: dict[tuple[str, str], _Entry] = {}
        self.outbox: list[tuple[str, str]] = []
        self.acknowledged: list[tuple[str, str]] = []
        self.subscriptions = 0
        self._subscribers: set[trio.MemorySendChannel[Change]] = set()
        self.changed = trio.Event()

    # --- state and its subscribers -------------------------------------------------------------------------

    def devices(self) -> list[DeviceDescription]:
        return list(self.described.values())

    @contextmanager
    def subscribe(self) -> Iterator[trio.MemoryReceiveChannel[Change]]:
        send, receive = trio.open_memory_channel[Change](SUBSCRIBER_BUFFER)
        self._subscribers.add(send)
        self.subscriptions += 1
        try:
            yield receive
        finally:
            self._subscribers.discard(send)

    def announce(self, change: Change) -> None:
        for subscriber in list(self._subscribers):
            try:
                subscriber.send_nowait(change)
            except trio.WouldBlock:
                self._subscribers.discard(subscriber)
                subscriber.close()

    def redescribe(self, device_id: str, **changes: Any) -> None:
        self.described[device_id] = msgspec.structs.replace(self.described[device_id], **changes)
        self.announce(self.described[device_id])

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.changed.wait()

    def _change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def _device(self, device_id: str) -> DeviceDescription:
        if device_id not in self.described:
            raise Refused(
                "unknown_device",
                f"deviceId: no device {device_id!r} on this rig; it has {', '.join(self.described)}",
                field="deviceId",
            )
        return self.described[device_id]

    # --- the plane's requests ------------------------------------------------------------------------------

    async def dispatch(self, dispatch: Dispatch, on_progress: ProgressCallback) -> Outcome:
        if self._device(dispatch.device_id).parked:
            raise Refused("needs_user_control", "A person has the screen.")
        name = (dispatch.device_id, dispatch.idempotency_key)
        entry = self.ledger.get(name)
        if entry is not None:
            if entry.action != canonical(dispatch.action):
                raise Refused("idempotency_conflict", "this key was used with other arguments")
            await entry.finished.wait()
            return Outcome(receipt=self.ledger[name].receipt, deduplicated=True)
        self._tell(on_progress, dispatch, "accepted")
        entry = self.ledger[name] = _Entry(_pending(dispatch), canonical(dispatch.action))
        self._tell(on_progress, dispatch, "dispatched")
        self.begun.set()
        await self.gate.wait()
        if entry.receipt.status != "pending":
            return Outcome(receipt=entry.receipt)  # taken back in time
        self._tell(on_progress, dispatch, "contact")
        self.executed.append(dispatch.idempotency_key)
        self._tell(on_progress, dispatch, "hover")
        self.settle(
            name,
            msgspec.structs.replace(
                entry.receipt,
                status="committed",
                committed_at="2026-03-01T09:30:00.412Z",
                finished_ns=81612000000,
                frame_notes=FrameNotes(age_ms=1.5, newer_frames=2, edge_moved_since=False, settled=True),
                timing=Timing(queued_ms=0.0, hover_ms=400.0),
            ),
        )
        return Outcome(receipt=entry.receipt)

    def _tell(self, on_progress: ProgressCallback, dispatch: Dispatch, stage: Any) -> None:
        on_progress(
            Progress(
                device_id=dispatch.device_id,
                idempotency_key=dispatch.idempotency_key,
                stage=stage,
                elapsed_ms=1.0,
            )
        )

    def settle(self, name: tuple[str, str], receipt: Receipt) -> None:
        entry = self.ledger[name]
        entry.receipt = receipt
        entry.finished.set()
        if name not in self.outbox:
            self.outbox.append(name)
        self.announce(receipt)
        self._change()

    def record(self, *keys: str, device_id: str = "phone-1") -> None:
        """Receipts of actions done some time ago."""
        for key in keys:
            dispatch = msgspec.convert(dispatch_message(key=key, device_id=device_id), Dispatch)
            self.ledger[device_id, key] = _Entry(_pending(dispatch), b"")
            self.settle(
                (device_id, key),
                msgspec.structs.replace(self.ledger[device_id, key].receipt, status="committed"),
            )

    async def look(self, look: Look) -> Picture:
        if self._device(look.device_id).parked:
            raise Refused("needs_user_control", "A person has the screen.")
        await self.looks_gate.wait()
        return Picture(
            format=look.format,
            image=self.picture,
            pixel_size=PixelSize(width=1080, height=2340),
            orientation="portrait",
            sequence=7,
            captured_at=None,
            clock_synced=False,
            age_ms=12.5,
            settle="still",
            frame_id="f-1" if look.lease else None,
        )

    async def get_receipt(self, device_id: str, key: str, epoch: int | None) -> ReceiptAnswer:
        self._device(device_id)
        entry = self.ledger.get((device_id, key))
        known = entry is not None or epoch in (None, self.epoch)
        return ReceiptAnswer(
            known=known,
            found=entry is not None,
            epoch=self.epoch,
            receipt=entry.receipt if entry else None,
        )

    async def cancel(self, device_id: str, key: str) -> Outcome:
        self._device(device_id)
        entry = self.ledger.get((device_id, key))
        if entry is None:
            raise Refused("invalid_argument", f"no action {key!r}", field="idempotencyKey")
        if entry.receipt.status == "pending":
            self.settle(
                (device_id, key),
                msgspec.structs.replace(
                    entry.receipt, status="failed", error=error_info("canceled", "taken back in time")
                ),
            )
        return Outcome(receipt=entry.receipt)

    async def set_parked(self, device_id: str, parked: bool, actor: Actor) -> None:
        self._device(device_id)
        self.redescribe(device_id, parked=parked)

    async def unacknowledged(self, limit: int) -> list[Receipt]:
        return [self.ledger[name].receipt for name in self.outbox[:limit]]

    async def acknowledge(self, device_id: str, key: str, resolved: bool) -> None:
        self._device(device_id)
        entry = self.ledger.get((device_id, key))
        if entry is not None and entry.receipt.resolution is not None and not resolved:
            return
        self.acknowledged.append((device_id, key))
        if (device_id, key) in self.outbox:
            self.outbox.remove((device_id, key))
        self._change()

    async def list_receipts(self, query: ReceiptQuery) -> ReceiptPage:
        """The cursor is a place in the list."""
        entries = list(self.ledger.values())
        start = query.cursor or 0
        found = [entry.receipt for entry in entries[start:] if query.takes(entry.receipt)][: query.limit]
        end = start + query.limit
        return ReceiptPage(receipts=tuple(found), next=end if end < len(entries) else None)

    async def resolve_receipt(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        entry = self.ledger.get((device_id, key))
        if entry is None or not entry.receipt.requires_manual_review:
            raise Refused("invalid_argument", f"{key} needs no review", field="idempotencyKey")
        resolution = Resolution(
            outcome=outcome,
            note=note,
            actor=actor,
            resolved_at="2026-03-01T10:00:00.000Z",
            clock_synced=True,
            boot_id="boot-1",
            resolved_ns=90000000000,
        )
        receipt = msgspec.structs.replace(entry.receipt, requires_manual_review=False, resolution=resolution)
        self.settle((device_id, key), receipt)
        return ReceiptAnswer(known=True, found=True, epoch=self.epoch, receipt=receipt)

    async def raise_epoch(self, remembered: int) -> None:
        self.epoch = raised_for(remembered, self.epoch)

    # --- staff ---------------------------------------------------------------------------------------------

    async def take_hold(self, device_id: str, hint: str, owner: str) -> None:
        self._device(device_id)
        if self.disk_refuses:
            raise Refused("storage_unavailable", "the disk is full")
        holder = self.holds.setdefault(device_id, owner)
        if holder != owner:
            raise Refused("leased", f"{holder} holds it", hint=hint)
        self.redescribe(device_id, staff_hold=StaffHold(hint=hint))

    async def release_hold(self, device_id: str, owner: str | None) -> None:
        await trio.lowlevel.checkpoint()  # parking a hand takes a while
        if owner is not None and self.holds.get(device_id) != owner:
            raise Refused("permission_denied", f"{self.holds.get(device_id)} holds it, not {owner}")
        del self.holds[device_id]
        self.parked_hands.append(device_id)
        self.redescribe(device_id, staff_hold=None)
        self._change()

    def _need_hold(self, device_id: str, owner: str) -> None:
        if self.holds.get(device_id) != owner:
            raise Refused("lease_required", "take the hold first")

    async def rig_facts(self, device_id: str) -> RigFacts:
        self._device(device_id)
        return RigFacts(
            device_id=device_id,
            screen=ScreenSize(width_px=1080, height_px=2340, width_mm=64.5, height_mm=139.75),
            orientation="portrait",
            camera=RigCamera(name="cam-1", source="http_mjpeg", width=1280, height=720),
            calibration_folder="/var/lib/edge-daemon/calibration",
            now=RigMoment(
                wall_utc="2026-03-01T09:30:00.000Z", clock_synced=False, boot_id="boot-1", monotonic_ns=7
            ),
            hand=RigHand(
                uid="a1b2",
                firmware="1.4",
                envelope=HandEnvelope(
                    x_min_mm=0, x_max_mm=180, y_min_mm=0, y_max_mm=200, z_min_mm=-5, z_max_mm=40
                ),
                park=HandPoint(x_mm=0, y_mm=0, z_mm=40),
                search_z_mm=12.0,
                approach_mm=0.6,
            ),
        )

    async def staff_look(self, device_id: str) -> RawPicture:
        self._device(device_id)
        return RawPicture(jpeg=JPEG, width=1280, height=720, camera="cam-1", sequence=9, exposed_ns=5)

    async def staff_touch(self, device_id: str, touch: StaffTouchAt, owner: str) -> None:
        self._need_hold(device_id, owner)
        self.begun.set()
        await self.gate.wait()
        self.touches.append((device_id, touch))
        self._change()

    async def staff_park(self, device_id: str, owner: str) -> None:
        self._need_hold(device_id, owner)
        self.parked_hands.append(device_id)

    async def estop(self, device_id: str) -> None:
        self.stopped.add(device_id)

    async def clear_estop(self, device_id: str) -> None:
        self.stopped.discard(device_id)

    async def adopt_calibration(self, device_id: str) -> None:
        self.adopted.append(device_id)

    async def set_orientation(self, device_id: str, orientation: Any) -> None:
        turned = "landscape_left" if orientation == "found" else orientation
        self.redescribe(self._device(device_id).device_id, orientation=turned)

    async def check_drift(self, device_id: str) -> DriftFound:
        self._device(device_id)
        return DriftFound(verdict="still", message="nothing moved", warn=False, hold=False, shift_px=0.02)

    async def calibrate(
        self, device_id: str, kind: Any, actor: Actor, on_stage: StageCallback
    ) -> CalibrationOutcome:
        self._device(device_id)
        self.calibrated_for.append((device_id, kind, actor))
        for number in (1, 2):
            on_stage(
                CalibrationStage(
                    number=number,
                    steps=2,
                    title="a step",
                    caution="mind it",
                    detail="",
                    touches=number,
                    fraction=number / 2,
                    remaining_s=None,
                )
            )
        self.begun.set()
        await self.gate.wait()
        if device_id in self.taken_back:
            raise Refused("canceled", "taken back")
        return CalibrationOutcome(
            device_id=device_id, verdict="accepted", touches=2, calibration_id="3fa2b1c0", p95_mm=0.1
        )

    async def stop_calibration(self, device_id: str, actor: Actor) -> None:
        self._device(device_id)
        self.taken_back.append(device_id)
        self.gate.set()


def _pending(dispatch: Dispatch) -> Receipt:
    return Receipt(
        org_id=dispatch.org_id,
        device_id=dispatch.device_id,
        idempotency_key=dispatch.idempotency_key,
        backend_kind="robot_hand",
        action=receipt_action(dispatch.action),
        args_summary=args_summary(dispatch.action, "digest"),
        status="pending",
        requested_at="2026-03-01T09:30:00.000Z",
        boot_id="boot-1",
        requested_ns=81200000000,
        clock_synced=True,
        actor=dispatch.actor,
        observed_frame=dispatch.observed_frame,
    )


def dispatch_message(**changes: Any) -> dict[str, Any]:
    key = changes.pop("key", "k-1")
    device_id = changes.pop("device_id", "phone-1")
    return {
        "deviceId": device_id,
        "idempotencyKey": key,
        "orgId": "org-1",
        "actor": {"kind": "run"},
        "lease": {"leaseId": "l-1", "fencingToken": 1, "remainingMs": 600_000},
        "action": {"type": "tap", "x": 500.0, "y": 250.0},
        **changes,
    }


class RawPeer:
    """A peer without manners: sends any bytes, decodes with raw msgpack."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = bytearray()

    async def say(self, message: Any) -> None:
        await self.frame(msgpack.packb(message))

    async def frame(self, body: bytes) -> None:
        await self.stream.send_all(len(body).to_bytes(4, "big") + body)

    async def hear(self, *, pings: bool = False) -> dict[str, Any] | None:
        """The next message, pings passed over; None when the edge hung up."""
        while True:
            if len(self._buffer) >= 4 and len(self._buffer) >= 4 + int.from_bytes(self._buffer[:4], "big"):
                end = 4 + int.from_bytes(self._buffer[:4], "big")
                message: dict[str, Any] = msgpack.unpackb(bytes(self._buffer[4:end]))
                del self._buffer[:end]
                if pings or message["type"] != "ping":
                    return message
                continue
            data = await self.stream.receive_some()
            if not data:
                return None
            self._buffer += data

    async def hello(self, plane_id: str = "plane-1", **fields: Any) -> dict[str, Any]:
        challenge = await self.hear()
        assert challenge is not None
        assert challenge["type"] == "challenge"
        await self.say({"type": "hello", "protocol": 1, "planeId": plane_id, **fields})
        answer = await self.hear()
        assert answer is not None
        return answer

    async def still_serves(self) -> None:
        """The session goes on: an ordinary request is answered."""
        await self.say({"type": "getReceipt", "id": "still", "deviceId": "phone-1", "idempotencyKey": "none"})
        while (answer := await self.hear()) is not None:
            if answer.get("replyTo") == "still":
                assert answer["type"] == "receiptAnswer"
                return
        raise AssertionError("the edge hung up")


@dataclass
class Edge:
    """A running upstream server and how to reach it."""

    rig: MemoryRig
    clock: PlaneClock
    plane_socket: Path
    staff_socket: Path
    tcp: TcpAddress
    stop: Callable[[], None]

    @asynccontextmanager
    async def raw(self, path: Path | None = None) -> AsyncIterator[RawPeer]:
        async with await trio.open_unix_socket(path or self.plane_socket) as stream:
            yield RawPeer(stream)

    @asynccontextmanager
    async def raw_tcp(self) -> AsyncIterator[RawPeer]:
        async with await trio.open_tcp_stream(self.tcp.host, self.tcp.port) as stream:
            yield RawPeer(stream)


TOKEN = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def rig() -> MemoryRig:
    return MemoryRig()


@pytest.fixture
def limits() -> SessionLimits:
    return SessionLimits()


def trio_ns() -> int:
    """The run's clock, so that a MockClock rules the sessions as well."""
    return math.floor(trio.current_time() * 1e9)


@pytest.fixture
async def edge(rig: MemoryRig, limits: SessionLimits, tmp_path: Path) -> AsyncIterator[Edge]:
    token_file = tmp_path / "token"
    token_file.write_bytes(TOKEN + b"\n")
    token_file.chmod(0o600)
    endpoints = Endpoints(
        plane_socket=tmp_path / "plane.sock",
        staff_socket=tmp_path / "staff.sock",
        plane_tcp=TcpEndpoint("127.0.0.1", 0, token_file),
    )
    clock = PlaneClock(trio_ns)
    serving = trio.CancelScope()

    async def run(task_status: trio.TaskStatus[Listening]) -> None:
        with serving:
            await serve(
                rig,
                endpoints,
                EdgeIdentity(edge_id="edge-7", boot_id="boot-1"),
                clock,
                limits=limits,
                monotonic_ns=trio_ns,
                task_status=task_status,
            )

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(run)
        assert endpoints.plane_socket is not None
        assert endpoints.staff_socket is not None
        yield Edge(
            rig=rig,
            clock=clock,
            plane_socket=endpoints.plane_socket,
            staff_socket=endpoints.staff_socket,
            tcp=TcpAddress("127.0.0.1", listening.tcp_ports[0], TOKEN),
            stop=serving.cancel,
        )
        serving.cancel()
