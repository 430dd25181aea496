"""A HID report descriptor as a phone's kernel reads it: items in, reports with their fields out.

Format: "Device Class Definition for HID 1.11", section 6.2.2. Where the text leaves room it does what Linux's
hid-core does, because that is what an Android phone runs: an unsigned reading of Logical Maximum when Logical
Minimum is not negative, array values that index the usage list, no long items.
"""

from dataclasses import dataclass, field

# Usage pages and usages, from "HID Usage Tables 1.5".
PAGE_DESKTOP = 0x01
PAGE_KEYBOARD = 0x07
PAGE_LED = 0x08
PAGE_CONSUMER = 0x0C
PAGE_DIGITIZER = 0x0D
APP_KEYBOARD = 0x0001_0006
APP_MOUSE = 0x0001_0002
APP_SYSTEM = 0x0001_0080
APP_CONSUMER = 0x000C_0001
APP_TOUCH_SCREEN = 0x000D_0004

MAX_DESCRIPTOR = 4096
MAX_REPORT_BITS = 8 * 63
COLLECTION_APPLICATION = 0x01

_MAIN, _GLOBAL, _LOCAL = 0, 1, 2
_INPUT, _OUTPUT, _COLLECTION, _FEATURE, _END_COLLECTION = 0x8, 0x9, 0xA, 0xB, 0xC
_KINDS = {_INPUT: "input", _OUTPUT: "output", _FEATURE: "feature"}


class DescriptorError(ValueError):
    """The descriptor would not be accepted by a phone; the message says at which byte and why."""


@dataclass(frozen=True)
class Field:
    """A run of equal elements of one report: `count` values of `bits` bits from bit `offset`."""

    application: int
    offset: int
    bits: int
    count: int
    usages: tuple[int, ...]
    logical_min: int
    logical_max: int
    constant: bool
    variable: bool
    relative: bool


@dataclass(frozen=True)
class Report:
    """One report of one kind ("input", "output", "feature"); id 0 means that the device numbers none."""

    kind: str
    ident: int
    fields: tuple[Field, ...]
    bits: int

    @property
    def size(self) -> int:
        """Bytes after the report id."""
        return (self.bits + 7) // 8

    def values(self, field_: Field, data: bytes) -> list[int]:
        """The values of one of its fields in a report's bytes (without the report id)."""
        whole = int.from_bytes(data, "little")
        values = []
        for index in range(field_.count):
            raw = whole >> (field_.offset + index * field_.bits) & ((1 << field_.bits) - 1)
            if field_.logical_min < 0 and raw >> (field_.bits - 1):
                raw -= 1 << field_.bits
            values.append(raw)
        return values


@dataclass
class _Globals:
    usage_page: int = 0
    logical_min: int = 0
    logical_max: int = 0
    size: int = 0
    count: int = 0
    ident: int = 0


@dataclass
class _Locals:
    usages: list[int] = field(default_factory=list)
    usage_min: int | None = None


