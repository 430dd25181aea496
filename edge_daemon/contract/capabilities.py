"""What a device can do: the truth of its attached parts as their boards announced them."""

from typing import Any, Literal

from edge_daemon.contract.actions import KeyName
from edge_daemon.contract.base import Data
from edge_daemon.contract.identity import BackendKind, DeviceId, DeviceKind, DeviceStatus, Orientation


class Actions(Data, frozen=True, kw_only=True, omit_defaults=False):
    tap: bool
    swipe: bool
    long_press: bool
    type_text: bool
    press_key: bool
    open_app: bool
    wake: bool
    screenshot: bool


class PhysicalCapabilities(Data, frozen=True, kw_only=True, tag_field="fidelityTier", tag="physical"):
    """A robot hand touches the glass; a HID board may add keys and text."""

    actions: Actions
    keys: tuple[KeyName, ...]
    text_charset: str
    """Every character that can be typed; empty when nothing can."""
    text_max_characters: int
    reports_frame_notes: bool = True


class HidCapabilities(Data, frozen=True, kw_only=True, tag_field="fidelityTier", tag="hid"):
    """A HID board is keyboard and touch screen to the phone."""

    actions: Actions
    keys: tuple[KeyName, ...]
    text_charset: str
    text_max_characters: int
    reports_frame_notes: bool = False


Capabilities = PhysicalCapabilities | HidCapabilities


class StaffHold(Data, frozen=True, kw_only=True, omit_defaults=False):
    """Staff have the device; nobody upstream may act."""

    hint: str
    """What is going on, in words to show a person."""
    retryable: bool = True
    reason: Literal["leased"] = "leased"


class DeviceDescription(Data, frozen=True, kw_only=True):
    device_id: DeviceId
    backend_kind: BackendKind
    kind: DeviceKind
    status: DeviceStatus
    status_reason: str | None
    """Why it is not `online`, for a person; None when it is."""
    capabilities: Capabilities
    orientation: Orientation
    calibrated: bool
    parked: bool
    metadata: dict[str, Any]
    """The attached boards as they announced themselves, and whatever else helps a person."""
    display_name: str | None = None
    staff_hold: StaffHold | None = None
