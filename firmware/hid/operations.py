"""The HID operations: each gives one report after another, paced by the core, the last one a release.

next_report() is asked only when the phone has taken the report before. It returns None while there is
nothing to send yet (due_us says how long) or nothing any more (finished).
"""

import binascii

from firmware.hid import descriptor, layouts

NOT_WAITING = 0
_PAGE = 512


class Operation:
    """One command's reports."""

    finished = False

    def next_report(self, out: bytearray, now_us: int, leds: int) -> "memoryview | None":
        """The next report, written into out. Called again with the same state if it could not be queued."""
        raise NotImplementedError

    def sent(self, now_us: int) -> None:
        """The report that next_report gave has been queued."""
        raise NotImplementedError

    def due_us(self, now_us: int) -> int:
        """µs until next_report has something to give; 0 for now."""
        return NOT_WAITING

    def result(self) -> bytes:
        """The data that DONE carries."""
        return b""


class KeyPress(Operation):
    """A key, a consumer control or a system control bit, pressed and released."""

    def __init__(self, report_id: int, usage: int) -> None:
        self._report_id = report_id
        self._usage = usage
        self._reports_sent = 0

    def next_report(self, out: bytearray, now_us: int, leds: int) -> "memoryview | None":
        if self.finished:
            return None
        usage = 0 if self._reports_sent else self._usage
        if self._report_id == descriptor.REPORT_KEYBOARD:
            return descriptor.keyboard_report(out, 0, usage)
        if self._report_id == descriptor.REPORT_CONSUMER:
            return descriptor.consumer_report(out, usage)
        return descriptor.system_report(out, usage)

    def sent(self, now_us: int) -> None:
        self._reports_sent += 1
        self.finished = self._reports_sent == 2


class TypeText(Operation):
    """A text, key by key: every stroke is a press and a release of its own, so nothing can repeat."""

    def __init__(self, text: "TextBuffer") -> None:
        self._text = text
        self._at = 0
        self._strokes = b""
        self._stroke = 0
        self._pressed = False
        self._typed = 0

    def next_report(self, out: bytearray, now_us: int, leds: int) -> "memoryview | None":
        if self._pressed:
            return descriptor.keyboard_report(out, 0, 0)
        if self._stroke == len(self._strokes) and not self._next_char():
            return None
        flags = self._strokes[self._stroke]
        shifted = bool(flags & layouts.SHIFT)
        if flags & layouts.CAPS and leds & descriptor.LED_CAPS_LOCK:
            shifted = not shifted
        modifiers = descriptor.MOD_LEFT_SHIFT if shifted else 0
        if flags & layouts.ALTGR:
            modifiers |= descriptor.MOD_RIGHT_ALT
        return descriptor.keyboard_report(out, modifiers, self._strokes[self._stroke + 1])

    def _next_char(self) -> bool:
        if self._at >= self._text.filled:
            return False
        char, self._at = self._text.char_at(self._at)
        self._strokes = self._text.layout.steps(char)
        self._stroke = 0
        return True

    def sent(self, now_us: int) -> None:
        self._pressed = not self._pressed
        if self._pressed:
            return
        self._stroke += 2
        if self._stroke == len(self._strokes):
            self._typed += 1
            self.finished = self._at >= self._text.filled

    def result(self) -> bytes:
        """The number of characters typed, '<H'."""
        return bytes((self._typed & 0xFF, self._typed >> 8))


class Touch(Operation):
    """A contact that comes down at the first point, goes evenly to the second one and lifts there.

    The time runs from the report of the contact being taken by the phone. With equal points it is a tap or
    a hold of that time.
    """

    def __init__(self, x0: int, y0: int, x1: int, y1: int, duration_us: int) -> None:
        self._x0 = self._x = x0
        self._y0 = self._y = y0
        self._x1 = x1
        self._y1 = y1
        self._duration_us = duration_us
        self._down = False
        self._began_us = -1
        self._lifting = False

    def next_report(self, out: bytearray, now_us: int, leds: int) -> "memoryview | None":
        if self.finished:
            return None
        if not self._down:
            return descriptor.touch_report(out, True, self._x0, self._y0)
        if self._began_us < 0:
            self._began_us = now_us
        t_us = min(now_us - self._began_us, self._duration_us)
        x, y = self._point(t_us)
        if x != self._x or y != self._y:
            return descriptor.touch_report(out, True, x, y)
        if t_us < self._duration_us:
            return None
        self._lifting = True
        return descriptor.touch_report(out, False, x, y)

    def _point(self, t_us: int) -> "tuple[int, int]":
        if t_us >= self._duration_us:
            return self._x1, self._y1
        share = t_us / self._duration_us
        dx = round((self._x1 - self._x0) * share)
        dy = round((self._y1 - self._y0) * share)
        return self._x0 + dx, self._y0 + dy

    def sent(self, now_us: int) -> None:
        if self._lifting:
            self.finished = True
        elif not self._down:
            self._down = True
        else:
            self._x, self._y = self._point(now_us - self._began_us)

    def due_us(self, now_us: int) -> int:
        if self._began_us < 0 or self._lifting:
            return NOT_WAITING
        left = self._began_us + self._duration_us - now_us
        if (self._x0, self._y0) != (self._x1, self._y1):
            left = min(left, 4000)
        return max(0, left)


