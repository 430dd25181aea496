"""Real SQLite on the simulated disk.

Python's own sqlite3 cannot be given a VFS, apsw can (https://rogerbinns.github.io/apsw/vfs.html). What the ledger
would notice of that is levelled out here: its connection is asked through sqlite3's methods and fails with sqlite3's
errors. Two things differ from the product's SQLite: it is apsw's own, newer one; and the connection is in exclusive
locking mode once the file is in WAL mode, so that the log's index is in memory instead of a shared file beside the
ledger. That file holds nothing durable: the first to open a ledger makes it anew from the log.
"""

# ruff: noqa: N802 -- the methods' names are SQLite's
import contextlib
import errno
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import apsw

from edge_daemon.bench.crash.disk import Incarnation, SimDisk, directory_of
from edge_daemon.bench.crash.disk_file import BLOCK_BYTES, SimFile

_HEADER_BYTES = 100
_WRITE_VERSION = 18  # its place in the header: 2 in WAL mode, https://www.sqlite.org/fileformat.html
_NO_DEVICE_CHARACTERISTICS = 0
"""No power-safe overwrite, nothing atomic: what `psow=0` says in the product."""

_SYNCED_WITH_DIRECTORY = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL

_numbers = itertools.count()


class SimVfs(apsw.VFS):
    """SQLite's files for one incarnation, with the same steps and the same careless moments as its `unix` VFS."""

    def __init__(self, disk: SimDisk, who: Incarnation) -> None:
        self._disk = disk
        self._who = who
        self._name = f"simulated-{next(_numbers)}"
        super().__init__(self._name, "")

    def connect(self, path: Path) -> sqlite3.Connection:
        try:
            connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE, vfs=self._name)
        except apsw.Error as error:
            raise _as_sqlite3(error) from error
        return cast(sqlite3.Connection, SimConnection(connection, self._in_wal_mode(path)))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "SimVfsFile":  # type: ignore[override]
        assert name is not None  # temporary files are kept in memory
        path = name if isinstance(name, str) else name.filename()
        flags[1] = flags[0]
        file = self._disk.find(path)
        created = file is None
        if file is None:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise _error(apsw.SQLITE_CANTOPEN, f"there is no {path}")
            try:
                file = self._disk.create(self._who, path)
            except OSError as error:
                raise _worded(error, apsw.SQLITE_CANTOPEN) from error
        sync_directory = created and bool(flags[0] & _SYNCED_WITH_DIRECTORY)
        return SimVfsFile(self._disk, self._who, file, sync_directory)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if self._disk.find(filename) is None:
            raise _error(apsw.SQLITE_IOERR_DELETE_NOENT, f"there is no {filename}")
        try:
            self._disk.unlink(self._who, filename)
        except OSError as error:
            raise _worded(error, apsw.SQLITE_IOERR_DELETE) from error
        if syncdir:
            try:
                self._disk.sync_directory(self._who, directory_of(filename))
            except OSError as error:
                raise _worded(error, apsw.SQLITE_IOERR_DIR_FSYNC) from error

    def xAccess(self, pathname: str, flags: int) -> bool:
        """An empty file does not exist for SQLite."""
        file = self._disk.find(pathname)
        return file is not None and bool(file.seen)

    def xFullPathname(self, name: str) -> str:
        return name

    def _in_wal_mode(self, path: Path) -> bool:
        file = self._disk.find(str(path))
        return file is not None and len(file.seen) >= _HEADER_BYTES and file.seen[_WRITE_VERSION] == 2


