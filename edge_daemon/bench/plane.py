"""A plane for the bench, written from `upstream/PROTOCOL.md` alone.

On purpose it shares no line with the daemon's own codec: raw `msgpack`, plain dicts. What it and the daemon
agree on is what the document says.

    async with open_plane("plane-1", address) as plane:
        answer = await plane.dispatch("phone-1", {"type": "tap", "x": 500.0, "y": 250.0})
        assert answer.committed
"""

import hashlib
import hmac
import os
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]
import trio

Message = dict[str, Any]

PROTOCOL: Final = 2
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
LEASE_MS: Final = 600_000
_LENGTH: Final = struct.Struct(">I")


class PlaneError(Exception):
    """The edge answered with an error, or refused the connection."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: str = error["code"]
        self.error = error


class PlaneDisconnected(Exception):
    """The connection broke; what became of a request is not known here. Ask with `get_receipt`."""


@dataclass(frozen=True)
class TcpAddress:
    host: str
    port: int
    token: bytes
    """The shared secret as it stands in the token file, without white space at its end."""


Address = Path | TcpAddress


@dataclass
class Answer:
    """What came back for a dispatch."""

    outcome: Message
    progress: list[Message] = field(default_factory=list)

    @property
    def receipt(self) -> Message | None:
        receipt: Message | None = self.outcome.get("receipt")
        return receipt

    @property
    def error(self) -> Message | None:
        """The refusal, or what the receipt failed with."""
        error: Message | None = self.outcome.get("error") or (self.receipt or {}).get("error")
        return error

    @property
    def committed(self) -> bool:
        return self.receipt is not None and self.receipt["status"] == "committed"

    @property
    def deduplicated(self) -> bool:
        return bool(self.outcome.get("deduplicated", False))

    @property
    def stages(self) -> list[str]:
        return [note["stage"] for note in self.progress]


class _Waiting:
    """One request without its answer yet."""

    def __init__(self, on_progress: Callable[[Message], None]) -> None:
        self.on_progress = on_progress
        self.done = trio.Event()
        self.answer: Message | None = None
        self.progress: list[Message] = []


class Plane:
    """One plane: its notebook outlives its connections. `nursery` owns its reader.

    `notebook` holds every receipt that was pushed or answered, by (deviceId, idempotencyKey). With
    `acknowledge` each pushed receipt is acknowledged once it is in the notebook.
    """

    def __init__(
        self,
        plane_id: str,
        address: Address,
        nursery: trio.Nursery,
        *,
        acknowledge: bool = True,
        fencing_token: int = 1,
        unix_ms: Callable[[], float] = lambda: time.time() * 1000.0,
    ) -> None:
        self.plane_id = plane_id
        self.address = address
        self.acknowledge = acknowledge
        self.fencing_token = fencing_token
        self.notebook: dict[tuple[str, str], Message] = {}
        self.pushed: list[tuple[str, str]] = []
        """Every pushed receipt's name, repetitions included."""
        self.devices: dict[str, Message] = {}
        self.complaints: list[Message] = []
        """Errors that answered no request."""
        self.welcome: Message = {}
        self.epoch: int | None = None
        self._first_epochs: dict[str, int] = {}
        self.disconnected = trio.Event()
        self._unix_ms = unix_ms
        self._stream: trio.abc.HalfCloseableStream | None = None
        self._buffer = bytearray()
        self._waiting: dict[int, _Waiting] = {}
        self._next_id = 0
        self._next_key = 0
        self._sending = trio.Lock()
        self._told = trio.Event()
        self._nursery = nursery

    # --- the connection ------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connect and shake hands. What was in the edge's outbox comes right after.

        Raises: PlaneError (the edge refuses us), PlaneDisconnected, OSError.
        """
        self._stream = stream = await self.open_stream()
        self._buffer.clear()
        try:
            await self._shake_hands()
        except BaseException:
            self._stream = None
            await trio.aclose_forcefully(stream)
            raise
        self.disconnected = trio.Event()
        self._nursery.start_soon(self._read, stream, self.disconnected)

    async def open_stream(self) -> trio.abc.HalfCloseableStream:
        """A way to the edge. Raises OSError."""
        if isinstance(self.address, TcpAddress):
            return await trio.open_tcp_stream(self.address.host, self.address.port)
        return await trio.open_unix_socket(self.address)

    async def disconnect(self) -> None:
        """Break the connection at once, as a cut cable would; returns when it is noticed."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)
            await self.disconnected.wait()

    async def reconnect(self) -> None:
        await self.disconnect()
        await self.connect()

    async def _shake_hands(self) -> None:
        challenge = await self._next_message()
        hello = self.hello()
        nonce = os.urandom(32)
        if challenge["authentication"] == "hmac-sha256":
            hello["nonce"] = nonce
            hello["proof"] = self._proof("plane", challenge["nonce"] + nonce + self.plane_id.encode())
        await self.send(hello)
        welcome = await self._next_message()
        if welcome["type"] == "error":
            raise PlaneError(welcome["error"])
        if challenge["authentication"] == "hmac-sha256":
            expected = self._proof("edge", nonce + challenge["nonce"] + challenge["edgeId"].encode())
            if not hmac.compare_digest(expected, welcome.get("proof", b"")):
                raise PlaneDisconnected("the edge does not have our secret; hung up")
        self.welcome = welcome
        self.epoch = max(self.epoch or 0, welcome["epoch"])
        for device in welcome["devices"]:
            self.devices[device["deviceId"]] = device

    def hello(self) -> Message:
        """Our first message, without what authentication adds."""
        hello: Message = {"type": "hello", "protocol": PROTOCOL, "planeId": self.plane_id}
        if self.epoch is not None:
            hello["epoch"] = self.epoch
        return hello

    def _proof(self, end: str, rest: bytes) -> bytes:
        assert isinstance(self.address, TcpAddress), "the unix socket asks for no proof"
        label = f"edge-daemon/1 {end}".encode() + b"\0"
        return hmac.new(self.address.token, label + rest, hashlib.sha256).digest()

    # --- requests ------------------------------------------------------------------------------------------

    async def dispatch(
        self,
        device_id: str,
        action: Message,
        *,
        key: str | None = None,
        observed_frame: str | None = None,
        fencing_token: int | None = None,
        remaining_ms: int = LEASE_MS,
        expires_in_ms: int | None = None,
        actor: Message | None = None,
        on_progress: Callable[[Message], None] = lambda progress: None,
    ) -> Answer:
        """One action; returns its outcome, whatever it is.

        Raises: PlaneError (the message was refused), PlaneDisconnected (ask `get_receipt`).
        """
        request: Message = {
            "type": "dispatch",
            "deviceId": device_id,
            "idempotencyKey": key or self.new_key(),
            "orgId": "bench",
            "actor": actor or {"kind": "system"},
            "lease": self.lease(fencing_token, remaining_ms),
            "action": action,
        }
        if self.epoch is not None:
            request["epoch"] = self._first_epochs.setdefault(request["idempotencyKey"], self.epoch)
        if observed_frame is not None:
            request["observedFrame"] = observed_frame
        if expires_in_ms is not None:
            request["expiresInMs"] = expires_in_ms
        waiting = await self._ask(request, on_progress)
        assert waiting.answer is not None
        answer = Answer(waiting.answer["outcome"], waiting.progress)
        if answer.receipt is not None:
            self._note(answer.receipt)
        return answer

    async def look(
        self,
        device_id: str,
        *,
        leased: bool = True,
        format: str = "jpeg",
        wait_settled_ms: int | None = None,
    ) -> Message:
        """The `Picture`. With `leased` it carries a `frameId`."""
        request: Message = {
            "type": "look",
            "deviceId": device_id,
            "orgId": "bench",
            "actor": {"kind": "system"},
            "format": format,
        }
        if leased:
            request["lease"] = self.lease()
        if wait_settled_ms is not None:
            request["waitSettledMs"] = wait_settled_ms
        picture: Message = (await self.ask(request))["picture"]
        return picture

    async def get_receipt(self, device_id: str, key: str, *, epoch: int | None = None) -> Message:
        """The `ReceiptAnswer`."""
        request: Message = {"type": "getReceipt", "deviceId": device_id, "idempotencyKey": key}
        if epoch is not None:
            request["epoch"] = epoch
        answer: Message = (await self.ask(request))["answer"]
        self.epoch = max(self.epoch or 0, answer["epoch"])
        return answer

    async def cancel(self, device_id: str, key: str) -> Answer:
        request = {"type": "cancel", "deviceId": device_id, "idempotencyKey": key}
        return Answer((await self.ask(request))["outcome"])

    async def set_parked(self, device_id: str, parked: bool, *, actor_kind: str = "person") -> None:
        await self.ask(
            {"type": "setParked", "deviceId": device_id, "parked": parked, "actor": {"kind": actor_kind}}
        )

    async def list_devices(self) -> list[Message]:
        devices: list[Message] = (await self.ask({"type": "listDevices"}))["devices"]
        return devices

    async def acknowledge_receipt(self, device_id: str, key: str) -> None:
        await self.send({"type": "ackReceipt", "deviceId": device_id, "idempotencyKey": key})

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until what the edge told makes `condition` true: a receipt in the notebook, a device that changed."""
        while not condition():
            await self._told.wait()

    def first_epoch(self, key: str) -> int | None:
        """The ledger's epoch under which this key was sent for the first time; None: it never was."""
        return self._first_epochs.get(key)

    def share_epochs(self, other: "Plane") -> None:
        """One memory with `other`: what one of the two was told of epochs, both know."""
        self.epoch = other.epoch
        self._first_epochs = other._first_epochs

    def new_key(self) -> str:
        self._next_key += 1
        return f"{self.plane_id}-{self._next_key:06d}"

    def lease(self, fencing_token: int | None = None, remaining_ms: int = LEASE_MS) -> Message:
        token = self.fencing_token if fencing_token is None else fencing_token
        return {"leaseId": f"lease-{token}", "fencingToken": token, "remainingMs": remaining_ms}

    async def ask(self, request: Message) -> Message:
        """Any request without its `id`; returns its answer.

        Raises: PlaneError (the answer is an `error`), PlaneDisconnected.
        """
        answer = (await self._ask(request)).answer
        assert answer is not None
        return answer

    async def _ask(
        self, request: Message, on_progress: Callable[[Message], None] = lambda progress: None
    ) -> _Waiting:
        self._next_id += 1
        waiting = self._waiting[self._next_id] = _Waiting(on_progress)
        request_id = self._next_id
        try:
            await self.send({**request, "id": request_id})
            await waiting.done.wait()
        finally:
            del self._waiting[request_id]
        if waiting.answer is None:
            raise PlaneDisconnected(f"the connection broke before {request['type']} was answered")
        if waiting.answer["type"] == "error":
            raise PlaneError(waiting.answer["error"])
        return waiting

    # --- bytes ---------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """One message as it is: also a wrong one. Raises PlaneDisconnected."""
        body: bytes = msgpack.packb(message)
        await self.send_bytes(_LENGTH.pack(len(body)) + body)

    async def send_bytes(self, data: bytes) -> None:
        assert self._stream is not None
        # Shielded: a cancelled request must not cut a frame in half. Frames are short and the edge reads.
        with trio.CancelScope(shield=True):
            async with self._sending:
                try:
                    await self._stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError) as e:
                    raise PlaneDisconnected("the edge hung up") from e

    async def _read(self, stream: trio.abc.HalfCloseableStream, disconnected: trio.Event) -> None:
        try:
            async with stream:
                while True:
                    await self.on_message(await self._next_message())
        except PlaneDisconnected:
            pass
        finally:
            disconnected.set()
            for waiting in self._waiting.values():
                waiting.done.set()
            self._tell()

    async def on_message(self, message: Message) -> None:
        """One message of the edge after `welcome`."""
        match message["type"]:
            case "ping":
                pong = {"type": "pong", "monotonicNs": message["monotonicNs"], "planeUnixMs": self._unix_ms()}
                await self.send(pong)
            case "pong":
                pass
            case "receipt":
                await self._on_receipt(message["receipt"])
            case "deviceChanged":
                self.devices[message["device"]["deviceId"]] = message["device"]
            case "progress":
                if waiting := self._waiting.get(message["replyTo"]):
                    waiting.progress.append(message["progress"])
                    waiting.on_progress(message["progress"])
            case "calibrationProgress":
                if waiting := self._waiting.get(message["replyTo"]):
                    waiting.on_progress(message["stage"])
            case "error" if message.get("replyTo") is None:
                self.complaints.append(message["error"])
            case _:
                if waiting := self._waiting.get(message["replyTo"]):
                    waiting.answer = message
                    waiting.done.set()
        self._tell()

    async def _on_receipt(self, receipt: Message) -> None:
        self._note(receipt)
        name = (receipt["deviceId"], receipt["idempotencyKey"])
        self.pushed.append(name)
        if self.acknowledge:
            await self.acknowledge_receipt(*name)

    def _note(self, receipt: Message) -> None:
        self.notebook[receipt["deviceId"], receipt["idempotencyKey"]] = receipt

    def _tell(self) -> None:
        self._told.set()
        self._told = trio.Event()

    async def _next_message(self) -> Message:
        assert self._stream is not None
        while True:
            if len(self._buffer) >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._buffer)
                assert length <= MAX_BODY_BYTES, f"the edge announced a frame of {length} bytes"
                end = _LENGTH.size + length
                if len(self._buffer) >= end:
                    message: Message = msgpack.unpackb(bytes(self._buffer[_LENGTH.size : end]))
                    del self._buffer[:end]
                    return message
            try:
                data = await self._stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                raise PlaneDisconnected("the edge hung up")
            self._buffer += data


@asynccontextmanager
async def open_plane(
    plane_id: str,
    address: Address,
    *,
    acknowledge: bool = True,
    fencing_token: int = 1,
    unix_ms: Callable[[], float] = lambda: time.time() * 1000.0,
) -> AsyncIterator[Plane]:
    """A connected plane; disconnected at the end. Raises what `Plane.connect` raises."""
    try:
        async with trio.open_nursery() as nursery:
            plane = Plane(
                plane_id,
                address,
                nursery,
                acknowledge=acknowledge,
                fencing_token=fencing_token,
                unix_ms=unix_ms,
            )
            await plane.connect()
            yield plane
            await plane.disconnect()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # What the caller's own block raised reaches it as it was.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise
