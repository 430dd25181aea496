"""The board link's one codec: frames, bodies and their numbers.

It runs on CPython (the daemon) and on MicroPython >= 1.27 (the boards), so it uses no typing, no
dataclasses and no enum, and keeps to small buffers.

Frames are firmware/framing.py's business and are re-exported here; this file has every number and every
body: frame types, operations, fault codes, flags, timing, and how fields become bytes.
"""

import struct

from firmware.framing import BODY_MAX as BODY_MAX
from firmware.framing import FRAME_MAX as FRAME_MAX
from firmware.framing import PROTOCOL as PROTOCOL
from firmware.framing import BodyError as BodyError
from firmware.framing import Decoder as Decoder
from firmware.framing import Frame as Frame
from firmware.framing import encode_frame as encode_frame

# -- sizes ---------------------------------------------------------------------------------------
# RESULT puts cmd_id and state in front of what it remembers; DONE's times take 24 of that.
RESULT_PAYLOAD_MAX = BODY_MAX - 9
DONE_DATA_MAX = RESULT_PAYLOAD_MAX - 24
# CMD puts cmd_id and op in front of the arguments.
CMD_ARGS_MAX = BODY_MAX - 9
UID_SIZE = 8

# -- frame types, host to board --------------------------------------------------------------------
OPEN = 0x01
CMD = 0x02
HOST_HEARTBEAT = 0x03
QUERY = 0x04
ESTOP = 0x05
CLEAR = 0x06
EVENT_ACK = 0x07
# -- frame types, board to host --------------------------------------------------------------------
HELLO = 0x81
OPENED = 0x82
BOARD_HEARTBEAT = 0x83
ACCEPTED = 0x84
NAK = 0x88
RESULT = 0x89
# Reliable events: header.seq counts them from 0 in each session, re-sent until EVENT_ACK.
CONTACT = 0x90
DONE = 0x91
FAULT = 0x92
MOVED = 0x93
ESTOPPED = 0x94

# -- RESULT states -----------------------------------------------------------------------------------
STATE_ABSENT = 0  # never received on this boot: certain
STATE_ACCEPTED = 1
STATE_RUNNING = 2
STATE_DONE = 3
STATE_FAULT = 4
STATE_FORGOTTEN = 5  # perhaps received once, its result has been evicted

# No command has this id. A QUERY of it asks for the highest ids that the boot was given, so that a host that has
# lost count begins above them. A firmware from before that answers with the same state and no bytes.
CMD_ID_OF_HIGHEST = 0

# -- FAULT codes and flags ---------------------------------------------------------------------------
FAULT_ENVELOPE = 1
FAULT_DEPTH = 2
FAULT_NOT_HOMED = 3
FAULT_BUSY = 4
FAULT_ESTOPPED = 5
FAULT_HELD = 6
FAULT_ABORTED = 7
FAULT_BAD_ARGS = 8
FAULT_UNSUPPORTED = 9
FAULT_USB_NOT_READY = 10
FAULT_CHARSET = 11
FAULT_TEXT_INCOMPLETE = 12
FAULT_DRIVE = 13  # a drive does not answer, or reports an error of its own
FAULT_FLAG_EFFECT = 0x01  # a contact or a key report may have reached the phone
FAULT_FLAG_REFUSED = 0x02  # never started

# -- status flags (HELLO, OPENED, BOARD_HEARTBEAT) ----------------------------------------------------
FLAG_HOMED = 0x01
FLAG_MOVING = 0x02
FLAG_HELD = 0x04  # the deadman released everything and waits for a new session
FLAG_ESTOPPED = 0x08
FLAG_USB_READY = 0x10
FLAG_CAPS_LOCK = 0x20

# -- MOVED causes: the hand moved, and no command of the host was the reason ---------------------------
MOVED_PUSHED = 1
MOVED_HOMED = 2
MOVED_ESTOP = 3
MOVED_RESTART = 4
MOVED_DEADMAN = 5

# -- what a board is -----------------------------------------------------------------------------------
KIND_HAND = 1
KIND_HID = 2

RESET_POWER_ON = 1
RESET_WATCHDOG = 2
RESET_BROWNOUT = 3
RESET_SOFT = 4
RESET_UNKNOWN = 5

