"""The board end of the link, sans-IO: bytes and a time in, bytes and calls of the core out.

The promise kept here: a command is started at most once in a boot, and its outcome can be asked for
afterwards, in any session. The port's loop does, with a time in microseconds that never goes back:

    link.receive(bytes_from_the_line, now_us)   # before poll: bytes that wait must count as heard
    link.poll(now_us)
    write(link.take_output())
"""

import binascii
import struct

from firmware import wire
from firmware.memory import EventQueue, Output, ResultMemory, seq_behind

FIRMWARE_MAJOR = 0
FIRMWARE_MINOR = 1

# A command may need three events (its own two and a refusal of another) and an ESTOPPED beside them.
EVENTS_FREE_FOR_COMMAND = 4
EVENTS_FREE_FOR_MOVED = 5

_MS = 1000


class Core:
    """What a board does with commands; BoardLink calls it, and it reports through its link attribute.

    Each started command ends in exactly one link.done() or link.fault(), after link.contact() where
    something reached the phone. A core that is told deadman() or estop() makes everything safe and calls
    link.moved() if that moved anything; the link itself writes down how the running command ended.
    """

    link: "BoardLink"

    def caps(self) -> int:
        """The CAP_ bits of this board."""
        raise NotImplementedError

    def hello_tail(self) -> bytes:
        """HELLO's bytes of this kind (wire.pack_hand_tail, wire.pack_hid_tail)."""
        raise NotImplementedError

    def flags(self) -> int:
        """Status flags; HELD and ESTOPPED are added by the link."""
        raise NotImplementedError

    def start(self, op: int, args: "bytes | memoryview", now_us: int) -> int:
        """Start an operation: 0, or the FAULT code of a refusal before anything moved."""
        raise NotImplementedError

    def data(self, op: int, args: "bytes | memoryview") -> int:
        """Take a data operation: 0 or a FAULT code."""
        raise NotImplementedError

    def poll(self, now_us: int) -> None:
        """Advance motion and reports."""
        raise NotImplementedError

    def deadman(self, now_us: int) -> None:
        """The host is gone: release every key and contact, lift."""
        raise NotImplementedError

    def estop(self, now_us: int) -> None:
        """Stop at once, and stay so until clear_estop()."""
        raise NotImplementedError

    def clear_estop(self, now_us: int) -> None:
        """The stop is lifted; nothing may move because of it."""
        raise NotImplementedError


