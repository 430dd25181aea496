"""What is written down while a history plays: the plane's and the staff's notebook, and the schedule of the world.

Plain data for the oracle. The notebook has what was said and heard at the far end of the wires; the schedule has what
the world saw the bytes and the boards do. Neither asks the daemon anything.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from firmware import wire

WAIT_MS = 60_000
"""How long a dispatch may wait that does not say it: as the protocol has it."""

Name = tuple[str, str]
"""(deviceId, idempotencyKey)"""


@dataclass(frozen=True)
class Mark:
    """By what the execution of one key is known, on the phone and on the serial line; each key of a device has another.

    place: where it is touched, hand µm or units of a touch screen; to: where the contact ends, None for the same place.
    text: what is typed; its first character comes in no other text of the device. key: the name of a key.
    """

    kind: Literal["place", "text", "key"]
    x: int = 0
    y: int = 0
    text: str = ""
    key: str = ""
    to: tuple[int, int] | None = None


@dataclass(frozen=True)
class Sent:
    """A dispatch left a plane. may_wait_ms: until when it may begin, by its own limit and by its lease, from then on.

    action: as it was sent. What is sent under one key is the action that was sent first.
    """

    at_ns: int
    plane: str
    name: Name
    token: int
    may_wait_ms: int = WAIT_MS
    action: str = ""
    epoch: int | None = None


@dataclass(frozen=True)
class Progressed:
    """A plane was told a stage."""

    at_ns: int
    name: Name
    stage: str


@dataclass(frozen=True)
class Told:
    """A plane was told what became of a key: a dispatch's or a cancel's result, a pushed receipt, a receipt looked up.

    receipt: as it came; None with `error` (a refusal) or with what a lookup said instead. to: the question, which was
    asked at `asked_ns`; other: a dispatch of another action than the key's own. token: of that dispatch.
    """

    at_ns: int
    name: Name
    by: Literal["result", "push", "lookup"]
    receipt: dict[str, Any] | None
    error: dict[str, Any] | None = None
    known: bool = True
    final_round: bool = False
    """Said after everything had healed."""
    to: Literal["", "dispatch", "other", "cancel", "lookup"] = ""
    asked_ns: int = 0
    token: int = 0
    epoch: int | None = None
    """The ledger's, as a lookup says it."""
    deduplicated: bool = False


@dataclass(frozen=True)
class Acknowledged:
    """A plane said that it has a receipt."""

    at_ns: int
    name: Name


@dataclass(frozen=True)
class Barred:
    """Nobody upstream may act on a device: staff hold it or have stopped it, or a person has the screen.

    until_ns: None to the end. A stop is latched in the board: one that restarts has none any more.
    """

    device: str
    from_ns: int
    until_ns: int | None
    why: Literal["held", "parked", "estopped"]


@dataclass(frozen=True)
class Resolved:
    """A person was told that her word on an unknown outcome is kept."""

    at_ns: int
    name: Name
    outcome: str


Entry = Sent | Progressed | Told | Acknowledged | Resolved


@dataclass(frozen=True)
class FirstByte:
    """The first byte of a command that can reach the phone left the daemon's port for the first time."""

    at_ns: int
    device: str
    cmd_id: int
    op: int
    args: tuple[int, ...]
    board: str = ""
    """Of a device that has several."""


What = Literal["started", "stopped", "away", "back", "broken off"]


@dataclass(frozen=True)
class AboutBoard:
    """Something befell a board. pressing: when it broke a command off, whether the phone may have felt it by then."""

    at_ns: int
    device: str
    what: What
    boot_id: int = 0
    cmd_id: int = 0
    pressing: bool = False
    board: str = ""


@dataclass
class Schedule:
    """What the world saw."""

    commands: list[FirstByte] = field(default_factory=list)
    given: list[tuple[int, str]] = field(default_factory=list)
    """When a board (by its name) was given a command of any kind for the first time."""
    boards: list[AboutBoard] = field(default_factory=list)
    ledger_lost_ns: list[int] = field(default_factory=list)
    """When an older ledger, or none, was put in the place of the one there was."""
    put_back: list[tuple[int, int]] = field(default_factory=list)
    """Of these, where it was an older copy: when, and from when the copy was."""
    pruned_ns: list[int] = field(default_factory=list)
    """When retention let receipts go."""
    boots: dict[str, int] = field(default_factory=dict)
    """By the id of a boot of the machine: when its monotonic clock showed 0, on the world's clock, ns."""
    signs: Counter[str] = field(default_factory=Counter)
    """What befell the rig that is seen in no other note, and how often: by it a fault shows that it had an effect."""
    deaths_ns: list[int] = field(default_factory=list)
    """When the daemon was killed, or its machine lost its power."""
    crashes: list[str] = field(default_factory=list)
    """How the daemon ended by itself, where nobody had killed or stopped it."""
    life: list[tuple[int, str]] = field(default_factory=list)
    """Starts and ends of the daemon and of the machine, and what struck, for people."""

    def ledger_lost(self, from_ns: int, until_ns: float = math.inf) -> bool:
        """Whether it was between these two, both included."""
        return any(from_ns <= lost_ns <= until_ns for lost_ns in self.ledger_lost_ns)

    def first_byte(
        self, at_ns: int, device: str, board: str, cmd_id: int, op: int, args: tuple[int, ...]
    ) -> None:
        self.given.append((at_ns, board))
        if op in _REACHES_THE_PHONE:
            self.commands.append(FirstByte(at_ns, device, cmd_id, op, args, board))

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
