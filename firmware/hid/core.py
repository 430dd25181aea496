"""The HID board's core: commands in, reports to the phone out. Sans-IO, on CPython and MicroPython.

One command is one operation of the board that ends in a release report, whatever happens: done, given up,
silent host, emergency stop, a phone that stopped taking reports. A report goes out only after the phone has
taken the one before it.
"""

from firmware import wire
from firmware.hid import descriptor, layouts, profiles
from firmware.hid.operations import KeyPress, Operation, PointerTap, TextBuffer, Touch, TypeText
from firmware.link import Core

# Phones poll every 1 to 10 ms; one that takes nothing for this long has stopped listening.
STALL_US = 500000
# A report that the port could not queue is offered again after this long.
RETRY_US = 1000
# A pointer tap of more reports than this has a scale that no phone has.
POINTER_REPORTS_MAX = 2000
# 4096 characters of at most 3 bytes: no layout of ours leaves the Basic Multilingual Plane.
TEXT_MAX = 12288


class Usb:
    """What a port gives the HID core: one interrupt endpoint with room for one report at a time."""

    def ready(self) -> bool:
        """Whether a phone has configured the device and is not asleep."""
        raise NotImplementedError

    def send(self, report: "bytes | memoryview") -> bool:
        """Queue a report with its id. The bytes are the port's own copy afterwards. False: not queued."""
        raise NotImplementedError

    def pending(self) -> int:
        """Reports queued and not yet taken by the phone."""
        raise NotImplementedError

    def leds(self) -> int:
        """The phone's keyboard LEDs: bit 0 num, 1 caps, 2 scroll lock."""
        raise NotImplementedError


