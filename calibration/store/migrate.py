"""Entries of older versions, read into the present shape. What they do not tell becomes None.

Schema 1 was one file per device, `<device_id>.json` beside the folders, camel case outside and snake case within.
"""

from pathlib import Path
from typing import Any

import msgspec

from calibration.acceptance import Acceptance
from calibration.errors import CalibrationError, DeviceMismatch, SchemaMismatch, StoreCorrupt
from calibration.result import DeviceCalibration
from calibration.screen import Pair, ScreenGeometry
from calibration.store.entries import SCHEMA, BoardKey, BoardKeys, StoredCalibration
from calibration.store.files import read_body

Json = dict[str, Any]


class _Touch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    step: str
    hand_mm: Pair
    press_z_mm: float
    seen_mm: Pair | None
    whole: bool
    target_mm: Pair | None
    outlier: bool


class _HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    target_mm: Pair
    landed_mm: Pair


class _Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    touches: tuple[_HeldOut, ...]
    limit_mm: float


class _Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    screen: ScreenGeometry
    camera: Json
    hand: Json
    contact: Json
    overtravel_mm: float
    overtravel_limit_mm: float
    acceptance: _Acceptance
    camera_quality: Json
    hand_quality: Json
    corners: tuple[Json, ...]
    touches: tuple[_Touch, ...]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    schema: int
    device_id: str
    board_uid: str
    calibration: _Calibration


class _Schema(msgspec.Struct, frozen=True, kw_only=True):
    schema: int


def schema_of(path: Path, body: bytes) -> int:
    """The schema that a body was written with. Raises StoreCorrupt where it names none."""
    try:
        return msgspec.json.decode(body, type=_Schema).schema
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"{path}: names no schema ({error}); calibrate again") from error


def migrated(path: Path, device_id: str, entry_id: str) -> StoredCalibration:
    """Entry 1 from the device's schema 1 file; the file is left as it is.

    Raises FileNotFoundError, StoreCorrupt, SchemaMismatch, DeviceMismatch or StoreError (not readable).
    """
    body = read_body(path)
    schema = schema_of(path, body)
    if schema != 1:
        raise SchemaMismatch(f"{path}: written with schema {schema}, a file here can only be of schema 1")
    try:
        old = msgspec.json.decode(body, type=_Entry)
        calibration = _calibration(old.calibration)
    except (msgspec.DecodeError, CalibrationError) as error:
        raise StoreCorrupt(f"{path}: not a whole calibration ({error}); calibrate again") from error
    if old.device_id != device_id:
        raise DeviceMismatch(f"{path} is for device {old.device_id}, not {device_id}; calibrate this one")
    return StoredCalibration(
        schema=SCHEMA,
        number=1,
        id=entry_id,
        parent_id=None,
        device_id=device_id,
        boards=BoardKeys(hand=BoardKey(uid=old.board_uid, firmware=None)),
        camera=None,
        created=None,
        measured=None,
        expires_after_days=None,
        origin="migrated",
        note=f"from {path.name} of schema 1",
        already_lost=(),
        calibration=calibration,
    )


def _calibration(old: _Calibration) -> DeviceCalibration:
    # Schema 1 held every touch to one limit, so its p95 was held to that limit too.
    limit = old.acceptance.limit_mm
    acceptance = Acceptance.of(
        old.screen,
        [(touch.target_mm, touch.landed_mm) for touch in old.acceptance.touches],
        p95_limit_mm=limit,
        max_limit_mm=limit,
        # Schema 1 accepted with eight.
        touches_min=1,
    )
    return msgspec.convert(
        {
            "screen": msgspec.to_builtins(old.screen),
            "camera": {"model": old.camera, "quality": old.camera_quality, "corners": old.corners},
            "hand": {
                "model": old.hand,
                "contact": old.contact,
                "overtravel_mm": old.overtravel_mm,
                "overtravel_limit_mm": old.overtravel_limit_mm,
                "quality": old.hand_quality,
                "touches": [_touch(touch) for touch in old.touches],
            },
            "acceptance": msgspec.to_builtins(acceptance),
        },
        DeviceCalibration,
    )


def _touch(old: _Touch) -> Json:
    new: Json = msgspec.to_builtins(old)
    new["sent"] = new.pop("hand_mm")
    return new
