"""What is written down while a history plays: the plane's and the staff's notebook, and the schedule of the world.

Plain data for the oracle. The notebook has what was said and heard at the far end of the wires; the schedule has what
the world saw the bytes and the boards do. Neither asks the daemon anything.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from firmware import wire

Name = tuple[str, str]
"""(deviceId, idempotencyKey)"""


@dataclass(frozen=True)
class Mark:
    """By what the execution of one key is known, on the phone and on the serial line; each key of a device has another.

    place: where it is touched, hand µm or units of a touch screen. text: what is typed; its first and its last
    character come in no other text of the device. key: the name of a key.
    """

    kind: Literal["place", "text", "key"]
    x: int = 0
    y: int = 0
    text: str = ""
    key: str = ""


@dataclass(frozen=True)
class Sent:
    """A dispatch left a plane."""

    at_ns: int
    plane: str
    name: Name
    token: int


@dataclass(frozen=True)
class Progressed:
    """A plane was told a stage."""

    at_ns: int
    name: Name
    stage: str


@dataclass(frozen=True)
class Told:
    """A plane was told what became of a key: a dispatch's or a cancel's result, a pushed receipt, a receipt looked up.

    receipt: as it came; None with `error` (a refusal) or with what a lookup said instead.
    """

    at_ns: int
    name: Name
    by: Literal["result", "push", "lookup"]
    receipt: dict[str, Any] | None
    error: dict[str, Any] | None = None
    known: bool = True
    final_round: bool = False
    """Said after everything had healed."""


@dataclass(frozen=True)
class Acknowledged:
    """A plane said that it has a receipt."""

    at_ns: int
    name: Name


@dataclass(frozen=True)
class Barred:
    """Nobody upstream may act on a device: staff hold it, or a person has the screen. until_ns: None to the end."""

    device: str
    from_ns: int
    until_ns: int | None
    why: Literal["held", "parked"]


Entry = Sent | Progressed | Told | Acknowledged


@dataclass(frozen=True)
class FirstByte:
    """The first byte of a command that can reach the phone left the daemon's port for the first time."""

    at_ns: int
    device: str
    cmd_id: int
    op: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class AboutBoard:
    """Something befell a board. pressing: when it broke a command off, whether the phone may have felt it by then."""

    at_ns: int
    device: str
    what: Literal["started", "stopped", "away", "back", "broken off"]
    boot_id: int = 0
    cmd_id: int = 0
    pressing: bool = False


@dataclass
class Schedule:
    """What the world saw."""

    commands: list[FirstByte] = field(default_factory=list)
    given: list[tuple[int, str]] = field(default_factory=list)
    """When a board (of which device) was given a command of any kind for the first time."""
    boards: list[AboutBoard] = field(default_factory=list)
    ledger_lost_ns: list[int] = field(default_factory=list)
    """When an older ledger, or none, was put in the place of the one there was."""
    deaths_ns: list[int] = field(default_factory=list)
    """When the daemon was killed, or its machine lost its power."""
    crashes: list[str] = field(default_factory=list)
    """How the daemon ended by itself, where nobody had killed or stopped it."""
    life: list[tuple[int, str]] = field(default_factory=list)
    """Starts and ends of the daemon and of the machine, and what struck, for people."""

    def first_byte(self, at_ns: int, device: str, cmd_id: int, op: int, args: tuple[int, ...]) -> None:
        self.given.append((at_ns, device))
        if op in _REACHES_THE_PHONE:
            self.commands.append(FirstByte(at_ns, device, cmd_id, op, args))

    def board(self, about: AboutBoard) -> None:
        self.boards.append(about)


_REACHES_THE_PHONE = frozenset(
    (wire.OP_TAP, wire.OP_SWIPE, wire.OP_KEY, wire.OP_TEXT_GO, wire.OP_HID_TAP, wire.OP_HID_SWIPE)
)


@dataclass
class Notebook:
    """What planes and staff wrote down, in the order of time."""

    entries: list[Entry] = field(default_factory=list)
    marks: dict[Name, Mark] = field(default_factory=dict)
    barred: list[Barred] = field(default_factory=list)

    def note(self, entry: Entry) -> None:
        self.entries.append(entry)
