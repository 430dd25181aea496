"""The host end of the board link, sans-IO: bytes and a time in, bytes and events out.

Times are nanoseconds of CLOCK_MONOTONIC. The driver calls receive() with what it read, poll() when
next_deadline() has come, and then takes output and events. A HostLink lives for one session: once it has
reported Lost, make a new one with a new session id.
"""

from dataclasses import dataclass, replace
from typing import Literal

from edge_daemon.boards.clock import ClockMap
from edge_daemon.boards.errors import BoardError
from edge_daemon.boards.framelog import FrameLog
from edge_daemon.boards.inflight import DATA_CMD_ID, InFlight, read_done, read_fault
from edge_daemon.boards.info import BoardInfo, BoardKind, HelloRefused, read_hello
from edge_daemon.boards.link_events import (
    CommandDone,
    CommandFaulted,
    FlagsChanged,
    LinkEvent,
    Lost,
    MovedByItself,
    Online,
    QueryAnswered,
    StopCleared,
    StopLatched,
)
from firmware import wire

_MS = 1_000_000
# A board says HELLO each second, and at most 600 ms after the previous host fell silent.
HELLO_WAIT_MS = 5000
_HELLO_WAIT_NS = HELLO_WAIT_MS * _MS
_SILENCE_NS = wire.HOST_SILENCE_MS * _MS

HIGHEST_ID_USABLE = 1 << 62
"""A board that was given a higher id of the first family leaves no room to number on: milliseconds of 8 years."""

_State = Literal["hello", "opening", "syncing", "online", "lost"]
_Exchange = Literal["OPEN", "CMD", "QUERY", "ESTOP", "CLEAR"]


class LinkNotReady(BoardError):
    """The link is not in a state in which this can be asked of it; nothing was sent."""


@dataclass(slots=True)
class _Retry:
    """A frame that is sent again, byte for byte, until it is answered."""

    frame: wire.Frame
    due_ns: int
    tries: int = 1


@dataclass(slots=True)
class LinkCounters:
    """How the line is doing, beside the decoder's own counters."""

    retransmits: int = 0
    stale_frames: int = 0
    malformed_frames: int = 0
    naks: int = 0