class BoardLink:
    """One board's link: session, order of commands, result memory, reliable events, deadman, stop latch."""

    def __init__(self, core: Core, uid: bytes, kind: int, boot_id: int, reset_cause: int) -> None:
        self._core = core
        self._uid = uid
        self._kind = kind
        self._boot_id = boot_id
        self._reset_cause = reset_cause
        self._decoder = wire.Decoder()
        self._output = Output()
        self._session = 0
        self._past_sessions = [0] * wire.SESSIONS_REMEMBERED
        self._expected_seq = 0
        self._heard_us = 0
        self._hello_due_us = 0
        self._heartbeat_due_us = 0
        self._host_heartbeat_seq = 0
        self._results = ResultMemory()
        self._running_slot = -1
        self._contact_us = 0
        self._data_seq = -1
        self._data_us = 0
        self._events = EventQueue()
        self._events_due_us = 0
        self._moved_us = [-1] * (wire.MOVED_DEADMAN + 1)
        if kind == wire.KIND_HAND:
            # Drives snap or sag when power comes; the first session of this boot is told so.
            self._moved_us[wire.MOVED_RESTART] = 0
        self._held = False
        self._estopped = False
        self._estop_count = 0
        self.stale_frames = 0
        self.malformed_frames = 0
        core.link = self

    # -- the port's side ---------------------------------------------------------------------------

    def receive(self, data: bytes, now_us: int) -> None:
        """Take bytes from the line and act on the frames that they complete."""
        for frame in self._decoder.feed(data):
            try:
                self._on_frame(frame, now_us)
            except wire.BodyError:
                self.malformed_frames += 1

    def poll(self, now_us: int) -> None:
        """Do what is due: the core's motion, the deadman, HELLO, heartbeat, events to re-send."""
        if self._session and now_us - self._heard_us >= wire.DEADMAN_MS * _MS:
            self._close_session(now_us)
        self._core.poll(now_us)
        if not self._session:
            if now_us >= self._hello_due_us:
                self._send_hello(now_us)
            return
        self._queue_moved(now_us)
        if now_us >= self._heartbeat_due_us:
            self._send_heartbeat(now_us)
        if self._events.count and now_us >= self._events_due_us:
            self._send_events(now_us)

    def take_output(self) -> bytes:
        """The bytes for the line since the last call."""
        return self._output.take()

    @property
    def output_dropped(self) -> int:
        """Frames that found no room because the line did not drain."""
        return self._output.dropped

    @property
    def session_open(self) -> bool:
        return self._session != 0

    @property
    def held(self) -> bool:
        return self._held

    @property
    def estopped(self) -> bool:
        return self._estopped

    # -- the core's side ---------------------------------------------------------------------------

    def contact(self, now_us: int) -> None:
        """The running command has touched the phone; only its first contact is kept."""
        if self._running_slot >= 0 and not self._contact_us:
            self._contact_us = now_us
            self._add_event(
                wire.CONTACT,
                wire.pack_body(wire.CONTACT, self._results.cmd_id(self._running_slot), now_us),
                now_us,
            )

    def done(self, now_us: int, data: bytes = b"") -> None:
        """The running command has finished and is back at hover, everything released."""
        slot = self._running_slot
        if slot < 0:
            return
        if len(data) > wire.DONE_DATA_MAX:
            raise wire.BodyError("DONE data of %d bytes, at most %d" % (len(data), wire.DONE_DATA_MAX))
        body = wire.pack_body(
            wire.DONE,
            self._results.cmd_id(slot),
            self._results.accepted_us(slot),
            self._contact_us,
            now_us,
            tail=data,
        )
        self._finish(slot, wire.STATE_DONE, wire.DONE, body, now_us)

    def fault(self, code: int, flags: int, now_us: int) -> None:
        """The running command has ended without being done; EFFECT is added if it had made contact."""
        slot = self._running_slot
        if slot < 0:
            return
        if self._contact_us:
            flags |= wire.FAULT_FLAG_EFFECT
        body = wire.pack_body(wire.FAULT, self._results.cmd_id(slot), code, flags, now_us)
        self._finish(slot, wire.STATE_FAULT, wire.FAULT, body, now_us)

    def moved(self, cause: int, now_us: int) -> None:
        """The hand moved for a reason that is no command; the latest of each cause waits for its turn."""
        self._moved_us[cause] = now_us
        self._queue_moved(now_us)

    # -- frames --------------------------------------------------------------------------------------

    def _on_frame(self, frame: wire.Frame, now_us: int) -> None:
        if frame.type == wire.OPEN:
            self._on_open(frame, now_us)
            return
        if not self._session or frame.session_id != self._session or frame.boot_id != self._boot_id:
            self.stale_frames += 1
            return
        self._heard_us = now_us
        if frame.type == wire.CMD:
            self._on_cmd(frame, now_us)
        elif frame.type == wire.HOST_HEARTBEAT:
            wire.unpack_body(wire.HOST_HEARTBEAT, frame.body)
            self._host_heartbeat_seq = frame.seq
            self._send_heartbeat(now_us)
        elif frame.type == wire.QUERY:
            self._on_query(frame)
        elif frame.type == wire.ESTOP:
            self._on_estop(now_us)
        elif frame.type == wire.CLEAR:
            self._on_clear(frame, now_us)
        elif frame.type == wire.EVENT_ACK:
            self._events.acknowledge(frame.seq)
        else:
            self.malformed_frames += 1

    def _on_open(self, frame: wire.Frame, now_us: int) -> None:
        session = frame.session_id
        if frame.boot_id != self._boot_id or not session or session in self._past_sessions:
            self.stale_frames += 1
            return
        self._heard_us = now_us
        if session != self._session:
            if self._session:
                # A host that comes back without waiting for the deadman finds a safe board all the same.
                self._close_session(now_us)
            self._begin_session(session, now_us)
        self._send(wire.OPENED, self._session, 0, wire.pack_body(wire.OPENED, self._flags()))
        if self._events.count:
            self._send_events(now_us)
        self._queue_moved(now_us)

    def _begin_session(self, session: int, now_us: int) -> None:
        self._session = session
        self._expected_seq = 0
        self._data_seq = -1
        self._host_heartbeat_seq = 0
        self._heartbeat_due_us = now_us
        self._held = False
        self._events.reset()
        if self._estopped:
            self._events.add(wire.ESTOPPED, wire.pack_body(wire.ESTOPPED, now_us, self._nonce()))

    def _close_session(self, now_us: int) -> None:
        self._past_sessions = [self._session] + self._past_sessions[:-1]
        self._session = 0
        self._held = True
        self._hello_due_us = now_us
        self._core.deadman(now_us)
        self.fault(wire.FAULT_ABORTED, 0, now_us)

    def _on_cmd(self, frame: wire.Frame, now_us: int) -> None:
        cmd_id, op = wire.unpack_body(wire.CMD, frame.body)
        behind = seq_behind(frame.seq, self._expected_seq)
        if behind >= 0x8000:
            self._send_nak()
        elif behind:
            self._repeat_acceptance(frame.seq, cmd_id, op, now_us)
        elif self._events.free() < EVENTS_FREE_FOR_COMMAND:
            # The host has not taken the last outcomes yet; it will send this again.
            self._send_nak()
        else:
            self._expected_seq = (self._expected_seq + 1) & 0xFFFF
            args = wire.body_tail(wire.CMD, frame.body)
            if op >= wire.OP_DATA_FIRST:
                self._take_data(frame.seq, cmd_id, op, args, now_us)
            else:
                self._take_command(frame.seq, cmd_id, op, args, now_us)

    def _repeat_acceptance(self, seq: int, cmd_id: int, op: int, now_us: int) -> None:
        if op >= wire.OP_DATA_FIRST:
            if seq == self._data_seq:
                self._send_accepted(seq, cmd_id, self._data_us)
        else:
            slot = self._results.find(cmd_id)
            if slot >= 0:
                self._send_accepted(seq, cmd_id, self._results.accepted_us(slot))
        if self._events.count:
            self._send_events(now_us)

    def _take_data(self, seq: int, cmd_id: int, op: int, args: bytes, now_us: int) -> None:
        code = self._blocked()
        if not code:
            code = self._core.data(op, args)
        if code:
            self._data_seq = -1
            body = wire.pack_body(wire.FAULT, cmd_id, code, wire.FAULT_FLAG_REFUSED, now_us)
            self._add_event(wire.FAULT, body, now_us)
            return
        self._data_seq = seq
        self._data_us = now_us
        self._send_accepted(seq, cmd_id, now_us)

    def _take_command(self, seq: int, cmd_id: int, op: int, args: bytes, now_us: int) -> None:
        slot = self._results.find(cmd_id)
        if slot >= 0:
            self._send_accepted(seq, cmd_id, self._results.accepted_us(slot))
            self._repeat_outcome(slot, now_us)
            return
        code = self._blocked()
        # Remembered before it starts: from here on no frame can start it a second time.
        slot = self._results.begin(cmd_id, now_us)
        self._send_accepted(seq, cmd_id, now_us)
        if not code:
            self._running_slot = slot
            self._contact_us = 0
            code = self._core.start(op, args, now_us)
            if not code:
                return
        body = wire.pack_body(wire.FAULT, cmd_id, code, wire.FAULT_FLAG_REFUSED, now_us)
        self._finish(slot, wire.STATE_FAULT, wire.FAULT, body, now_us)

    def _repeat_outcome(self, slot: int, now_us: int) -> None:
        state = self._results.state(slot)
        if state == wire.STATE_RUNNING:
            return
        frame_type = wire.DONE if state == wire.STATE_DONE else wire.FAULT
        body = struct.pack("<Q", self._results.cmd_id(slot)) + self._results.payload(slot)
        self._add_event(frame_type, body, now_us)

    def _blocked(self) -> int:
        if self._estopped:
            return wire.FAULT_ESTOPPED
        if self._running_slot >= 0:
            return wire.FAULT_BUSY
        return 0

    def _finish(self, slot: int, state: int, frame_type: int, body: bytes, now_us: int) -> None:
        if slot == self._running_slot:
            self._running_slot = -1
        self._results.finish(slot, state, body[8:])
        self._add_event(frame_type, body, now_us)

    def _on_query(self, frame: wire.Frame) -> None:
        cmd_id = wire.unpack_body(wire.QUERY, frame.body)[0]
        slot = self._results.find(cmd_id)
        payload = b""
        if cmd_id == wire.CMD_ID_OF_HIGHEST:
            state = wire.STATE_FORGOTTEN
            payload = wire.pack_highest(*self._results.highest())
        elif slot < 0:
            state = self._results.state_of_unknown(cmd_id)
        else:
            state = self._results.state(slot)
            payload = self._results.payload(slot)
        self._send(
            wire.RESULT, self._session, frame.seq, wire.pack_body(wire.RESULT, cmd_id, state, tail=payload)
        )

    def _on_estop(self, now_us: int) -> None:
        if not self._estopped:
            self._estopped = True
            self._estop_count += 1
            self._core.estop(now_us)
            self.fault(wire.FAULT_ESTOPPED, 0, now_us)
            if self._kind == wire.KIND_HAND:
                self.moved(wire.MOVED_ESTOP, now_us)
        if not self._events.holds(wire.ESTOPPED):
            self._add_event(wire.ESTOPPED, wire.pack_body(wire.ESTOPPED, now_us, self._nonce()), now_us)

    def _on_clear(self, frame: wire.Frame, now_us: int) -> None:
        nonce = wire.unpack_body(wire.CLEAR, frame.body)[0]
        if self._estopped and nonce == self._nonce():
            self._estopped = False
            self._core.clear_estop(now_us)
        # The answer in every case: the flags say whether the stop still holds.
        self._send_heartbeat(now_us)

    def _nonce(self) -> int:
        return binascii.crc32(struct.pack("<II", self._boot_id, self._estop_count))

    def _flags(self) -> int:
        flags = self._core.flags()
        if self._held:
            flags |= wire.FLAG_HELD
        if self._estopped:
            flags |= wire.FLAG_ESTOPPED
        return flags

    # -- output ----------------------------------------------------------------------------------------

    def _queue_moved(self, now_us: int) -> None:
        if not self._session:
            return
        for cause in range(1, len(self._moved_us)):
            moved_us = self._moved_us[cause]
            if moved_us >= 0 and self._events.free() >= EVENTS_FREE_FOR_MOVED:
                self._moved_us[cause] = -1
                self._add_event(wire.MOVED, wire.pack_body(wire.MOVED, moved_us, cause), now_us)

    def _add_event(self, frame_type: int, body: bytes, now_us: int) -> None:
        if not self._session:
            return
        self._events.add(frame_type, body)
        if self._events.count == 1:
            self._events_due_us = now_us + wire.EVENT_RESEND_MS * _MS
        self._send_event(self._events.count - 1)

    def _send_events(self, now_us: int) -> None:
        self._events_due_us = now_us + wire.EVENT_RESEND_MS * _MS
        for i in range(self._events.count):
            self._send_event(i)

    def _send_event(self, i: int) -> None:
        self._send(self._events.type(i), self._session, self._events.seq(i), self._events.body(i))

    def _send_accepted(self, seq: int, cmd_id: int, accepted_us: int) -> None:
        self._send(wire.ACCEPTED, self._session, seq, wire.pack_body(wire.ACCEPTED, cmd_id, accepted_us))

    def _send_nak(self) -> None:
        self._send(wire.NAK, self._session, self._expected_seq, b"")

    def _send_heartbeat(self, now_us: int) -> None:
        """With the seq of the host's last heartbeat: the host knows that board_us is later than that one."""
        self._heartbeat_due_us = now_us + wire.HEARTBEAT_MS * _MS
        body = wire.pack_body(wire.BOARD_HEARTBEAT, now_us, self._flags())
        self._send(wire.BOARD_HEARTBEAT, self._session, self._host_heartbeat_seq, body)

    def _send_hello(self, now_us: int) -> None:
        self._hello_due_us = now_us + wire.HELLO_MS * _MS
        hello = wire.Hello(
            self._uid,
            self._kind,
            FIRMWARE_MAJOR,
            FIRMWARE_MINOR,
            self._reset_cause,
            self._core.caps(),
            1,
            self._flags(),
            self._core.hello_tail(),
        )
        self._send(wire.HELLO, 0, 0, hello.pack())

    def _send(self, frame_type: int, session: int, seq: int, body: bytes) -> None:
        self._output.add(frame_type, self._boot_id, session, seq, body)