class _Parser:
    def __init__(self) -> None:
        self.globals = _Globals()
        self.locals = _Locals()
        self.stack: list[_Globals] = []
        self.collections: list[int] = []
        self.application = 0
        self.reports: dict[tuple[str, int], tuple[list[Field], int]] = {}
        self.at = 0

    def fail(self, why: str) -> DescriptorError:
        return DescriptorError(f"report descriptor, byte {self.at}: {why}")

    def run(self, data: bytes) -> None:
        while self.at < len(data):
            prefix = data[self.at]
            if prefix == 0xFE:
                raise self.fail("a long item; phones do not take them")
            size = (0, 1, 2, 4)[prefix & 3]
            body = data[self.at + 1 : self.at + 1 + size]
            if len(body) < size:
                raise self.fail(f"the item is cut off: {size} bytes announced, {len(body)} left")
            self.item(prefix >> 2 & 3, prefix >> 4, body)
            self.at += 1 + size
        if self.collections:
            raise self.fail(f"{len(self.collections)} collection(s) still open at the end")
        if self.stack:
            raise self.fail("a PUSH without its POP")

    def item(self, kind: int, tag: int, body: bytes) -> None:
        unsigned = int.from_bytes(body, "little")
        signed = int.from_bytes(body, "little", signed=True)
        if kind == _MAIN:
            self.main(tag, unsigned)
        elif kind == _GLOBAL:
            self.global_(tag, unsigned, signed)
        elif kind == _LOCAL:
            self.local(tag, unsigned, len(body))
        else:
            raise self.fail("an item of the reserved type")

    def main(self, tag: int, flags: int) -> None:
        if tag == _COLLECTION:
            if flags == COLLECTION_APPLICATION:
                if not self.locals.usages:
                    raise self.fail("an application collection without a usage")
                self.application = self.locals.usages[-1]
            self.collections.append(flags)
        elif tag == _END_COLLECTION:
            if not self.collections:
                raise self.fail("END COLLECTION without a collection")
            if self.collections.pop() == COLLECTION_APPLICATION:
                self.application = 0
        elif tag in _KINDS:
            self.add_field(_KINDS[tag], flags)
        else:
            raise self.fail(f"unknown main item 0x{tag:x}")
        self.locals = _Locals()

    def global_(self, tag: int, unsigned: int, signed: int) -> None:
        state = self.globals
        if tag == 0x0:
            state.usage_page = unsigned
        elif tag == 0x1:
            state.logical_min = signed
        elif tag == 0x2:
            state.logical_max = signed if state.logical_min < 0 else unsigned
        elif tag in (0x3, 0x4, 0x5, 0x6):
            pass  # physical range, exponent and unit: phones scale by the logical range
        elif tag == 0x7:
            if not 0 < unsigned <= 32:
                raise self.fail(f"a report size of {unsigned} bits; 1..32 are possible")
            state.size = unsigned
        elif tag == 0x8:
            if not 0 < unsigned <= 255:
                raise self.fail(f"report id {unsigned}; 1..255 are possible")
            state.ident = unsigned
        elif tag == 0x9:
            state.count = unsigned
        elif tag == 0xA:
            self.stack.append(_Globals(**vars(state)))
        elif tag == 0xB:
            if not self.stack:
                raise self.fail("POP without PUSH")
            self.globals = self.stack.pop()
        else:
            raise self.fail(f"unknown global item 0x{tag:x}")

    def local(self, tag: int, value: int, size: int) -> None:
        usage = value if size == 4 else self.globals.usage_page << 16 | value
        if tag == 0x0:
            self.locals.usages.append(usage)
        elif tag == 0x1:
            self.locals.usage_min = usage
        elif tag == 0x2:
            low = self.locals.usage_min
            if low is None:
                raise self.fail("USAGE MAXIMUM without USAGE MINIMUM")
            if not low <= usage <= low + 0xFFFF:
                raise self.fail(f"usage range 0x{low:x}..0x{usage:x} runs backwards or over its page")
            self.locals.usages.extend(range(low, usage + 1))
            self.locals.usage_min = None
        elif tag not in (0x3, 0x4, 0x5, 0x7, 0x8, 0x9, 0xA):
            raise self.fail(f"unknown local item 0x{tag:x}")

    def add_field(self, kind: str, flags: int) -> None:
        state = self.globals
        constant, variable = bool(flags & 1), bool(flags & 2)
        if not self.application:
            raise self.fail(f"an {kind} outside any application collection")
        if state.size == 0 or state.count == 0:
            raise self.fail(f"an {kind} of {state.count} x {state.size} bits")
        if not constant:
            self.check_values(variable)
        fields, offset = self.reports.get((kind, state.ident), ([], 0))
        bits = state.size * state.count
        if offset + bits > MAX_REPORT_BITS:
            raise self.fail(f"report {state.ident} grows over the {MAX_REPORT_BITS // 8} bytes of a packet")
        fields.append(
            Field(
                application=self.application,
                offset=offset,
                bits=state.size,
                count=state.count,
                usages=tuple(self.locals.usages),
                logical_min=state.logical_min,
                logical_max=state.logical_max,
                constant=constant,
                variable=variable,
                relative=bool(flags & 4),
            )
        )
        self.reports[(kind, state.ident)] = (fields, offset + bits)

    def check_values(self, variable: bool) -> None:
        state = self.globals
        if not self.locals.usages:
            raise self.fail("a data field without a usage")
        if state.logical_max < state.logical_min:
            raise self.fail(f"logical range {state.logical_min}..{state.logical_max} runs backwards")
        room = (1 << (state.size - 1)) - 1 if state.logical_min < 0 else (1 << state.size) - 1
        if state.logical_max > room:
            raise self.fail(f"logical maximum {state.logical_max} does not fit into {state.size} bits")
        if not variable and state.logical_max - state.logical_min + 1 > len(self.locals.usages):
            raise self.fail(
                f"array values {state.logical_min}..{state.logical_max} reach past its "
                f"{len(self.locals.usages)} usages"
            )


def parse(data: bytes) -> tuple[Report, ...]:
    """All reports that a descriptor describes. Raises DescriptorError where a phone would refuse it."""
    if not 0 < len(data) <= MAX_DESCRIPTOR:
        raise DescriptorError(f"a report descriptor of {len(data)} bytes; 1..{MAX_DESCRIPTOR} are possible")
    parser = _Parser()
    parser.run(data)
    if not parser.reports:
        raise DescriptorError("the report descriptor describes no report")
    numbered = {ident != 0 for _, ident in parser.reports}
    if len(numbered) > 1:
        raise DescriptorError("some reports have an id and some have none; a phone cannot tell them apart")
    for (kind, ident), (_, bits) in parser.reports.items():
        if bits % 8:
            raise DescriptorError(f"{kind} report {ident} has {bits} bits; pad it to whole bytes")
    found = sorted(parser.reports.items())
    return tuple(Report(kind, ident, tuple(fields), bits) for (kind, ident), (fields, bits) in found)