CAP_HAND_TAP = 1
CAP_HAND_SWIPE = 2
CAP_HAND_HOLD = 4
CAP_HAND_MOVE = 8
CAP_HAND_PROBE = 16
CAP_HID_KEY = 1
CAP_HID_TEXT = 2
CAP_HID_TOUCH = 4
CAP_HID_POINTER = 8  # taps by a relative pointer, which needs a scale

PROFILE_ANDROID = 1
PROFILE_IOS = 2
LAYOUT_US = 1
LAYOUT_UK = 2
LAYOUT_DE = 3
LAYOUT_FR = 4

# Order is the wire's: KEY's argument is the index, the HID tail's mask has bit i for KEY_NAMES[i].
KEY_NAMES = ("home", "back", "enter", "delete", "app_switch", "power", "volume_up", "volume_down")

# -- operations of CMD -----------------------------------------------------------------------------------
OP_HOME = 0x10
OP_PARK = 0x11
OP_TAP = 0x12
OP_SWIPE = 0x13
OP_MOVE = 0x14
OP_PROBE = 0x15
OP_KEY = 0x20
OP_TEXT_GO = 0x21
OP_HID_TAP = 0x22
OP_HID_SWIPE = 0x23
OP_POINTER_TAP = 0x24
# Operations from here on only carry data: acknowledged, no event, no result, no effect on the phone.
OP_DATA_FIRST = 0x80
OP_TEXT_LOAD = 0xA0

# -- timing, shared so that both ends agree ---------------------------------------------------------------
RETRANSMIT_MS = (50, 100, 200, 400, 800)
# Five in a row may be lost before the deadman acts: once in millions where every twentieth frame is lost.
HEARTBEAT_MS = 100
HELLO_MS = 1000
EVENT_RESEND_MS = 100
DEADMAN_MS = 600
HOST_SILENCE_MS = 1000
RESULTS_KEPT = 16
SESSIONS_REMEMBERED = 4

# -- bodies: the fixed integers, and whether bytes may follow them ------------------------------------------
HELLO_FORMAT = "<8sBBBBIBB"
HELLO_SIZE = 18
HAND_TAIL_FORMAT = "<iiiiiiHHI"  # x_min x_max y_min y_max z_min z_max (um), v_max mm/s, a_max mm/s2, reserved
PROBE_DATA_FORMAT = (
    "<Bi"  # 1 if contact was sensed, else 0; z in um: where, or the lowest place that was tried
)
HIGHEST_FORMAT = "<QQ"  # the highest cmd_id of each family, top bit clear and set; 0: none
HID_TAIL_FORMAT = "<BBHHH"  # profile, layout, keys mask, text_max bytes, reserved

BODY_FORMATS = {
    OPEN: ("<", False),
    CMD: ("<QB", True),  # cmd_id, op | arguments
    HOST_HEARTBEAT: ("<I", False),  # host_ms
    QUERY: ("<Q", False),  # cmd_id
    ESTOP: ("<", False),
    CLEAR: ("<I", False),  # nonce
    EVENT_ACK: ("<", False),
    OPENED: ("<B", False),  # status flags
    BOARD_HEARTBEAT: ("<QB", False),  # board_us, status flags
    ACCEPTED: ("<QQ", False),  # cmd_id, board_us
    NAK: ("<", False),
    RESULT: ("<QB", True),  # cmd_id, state | the event's body after its cmd_id
    CONTACT: ("<QQ", False),  # cmd_id, board_us
    DONE: ("<QQQQ", True),  # cmd_id, accepted_us, contact_us or 0, done_us | the operation's data
    FAULT: ("<QBBQ", False),  # cmd_id, code, fault flags, board_us
    MOVED: ("<QB", False),  # board_us, cause
    ESTOPPED: ("<QI", False),  # board_us, nonce
}

