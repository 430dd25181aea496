"""What is written down while real processes are killed: by the plane, and by the phones themselves. Plain data."""

from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]
BoardKind = Literal["hand", "hid"]
WishKind = Literal["tap", "swipe", "text", "key"]


@dataclass(frozen=True)
class Wish:
    """One action, and by what its execution is known on the phone."""

    kind: WishKind
    action: Message
    number: int = -1
    """tap, swipe: where it begins, which belongs to no other key of the device."""
    end_um: tuple[int, int] = (0, 0)
    """tap, swipe: where the contact is lifted, in hand µm."""
    text: str = ""
    """text: what no other key of the device types."""
    name: str = ""
    """key: it may be asked for again when its former stroke is over."""

    @property
    def board(self) -> BoardKind:
        """Which of the phone's boards carries it out."""
        return "hand" if self.kind in ("tap", "swipe") else "hid"


@dataclass
class Entry:
    """One key as the plane knows it."""

    device: str
    key: str
    wish: Wish
    token: int
    stale: bool = False
    """Sent with a token lower than one the plane had seen accepted."""
    first_sent_ns: int = 0
    accepted_told: bool = False
    told: list[Message] = field(default_factory=list)
    """Every final receipt that came: answers and pushed ones."""
    final_ns: int = 0
    fenced: bool = False
    """It was refused because of its token, which no later sending changes."""
    found: Message | None = None
    """The ReceiptAnswer at the end, when everything had healed."""

    @property
    def receipt(self) -> Message | None:
        return None if self.found is None else self.found.get("receipt")

    @property
    def over(self) -> bool:
        """Nothing more will be done under this key, by what the plane was told."""
        return bool(self.told) or (self.fenced and not self.accepted_told)

    def tell(self, receipt: Message, now_ns: int) -> None:
        """A receipt came; pending ones are no promise of an outcome, final ones are."""
        self.accepted_told = True
        if receipt["status"] != "pending":
            self.told.append(receipt)
            self.final_ns = self.final_ns or now_ns


@dataclass
class Contact:
    """The stylus on the glass: where it came down, and where it was last; hand µm."""

    begun_ns: int
    begin_um: tuple[int, int]
    last_ns: int
    end_um: tuple[int, int]


@dataclass(frozen=True)
class Symbol:
    """A character that was typed, or the name of a key that went down."""

    at_ns: int
    name: str


@dataclass
class PhoneLog:
    """Everything that one phone felt; it goes on over restarts of its boards and of the daemon."""

    contacts: list[Contact] = field(default_factory=list)
    typed: list[Symbol] = field(default_factory=list)
    strokes: list[Symbol] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """What nobody asks for here: contacts of the keyboard's own touch screen."""


@dataclass
class Flap:
    """A board's cable went and came back; power stayed."""

    at_ns: int
    opened_ns: int = 0
    """When the board heard the daemon again, with which it breaks off what it does; 0: not before the end."""


@dataclass(frozen=True)
class Felt:
    """How often a phone felt one key's action begin, how often the whole of it, and when it felt the last of it."""

    times: int = 0
    wholes: int = 0
    last_ns: int = 0

    @property
    def parts(self) -> int:
        return self.times - self.wholes
