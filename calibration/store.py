"""Calibrations on disk: one JSON file per device, keyed to the hand's board, whole or refused.

File: {"checksum": sha256 of the body's bytes, "body": {"schema", "deviceId", "boardUid", "calibration"}}.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from calibration.errors import (
    BoardMismatch,
    CalibrationError,
    CalibrationMissing,
    DeviceMismatch,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
)
from calibration.result import DeviceCalibration

# Raised whenever the meaning or the shape of anything in the body changes.
SCHEMA = 1


class StoredCalibration(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A calibration with its key: the phone it is for, and the uid of the board that moves the hand."""

    schema: int
    device_id: str
    board_uid: str
    calibration: DeviceCalibration


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    checksum: str
    body: msgspec.Raw


class _Key(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Only what must be read before the rest can be trusted to have this version's shape."""

    schema: int
    device_id: str
    board_uid: str


def save(path: Path, calibration: DeviceCalibration, *, device_id: str, board_uid: str) -> None:
    """Write the calibration so that after a power cut the file is the old one or the new one, whole.

    Raises StoreError when the calibration holds a number that JSON cannot carry, OSError from the disk. The
    file at `path` is untouched in either case.
    """
    stored = StoredCalibration(
        schema=SCHEMA, device_id=device_id, board_uid=board_uid, calibration=calibration
    )
    body = msgspec.json.encode(stored)
    content = msgspec.json.encode(_File(checksum=_checksum(body), body=msgspec.Raw(body)))
    try:
        readable = _decode(path, content) == stored
    except StoreCorrupt:
        readable = False
    if not readable:
        raise StoreError(f"{path}: not saved, the calibration has numbers that are not finite; repeat it")
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(fresh, path)
    # The rename itself is durable only once the directory is.
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def load(path: Path, *, device_id: str, board_uid: str) -> StoredCalibration:
    """Read the calibration of this device on this board.

    Raises CalibrationMissing, StoreCorrupt, SchemaMismatch, DeviceMismatch or BoardMismatch.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CalibrationMissing(f"{path}: no calibration for device {device_id}; calibrate it") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error}; check the file's owner and mode") from error
    stored = _decode(path, content)
    if stored.device_id != device_id:
        raise DeviceMismatch(
            f"{path}: this calibration is for device {stored.device_id}, not {device_id}; calibrate this one"
        )
    if stored.board_uid != board_uid:
        raise BoardMismatch(
            f"{path}: this calibration was made with board {stored.board_uid}, the board here is "
            f"{board_uid}; attach the former, or calibrate again with this one"
        )
    return stored


def _decode(path: Path, content: bytes) -> StoredCalibration:
    try:
        file = msgspec.json.decode(content, type=_File)
        body = bytes(file.body)
        if file.checksum != _checksum(body):
            raise StoreCorrupt(
                f"{path}: the checksum does not match, the file was edited or damaged; calibrate again"
            )
        key = msgspec.json.decode(body, type=_Key)
        if key.schema != SCHEMA:
            raise SchemaMismatch(
                f"{path}: written with schema {key.schema}, this version reads {SCHEMA}; calibrate again"
            )
        return msgspec.json.decode(body, type=StoredCalibration)
    except StoreError:
        raise
    except (msgspec.DecodeError, CalibrationError) as error:
        raise StoreCorrupt(f"{path}: not a whole calibration ({error}); calibrate again") from error


def _checksum(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()