ARGS_FORMATS = {
    OP_HOME: ("<", False),
    OP_PARK: ("<iii", False),  # x y z, um
    OP_TAP: ("<iiiiH", False),  # x y hover_z press_z, um; dwell_ms
    OP_SWIPE: ("<iiiiiiiH", False),  # x0 y0 press0_z x1 y1 press1_z hover_z, um; duration_ms
    OP_MOVE: ("<iii", False),  # x y z, um
    OP_PROBE: ("<iiiiH", False),  # x y hover_z lowest_z, step, um; DONE carries PROBE_DATA_FORMAT
    OP_KEY: ("<B", False),  # index into KEY_NAMES
    OP_TEXT_GO: ("<HI", False),  # length in bytes and crc32 of the UTF-8
    OP_HID_TAP: ("<HHH", False),  # x y in 0..32767, dwell_ms
    OP_HID_SWIPE: ("<HHHHH", False),  # x0 y0 x1 y1 in 0..32767, duration_ms
    OP_POINTER_TAP: ("<HHHHHBH", False),  # x y in 0..32767; span_x span_y home, step in counts; dwell_ms
    OP_TEXT_LOAD: ("<H", True),  # byte offset | bytes
}

# MicroPython's struct raises ValueError where CPython's raises its own struct.error.
_STRUCT_ERROR = getattr(struct, "error", ValueError)


def _pack(what: str, key: int, layout: "tuple[str, bool]", fields: "tuple[int, ...]", tail: bytes) -> bytes:
    if tail and not layout[1]:
        raise BodyError("%s 0x%02x takes no bytes after its fields, got %d" % (what, key, len(tail)))
    try:
        head = struct.pack(layout[0], *fields)
    except (_STRUCT_ERROR, TypeError, OverflowError) as err:
        raise BodyError("%s 0x%02x: %r do not fit %r: %s" % (what, key, fields, layout[0], err))
    # MicroPython's struct wraps a value out of range instead of refusing it.
    if struct.unpack(layout[0], head) != fields:
        raise BodyError("%s 0x%02x: %r do not fit %r" % (what, key, fields, layout[0]))
    return head + tail


def _unpack(
    what: str, key: int, layout: "tuple[str, bool]", data: "bytes | bytearray | memoryview"
) -> "tuple[int, ...]":
    size = struct.calcsize(layout[0])
    if len(data) < size or (len(data) > size and not layout[1]):
        raise BodyError("%s 0x%02x has %d bytes, its fields need %d" % (what, key, len(data), size))
    return struct.unpack_from(layout[0], data)


def _layout(what: str, key: int, table: "dict[int, tuple[str, bool]]") -> "tuple[str, bool]":
    layout = table.get(key)
    if layout is None:
        raise BodyError("unknown %s 0x%02x" % (what, key))
    return layout


def pack_body(frame_type: int, *fields: int, tail: bytes = b"") -> bytes:
    """The body of any frame but HELLO from its integer fields (see BODY_FORMATS) and the bytes after them.

    Raises BodyError for an unknown type, a wrong number of fields or a value out of range.
    """
    return _pack("frame", frame_type, _layout("frame", frame_type, BODY_FORMATS), fields, tail)


def unpack_body(frame_type: int, body: "bytes | bytearray | memoryview") -> "tuple[int, ...]":
    """The integer fields of a body (see BODY_FORMATS). Raises BodyError when its length does not fit."""
    return _unpack("frame", frame_type, _layout("frame", frame_type, BODY_FORMATS), body)


def body_tail(frame_type: int, body: "bytes | bytearray | memoryview") -> bytes:
    """The bytes after the fixed fields: CMD's arguments, DONE's data, RESULT's remembered payload."""
    return bytes(body[struct.calcsize(_layout("frame", frame_type, BODY_FORMATS)[0]) :])


def pack_args(op: int, *fields: int, tail: bytes = b"") -> bytes:
    """The arguments of an operation (see ARGS_FORMATS). Raises BodyError as pack_body does."""
    return _pack("op", op, _layout("op", op, ARGS_FORMATS), fields, tail)


def unpack_args(op: int, args: "bytes | bytearray | memoryview") -> "tuple[int, ...]":
    """The integer fields of an operation's arguments. Raises BodyError when their length does not fit."""
    return _unpack("op", op, _layout("op", op, ARGS_FORMATS), args)


def args_tail(op: int, args: "bytes | bytearray | memoryview") -> bytes:
    """The bytes after an operation's fixed fields: TEXT_LOAD's text."""
    return bytes(args[struct.calcsize(_layout("op", op, ARGS_FORMATS)[0]) :])


def result_as_event(body: bytes) -> bytes:
    """A RESULT body (state DONE or FAULT) as the body of the DONE or FAULT event it remembers."""
    return body[:8] + body[9:]


