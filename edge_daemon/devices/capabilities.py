"""What a device can do, from what its boards announced. Nothing here is a constant of the daemon."""

from functools import cache
from typing import cast

from edge_daemon.boards import BoardInfo
from edge_daemon.boards.info import LAYOUT_CODES
from edge_daemon.contract import Actions, Capabilities, HidCapabilities, KeyName, PhysicalCapabilities
from edge_daemon.contract.actions import TEXT_MAX_CHARACTERS
from firmware import wire
from firmware.hid import layouts


def keys_of(hid: BoardInfo | None) -> tuple[KeyName, ...]:
    """The keys that the HID board's profile can press on its phone."""
    if hid is None or hid.hid is None or not hid.caps & wire.CAP_HID_KEY:
        return ()
    return tuple(cast(KeyName, name) for name in hid.hid.keys)


def charset_of(hid: BoardInfo | None) -> str:
    """Every character that the HID board can type with its layout, sorted."""
    if hid is None or hid.hid is None or not hid.caps & wire.CAP_HID_TEXT:
        return ""
    return _sorted_charset(LAYOUT_CODES[hid.hid.layout])


@cache
def _sorted_charset(layout_id: int) -> str:
    return "".join(sorted(layouts.charset(layout_id)))


def capabilities_of(
    *, has_hand: bool, hand: BoardInfo | None, hid: BoardInfo | None, hid_ready: bool = True
) -> Capabilities:
    """`has_hand`: a hand is configured for the device. A board that never announced itself is None.

    `hid_ready`: whether the phone takes the HID board's reports now. While it sleeps or has not accepted the
    board, nothing that goes through it is claimed.
    """
    if not hid_ready:
        hid = None
    keys = keys_of(hid)
    charset = charset_of(hid)
    touch = hand if has_hand else hid
    caps = touch.caps if touch is not None else 0
    if has_hand:
        tap, swipe, hold = (
            bool(caps & bit) for bit in (wire.CAP_HAND_TAP, wire.CAP_HAND_SWIPE, wire.CAP_HAND_HOLD)
        )
    else:
        swipe = bool(caps & wire.CAP_HID_TOUCH)
        # A pointer taps and holds; it is refused as uncalibrated until its scale is known.
        tap = hold = swipe or bool(caps & wire.CAP_HID_POINTER)
    actions = Actions(
        tap=tap,
        swipe=swipe,
        long_press=hold,
        type_text=bool(charset),
        press_key=bool(keys),
        # Neither a hand nor a HID board can open an app by its id or tell whether a screen is awake.
        open_app=False,
        wake=False,
        screenshot=True,
    )
    kind = PhysicalCapabilities if has_hand else HidCapabilities
    return kind(
        actions=actions,
        keys=keys,
        text_charset=charset,
        text_max_characters=TEXT_MAX_CHARACTERS if charset else 0,
    )
