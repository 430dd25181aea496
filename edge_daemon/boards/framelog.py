"""The last frames each way on one board's line, decoded for the person who has to find out what happened."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edge_daemon.boards.errors import FAULT_NAMES
from firmware import wire

FRAMES_KEPT = 100

_TYPE_NAMES = {
    wire.OPEN: "OPEN",
    wire.CMD: "CMD",
    wire.HOST_HEARTBEAT: "HEARTBEAT",
    wire.QUERY: "QUERY",
    wire.ESTOP: "ESTOP",
    wire.CLEAR: "CLEAR",
    wire.EVENT_ACK: "EVENT_ACK",
    wire.HELLO: "HELLO",
    wire.OPENED: "OPENED",
    wire.BOARD_HEARTBEAT: "HEARTBEAT",
    wire.ACCEPTED: "ACCEPTED",
    wire.NAK: "NAK",
    wire.RESULT: "RESULT",
    wire.CONTACT: "CONTACT",
    wire.DONE: "DONE",
    wire.FAULT: "FAULT",
    wire.MOVED: "MOVED",
    wire.ESTOPPED: "ESTOPPED",
}
_OP_FIELDS: dict[int, tuple[str, tuple[str | None, ...]]] = {
    wire.OP_HOME: ("HOME", ()),
    wire.OP_PARK: ("PARK", ("x_um", "y_um", "z_um")),
    wire.OP_TAP: ("TAP", ("x_um", "y_um", "hover_z_um", "press_z_um", "dwell_ms")),
    wire.OP_SWIPE: (
        "SWIPE",
        ("x0_um", "y0_um", "press0_z_um", "x1_um", "y1_um", "press1_z_um", "hover_z_um", "duration_ms"),
    ),
    wire.OP_MOVE: ("MOVE", ("x_um", "y_um", "z_um")),
    wire.OP_PROBE: ("PROBE", ("x_um", "y_um", "hover_z_um", "lowest_z_um", "step_um")),
    wire.OP_KEY: ("KEY", ("key",)),
    # Its checksum stays out: that of a short text can be guessed back.
    wire.OP_TEXT_GO: ("TEXT_GO", ("bytes", None)),
    wire.OP_HID_TAP: ("TAP", ("x", "y", "dwell_ms")),
    wire.OP_HID_SWIPE: ("SWIPE", ("x0", "y0", "x1", "y1", "duration_ms")),
    wire.OP_POINTER_TAP: ("TAP", ("x", "y", "span_x", "span_y", "home", "step", "dwell_ms")),
    wire.OP_TEXT_LOAD: ("TEXT_LOAD", ("offset",)),
}
_BODY_FIELDS = {
    wire.HOST_HEARTBEAT: ("host_ms",),
    wire.QUERY: ("cmd_id",),
    wire.CLEAR: ("nonce",),
    wire.OPENED: ("flags",),
    wire.BOARD_HEARTBEAT: ("board_us", "flags"),
    wire.ACCEPTED: ("cmd_id", "board_us"),
    wire.RESULT: ("cmd_id", "state"),
    wire.CONTACT: ("cmd_id", "board_us"),
    wire.DONE: ("cmd_id", "accepted_us", "contact_us", "done_us"),
    wire.FAULT: ("cmd_id", "code", "flags", "board_us"),
    wire.MOVED: ("board_us", "cause"),
    wire.ESTOPPED: ("board_us", "nonce"),
}
_FLAG_NAMES = (
    (wire.FLAG_HOMED, "homed"),
    (wire.FLAG_MOVING, "moving"),
    (wire.FLAG_HELD, "held"),
    (wire.FLAG_ESTOPPED, "estopped"),
    (wire.FLAG_USB_READY, "usb-ready"),
    (wire.FLAG_CAPS_LOCK, "caps-lock"),
)
_STATE_NAMES = ("absent", "accepted", "running", "done", "fault", "forgotten")
_CAUSE_NAMES = {
    wire.MOVED_PUSHED: "pushed",
    wire.MOVED_HOMED: "homed",
    wire.MOVED_ESTOP: "estop",
    wire.MOVED_RESTART: "restart",
    wire.MOVED_DEADMAN: "deadman",
}


@dataclass(frozen=True, slots=True)
class LoggedFrame:
    """One frame and when it passed; ``sent`` is host to board."""

    at_ns: int
    sent: bool
    frame: wire.Frame


class FrameLog:
    """The last FRAMES_KEPT frames in each direction; bounded, and cheap until somebody asks for the text."""

    def __init__(self) -> None:
        # Plain pairs of (at_ns, frame): this happens for each frame, and almost nobody ever looks.
        self._sent: deque[tuple[int, wire.Frame]] = deque(maxlen=FRAMES_KEPT)
        self._received: deque[tuple[int, wire.Frame]] = deque(maxlen=FRAMES_KEPT)

    def sent(self, frame: wire.Frame, at_ns: int) -> None:
        self._sent.append((at_ns, frame))

    def received(self, frame: wire.Frame, at_ns: int) -> None:
        self._received.append((at_ns, frame))

    def entries(self) -> list[LoggedFrame]:
        """Both directions in the order of time."""
        sent = [LoggedFrame(at_ns, True, frame) for at_ns, frame in self._sent]
        received = [LoggedFrame(at_ns, False, frame) for at_ns, frame in self._received]
        return sorted(sent + received, key=lambda entry: entry.at_ns)

    def dump(self) -> str:
        """One line a frame: milliseconds before the last one, direction, decoded fields. No typed text."""
        entries = self.entries()
        if not entries:
            return "no frames"
        last_ns = entries[-1].at_ns
        return "\n".join(
            f"{(entry.at_ns - last_ns) / 1e6:+10.1f} ms {'host → board' if entry.sent else 'board → host'}  "
            f"{describe_frame(entry.frame)}"
            for entry in entries
        )


def describe_frame(frame: wire.Frame) -> str:
    """A frame on one line. Text on its way to a phone is shown by its length only."""
    name = _TYPE_NAMES.get(frame.type, f"type 0x{frame.type:02x}")
    head = f"{name} seq={frame.seq} session={frame.session_id:08x} boot={frame.boot_id:08x}"
    try:
        details = " ".join(_details(frame))
    except wire.BodyError as err:
        # A command's bytes may be somebody's text.
        shown = f"of {len(frame.body)} bytes" if frame.type == wire.CMD else frame.body.hex()
        return f"{head} BAD BODY {shown}: {err}"
    return f"{head} {details}".rstrip()


def _details(frame: wire.Frame) -> Iterator[str]:
    if frame.type == wire.HELLO:
        hello = wire.unpack_hello(frame.body)
        yield f"uid={hello.uid.hex()} kind={hello.kind} firmware={hello.fw_major}.{hello.fw_minor}"
        yield f"reset_cause={hello.reset_cause} caps={hello.caps:#x} flags={_flags(hello.flags)}"
    elif frame.type == wire.CMD:
        yield from _command(frame.body)
    else:
        fields = wire.unpack_body(frame.type, frame.body)
        for label, value in zip(_BODY_FIELDS.get(frame.type, ()), fields, strict=True):
            yield f"{label}={_meaning(frame.type, label, value)}"


def _command(body: bytes) -> Iterator[str]:
    cmd_id, op = wire.unpack_body(wire.CMD, body)
    args = wire.body_tail(wire.CMD, body)
    name, labels = _OP_FIELDS.get(op, (f"op 0x{op:02x}", None))
    yield f"cmd_id={cmd_id} {name}"
    if labels is None:
        yield f"({len(args)} bytes)"
        return
    for label, value in zip(labels, wire.unpack_args(op, args), strict=True):
        if label is not None:
            yield f"{label}={value}"
    tail = wire.args_tail(op, args)
    if tail:
        yield f"({len(tail)} bytes of text)"


def _meaning(frame_type: int, label: str, value: int) -> str:
    reader: dict[tuple[int, str], Callable[[int], str]] = {
        (wire.OPENED, "flags"): _flags,
        (wire.BOARD_HEARTBEAT, "flags"): _flags,
        (wire.RESULT, "state"): lambda state: dict(enumerate(_STATE_NAMES)).get(state, str(state)),
        (wire.FAULT, "code"): lambda code: FAULT_NAMES.get(code, str(code)),
        (wire.FAULT, "flags"): _fault_flags,
        (wire.MOVED, "cause"): lambda cause: _CAUSE_NAMES.get(cause, str(cause)),
    }
    read = reader.get((frame_type, label))
    return read(value) if read else str(value)


def _flags(flags: int) -> str:
    return "+".join(name for bit, name in _FLAG_NAMES if flags & bit) or "none"


def _fault_flags(flags: int) -> str:
    names = ((wire.FAULT_FLAG_EFFECT, "effect"), (wire.FAULT_FLAG_REFUSED, "refused"))
    return "+".join(name for bit, name in names if flags & bit) or "none"