def pack_highest(commands: int, housekeeping: int) -> bytes:
    """RESULT's bytes for CMD_ID_OF_HIGHEST: the highest ids with the top bit clear, and with it set."""
    return struct.pack(HIGHEST_FORMAT, commands, housekeeping)


def unpack_highest(tail: bytes) -> "tuple[int, int]":
    """(highest id with the top bit clear, with it set); zeros from a firmware that does not tell. Raises BodyError."""
    if not tail:
        return 0, 0
    commands, housekeeping = _unpack("highest ids in frame", RESULT, (HIGHEST_FORMAT, False), tail)
    return commands, housekeeping


class Hello:
    """A HELLO body: who the board is, why it last started and what it can do."""

    __slots__ = ("caps", "credit", "flags", "fw_major", "fw_minor", "kind", "reset_cause", "tail", "uid")

    def __init__(
        self,
        uid: bytes,
        kind: int,
        fw_major: int,
        fw_minor: int,
        reset_cause: int,
        caps: int,
        credit: int,
        flags: int,
        tail: bytes,
    ) -> None:
        self.uid = uid
        self.kind = kind
        self.fw_major = fw_major
        self.fw_minor = fw_minor
        self.reset_cause = reset_cause
        self.caps = caps
        self.credit = credit
        self.flags = flags
        self.tail = tail

    def pack(self) -> bytes:
        """The body of a HELLO frame. Raises BodyError for a uid that is not UID_SIZE bytes."""
        if len(self.uid) != UID_SIZE:
            raise BodyError("a board uid is %d bytes, got %d" % (UID_SIZE, len(self.uid)))
        head = struct.pack(
            HELLO_FORMAT,
            self.uid,
            self.kind,
            self.fw_major,
            self.fw_minor,
            self.reset_cause,
            self.caps,
            self.credit,
            self.flags,
        )
        return head + self.tail


def unpack_hello(body: bytes) -> Hello:
    """Read a HELLO body. Raises BodyError when it is too short."""
    if len(body) < HELLO_SIZE:
        raise BodyError("HELLO has %d bytes, its fields need %d" % (len(body), HELLO_SIZE))
    uid, kind, fw_major, fw_minor, reset_cause, caps, credit, flags = struct.unpack_from(HELLO_FORMAT, body)
    tail = bytes(body[HELLO_SIZE:])
    return Hello(uid, kind, fw_major, fw_minor, reset_cause, caps, credit, flags, tail)


def pack_hand_tail(
    x_min: int, x_max: int, y_min: int, y_max: int, z_min: int, z_max: int, v_max: int, a_max: int
) -> bytes:
    """HELLO's tail of a hand: the envelope in um, top speed in mm/s and acceleration in mm/s2."""
    return struct.pack(HAND_TAIL_FORMAT, x_min, x_max, y_min, y_max, z_min, z_max, v_max, a_max, 0)


def unpack_hand_tail(tail: bytes) -> "tuple[int, ...]":
    """(x_min, x_max, y_min, y_max, z_min, z_max um, v_max mm/s, a_max mm/s2). Raises BodyError."""
    return _unpack("hand tail of frame", HELLO, (HAND_TAIL_FORMAT, False), tail)[:8]


def pack_probe_data(touched: bool, z_um: int) -> bytes:
    """DONE's data of a PROBE: whether contact was sensed, and at which z in um (or how deep it was tried)."""
    return struct.pack(PROBE_DATA_FORMAT, 1 if touched else 0, z_um)


def unpack_probe_data(data: bytes) -> "tuple[bool, int]":
    """(contact sensed, z um) of a PROBE. Raises BodyError."""
    touched, z_um = _unpack("probe data of op", OP_PROBE, (PROBE_DATA_FORMAT, False), data)
    return touched == 1, z_um


def pack_hid_tail(profile: int, layout: int, keys: int, text_max: int) -> bytes:
    """HELLO's tail of a HID board: profile, keyboard layout, mask of KEY_NAMES, text buffer in bytes."""
    return struct.pack(HID_TAIL_FORMAT, profile, layout, keys, text_max, 0)


def unpack_hid_tail(tail: bytes) -> "tuple[int, ...]":
    """(profile, layout, keys mask, text_max bytes). Raises BodyError."""
    return _unpack("hid tail of frame", HELLO, (HID_TAIL_FORMAT, False), tail)[:4]
