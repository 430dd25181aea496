"""What is written down with a calibration: for whom it is, of what it was made, and when."""

from datetime import datetime
from typing import Literal

import msgspec

from calibration.result import DeviceCalibration
from calibration.screen import ScreenGeometry
from calibration.store.chain import Cause, Part

# Raised whenever the meaning or the shape of anything in an entry changes.
SCHEMA = 2

Origin = Literal["calibrated", "camera only", "solved again", "migrated"]


class Stamp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One moment as the machine knew it. wall_utc: ISO 8601 in UTC, for people unless clock_synced.

    boot_id and monotonic_ns order and measure within one boot, whatever the wall clock says.
    """

    wall_utc: str
    clock_synced: bool
    boot_id: str
    monotonic_ns: int

    def __post_init__(self) -> None:
        # A moment without a zone cannot be compared; msgspec turns the ValueError into its own.
        if datetime.fromisoformat(self.wall_utc).tzinfo is None:
            raise ValueError(f"{self.wall_utc!r} has no time zone; give UTC, as in 2024-05-01T12:00:00Z")


class BoardKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A board: its chip's uid, and its firmware "major.minor", None where nobody wrote it down."""

    uid: str
    firmware: str | None


class BoardKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The boards that a device has; None where it has none of that kind."""

    hand: BoardKey | None = None
    hid: BoardKey | None = None


class CameraKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A camera by its configured name, its picture size in px, and where its pictures come from."""

    name: str
    width: int
    height: int
    source: str


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is at the rig now. None: not there, or not known; the part that needs it is then not usable."""

    device_id: str
    screen: ScreenGeometry
    hand: BoardKey | None
    hid: BoardKey | None
    camera: CameraKey | None
    now: Stamp


class Invalidation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why parts of an entry are no longer true, and since when."""

    by: Cause
    at: Stamp
    lost: frozenset[Part]


class StoredCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry: a calibration with its key and its origin. Never changed once it is written.

    number counts up and is the only order; 0 and id "" for one that was not saved. parent_id: the entry that it
    took measurements from. measured: the age of the oldest measurement in it. already_lost: what was known to
    be untrue of the measurements it took over. boards, camera, created and measured are None where an entry
    of an older version does not tell.
    """

    schema: int
    number: int
    id: str
    parent_id: str | None
    device_id: str
    boards: BoardKeys
    camera: CameraKey | None
    created: Stamp | None
    measured: Stamp | None
    expires_after_days: float | None
    origin: Origin
    note: str
    already_lost: tuple[Invalidation, ...]
    calibration: DeviceCalibration

    @property
    def label(self) -> str:
        """What people call it: "0012 (3fa2b1c0)"."""
        return f"{self.number:04} ({self.id})" if self.id else "not saved"

    @property
    def file_name(self) -> str:
        """Its file in the device's folder."""
        return f"{self.number:04}-{self.id}.json"
