"""The edge's side of one connection as a state machine: bytes and a monotonic time in, bytes and events out.

    challenge ──hello──▶ hello ──welcome()──▶ open ──▶ closed
        └──────────── any error ─────────────────────────┘

No sockets, no sleeping, no tasks in here. Whoever drives it calls `receive`, then `next_event` until None,
then writes what `take_output` gives until it gives nothing, and calls `poll` when `next_poll_ns` has come.
"""

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from edge_daemon.contract import DeviceDescription, ErrorInfo, Receipt, Refused, error_info
from edge_daemon.upstream.codec import (
    MAX_BYTES_TO_EDGE,
    BadMessage,
    FrameReader,
    MessageTooLong,
    Unframeable,
    decode_to_edge,
    tag_of,
)
from edge_daemon.upstream.handshake import Handshake, Role
from edge_daemon.upstream.limits import DEFAULT_LIMITS, NS_PER_S, SessionLimits
from edge_daemon.upstream.messages import (
    PLANE_REQUESTS,
    STAFF_ACTIONS,
    STAFF_REQUESTS,
    AckReceipt,
    Answer,
    ErrorAnswer,
    Hello,
    LookRequest,
    Note,
    Ping,
    Pong,
    ReceiptPush,
    Request,
    RequestId,
    StaffHello,
    StaffLook,
    ToEdge,
    Welcome,
)
from edge_daemon.upstream.outgoing import Outgoing
from edge_daemon.upstream.versions import for_version, since
from edge_daemon.upstream.window import Window

MAX_PINGS_OPEN: Final = 8
"""As many as fall into the silence timeout."""

State = Literal["challenge", "hello", "open", "closed"]


@dataclass(frozen=True, slots=True)
class HelloReceived:
    """The peer proved what it had to; it waits for `welcome` or `close`."""

    hello: Hello | StaffHello


@dataclass(frozen=True, slots=True)
class RequestReceived:
    request: Request


@dataclass(frozen=True, slots=True)
class ReceiptAcknowledged:
    device_id: str
    key: str
    resolved: bool
    """What the plane has is the receipt with its resolution."""


@dataclass(frozen=True, slots=True)
class PlaneClockRead:
    sent_ns: int
    plane_unix_ms: float
    received_ns: int


SessionEvent = HelloReceived | RequestReceived | ReceiptAcknowledged | PlaneClockRead


