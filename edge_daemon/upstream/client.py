"""The staff's end of a connection: what a technician's tool on the same machine asks the running daemon.

    async with connect_staff(path, "jo") as edge:
        await edge.take_hold("phone-1", "calibration, about 5 minutes")
        picture = await edge.look("phone-1")

Holds are given back by the daemon when the connection ends, for whatever reason it ends.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from edge_daemon.contract import (
    Actor,
    DeviceDescription,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Refused,
    ResolvedAs,
)
from edge_daemon.upstream.codec import (
    MAX_BYTES_FROM_EDGE,
    FrameReader,
    UpstreamError,
    decode_from_edge,
    encode_to_edge,
    tag_of,
)
from edge_daemon.upstream.messages import (
    PROTOCOL,
    AdoptCalibration,
    Answer,
    Calibrate,
    CalibrationProgress,
    CalibrationResult,
    Challenge,
    CheckDrift,
    ClearEstop,
    DescribeRig,
    Devices,
    DriftAnswer,
    ErrorAnswer,
    Estop,
    FromEdge,
    GetReceipt,
    ListDevices,
    ListReceipts,
    Ok,
    Ping,
    Pong,
    RawPictureAnswer,
    ReceiptFound,
    Receipts,
    ReleaseHold,
    RequestId,
    ResolveReceipt,
    Rig,
    SetOrientation,
    StaffHello,
    StaffLook,
    StaffPark,
    StaffRequest,
    StaffTouch,
    StopCalibration,
    TakeHold,
    Welcome,
)
from edge_daemon.upstream.service import (
    CalibrationKind,
    CalibrationOutcome,
    DriftFound,
    RawPicture,
    RigFacts,
    StaffTouchAt,
    StageCallback,
    WantedOrientation,
)

_READ_BYTES = 64 * 1024
_HANDSHAKE_S = 5.0
_SEND_AHEAD = 8

_A = TypeVar("_A", bound=msgspec.Struct)


class EdgeGone(Exception):
    """The daemon cannot be reached, or not any more. A request in flight may or may not have been done."""


@asynccontextmanager
async def connect_staff(path: Path, staff_id: str) -> "AsyncIterator[StaffClient]":
    """Connected and welcomed.

    Raises:
        EdgeGone: nobody listens there, or the handshake fails.
        Refused: the daemon refuses us.
    """
    try:
        stream = await trio.open_unix_socket(path)
    except OSError as e:
        raise EdgeGone(f"no daemon listens on {path} ({e.strerror}); is it running?") from e
    async with stream:
        client = StaffClient(stream)
        with trio.move_on_after(_HANDSHAKE_S) as patience:
            await client.hello(staff_id)
        if patience.cancelled_caught:
            raise EdgeGone(f"the daemon on {path} did not say welcome within {_HANDSHAKE_S} s")
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send)
                nursery.start_soon(client.receive)
                yield client
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            # Our two tasks raise nothing; what the caller's own block raised reaches it as it was.
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise


class StaffClient:
    """Requests may be made from several tasks at once. Every verb raises `Refused` or `EdgeGone`.

    A cancelled verb is still carried out by the daemon; only its answer is not waited for any more.
    """

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self._stream = stream
        self._frames = FrameReader(MAX_BYTES_FROM_EDGE)
        # A task of its own writes: a verb cancelled half-way through a frame would break the stream.
        self._to_send, self._sendable = trio.open_memory_channel[bytes](_SEND_AHEAD)
        self._next_id = 0
        self._waiting: dict[int, trio.MemorySendChannel[Answer]] = {}
        self._on_stage: dict[RequestId, StageCallback] = {}
        self._gone: str | None = None
        self._last_words: str | None = None
        self._silence_s = _HANDSHAKE_S
        self.edge_id = ""
        self.boot_id = ""
        self.epoch = 0
        self.epoch_raised: str | None = None

    async def hello(self, staff_id: str) -> Welcome:
        challenge = await self._next_message()
        if not isinstance(challenge, Challenge) or challenge.role != "staff":
            raise EdgeGone("this is no staff socket of an edge daemon")
        try:
            await self._stream.send_all(encode_to_edge(StaffHello(protocol=PROTOCOL, staff_id=staff_id)))
        except trio.BrokenResourceError as e:
            raise EdgeGone("the daemon hung up") from e
        welcome = await self._next_message()
        if isinstance(welcome, ErrorAnswer):
            raise _refused(welcome)
        if not isinstance(welcome, Welcome):
            raise EdgeGone(f"the daemon said {tag_of(welcome)} where welcome was due")
        self._silence_s = welcome.rules.silence_ms / 1000
        self.edge_id, self.boot_id = welcome.edge_id, welcome.boot_id
        self.epoch, self.epoch_raised = welcome.epoch, welcome.epoch_raised
        return welcome

    async def receive(self) -> None:
        """Hand answers to whoever waits for them; returns when the daemon is gone."""
        try:
            while True:
                await self._on_message(await self._next_message())
        except EdgeGone as e:
            self._gone = self._last_words or str(e)
        finally:
            self._sendable.close()
            for waiting in self._waiting.values():
                waiting.close()

    async def send(self) -> None:
        """Write what the verbs ask; returns when the daemon is gone, which `receive` notices as well."""
        try:
            async for frame in self._sendable:
                await self._stream.send_all(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def list_devices(self) -> tuple[DeviceDescription, ...]:
        return (await self._ask(ListDevices(id=self._new_id()), Devices)).devices

    async def get_receipt(self, device_id: str, key: str) -> ReceiptAnswer:
        request = GetReceipt(id=self._new_id(), device_id=device_id, idempotency_key=key)
        return (await self._ask(request, ReceiptFound)).answer

    async def list_receipts(self, query: ReceiptQuery) -> ReceiptPage:
        request = ListReceipts(id=self._new_id(), **msgspec.structs.asdict(query))
        return (await self._ask(request, Receipts)).page

    async def resolve_receipt(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        """A person's word on a receipt that requires a review; the plane is told. Saying it again changes nothing."""
        request = ResolveReceipt(
            id=self._new_id(),
            device_id=device_id,
            idempotency_key=key,
            outcome=outcome,
            note=note,
            actor=actor,
        )
        return (await self._ask(request, ReceiptFound)).answer

    async def take_hold(self, device_id: str, hint: str) -> None:
        """Nobody upstream may act on the device until the hold is released or this connection ends."""
        await self._ask(TakeHold(id=self._new_id(), device_id=device_id, hint=hint), Ok)

    async def release_hold(self, device_id: str, *, force: bool = False) -> None:
        """`force`: also when another connection took it, whose process may be gone."""
        await self._ask(ReleaseHold(id=self._new_id(), device_id=device_id, force=force), Ok)

    async def rig_facts(self, device_id: str) -> RigFacts:
        return (await self._ask(DescribeRig(id=self._new_id(), device_id=device_id), Rig)).rig

    async def look(self, device_id: str) -> RawPicture:
        """A raw camera picture exposed after this call, the hand out of the picture."""
        return (await self._ask(StaffLook(id=self._new_id(), device_id=device_id), RawPictureAnswer)).picture

    async def touch(self, device_id: str, at: StaffTouchAt) -> None:
        """One touch by the hand or the HID board; returns when it is over, a hand back at hover."""
        await self._ask(StaffTouch(id=self._new_id(), device_id=device_id, touch=at), Ok)

    async def park(self, device_id: str) -> None:
        await self._ask(StaffPark(id=self._new_id(), device_id=device_id), Ok)

    async def estop(self, device_id: str) -> None:
        await self._ask(Estop(id=self._new_id(), device_id=device_id), Ok)

    async def clear_estop(self, device_id: str) -> None:
        await self._ask(ClearEstop(id=self._new_id(), device_id=device_id), Ok)

    async def adopt_calibration(self, device_id: str) -> None:
        """The daemon reads the device's calibration from the store again."""
        await self._ask(AdoptCalibration(id=self._new_id(), device_id=device_id), Ok)

    async def set_orientation(self, device_id: str, orientation: WantedOrientation) -> None:
        """How the screen is turned from now on; `found`: as the camera's picture shows it."""
        await self._ask(SetOrientation(id=self._new_id(), device_id=device_id, orientation=orientation), Ok)

    async def check_drift(self, device_id: str) -> DriftFound:
        """Measures now whether camera or phone have moved since the calibration; nothing moves for it."""
        return (await self._ask(CheckDrift(id=self._new_id(), device_id=device_id), DriftAnswer)).drift

    async def calibrate(
        self, device_id: str, kind: CalibrationKind, actor: Actor, on_stage: StageCallback
    ) -> CalibrationOutcome:
        """The daemon calibrates by itself, showing its pages on the phone; cancelling this does not stop it."""
        request = Calibrate(id=self._new_id(), device_id=device_id, kind=kind, actor=actor)
        self._on_stage[request.id] = on_stage
        try:
            return (await self._ask(request, CalibrationResult)).outcome
        finally:
            del self._on_stage[request.id]

    async def stop_calibration(self, device_id: str, actor: Actor) -> None:
        """Takes back what `calibrate` began; returns when the hand is parked and the device given back."""
        await self._ask(StopCalibration(id=self._new_id(), device_id=device_id, actor=actor), Ok)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    async def _ask(self, request: StaffRequest, expected: type[_A]) -> _A:
        assert isinstance(request.id, int)
        answered, answers = trio.open_memory_channel[Answer](1)
        self._waiting[request.id] = answered
        try:
            await self._to_send.send(encode_to_edge(request))
            answer = await answers.receive()
        except (trio.EndOfChannel, trio.BrokenResourceError):
            raise EdgeGone(self._gone or "the daemon hung up") from None
        finally:
            del self._waiting[request.id]
            answered.close()
        if isinstance(answer, ErrorAnswer):
            raise _refused(answer)
        assert isinstance(answer, expected), answer
        return answer

    async def _on_message(self, message: FromEdge) -> None:
        if isinstance(message, Ping):
            await self._to_send.send(encode_to_edge(Pong(monotonic_ns=message.monotonic_ns)))
        elif isinstance(message, CalibrationProgress):
            if (on_stage := self._on_stage.get(message.reply_to)) is not None:
                on_stage(message.stage)
        elif isinstance(message, ErrorAnswer) and message.reply_to is None:
            self._last_words = message.error.message
        elif isinstance(message, Answer) and isinstance(message.reply_to, int):
            waiting = self._waiting.get(message.reply_to)
            if waiting is not None:
                waiting.send_nowait(message)

    async def _next_message(self) -> FromEdge:
        try:
            while (body := self._frames.next_body()) is None:
                with trio.move_on_after(self._silence_s) as patience:
                    data = await self._stream.receive_some(_READ_BYTES)
                if patience.cancelled_caught:
                    raise EdgeGone(f"the daemon is silent for {self._silence_s} s")
                if not data:
                    raise EdgeGone("the daemon hung up")
                self._frames.feed(data)
            return decode_from_edge(body)
        except trio.BrokenResourceError as e:
            raise EdgeGone("the daemon hung up") from e
        except UpstreamError as e:
            raise EdgeGone(f"the daemon sent what is no message: {e}") from e


def _refused(answer: ErrorAnswer) -> Refused:
    error = answer.error
    return Refused(error.code, error.message, field=error.field, hint=error.hint, retryable=error.retryable)
