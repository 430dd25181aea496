"""Files that are whole or refused: a checksum inside, written aside and renamed into place.

A file is {"checksum": sha256 of the body's bytes, "body": …}.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from calibration.errors import StoreCorrupt, StoreError

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    checksum: str
    body: msgspec.Raw


def seal(body: bytes) -> bytes:
    """The content of a file that holds this JSON body."""
    return msgspec.json.encode(_File(checksum=_checksum(body), body=msgspec.Raw(body)))


def read_body(path: Path) -> bytes:
    """The JSON body of a sealed file. Raises FileNotFoundError, StoreCorrupt or StoreError (not readable)."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read: {error.strerror}; check the file's owner and mode"
        ) from error
    try:
        file = msgspec.json.decode(content, type=_File)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"{path}: not a whole file ({error}); {_REPAIR}") from error
    body = bytes(file.body)
    if file.checksum != _checksum(body):
        raise StoreCorrupt(f"{path}: the checksum does not match, the file was edited or damaged; {_REPAIR}")
    return body


_REPAIR = "roll back to another entry, or calibrate again"


def write_body(path: Path, body: bytes) -> None:
    """Write a sealed file so that after a power cut the path holds the old content or the new, whole.

    Raises StoreError when the disk refuses; then the new content may or may not be there, but whole.
    """
    fresh = path.with_name(path.name + ".new")
    try:
        try:
            _write_through(fresh, seal(body))
            os.replace(fresh, path)
        except OSError:
            # A full disk is not helped by half a file.
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written: {error.strerror}; look at the disk, nothing was changed or the "
            "change is whole"
        ) from error


def make_folder(folder: Path) -> None:
    """Make the folder for the owner alone, parents too, so that it outlives a power cut. Raises StoreError."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        for part in reversed(missing):
            part.mkdir(mode=_FOLDER_MODE, exist_ok=True)
            sync_folder(part.parent)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be made: {error.strerror}; check the owner and mode of its parent"
        ) from error


def remove(paths: list[Path]) -> None:
    """Remove files of one folder, durably. Raises StoreError; then some may be left."""
    try:
        for path in paths:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
    except OSError as error:
        raise StoreError(f"{error.filename}: cannot be removed: {error.strerror}; check its owner") from error


def sync_folder(folder: Path) -> None:
    """Make renames and removals in the folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One writer at a time, over processes; freed by the kernel when its holder dies. Raises StoreError."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be opened: {error.strerror}; check its owner and mode") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_through(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, _FILE_MODE)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()
