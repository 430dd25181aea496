"""The physical actions, with their bounds in the types.

Coordinates are the grid: 0..1000 in x and y, origin top-left of the screen in its current orientation,
fractions allowed, both ends included.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edge_daemon.contract.base import Data

GRID_MAX = 1000.0
TEXT_MAX_CHARACTERS = 4096

Grid = Annotated[float, Meta(ge=0.0, le=GRID_MAX)]
SwipeMs = Annotated[int, Meta(ge=1, le=10_000)]
HoldMs = Annotated[int, Meta(ge=200, le=10_000)]
KeyName = Literal["home", "back", "enter", "delete", "app_switch", "power", "volume_up", "volume_down"]


class Tap(Data, frozen=True, kw_only=True, tag_field="type", tag="tap"):
    x: Grid
    y: Grid


class Swipe(Data, frozen=True, kw_only=True, tag_field="type", tag="swipe"):
    """Contact at (fromX, fromY), constant speed, lift at (toX, toY) after `durationMs`."""

    from_x: Grid
    from_y: Grid
    to_x: Grid
    to_y: Grid
    duration_ms: SwipeMs = 300


class LongPress(Data, frozen=True, kw_only=True, tag_field="type", tag="longPress"):
    x: Grid
    y: Grid
    duration_ms: HoldMs = 800


class TypeText(Data, frozen=True, kw_only=True, tag_field="type", tag="typeText"):
    text: Annotated[str, Meta(min_length=1, max_length=TEXT_MAX_CHARACTERS)]

    def __repr__(self) -> str:
        # Typed text may be a password: it must not reach a log through a repr.
        return f"TypeText(<{len(self.text)} characters>)"


class PressKey(Data, frozen=True, kw_only=True, tag_field="type", tag="pressKey"):
    key: KeyName


class OpenApp(Data, frozen=True, kw_only=True, tag_field="type", tag="openApp"):
    app_id: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]


class Wake(Data, frozen=True, kw_only=True, tag_field="type", tag="wake"):
    """Best effort; writes no receipt."""


Action = Tap | Swipe | LongPress | TypeText | PressKey | OpenApp | Wake
ReceiptAction = Literal["tap", "swipe", "typeText", "pressKey", "openApp"]

_RECEIPT_ACTION: dict[type, ReceiptAction] = {
    Tap: "tap",
    LongPress: "tap",  # the plane's enumeration has no other word; `holdMs` in the summary tells them apart
    Swipe: "swipe",
    TypeText: "typeText",
    PressKey: "pressKey",
    OpenApp: "openApp",
}


def receipt_action(action: Action) -> ReceiptAction:
    """The word under which the receipt of `action` is filed. `Wake` has none: KeyError."""
    return _RECEIPT_ACTION[type(action)]


def canonical(action: Action) -> bytes:
    """The bytes that decide whether two requests ask for the same thing (defaults filled in, fixed order)."""
    fields = [(name, getattr(action, name)) for name in action.__struct_fields__]
    return msgspec.msgpack.encode([action.__struct_config__.tag, fields])