class HostLink:
    """One session with one board: HELLO, OPEN, one command at a time, reliable events, heartbeats."""

    def __init__(
        self,
        session_id: int,
        now_ns: int,
        *,
        expected_uid: str | None = None,
        expected_kind: BoardKind | None = None,
        log: FrameLog | None = None,
        hello: wire.Frame | None = None,
    ) -> None:
        """``hello`` is the HELLO that ended the session before this one, see next_hello: it is answered at once."""
        self._session = session_id
        self._expected_uid = expected_uid
        self._expected_kind = expected_kind
        self._state: _State = "hello"
        self._info: BoardInfo | None = None
        self._decoder = wire.Decoder()
        self._output = bytearray()
        self._events: list[LinkEvent] = []
        # What the board told before its clock was known, when its times meant nothing here.
        self._early_events: list[LinkEvent] = []
        self._retries: dict[_Exchange, _Retry] = {}
        self._in_flight = InFlight()
        self._highest_known = False
        self._next_seq = 0
        self._next_query = 0
        self._next_event = 0
        self._ack_owed = False
        self._heard_ns = now_ns
        self._heartbeat_due_ns = now_ns
        self._heartbeat_seq = 0
        self._heartbeats_sent_ns: dict[int, int] = {}
        self._flags = 0
        self._stop_nonce: int | None = None
        self.clock = ClockMap()
        self.log = log if log is not None else FrameLog()
        self.counters = LinkCounters()
        # The HELLO that ended this session: the board waits to be opened, and says so only once a second.
        self.next_hello: wire.Frame | None = None
        if hello is not None:
            self._on_hello(hello, now_ns)

    # -- what the driver reads ------------------------------------------------------------------------

    @property
    def online(self) -> bool:
        return self._state == "online"

    @property
    def info(self) -> BoardInfo | None:
        """Who is at the other end; None before a valid HELLO."""
        return self._info

    @property
    def flags(self) -> int:
        """The board's latest status flags."""
        return self._flags

    @property
    def late_replies(self) -> int:
        """Replies to something no longer in flight: harmless, and a sign of a slow or noisy line."""
        return self._in_flight.late_replies

    @property
    def line(self) -> wire.Decoder:
        """The decoder, for its counters."""
        return self._decoder

    @property
    def output_size(self) -> int:
        """How many bytes take_output() would return now."""
        return len(self._output)

    def take_output(self) -> bytes:
        """The bytes for the line since the last call."""
        if not self._output:
            return b""
        data = bytes(self._output)
        self._output.clear()
        return data

    def take_events(self) -> list[LinkEvent]:
        """What happened since the last call, in order."""
        if not self._events:
            return []
        events, self._events = self._events, []
        return events

    def next_deadline(self) -> int | None:
        """When poll() has something to do, in nanoseconds; None once the link is lost."""
        if self._state == "lost":
            return None
        if self._state == "hello":
            due_ns = self._heard_ns + _HELLO_WAIT_NS
        elif self._state == "opening":
            return self._retries["OPEN"].due_ns
        else:
            due_ns = min(self._heartbeat_due_ns, self._heard_ns + _SILENCE_NS)
        for retry in self._retries.values():
            if retry.due_ns < due_ns:
                due_ns = retry.due_ns
        return due_ns

    # -- what the driver asks -------------------------------------------------------------------------

    def command(self, cmd_id: int, op: int, args: bytes, now_ns: int) -> None:
        """Send a command. Raises LinkNotReady when offline or while another is in flight."""
        if cmd_id == DATA_CMD_ID:
            raise ValueError(f"cmd_id {DATA_CMD_ID} is kept for data operations; number commands from 1")
        self._send_command(cmd_id, op, args, now_ns)

    def data(self, op: int, args: bytes, now_ns: int) -> None:
        """Send a data operation (op >= OP_DATA_FIRST). Raises LinkNotReady as command() does."""
        self._send_command(DATA_CMD_ID, op, args, now_ns)

    def query(self, cmd_id: int, now_ns: int) -> None:
        """Ask what became of a command, in place of any earlier question. Raises LinkNotReady when offline."""
        self._require_online()
        self._ask(cmd_id, now_ns)

    def _ask(self, cmd_id: int, now_ns: int) -> None:
        self._next_query = (self._next_query + 1) & 0xFFFF
        self._send_until_answered(
            "QUERY", wire.QUERY, self._next_query, wire.pack_body(wire.QUERY, cmd_id), now_ns
        )

    def estop(self, now_ns: int) -> None:
        """Stop the board at once; StopLatched answers. Raises LinkNotReady when offline."""
        self._require_online()
        self._retries.pop("CLEAR", None)
        self._send_until_answered("ESTOP", wire.ESTOP, 0, b"", now_ns)

    def clear_estop(self, now_ns: int) -> None:
        """Lift the latched stop; StopCleared answers. Raises LinkNotReady when no stop is known."""
        self._require_online()
        if self._stop_nonce is None:
            raise LinkNotReady("the board has not reported a latched emergency stop")
        body = wire.pack_body(wire.CLEAR, self._stop_nonce)
        self._send_until_answered("CLEAR", wire.CLEAR, 0, body, now_ns)

    # -- bytes and time -------------------------------------------------------------------------------

    def receive(self, data: bytes, now_ns: int) -> None:
        """Take bytes from the line."""
        for frame in self._decoder.feed(data):
            if self._state == "lost":
                return
            self.log.received(frame, now_ns)
            try:
                self._on_frame(frame, now_ns)
            except wire.BodyError:
                self.counters.malformed_frames += 1
        if self._state == "hello" and self._decoder.other_protocol:
            self._lose(
                f"the board speaks link protocol {self._decoder.other_protocol_seen}, this daemon speaks "
                f"{wire.PROTOCOL}: flash the firmware that belongs to this daemon"
            )
        if self._ack_owed and self._state != "lost":
            self._ack_owed = False
            self._transmit(self._frame(wire.EVENT_ACK, (self._next_event - 1) & 0xFFFF, b""), now_ns)

    def poll(self, now_ns: int) -> None:
        """Do what is due: heartbeat, retransmission, or giving the link up."""
        if self._state == "lost":
            return
        silent_ms = (now_ns - self._heard_ns) / _MS
        in_session = self._state in ("syncing", "online")
        if self._state == "hello" and silent_ms >= HELLO_WAIT_MS:
            self._lose(self._no_hello_reason())
            return
        if in_session and silent_ms >= wire.HOST_SILENCE_MS:
            self._lose(f"the board has been silent for {silent_ms:.0f} ms")
            return
        for name, retry in self._retries.items():
            if now_ns >= retry.due_ns and retry.tries == len(wire.RETRANSMIT_MS):
                self._lose(f"the board did not answer {name}, sent {retry.tries} times")
                return
        for retry in self._retries.values():
            if now_ns >= retry.due_ns:
                self._send_again(retry, now_ns)
        if in_session and now_ns >= self._heartbeat_due_ns:
            self._send_heartbeat(now_ns)

    def _send_again(self, retry: _Retry, now_ns: int) -> None:
        retry.due_ns = now_ns + wire.RETRANSMIT_MS[retry.tries] * _MS
        retry.tries += 1
        self.counters.retransmits += 1
        self._transmit(retry.frame, now_ns)

    # -- frames ---------------------------------------------------------------------------------------

    def _on_frame(self, frame: wire.Frame, now_ns: int) -> None:
        if frame.type == wire.HELLO:
            self._on_hello(frame, now_ns)
            return
        info = self._info
        if info is None or frame.session_id != self._session or frame.boot_id != info.boot_id:
            self.counters.stale_frames += 1
            return
        self._heard_ns = now_ns
        if frame.type == wire.OPENED:
            self._on_opened(frame, now_ns)
        elif self._state == "opening":
            # The board answers OPEN first; anything before OPENED is re-sent after it.
            self.counters.stale_frames += 1
        elif frame.type == wire.BOARD_HEARTBEAT:
            self._on_heartbeat(frame, now_ns)
        elif frame.type == wire.ACCEPTED:
            self._on_accepted(frame)
        elif frame.type == wire.RESULT:
            self._on_result(frame)
        elif frame.type == wire.NAK:
            # With one command in flight there is no gap to fill: the retransmission timer goes on.
            self.counters.naks += 1
        elif frame.type in (wire.CONTACT, wire.DONE, wire.FAULT, wire.MOVED, wire.ESTOPPED):
            self._on_reliable(frame)
        else:
            self.counters.malformed_frames += 1

    def _on_hello(self, frame: wire.Frame, now_ns: int) -> None:
        if self._info is not None and self._state in ("syncing", "online"):
            self.next_hello = frame
            self._lose(
                "the board closed the session: it had not heard this host for a while"
                if frame.boot_id == self._info.boot_id
                else "the board restarted"
            )
            return
        if self._info is not None and self._info.boot_id == frame.boot_id:
            return
        try:
            info = read_hello(frame.boot_id, frame.body)
        except (HelloRefused, wire.BodyError) as err:
            self._lose(str(err))
            return
        mismatch = self._mismatch(info)
        if mismatch:
            self._lose(mismatch)
            return
        self._info = info
        self._state = "opening"
        self._send_until_answered("OPEN", wire.OPEN, 0, b"", now_ns)

    def _mismatch(self, info: BoardInfo) -> str | None:
        if self._expected_uid is not None and info.uid != self._expected_uid.lower():
            return (
                f"the board on this port has uid {info.uid}, expected {self._expected_uid.lower()}: "
                "the cables are swapped, or the configuration names another board"
            )
        if self._expected_kind is not None and info.kind != self._expected_kind:
            return f"board {info.uid} is a {info.kind} board, expected a {self._expected_kind} board"
        return None

    def _on_opened(self, frame: wire.Frame, now_ns: int) -> None:
        self._set_flags(wire.unpack_body(wire.OPENED, frame.body)[0])
        if self._state == "opening":
            self._retries.pop("OPEN", None)
            self._state = "syncing"
            self._send_heartbeat(now_ns)
            self._ask(wire.CMD_ID_OF_HIGHEST, now_ns)

    def _on_heartbeat(self, frame: wire.Frame, now_ns: int) -> None:
        board_us, flags = wire.unpack_body(wire.BOARD_HEARTBEAT, frame.body)
        sent_ns = self._heartbeats_sent_ns.get(frame.seq)
        if sent_ns is not None:
            self.clock.sample(sent_ns, now_ns, board_us)
        self._go_online()
        self._set_flags(flags)
        if not flags & wire.FLAG_ESTOPPED and "CLEAR" in self._retries:
            del self._retries["CLEAR"]
            self._stop_nonce = None
            self._events.append(StopCleared())

    def _go_online(self) -> None:
        """Once the board's clock is known, and above which ids it takes commands for new."""
        if self._state == "syncing" and self.clock.known and self._highest_known and self._info is not None:
            self._state = "online"
            self._events += [Online(self._info), *self._early_events]

    def _set_flags(self, flags: int) -> None:
        if flags != self._flags:
            self._flags = flags
            self._events.append(FlagsChanged(flags))

    def _on_accepted(self, frame: wire.Frame) -> None:
        cmd_id, board_us = wire.unpack_body(wire.ACCEPTED, frame.body)
        self._tell(self._in_flight.accepted(cmd_id, frame.seq, board_us))

    def _on_result(self, frame: wire.Frame) -> None:
        cmd_id, state = wire.unpack_body(wire.RESULT, frame.body)
        query = self._retries.get("QUERY")
        if query is None or query.frame.seq != frame.seq:
            self._in_flight.late_replies += 1
            return
        if cmd_id == wire.CMD_ID_OF_HIGHEST:
            self._on_highest(wire.body_tail(wire.RESULT, frame.body))
            return
        remembered: CommandDone | CommandFaulted | None = None
        if state == wire.STATE_DONE:
            remembered = read_done(wire.result_as_event(frame.body))
        elif state == wire.STATE_FAULT:
            remembered = read_fault(wire.result_as_event(frame.body))
        del self._retries["QUERY"]
        self._events.append(QueryAnswered(cmd_id, state, remembered))

    def _on_highest(self, tail: bytes) -> None:
        highest = wire.unpack_highest(tail)
        del self._retries["QUERY"]
        if highest[0] >= HIGHEST_ID_USABLE:
            self._lose(
                f"the board has been given command id {highest[0]} on this boot, not by this daemon, which numbers "
                f"below {HIGHEST_ID_USABLE}: take its power away for a moment, and it begins anew"
            )
            return
        assert self._info is not None, "a session is open"
        self._info = replace(self._info, highest_cmd_ids=highest)
        self._highest_known = True
        self._go_online()

    # -- reliable events ------------------------------------------------------------------------------

    def _on_reliable(self, frame: wire.Frame) -> None:
        ahead = (frame.seq - self._next_event) & 0xFFFF
        if ahead == 0:
            self._on_event(frame)
            self._next_event = (self._next_event + 1) & 0xFFFF
        elif ahead < 0x8000:
            # One before it is missing; the board sends both again.
            return
        self._ack_owed = True

    def _on_event(self, frame: wire.Frame) -> None:
        if frame.type == wire.CONTACT:
            self._tell(self._in_flight.contact(*wire.unpack_body(wire.CONTACT, frame.body)))
        elif frame.type == wire.DONE:
            self._tell(self._in_flight.done(read_done(frame.body)))
        elif frame.type == wire.FAULT:
            self._tell(self._in_flight.fault(read_fault(frame.body)))
        elif frame.type == wire.MOVED:
            self._tell([MovedByItself(*wire.unpack_body(wire.MOVED, frame.body))])
        else:
            board_us, self._stop_nonce = wire.unpack_body(wire.ESTOPPED, frame.body)
            self._retries.pop("ESTOP", None)
            # Not only with the next heartbeat: whoever clears at once must find it latched.
            self._set_flags(self._flags | wire.FLAG_ESTOPPED)
            self._tell([StopLatched(board_us)])

    def _tell(self, events: list[LinkEvent]) -> None:
        waiting = self._events if self._state == "online" else self._early_events
        waiting += events
        if not self._in_flight.awaits_acceptance:
            self._retries.pop("CMD", None)

    # -- sending --------------------------------------------------------------------------------------

    def _require_online(self) -> None:
        if self._state != "online":
            raise LinkNotReady("the board is not online")

    def _send_command(self, cmd_id: int, op: int, args: bytes, now_ns: int) -> None:
        self._require_online()
        if self._in_flight.cmd_id is not None:
            raise LinkNotReady(f"command {self._in_flight.cmd_id} is still in flight")
        if len(args) > wire.CMD_ARGS_MAX:
            raise wire.BodyError(f"op 0x{op:02x}: {len(args)} argument bytes, at most {wire.CMD_ARGS_MAX}")
        body = wire.pack_body(wire.CMD, cmd_id, op, tail=args)
        self._in_flight.begin(cmd_id, self._next_seq)
        self._send_until_answered("CMD", wire.CMD, self._next_seq, body, now_ns)
        self._next_seq = (self._next_seq + 1) & 0xFFFF

    def _send_until_answered(
        self, name: _Exchange, frame_type: int, seq: int, body: bytes, now_ns: int
    ) -> None:
        frame = self._frame(frame_type, seq, body)
        self._retries[name] = _Retry(frame, now_ns + wire.RETRANSMIT_MS[0] * _MS)
        self._transmit(frame, now_ns)

    def _send_heartbeat(self, now_ns: int) -> None:
        # 0 is what a board answers before it has heard any heartbeat of this session.
        self._heartbeat_seq = self._heartbeat_seq % 0xFFFF + 1
        self._heartbeat_due_ns = now_ns + wire.HEARTBEAT_MS * _MS
        self._heartbeats_sent_ns[self._heartbeat_seq] = now_ns
        if len(self._heartbeats_sent_ns) > wire.HOST_SILENCE_MS // wire.HEARTBEAT_MS + 1:
            del self._heartbeats_sent_ns[next(iter(self._heartbeats_sent_ns))]
        body = wire.pack_body(wire.HOST_HEARTBEAT, now_ns // _MS & 0xFFFF_FFFF)
        self._transmit(self._frame(wire.HOST_HEARTBEAT, self._heartbeat_seq, body), now_ns)

    def _frame(self, frame_type: int, seq: int, body: bytes) -> wire.Frame:
        boot_id = self._info.boot_id if self._info is not None else 0
        return wire.Frame(frame_type, boot_id, self._session, seq, body)

    def _transmit(self, frame: wire.Frame, now_ns: int) -> None:
        self._output += wire.encode_frame(frame.type, frame.boot_id, frame.session_id, frame.seq, frame.body)
        self.log.sent(frame, now_ns)

    def _lose(self, reason: str) -> None:
        self._state = "lost"
        self._retries.clear()
        self._output.clear()
        self._events.append(Lost(reason))

    def _no_hello_reason(self) -> str:
        line = self._decoder
        reason = f"no HELLO from a board within {HELLO_WAIT_MS / 1000:.0f} s"
        if line.garbage_bytes:
            return (
                f"{reason}; {line.garbage_bytes} bytes arrived that were no frames: wrong baud rate, "
                "another device, or a board without this firmware"
            )
        return f"{reason}; nothing arrived: is the board powered, and its firmware flashed?"