class EdgeSession:
    """One connection, seen from the edge."""

    def __init__(self, handshake: Handshake, now_ns: int, limits: SessionLimits = DEFAULT_LIMITS) -> None:
        self.role: Role = handshake.role
        self._handshake = handshake
        self._limits = limits
        self._state: State = "challenge"
        self._close_reason: str | None = None
        self._frames = FrameReader(MAX_BYTES_TO_EDGE)
        self._out = Outgoing()
        self._hello: Hello | StaffHello | None = None
        self._requests: dict[RequestId, Request] = {}
        self._window = Window(limits.outbox_window)
        self._pings: list[int] = []
        self._begun_ns = now_ns
        self._received_ns = now_ns
        self._next_ping_ns = now_ns
        self._writing_since_ns: int | None = None
        self.progress_dropped = 0
        self._out.put(handshake.challenge())

    # --- what comes in -------------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray, now_ns: int) -> None:
        """Take bytes from the peer; what they mean comes out of `next_event`."""
        if self._state != "closed":
            self._received_ns = now_ns
            self._frames.feed(data)

    def next_event(self, now_ns: int) -> SessionEvent | None:
        """The next event, or None: more bytes are needed (or, after a hello, the decision about it)."""
        while self._state in ("challenge", "open"):
            try:
                body = self._frames.next_body()
                if body is None:
                    return None
                event = self._on_message(decode_to_edge(body), now_ns)
            except Unframeable as e:
                self.close(e.info)
            except BadMessage as e:
                self._complain(e.info, e.reply_to)
            except Refused as e:
                self._complain(e.info, None)
            else:
                if event is not None:
                    return event
        return None

    def _complain(self, info: ErrorInfo, reply_to: RequestId | None) -> None:
        """Say what was wrong. Before the welcome nobody gets a second try."""
        if self._state == "challenge":
            self.close(info, reply_to)
        else:
            self._say(ErrorAnswer(error=info, reply_to=reply_to))

    def _on_message(self, message: ToEdge, now_ns: int) -> SessionEvent | None:
        if self._state == "challenge":
            self._hello = self._handshake.check(message)
            self._state = "hello"
            return HelloReceived(self._hello)
        match message:
            case Hello() | StaffHello():
                raise Refused("protocol_error", "hello has been said on this connection", field="type")
            case Ping(monotonic_ns=theirs):
                self._say(Pong(monotonic_ns=theirs))
                return None
            case Pong():
                return self._on_pong(message, now_ns)
            case AckReceipt():
                if self.role != "plane":
                    raise Refused("permission_denied", "only a plane acknowledges receipts", field="type")
                return self._on_acknowledgement(message)
            case _:
                return self._on_request(message)

    def _on_acknowledgement(self, ack: AckReceipt) -> ReceiptAcknowledged:
        assert self._hello is not None
        resolved = self._window.acknowledged((ack.device_id, ack.idempotency_key))
        if self._hello.protocol >= 3:
            resolved = ack.resolved  # an older plane cannot say; it is told in order, and answers in order
        return ReceiptAcknowledged(ack.device_id, ack.idempotency_key, resolved)

    def _on_pong(self, pong: Pong, now_ns: int) -> PlaneClockRead | None:
        if pong.monotonic_ns not in self._pings:
            raise Refused(
                "invalid_argument",
                f"monotonicNs: {pong.monotonic_ns} is of no ping still waiting for its pong",
                field="monotonicNs",
            )
        # An older ping without its pong is lost for measuring: pongs come in the order of the pings.
        del self._pings[: self._pings.index(pong.monotonic_ns) + 1]
        if self.role != "plane" or pong.plane_unix_ms is None:
            return None
        return PlaneClockRead(pong.monotonic_ns, pong.plane_unix_ms, now_ns)

    def _on_request(self, request: Request) -> RequestReceived | None:
        if request.id in self._requests:
            # Not as an answer to this id: that would be taken for the first request's.
            raise Refused(
                "invalid_argument", f"id: {request.id!r} is in use by a request not yet answered", field="id"
            )
        if error := self._objection(request):
            self._say(ErrorAnswer(error=error, reply_to=request.id))
            return None
        self._requests[request.id] = request
        return RequestReceived(request)

    def _objection(self, request: Request) -> ErrorInfo | None:
        assert self._hello is not None, "requests come after it"
        if self._hello.protocol < since(request):
            return error_info(
                "protocol_error",
                f"type: protocol {self._hello.protocol}, which your hello chose, has no {tag_of(request)}",
                field="type",
            )
        allowed = PLANE_REQUESTS if self.role == "plane" else STAFF_REQUESTS
        if not isinstance(request, allowed):
            return error_info(
                "permission_denied", f"{tag_of(request)} is not for the {self.role} listener", field="type"
            )
        if isinstance(request, STAFF_ACTIONS) and self.role == "plane" and not self._limits.staff_actions:
            return error_info(
                "permission_denied",
                f"{tag_of(request)} is a staff action, which this edge takes from its own staff only; the "
                "operator may set staff_actions = true in [plane] of its configuration",
                field="type",
            )
        if len(self._requests) >= self._limits.requests:
            return error_info(
                "rate_limited", f"{self._limits.requests} requests wait for their answers on this connection"
            )
        if _is_look(request) and self._looks_open() >= self._limits.looks:
            return error_info(
                "rate_limited", f"{self._limits.looks} looks wait for their pictures on this connection"
            )
        return None

    def _looks_open(self) -> int:
        return sum(1 for request in self._requests.values() if _is_look(request))

    # --- what goes out -------------------------------------------------------------------------------------

    def welcome(
        self,
        *,
        boot_id: str,
        epoch: int,
        ledger_id: str,
        devices: tuple[DeviceDescription, ...],
        now_ns: int,
        epoch_raised: str | None = None,
    ) -> None:
        """The peer may enter. Only after `HelloReceived`, and unless the session has closed meanwhile."""
        if self._state == "closed":
            return
        assert self._state == "hello", self._state
        assert self._hello is not None
        self._state = "open"
        self._received_ns = now_ns
        self._next_ping_ns = now_ns
        self._out.told(devices)
        welcome = Welcome(
            protocol=self._hello.protocol,
            edge_id=self._handshake.edge_id,
            boot_id=boot_id,
            epoch=epoch,
            ledger_id=ledger_id,
            rules=self._limits.rules(),
            devices=devices,
            proof=self._handshake.proof_for(self._hello),
            epoch_raised=epoch_raised,
        )
        self._out.greet(for_version(welcome, self._hello.protocol))

    def answer(self, answer: Answer) -> None:
        """Answer a request. On a closed session nothing happens: a receipt tells what an action came to."""
        if self._state != "open":
            return
        assert answer.reply_to is not None
        assert self._hello is not None, "requests come after it"
        try:
            self._out.put(for_version(answer, self._hello.protocol), answers=answer.reply_to)
        except MessageTooLong as e:
            too_long = error_info("invalid_argument", f"{e}; a jpeg picture is smaller than a png")
            self._out.put(ErrorAnswer(error=too_long, reply_to=answer.reply_to), answers=answer.reply_to)
        self._close_if_unread()

    def note(self, note: Note) -> None:
        """Tell how a request gets on, or drop it when the peer is behind: nothing may depend on progress."""
        if self._state != "open" or note.reply_to not in self._requests:
            return
        if self._out.queued_bytes > self._limits.progress_backlog_bytes:
            self.progress_dropped += 1
            return
        self._say(note)

    def push_receipts(self, oldest_first: list[Receipt]) -> None:
        """Send of these the ones not yet sent on this connection, as far as the window has room."""
        if self._state != "open":
            return
        assert self._hello is not None, "it opened the session"
        for receipt in oldest_first:
            if self._window.take(receipt):
                self._say(for_version(ReceiptPush(receipt=receipt), self._hello.protocol))

    def acknowledged(self, device_id: str, key: str) -> None:
        """The acknowledgement is durable: the window has room again."""
        self._window.settled((device_id, key))

    def device_changed(self, device: DeviceDescription) -> None:
        if self._state == "open":
            self._out.device_changed(device)

    def notice(self, info: ErrorInfo) -> None:
        """Tell the peer of an error that answers no request."""
        if self._state == "open":
            self._say(ErrorAnswer(error=info))

    def close(self, info: ErrorInfo, reply_to: RequestId | None = None) -> None:
        """Say why and end. What was queued before is still given out by `take_output`."""
        if self._state == "closed":
            return
        self._out.put(ErrorAnswer(error=info, reply_to=reply_to))
        self._end(info.message)

    def lost(self, reason: str) -> None:
        """The transport ended."""
        if self._state != "closed":
            self._end(reason)

    def _end(self, reason: str) -> None:
        self._state = "closed"
        self._close_reason = reason
        self._requests.clear()
        self._window.clear()

    def _say(self, message: msgspec.Struct) -> None:
        self._out.put(message)
        self._close_if_unread()

    def _close_if_unread(self) -> None:
        if self._out.queued_bytes > self._limits.queued_bytes:
            self._end(f"{self._out.queued_bytes} bytes wait to be read by the peer")

    def take_output(self, now_ns: int) -> bytes:
        """The next bytes to write, b"" when there are none. Calling again says: those before are written."""
        chunk, answered = self._out.take(now_ns, self._ping_written)
        for request_id in answered:
            self._requests.pop(request_id, None)
        self._writing_since_ns = now_ns if chunk else None
        return chunk

    def _ping_written(self, sent_ns: int) -> None:
        self._pings.append(sent_ns)
        del self._pings[:-MAX_PINGS_OPEN]

    @property
    def has_output(self) -> bool:
        return bool(self._out)

    # --- time ----------------------------------------------------------------------------------------------

    def poll(self, now_ns: int) -> None:
        """Let time pass: pings that are due, peers that are silent or do not read."""
        if self._state in ("challenge", "hello"):
            if now_ns >= self._begun_ns + self._limits.hello_ns:
                self.close(error_info("protocol_error", "no hello came in time"))
            return
        if self._state == "closed":
            return
        if now_ns >= self._received_ns + self._limits.silence_ns:
            self.close(error_info("protocol_error", f"silent for {self._limits.silence_ns / NS_PER_S} s"))
        elif self._stalled_at() <= now_ns:
            self._end(f"reads nothing for {self._limits.silence_ns / NS_PER_S} s")
        elif now_ns >= self._next_ping_ns:
            self._out.want_ping()
            self._next_ping_ns = now_ns + self._limits.ping_ns

    def next_poll_ns(self) -> int | float:
        """When `poll` has something to do next, if nothing else happens before."""
        if self._state in ("challenge", "hello"):
            return self._begun_ns + self._limits.hello_ns
        if self._state == "closed":
            return float("inf")
        return min(self._received_ns + self._limits.silence_ns, self._stalled_at(), self._next_ping_ns)

    def _stalled_at(self) -> int | float:
        if self._writing_since_ns is None:
            return float("inf")
        return self._writing_since_ns + self._limits.silence_ns

    # --- what it is ----------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._state

    @property
    def closed(self) -> bool:
        return self._state == "closed"

    @property
    def close_reason(self) -> str | None:
        return self._close_reason


def _is_look(request: Request) -> bool:
    return isinstance(request, LookRequest | StaffLook)