class PointerTap(Operation):
    """A tap with a relative pointer: into the corner, from there to the place, press, dwell, release.

    The board never knows where the cursor is, so each tap begins with moves that end in the top left corner
    wherever it was. From there it goes x_counts, y_counts, at most `step` in one report: a phone that speeds
    the cursor up does so by the size of a report, and a scale holds for the step it was measured with.
    """

    def __init__(self, home: int, x_counts: int, y_counts: int, step: int, dwell_us: int) -> None:
        self._home = home
        self._x = x_counts
        self._y = y_counts
        self._step = step
        self._dwell_us = dwell_us
        self._dx = 0
        self._dy = 0
        self._pressed = False
        self._pressed_us = -1

    def reports(self) -> int:
        """How many reports it takes."""
        moves = (max(self._x, self._y) + self._step - 1) // self._step
        return (self._home + descriptor.POINTER_MAX - 1) // descriptor.POINTER_MAX + moves + 2

    def next_report(self, out: bytearray, now_us: int, leds: int) -> "memoryview | None":
        if self._pressed:
            if self._pressed_us < 0:
                self._pressed_us = now_us
            if now_us - self._pressed_us < self._dwell_us:
                return None
            return descriptor.pointer_report(out, False, 0, 0)
        if self._home:
            self._dx = self._dy = -min(self._home, descriptor.POINTER_MAX)
        else:
            self._dx = min(self._x, self._step)
            self._dy = min(self._y, self._step)
        is_there = not (self._dx or self._dy)
        return descriptor.pointer_report(out, is_there, self._dx, self._dy)

    def sent(self, now_us: int) -> None:
        if self._pressed:
            self.finished = True
        elif self._home:
            self._home += self._dx
        elif self._dx or self._dy:
            self._x -= self._dx
            self._y -= self._dy
        else:
            self._pressed = True

    def due_us(self, now_us: int) -> int:
        if self._pressed_us < 0 or self.finished:
            return NOT_WAITING
        return max(0, self._pressed_us + self._dwell_us - now_us)


class TextBuffer:
    """The text to type, filled chunk by chunk as UTF-8 and checked against the layout on the way.

    It is kept in pages, all taken at the start: a heap that has compiled code has no large holes left.
    """

    def __init__(self, size: int, layout: layouts.Layout) -> None:
        self._pages = [bytearray(_PAGE) for _ in range(size // _PAGE)]
        self.layout = layout
        self.filled = 0
        self.crc = 0
        self._checked = 0
        self.has_untypable = False
        self.is_utf8 = True

    def load(self, offset: int, chunk: "bytes | memoryview") -> bool:
        """Add a chunk at its offset; offset 0 starts anew. False where it leaves a gap or does not fit."""
        if offset == 0:
            self.clear()
        if offset != self.filled or offset + len(chunk) > len(self._pages) * _PAGE:
            return False
        for byte in chunk:
            self._pages[self.filled // _PAGE][self.filled % _PAGE] = byte
            self.filled += 1
        self.crc = binascii.crc32(chunk, self.crc)
        self._check()
        return True

    def clear(self) -> None:
        """Forget the text: what somebody typed does not stay in memory."""
        for at in range(self.filled):
            self._pages[at // _PAGE][at % _PAGE] = 0
        self.filled = 0
        self.crc = 0
        self._checked = 0
        self.has_untypable = False
        self.is_utf8 = True

    @property
    def is_whole(self) -> bool:
        """Whether the last character is complete."""
        return self._checked == self.filled

    def char_at(self, at: int) -> "tuple[str, int]":
        """The character at a byte index and the index after it. Raises UnicodeError."""
        end = at + _utf8_size(self._byte(at))
        return str(bytes(self._byte(i) for i in range(at, end)), "utf-8"), end

    def _byte(self, at: int) -> int:
        return self._pages[at // _PAGE][at % _PAGE]

    def _check(self) -> None:
        while self.is_utf8 and self._checked < self.filled:
            if self._checked + _utf8_size(self._byte(self._checked)) > self.filled:
                return
            try:
                char, self._checked = self.char_at(self._checked)
            except UnicodeError:
                self.is_utf8 = False
                return
            if not self.layout.steps(char):
                self.has_untypable = True


def _utf8_size(first: int) -> int:
    if first < 0xC0:
        return 1
    if first < 0xE0:
        return 2
    return 3 if first < 0xF0 else 4