class SimVfsFile:
    def __init__(self, disk: SimDisk, who: Incarnation, file: SimFile, sync_directory: bool) -> None:
        """sync_directory: with the first sync, as for a log just made."""
        self._disk = disk
        self._who = who
        self._file = file
        self._sync_directory = sync_directory

    def xRead(self, amount: int, offset: int) -> bytes:
        try:
            return self._disk.read(self._who, self._file, offset, amount)
        except OSError as error:
            raise _worded(error, apsw.SQLITE_IOERR_READ) from error

    def xWrite(self, data: bytes, offset: int) -> None:
        try:
            self._disk.write(self._who, self._file, offset, bytes(data))
        except OSError as error:
            raise _worded(error, apsw.SQLITE_IOERR_WRITE) from error

    def xTruncate(self, newsize: int) -> None:
        try:
            self._disk.truncate(self._who, self._file, newsize)
        except OSError as error:
            raise _worded(error, apsw.SQLITE_IOERR_TRUNCATE) from error

    def xSync(self, flags: int) -> None:
        try:
            self._disk.sync(self._who, self._file)
        except OSError as error:
            raise _worded(error, apsw.SQLITE_IOERR_FSYNC) from error
        if self._sync_directory:
            self._sync_directory = False
            # unixSync asks once and does not look at the answer.
            with contextlib.suppress(OSError):
                self._disk.sync_directory(self._who, directory_of(self._file.name))

    def xFileSize(self) -> int:
        return len(self._file.seen)

    def xLock(self, level: int) -> None:
        """The ledger's lock file keeps others out."""

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xClose(self) -> None: ...

    def xDeviceCharacteristics(self) -> int:
        return _NO_DEVICE_CHARACTERISTICS

    def xSectorSize(self) -> int:
        return BLOCK_BYTES

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False


class SimConnection:
    """The few methods of sqlite3.Connection that the ledger uses, in autocommit mode."""

    def __init__(self, connection: apsw.Connection, in_wal_mode: bool) -> None:
        self._connection = connection
        if in_wal_mode:
            self._lock_for_good()

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> "Rows":
        if sql == "PRAGMA journal_mode = WAL":
            self._lock_for_good()
        try:
            return Rows(self._connection.execute(sql, tuple(parameters)).fetchall())
        except apsw.Error as error:
            raise _as_sqlite3(error) from error
        except UnicodeDecodeError as error:
            raise sqlite3.OperationalError(f"Could not decode to UTF-8: {error}") from error

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any], *, deterministic: bool = False
    ) -> None:
        self._connection.create_scalar_function(name, func, narg, deterministic=deterministic)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        try:
            self._connection.executemany(sql, parameters).fetchall()
        except apsw.Error as error:
            raise _as_sqlite3(error) from error

    def executescript(self, script: str) -> None:
        try:
            self._connection.execute(script).fetchall()
        except apsw.Error as error:
            raise _as_sqlite3(error) from error

    def setconfig(self, op: int, enable: bool = True) -> None:
        """As of Python 3.12."""
        try:
            self._connection.config(op, int(enable))
        except apsw.Error as error:
            raise _as_sqlite3(error) from error

    def close(self) -> None:
        """A disk that fails meanwhile costs nothing that was committed, and sqlite3 does not tell either."""
        with contextlib.suppress(apsw.Error):
            self._connection.close(True)

    def _lock_for_good(self) -> None:
        try:
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        except apsw.Error as error:
            raise _as_sqlite3(error) from error


class Rows:
    """What was found, read to the end: no statement is left open."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


def _worded(error: OSError, code: int) -> Exception:
    """The disk's refusal in SQLite's words; only of a write does it tell that the disk is full."""
    full = error.errno == errno.ENOSPC and code == apsw.SQLITE_IOERR_WRITE
    return _error(apsw.SQLITE_FULL if full else code, str(error))


def _error(code: int, detail: str) -> Exception:
    error = apsw.exception_for(code)
    error.args = (detail,)
    return error


_CLASS_OF_CODE: dict[int, type[sqlite3.Error]] = {
    apsw.SQLITE_INTERNAL: sqlite3.InternalError,
    apsw.SQLITE_CORRUPT: sqlite3.DatabaseError,
    apsw.SQLITE_NOTADB: sqlite3.DatabaseError,
    apsw.SQLITE_TOOBIG: sqlite3.DataError,
    apsw.SQLITE_CONSTRAINT: sqlite3.IntegrityError,
    apsw.SQLITE_MISMATCH: sqlite3.IntegrityError,
    apsw.SQLITE_MISUSE: sqlite3.InterfaceError,
    apsw.SQLITE_RANGE: sqlite3.InterfaceError,
}
"""As in CPython's Modules/_sqlite/util.c; all others are OperationalError."""


def _as_sqlite3(error: apsw.Error) -> sqlite3.Error:
    code: int = error.extendedresult  # type: ignore[attr-defined]  # missing in the stubs
    told = _CLASS_OF_CODE.get(code & 0xFF, sqlite3.OperationalError)(str(error))
    told.sqlite_errorcode = code
    names = apsw.mapping_extended_result_codes if code > 0xFF else apsw.mapping_result_codes
    told.sqlite_errorname = str(names.get(code, f"SQLITE_{code}"))
    return told
