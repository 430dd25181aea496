"""What a board says about itself in its HELLO, as the rest of the daemon reads it."""

from dataclasses import dataclass, field
from typing import Literal

from edge_daemon.boards.errors import BoardError
from firmware import wire

BoardKind = Literal["hand", "hid"]
Profile = Literal["android", "ios"]
Layout = Literal["us", "uk", "de", "fr"]
TouchBy = Literal["digitizer", "pointer"]
ResetCause = Literal["power-on", "watchdog", "brownout", "soft", "unknown"]

_KINDS: dict[int, BoardKind] = {wire.KIND_HAND: "hand", wire.KIND_HID: "hid"}
_PROFILES: dict[int, Profile] = {wire.PROFILE_ANDROID: "android", wire.PROFILE_IOS: "ios"}
_LAYOUTS: dict[int, Layout] = {
    wire.LAYOUT_US: "us",
    wire.LAYOUT_UK: "uk",
    wire.LAYOUT_DE: "de",
    wire.LAYOUT_FR: "fr",
}
LAYOUT_CODES: dict[Layout, int] = {name: code for code, name in _LAYOUTS.items()}
_RESET_CAUSES: dict[int, ResetCause] = {
    wire.RESET_POWER_ON: "power-on",
    wire.RESET_WATCHDOG: "watchdog",
    wire.RESET_BROWNOUT: "brownout",
    wire.RESET_SOFT: "soft",
}


class HelloRefused(BoardError):
    """A HELLO with a value that this daemon does not know; the message says which."""


@dataclass(frozen=True, slots=True)
class HandLimits:
    """A hand's reach in its own millimetres (z up) and what its drives can do."""

    x_min_mm: float
    x_max_mm: float
    y_min_mm: float
    y_max_mm: float
    z_min_mm: float
    z_max_mm: float
    v_max_mm_s: int
    a_max_mm_s2: int


@dataclass(frozen=True, slots=True)
class HidProfile:
    """What a HID board is to a phone that takes it; whether its phone does now, its flags say (usb_ready)."""

    profile: Profile
    layout: Layout
    keys: tuple[str, ...]
    text_max_bytes: int
    touch: TouchBy | None
    """A touch screen of its own, or a relative pointer, which needs a scale to find a place on the screen."""


@dataclass(frozen=True, slots=True)
class BoardInfo:
    """One board on one boot. ``caps`` are the CAP_ bits of its kind (firmware/wire.py)."""

    uid: str
    kind: BoardKind
    boot_id: int
    firmware: str
    reset_cause: ResetCause
    caps: int
    hand: HandLimits | None
    hid: HidProfile | None
    highest_cmd_ids: tuple[int, int] = field(default=(0, 0), compare=False)
    """When the session began: the highest ids that this boot had been given, top bit clear and set. What it
    was never given is certain only above them. Zeros from a firmware that does not tell."""


def read_hello(boot_id: int, body: bytes) -> BoardInfo:
    """BoardInfo from a HELLO body. Raises HelloRefused for unknown values, BodyError for a bad length."""
    hello = wire.unpack_hello(body)
    kind = _KINDS.get(hello.kind)
    if kind is None:
        raise HelloRefused(f"board {hello.uid.hex()} is of kind {hello.kind}; known are 1 (hand) and 2 (hid)")
    if hello.credit < 1:
        raise HelloRefused(f"board {hello.uid.hex()} gives no credit for a command; needed is 1")
    return BoardInfo(
        uid=hello.uid.hex(),
        kind=kind,
        boot_id=boot_id,
        firmware=f"{hello.fw_major}.{hello.fw_minor}",
        reset_cause=_RESET_CAUSES.get(hello.reset_cause, "unknown"),
        caps=hello.caps,
        hand=_hand_limits(hello.tail) if kind == "hand" else None,
        hid=_hid_profile(hello) if kind == "hid" else None,
    )


def _hand_limits(tail: bytes) -> HandLimits:
    *reach_um, v_max, a_max = wire.unpack_hand_tail(tail)
    x_min, x_max, y_min, y_max, z_min, z_max = (um / 1000 for um in reach_um)
    return HandLimits(x_min, x_max, y_min, y_max, z_min, z_max, v_max, a_max)


def _hid_profile(hello: wire.Hello) -> HidProfile:
    profile_code, layout_code, keys_mask, text_max = wire.unpack_hid_tail(hello.tail)
    profile = _PROFILES.get(profile_code)
    layout = _LAYOUTS.get(layout_code)
    if profile is None or layout is None:
        raise HelloRefused(
            f"board {hello.uid.hex()} has profile {profile_code} and layout {layout_code}; "
            f"known are profiles {sorted(_PROFILES)} and layouts {sorted(_LAYOUTS)}"
        )
    keys = tuple(name for bit, name in enumerate(wire.KEY_NAMES) if keys_mask >> bit & 1)
    return HidProfile(profile, layout, keys, text_max, _touch_by(hello.caps))


def _touch_by(caps: int) -> TouchBy | None:
    if caps & wire.CAP_HID_TOUCH:
        return "digitizer"
    return "pointer" if caps & wire.CAP_HID_POINTER else None
