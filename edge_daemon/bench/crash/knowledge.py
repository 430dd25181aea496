"""What the notes say of each key, put together: what was sent, told, given to a board, and felt by the phone."""

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field

from edge_daemon.bench.crash.notes import (
    Acknowledged,
    FirstByte,
    Mark,
    Name,
    Notebook,
    Progressed,
    Schedule,
    Sent,
    Told,
)
from edge_daemon.bench.crash.phones import Touch, near
from firmware import wire

SAME_PLACE = 60
"""Hand µm or units of a touch screen; places of different keys are 1,000 apart and more."""
_PLACED = frozenset((wire.OP_TAP, wire.OP_SWIPE, wire.OP_HID_TAP, wire.OP_HID_SWIPE))


@dataclass
class Key:
    """One idempotency key of one device. Everything in the order of time."""

    name: Name
    mark: Mark
    sent: list[Sent] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    accepted_ns: list[int] = field(default_factory=list)
    """When a plane was told that it is durable: a stage, a receipt in any state."""
    acknowledged: bool = False
    commands: list[FirstByte] = field(default_factory=list)
    begun_ns: list[int] = field(default_factory=list)
    """When the phone felt it begin."""
    ended: int = 0
    """How often the phone felt it end."""

    @property
    def token(self) -> int:
        return max((sent.token for sent in self.sent), default=0)

    @property
    def touched(self) -> int:
        """How often the phone felt it, whole or in part."""
        return max(len(self.begun_ns), self.ended)

    @property
    def whole(self) -> bool:
        """Once, from beginning to end."""
        return len(self.begun_ns) == 1 and self.ended == 1

    def touched_before(self, at_ns: int) -> bool:
        return any(begun_ns <= at_ns for begun_ns in self.begun_ns)


@dataclass
class Knowledge:
    """Of one history."""

    keys: list[Key]
    strays: list[Touch]
    """What no key asked for."""

    @classmethod
    def of(cls, notebook: Notebook, schedule: Schedule, touches: Sequence[Touch]) -> "Knowledge":
        keys = {name: Key(name, mark) for name, mark in notebook.marks.items()}
        for entry in notebook.entries:
            key = keys[entry.name]
            match entry:
                case Sent():
                    key.sent.append(entry)
                case Progressed():
                    key.accepted_ns.append(entry.at_ns)
                case Told():
                    key.told.append(entry)
                    if entry.receipt is not None:
                        key.accepted_ns.append(entry.at_ns)
                case Acknowledged():
                    key.acknowledged = True
        for command in schedule.commands:
            for key in keys.values():
                if key.name[0] == command.device and _is_of(command, key.mark):
                    key.commands.append(command)
        strays = [touch for touch in touches if not any(_feel(touch, key) for key in keys.values())]
        return cls(list(keys.values()), strays)


def _is_of(command: FirstByte, mark: Mark) -> bool:
    match mark.kind:
        case "place":
            return command.op in _PLACED and near(
                (command.args[0], command.args[1]), (mark.x, mark.y), SAME_PLACE
            )
        case "text":
            return command.op == wire.OP_TEXT_GO and command.args[1] == binascii.crc32(mark.text.encode())
        case "key":
            return command.op == wire.OP_KEY and wire.KEY_NAMES[command.args[0]] == mark.key


def _feel(touch: Touch, key: Key) -> bool:
    """Whether a touch belongs to the key; if so it is counted."""
    if touch.device != key.name[0] or (touch.kind == "symbol") != (key.mark.kind == "text"):
        return False
    mark = key.mark
    if mark.kind == "text":
        if touch.name == mark.text[0]:
            key.begun_ns.append(touch.at_ns)
        elif touch.name == mark.text[-1]:
            key.ended += 1
        return touch.name in mark.text
    if mark.kind == "key":
        is_it = touch.kind == "key" and touch.name == mark.key
    else:
        is_it = touch.kind == "place" and near((touch.x, touch.y), (mark.x, mark.y), SAME_PLACE)
    if is_it:
        key.begun_ns.append(touch.at_ns)
        key.ended += 1
    return is_it
