"""What the notes say of each key, put together: what was sent, told, given to a board, and felt by the phone."""

import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from edge_daemon.bench.crash.notes import (
    Acknowledged,
    FirstByte,
    Mark,
    Name,
    Notebook,
    Progressed,
    Resolved,
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
    others: list[Told] = field(default_factory=list)
    """What was answered to another action that was sent under the same key."""
    accepted_ns: list[int] = field(default_factory=list)
    """When a plane was told that it is durable: a stage, a receipt in any state."""
    hovers_ns: list[int] = field(default_factory=list)
    """When a plane was told that it is over."""
    acknowledged_ns: list[int] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    commands: list[FirstByte] = field(default_factory=list)
    begun_ns: list[int] = field(default_factory=list)
    """When the phone felt it begin."""
    ended: int = 0
    """How often the phone felt it end, as and where it was to end."""

    @property
    def acknowledged(self) -> bool:
        return bool(self.acknowledged_ns)

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
                    if not key.sent or entry.action == key.sent[0].action:
                        key.sent.append(entry)
                case Progressed():
                    key.accepted_ns.append(entry.at_ns)
                    if entry.stage == "hover":
                        key.hovers_ns.append(entry.at_ns)
                case Told(to="other"):
                    key.others.append(entry)
                case Told():
                    key.told.append(entry)
                    if entry.receipt is not None:
                        key.accepted_ns.append(entry.at_ns)
                case Acknowledged():
                    key.acknowledged_ns.append(entry.at_ns)
                case Resolved():
                    key.resolved.append(entry)
        for command in schedule.commands:
            for key in keys.values():
                if key.name[0] == command.device and _is_of(command, key.mark):
                    key.commands.append(command)
        phones = {device: _Feeling(keys.values(), device) for device in {touch.device for touch in touches}}
        strays = [touch for touch in touches if not phones[touch.device].feel(touch)]
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


class _Feeling:
    """One phone's log, touch by touch: each belongs to the key that asked for it, or to none."""

    def __init__(self, keys: Iterable[Key], device: str) -> None:
        own = [key for key in keys if key.name[0] == device]
        self._places = [key for key in own if key.mark.kind == "place"]
        self._texts = {key.mark.text[0]: key for key in own if key.mark.kind == "text"}
        self._named = {key.mark.key: key for key in own if key.mark.kind == "key"}
        self._touching: Key | None = None
        self._typing: Key | None = None
        self._typed = 0

    def feel(self, touch: Touch) -> bool:
        """Whether a key asked for it; then it is counted there."""
        match touch.kind:
            case "place":
                return self._contact(touch)
            case "lift":
                self._lift(touch)
                # Where a contact of nobody ends is no second stray.
                return True
            case "symbol":
                return self._symbol(touch)
            case "key":
                key = self._named.get(touch.name)
                if key is not None:
                    key.begun_ns.append(touch.at_ns)
                    key.ended += 1
                return key is not None

    def _contact(self, touch: Touch) -> bool:
        own = [key for key in self._places if _is_at(touch, (key.mark.x, key.mark.y))]
        self._touching = own[0] if own else None
        for key in own:
            key.begun_ns.append(touch.at_ns)
        return bool(own)

    def _lift(self, touch: Touch) -> None:
        key, self._touching = self._touching, None
        if key is not None and _is_at(touch, key.mark.to or (key.mark.x, key.mark.y)):
            key.ended += 1

    def _symbol(self, touch: Touch) -> bool:
        """A text goes on with the next of its characters and with no other; it may be broken off at any."""
        begins = self._texts.get(touch.name)
        if begins is not None:
            begins.begun_ns.append(touch.at_ns)
            self._typing, self._typed = begins, 0
        elif self._typing is None or self._typing.mark.text[self._typed] != touch.name:
            return False
        self._typed += 1
        if self._typed == len(self._typing.mark.text):
            self._typing.ended += 1
            self._typing = None
        return True


def _is_at(touch: Touch, place: tuple[int, int]) -> bool:
    return near((touch.x, touch.y), place, SAME_PLACE)
