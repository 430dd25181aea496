"""What the board end of the link keeps: results of commands, unacknowledged events, bytes for the line."""

from firmware import framing, wire

EVENTS_KEPT = 8
OUTPUT_MAX = 1024


def seq_behind(seq: int, reference: int) -> int:
    """How far seq lies behind reference on the 16-bit circle, 0..65535; from 32768 on it lies ahead."""
    return (reference - seq) & 0xFFFF


class ResultMemory:
    """The last RESULTS_KEPT commands of this boot, whatever session they came in.

    It is what makes a command run at most once: a cmd_id found here is never started again.
    """

    def __init__(self) -> None:
        self._cmd_ids = [0] * wire.RESULTS_KEPT
        self._accepted_us = [0] * wire.RESULTS_KEPT
        self._states = bytearray(wire.RESULTS_KEPT)
        self._payloads = [b""] * wire.RESULTS_KEPT
        self._next = 0
        # Two families of ids, told apart by the top bit, each growing on its own (see state_of_unknown).
        self._highest_evicted = [0, 0]
        self._highest = [0, 0]

    def find(self, cmd_id: int) -> int:
        """The slot of a command, -1 when it is not here."""
        # Most ids that are looked for are new, and the interpreter's own search costs a fraction of this loop.
        if cmd_id not in self._cmd_ids:
            return -1
        for slot in range(wire.RESULTS_KEPT):
            if self._states[slot] != wire.STATE_ABSENT and self._cmd_ids[slot] == cmd_id:
                return slot
        return -1

    def begin(self, cmd_id: int, accepted_us: int) -> int:
        """Remember a command as running, evicting the oldest finished one; returns its slot."""
        slot = self._next
        if self._states[slot] == wire.STATE_RUNNING:
            slot = (slot + 1) % wire.RESULTS_KEPT
        self._next = (slot + 1) % wire.RESULTS_KEPT
        if self._states[slot] != wire.STATE_ABSENT:
            evicted = self._cmd_ids[slot]
            family = evicted >> 63
            self._highest_evicted[family] = max(self._highest_evicted[family], evicted)
        self._highest[cmd_id >> 63] = max(self._highest[cmd_id >> 63], cmd_id)
        self._cmd_ids[slot] = cmd_id
        self._accepted_us[slot] = accepted_us
        self._states[slot] = wire.STATE_RUNNING
        self._payloads[slot] = b""
        return slot

    def finish(self, slot: int, state: int, payload: bytes) -> None:
        """Keep a command's outcome: STATE_DONE or STATE_FAULT and the event's body after its cmd_id."""
        self._states[slot] = state
        self._payloads[slot] = payload

    def cmd_id(self, slot: int) -> int:
        return self._cmd_ids[slot]

    def accepted_us(self, slot: int) -> int:
        return self._accepted_us[slot]

    def state(self, slot: int) -> int:
        return self._states[slot]

    def payload(self, slot: int) -> bytes:
        return self._payloads[slot]

    def highest(self) -> "tuple[int, int]":
        """The highest id of each family that this boot was ever given; 0 where there was none."""
        return self._highest[0], self._highest[1]

    def state_of_unknown(self, cmd_id: int) -> int:
        """ABSENT or FORGOTTEN for a command that find() does not know.

        Above the highest id ever evicted nothing was forgotten, so there ABSENT is certain; a host whose
        ids grow never sees FORGOTTEN for its latest command. Ids with the top bit set are judged among
        themselves: a host may number its own housekeeping apart from what it is asked to do.
        """
        if cmd_id > self._highest_evicted[cmd_id >> 63]:
            return wire.STATE_ABSENT
        return wire.STATE_FORGOTTEN


class EventQueue:
    """Reliable events of one session, in order, until the host has acknowledged them."""

    def __init__(self) -> None:
        self._types = bytearray(EVENTS_KEPT)
        self._bodies = [b""] * EVENTS_KEPT
        self._first = 0
        self._first_seq = 0
        self.count = 0

    def reset(self) -> None:
        """Begin a session: nothing waits, and the next event is number 0."""
        self.count = 0
        self._first_seq = 0

    def free(self) -> int:
        return EVENTS_KEPT - self.count

    def add(self, frame_type: int, body: bytes) -> None:
        """Append an event. The caller has made sure that free() > 0."""
        at = (self._first + self.count) % EVENTS_KEPT
        self._types[at] = frame_type
        self._bodies[at] = body
        self.count += 1

    def holds(self, frame_type: int) -> bool:
        return any(self.type(i) == frame_type for i in range(self.count))

    def acknowledge(self, seq: int) -> None:
        """Drop every event up to and including seq; a number that is not waiting changes nothing."""
        acknowledged = ((seq - self._first_seq) & 0xFFFF) + 1
        if acknowledged <= self.count:
            self._first = (self._first + acknowledged) % EVENTS_KEPT
            self._first_seq = (self._first_seq + acknowledged) & 0xFFFF
            self.count -= acknowledged

    def type(self, i: int) -> int:
        return self._types[(self._first + i) % EVENTS_KEPT]

    def seq(self, i: int) -> int:
        return (self._first_seq + i) & 0xFFFF

    def body(self, i: int) -> bytes:
        return self._bodies[(self._first + i) % EVENTS_KEPT]


class Output:
    """Frames on their way to the line, as far as they fit.

    On a line that does not drain the rest is dropped whole: whatever matters is sent again, by this end or
    at the host's request.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(OUTPUT_MAX)
        self._view = memoryview(self._buffer)
        self._n = 0
        self.dropped = 0

    def add(self, frame_type: int, boot_id: int, session_id: int, seq: int, body: bytes) -> None:
        """One more frame. Raises wire.BodyError as wire.encode_frame() does."""
        if self._n + framing.FRAME_OVERHEAD + len(body) > OUTPUT_MAX:
            self.dropped += 1
            return
        # Written where it is sent from: a frame of its own would be garbage on the heap a moment later.
        self._n = framing.encode_frame_into(self._buffer, self._n, frame_type, boot_id, session_id, seq, body)

    def take(self) -> bytes:
        """Everything that waits."""
        if not self._n:
            return b""
        data = bytes(self._view[: self._n])
        self._n = 0
        return data