class HidCore(Core):
    """A keyboard, consumer control and touch screen or pointer for one phone.

    A phone that has configured the device has not yet shown that it listens. The core finds out: it sends a
    keyboard report with nothing pressed, and the board is ready (FLAG_USB_READY) once that has been taken, until
    the phone sleeps, goes away or leaves a report lying for STALL_US.
    """

    def __init__(self, usb: Usb, profile_id: int, layout_id: int) -> None:
        self._usb = usb
        self._profile_id = profile_id
        self._layout_id = layout_id
        self._profile = profiles.PROFILES[profile_id]
        self._text = TextBuffer(TEXT_MAX, layouts.LAYOUTS[layout_id])
        self._out = bytearray(16)
        self._release_out = bytearray(16)
        self._operation: Operation | None = None
        self._begun = False
        self._contacted = False
        self._progress_us = 0
        self._retry_us = 0
        self._estopped = False
        self._probed = False
        self._accepted = False
        # What the phone believes to be pressed, by report id, and where the finger is.
        self._is_down = [False] * (descriptor.REPORT_POINTER + 1)
        self._touch_x = 0
        self._touch_y = 0

    # -- what the link asks --------------------------------------------------------------------------

    def caps(self) -> int:
        return self._profile.caps

    def hello_tail(self) -> bytes:
        return wire.pack_hid_tail(self._profile_id, self._layout_id, self._profile.mask(), TEXT_MAX)

    def flags(self) -> int:
        flags = wire.FLAG_USB_READY if self._is_ready() else 0
        if self._usb.leds() & descriptor.LED_CAPS_LOCK:
            flags |= wire.FLAG_CAPS_LOCK
        return flags

    def data(self, op: int, args: "bytes | memoryview") -> int:
        if op != wire.OP_TEXT_LOAD:
            return wire.FAULT_UNSUPPORTED
        if self._operation is not None:
            return wire.FAULT_BUSY
        try:
            offset = wire.unpack_args(op, args)[0]
        except wire.BodyError:
            return wire.FAULT_BAD_ARGS
        return 0 if self._text.load(offset, wire.args_tail(op, args)) else wire.FAULT_BAD_ARGS

    def start(self, op: int, args: "bytes | memoryview", now_us: int) -> int:
        if self._estopped:
            return wire.FAULT_ESTOPPED
        if self._operation is not None:
            return wire.FAULT_BUSY
        try:
            fields = wire.unpack_args(op, args)
        except wire.BodyError:
            return wire.FAULT_BAD_ARGS if op in wire.ARGS_FORMATS else wire.FAULT_UNSUPPORTED
        planned = self._plan(op, fields)
        if isinstance(planned, int):
            return planned
        if not self._is_ready():
            return wire.FAULT_USB_NOT_READY
        self._operation = planned
        self._begun = self._contacted = False
        self._progress_us = now_us
        self.poll(now_us)
        return 0

    # -- commands ------------------------------------------------------------------------------------

    def _plan(self, op: int, fields: "tuple[int, ...]") -> "Operation | int":
        """The operation, or the FAULT code of a refusal."""
        if op == wire.OP_KEY:
            key = self._profile.key(fields[0])
            return wire.FAULT_UNSUPPORTED if key is None else KeyPress(key[0], key[1])
        if op == wire.OP_TEXT_GO:
            return self._plan_text(fields[0], fields[1])
        if op == wire.OP_POINTER_TAP and self._profile.caps & wire.CAP_HID_POINTER:
            return self._plan_pointer(fields)
        if not self._profile.caps & wire.CAP_HID_TOUCH or op not in (wire.OP_HID_TAP, wire.OP_HID_SWIPE):
            return wire.FAULT_UNSUPPORTED
        if max(fields[:-1]) > descriptor.TOUCH_MAX:
            return wire.FAULT_ENVELOPE
        duration_us = fields[-1] * 1000
        if op == wire.OP_HID_TAP:
            return Touch(fields[0], fields[1], fields[0], fields[1], duration_us)
        if fields[0:2] == fields[2:4] or duration_us == 0:
            return wire.FAULT_BAD_ARGS
        return Touch(fields[0], fields[1], fields[2], fields[3], duration_us)

    def _plan_pointer(self, fields: "tuple[int, ...]") -> "Operation | int":
        x, y, span_x, span_y, home, step, dwell_ms = fields
        if max(x, y) > descriptor.TOUCH_MAX:
            return wire.FAULT_ENVELOPE
        if not span_x or not span_y or home < max(span_x, span_y) or not 0 < step <= descriptor.POINTER_MAX:
            return wire.FAULT_BAD_ARGS
        x_counts = (x * span_x + descriptor.TOUCH_MAX // 2) // descriptor.TOUCH_MAX
        y_counts = (y * span_y + descriptor.TOUCH_MAX // 2) // descriptor.TOUCH_MAX
        tap = PointerTap(home, x_counts, y_counts, step, dwell_ms * 1000)
        return tap if tap.reports() <= POINTER_REPORTS_MAX else wire.FAULT_BAD_ARGS

    def _plan_text(self, size: int, crc: int) -> "Operation | int":
        text = self._text
        if not size or text.filled != size or text.crc != crc:
            return wire.FAULT_TEXT_INCOMPLETE
        if not text.is_utf8 or not text.is_whole:
            return wire.FAULT_BAD_ARGS
        if text.has_untypable:
            return wire.FAULT_CHARSET
        return TypeText(text)

    # -- reports -------------------------------------------------------------------------------------

    def poll(self, now_us: int) -> None:
        """Send the next report when the phone has taken the last one. At most one per call."""
        operation = self._operation
        if not self._usb.ready():
            self._probed = self._accepted = False
            if operation is not None:
                self._give_up(wire.FAULT_USB_NOT_READY, now_us)
            return
        if self._usb.pending():
            self._check_stall(now_us)
            return
        self._accepted = self._probed
        if operation is None or (not self._begun and any(self._is_down)):
            # What an operation before left down goes up before the next one begins.
            self._send_release(now_us)
        elif operation.finished:
            # Taken by the phone, the release included.
            self._end_operation()
            self.link.done(now_us, operation.result())
        else:
            self._send_next(operation, now_us)

    def due_us(self, now_us: int) -> int:
        """How many µs from now the next poll does something, if no report completes before; -1 for never."""
        if not self._usb.ready() or self._usb.pending():
            return -1
        if self._operation is not None:
            return max(self._operation.due_us(now_us), self._retry_us - now_us)
        if self._probed and not any(self._is_down):
            return -1
        return max(0, self._retry_us - now_us)

    def _is_ready(self) -> bool:
        return self._accepted and self._usb.ready()

    def _check_stall(self, now_us: int) -> None:
        if now_us - self._progress_us < STALL_US:
            return
        self._accepted = False
        if self._operation is not None:
            self._give_up(wire.FAULT_USB_NOT_READY, now_us)

    def _send_next(self, operation: Operation, now_us: int) -> None:
        report = operation.next_report(self._out, now_us, self._usb.leds())
        if report is None:
            self._progress_us = now_us
        elif self._queue(report, now_us):
            self._begun = True
            operation.sent(now_us)
            if not self._contacted and descriptor.is_pressing(report):
                # From here on the phone may get it, whether or not we hear of it.
                self._contacted = True
                self.link.contact(now_us)
        else:
            self._check_stall(now_us)

    def _queue(self, report: memoryview, now_us: int) -> bool:
        if not self._usb.send(report):
            self._retry_us = now_us + RETRY_US
            return False
        self._progress_us = now_us
        kind = report[0]
        self._is_down[kind] = descriptor.is_pressing(report)
        if kind == descriptor.REPORT_TOUCH:
            self._touch_x = report[3] | report[4] << 8
            self._touch_y = report[5] | report[6] << 8
        return True

    def _send_release(self, now_us: int) -> None:
        """What is still down goes up, one report at a time; the keyboard's also asks whether anybody listens."""
        out = self._release_out
        if self._is_down[descriptor.REPORT_KEYBOARD] or not self._probed:
            if self._queue(descriptor.keyboard_report(out, 0, 0), now_us):
                self._probed = True
        elif self._is_down[descriptor.REPORT_CONSUMER]:
            self._queue(descriptor.consumer_report(out, 0), now_us)
        elif self._is_down[descriptor.REPORT_SYSTEM]:
            self._queue(descriptor.system_report(out, 0), now_us)
        elif self._is_down[descriptor.REPORT_TOUCH]:
            self._queue(descriptor.touch_report(out, False, self._touch_x, self._touch_y), now_us)
        elif self._is_down[descriptor.REPORT_POINTER]:
            self._queue(descriptor.pointer_report(out, False, 0, 0), now_us)

    # -- safe states ---------------------------------------------------------------------------------

    def deadman(self, now_us: int) -> None:
        """Give up what runs and release every key and the finger, as soon as the phone takes it."""
        self._give_up(wire.FAULT_ABORTED, now_us)
        self._text.clear()
        self.poll(now_us)

    def estop(self, now_us: int) -> None:
        """As deadman, and refuse every command until clear_estop()."""
        self._estopped = True
        self._give_up(wire.FAULT_ESTOPPED, now_us)
        self._text.clear()
        self.poll(now_us)

    def clear_estop(self, now_us: int) -> None:
        self._estopped = False

    def _give_up(self, code: int, now_us: int) -> None:
        if self._operation is not None:
            self._end_operation()
            # The link adds EFFECT where contact() has been called.
            self.link.fault(code, 0, now_us)

    def _end_operation(self) -> None:
        if isinstance(self._operation, TypeText):
            self._text.clear()
        self._operation = None
