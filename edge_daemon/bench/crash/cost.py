"""What the promise costs: an action's two durable commits beside two bare SQLite commits, in the same run.

The floor is the least that SQLite can do for the same end: in the same file system and with the same settings, a
transaction that inserts a row as long as a pending receipt's, under the same kind of key, and one that replaces it by
one as long as the final receipt's. No thread, no trio, no checks. Both take turns, so that noise hits both alike;
checkpoints are off the clock for both, after as many writes.

There are two regimes. Right after the start the log file grows, and the file system has to note its new length with
each commit; from the first checkpoint on the log is written over in place. `ratio` is of the second, in which a rig
spends its life.
"""

import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

import msgspec
import trio

from edge_daemon.contract import Actor, FrameNotes, Receipt, Timing
from edge_daemon.ledger import CommandRef, Ledger, connect_file, open_ledger
from edge_daemon.ledger.commit import CHECKPOINT_AFTER_WRITES

DEVICES = 32
FRESH_ACTIONS = CHECKPOINT_AFTER_WRITES // 2 - 8
"""Before the log is used again for the first time."""
_WARM_UP = 16
_COMMAND = CommandRef(board_uid="a1b2c3d4e5f60718", board_boot_id=0xDEADBEEF, cmd_id=2**63)


class CostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Medians. An action is an acceptance and a settling: two commits."""

    actions: int
    """Measured of each kind, in the steady regime."""
    commit_us: float
    """From the call to its return on the trio thread."""
    floor_us: float
    ratio: float
    overhead_us: float
    """Of a commit, over the floor's: it does not grow with what the disk takes, so the ratio falls with it."""
    threaded_floor_us: float
    """The floor as a trio program gets it without blocking its loop: `trio.to_thread.run_sync` for each commit."""
    fresh_commit_us: float
    """While the log grows."""
    fresh_floor_us: float
    fresh_ratio: float
    bytes_per_receipt: float
    """Into the log for an acceptance and a settling; counted, not timed."""
    floor_bytes_per_receipt: float
    bytes_per_acknowledgement: float
    devices_32_commits_per_action: float
    """Of 32 devices that act at once; 2 where nobody shares."""
    devices_32_us_per_action: float


def measure_cost(folder: Path, actions: int) -> CostFigures:
    """In a temporary folder of `folder`, whose file system it is that is measured."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="cost-") as temporary:
        return trio.run(_measure, Path(temporary), actions)


async def _measure(folder: Path, actions: int) -> CostFigures:
    fresh, steady, written = await _in_turns(folder, actions)
    return CostFigures(
        actions=actions,
        commit_us=steady.ledger_us,
        floor_us=steady.floor_us,
        ratio=round(steady.ledger_us / steady.floor_us, 3),
        overhead_us=round(steady.ledger_us - steady.floor_us, 1),
        threaded_floor_us=steady.threaded_us,
        fresh_commit_us=fresh.ledger_us,
        fresh_floor_us=fresh.floor_us,
        fresh_ratio=round(fresh.ledger_us / fresh.floor_us, 3),
        bytes_per_receipt=written.ledger,
        floor_bytes_per_receipt=written.floor,
        bytes_per_acknowledgement=await _acknowledging(folder),
        devices_32_commits_per_action=await _commits_of_many(folder, max(2, actions // 64)),
        devices_32_us_per_action=await _time_of_many(folder, max(2, actions // 16)),
    )


class _Medians(msgspec.Struct, frozen=True):
    ledger_us: float
    floor_us: float
    threaded_us: float


class _Written(msgspec.Struct, frozen=True):
    """Bytes of the log per action."""

    ledger: float
    floor: float


class _Floor:
    """Bare SQLite in the ledger's own settings."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._path = path
        # As `connect_file`, for two threads that never use it at the same time.
        uri = f"{path.absolute().as_uri()}?mode=rw&psow=0"
        self._sql = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0"):
            self._sql.execute(f"PRAGMA {setting}").fetchall()
        self._sql.execute(
            "CREATE TABLE bare (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
        )
        self._pending_bytes, self._final_bytes = _row_bytes()
        self._writes = 0

    def close(self) -> None:
        self._sql.close()

    def act_s(self) -> float:
        """Seconds of an action's two commits."""
        key, pending, final = self._new()
        begun = time.perf_counter()
        self._insert(key, pending)
        self._replace(key, final)
        taken_s = time.perf_counter() - begun
        self._checkpoint_if_due()
        return taken_s

    async def act_in_thread_s(self) -> float:
        key, pending, final = self._new()
        begun = time.perf_counter()
        await trio.to_thread.run_sync(self._insert, key, pending)
        await trio.to_thread.run_sync(self._replace, key, final)
        taken_s = time.perf_counter() - begun
        self._checkpoint_if_due()
        return taken_s

    def _new(self) -> tuple[bytes, bytes, bytes]:
        return os.urandom(16), os.urandom(self._pending_bytes), os.urandom(self._final_bytes)

    def _insert(self, key: bytes, pending: bytes) -> None:
        self._sql.execute("BEGIN IMMEDIATE")
        self._sql.execute("INSERT INTO bare (key, value) VALUES (?, ?)", (key, pending))
        self._sql.execute("COMMIT")

    def _replace(self, key: bytes, final: bytes) -> None:
        self._sql.execute("BEGIN IMMEDIATE")
        self._sql.execute("UPDATE bare SET value = ? WHERE key = ?", (final, key))
        self._sql.execute("COMMIT")

    def _checkpoint_if_due(self) -> None:
        self._writes += 2
        if self._writes % CHECKPOINT_AFTER_WRITES == 0:
            self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def log_bytes(self) -> int:
        return _log_bytes(self._path)


class _Race:
    """The ledger and the floors, taking turns."""

    def __init__(self, ledger: Ledger, floor: _Floor, threaded: _Floor) -> None:
        self._ledger = ledger
        self._floor = floor
        self._threaded = threaded
        self._acted = 0

    async def run(self, actions: int) -> _Medians:
        """Per commit, of so many actions of each."""
        ledger_s: list[float] = []
        floor_s: list[float] = []
        threaded_s: list[float] = []
        for _ in range(actions):
            floor_s.append(self._floor.act_s())
            ledger_s.append(await self._act_s())
            threaded_s.append(await self._threaded.act_in_thread_s())
        return _Medians(*(round(median(taken) / 2 * 1e6, 1) for taken in (ledger_s, floor_s, threaded_s)))

    async def _act_s(self) -> float:
        self._acted += 1
        key = f"key-{self._acted}"
        pending = _pending(key, "phone-1")
        final = _committed(pending)
        begun = time.perf_counter()
        await self._ledger.accept(pending, key.encode("ascii"), 1, _COMMAND, self._ledger.epoch)
        await self._ledger.settle(final)
        return time.perf_counter() - begun


async def _in_turns(folder: Path, actions: int) -> tuple[_Medians, _Medians, _Written]:
    path = folder / "one.db"
    with closing(_Floor(folder / "floor.db")) as floor, closing(_Floor(folder / "threaded.db")) as threaded:
        async with open_ledger(path) as ledger:
            race = _Race(ledger, floor, threaded)
            await race.run(_WARM_UP)
            ledger_bytes, floor_bytes = _log_bytes(path), floor.log_bytes()
            counted = FRESH_ACTIONS - _WARM_UP
            fresh = await race.run(counted)
            written = _Written(
                round((_log_bytes(path) - ledger_bytes) / counted, 1),
                round((floor.log_bytes() - floor_bytes) / counted, 1),
            )
            await race.run(_WARM_UP)  # over the first checkpoint
            steady = await race.run(actions)
    return fresh, steady, written


async def _acknowledging(folder: Path) -> float:
    """Bytes of the log for each."""
    path = folder / "acknowledged.db"
    async with open_ledger(path) as ledger:
        for number in range(_WARM_UP):
            await _act(ledger, f"key-{number}")
        before = _log_bytes(path)
        for number in range(_WARM_UP):
            await ledger.acknowledge("phone-1", f"key-{number}")
        return (_log_bytes(path) - before) / _WARM_UP


async def _time_of_many(folder: Path, each: int) -> float:
    async with open_ledger(folder / "many.db") as ledger:
        begun = time.perf_counter()
        await _act_at_once(ledger, each)
        return round((time.perf_counter() - begun) / (DEVICES * each) * 1e6, 1)


async def _commits_of_many(folder: Path, each: int) -> float:
    statements: list[str] = []

    def connect(path: Path) -> sqlite3.Connection:
        connection = connect_file(path)
        connection.set_trace_callback(statements.append)
        return connection

    async with open_ledger(folder / "counted.db", connect=connect) as ledger:
        statements.clear()
        await _act_at_once(ledger, each)
        return round(statements.count("COMMIT") / (DEVICES * each), 4)


async def _act_at_once(ledger: Ledger, each: int) -> None:
    async def device(name: str) -> None:
        for number in range(each):
            await _act(ledger, f"key-{number}", name)

    async with trio.open_nursery() as nursery:
        for number in range(DEVICES):
            nursery.start_soon(device, f"phone-{number}")


async def _act(ledger: Ledger, key: str, device_id: str = "phone-1") -> None:
    receipt = _pending(key, device_id)
    await ledger.accept(receipt, key.encode("ascii"), 1, _COMMAND, ledger.epoch)
    await ledger.settle(_committed(receipt))


def _pending(key: str, device_id: str) -> Receipt:
    return Receipt(
        org_id="org_4f8a1c",
        device_id=device_id,
        idempotency_key=key,
        backend_kind="robot_hand",
        action="tap",
        args_summary={"x": 512.25, "y": 733.5},
        status="pending",
        requested_at="2025-06-01T12:34:56.789Z",
        boot_id="858466a7-a503-42cc-ad20-9af55d11c9a7",
        requested_ns=123_456_789_012_345,
        clock_synced=True,
        actor=Actor(kind="run", id="run_01HZX3", on_behalf_of="user_42"),
        observed_frame="f-8c1b7e2a-000123",
    )


def _committed(receipt: Receipt) -> Receipt:
    return msgspec.structs.replace(
        receipt,
        status="committed",
        committed_at="2025-06-01T12:34:57.612Z",
        finished_ns=123_457_612_012_345,
        frame_notes=FrameNotes(age_ms=412.7, newer_frames=6, edge_moved_since=False, settled=True),
        timing=Timing(queued_ms=0.0, accepted_ms=12.25, contact_ms=402.5, hover_ms=610.1),
    )


def _row_bytes() -> tuple[int, int]:
    """What the ledger keeps of a pending and of a final receipt beside its key."""
    encode = msgspec.msgpack.encode
    pending = _pending("key-1000", "phone-1")
    fingerprint_bytes, numbers_bytes = 16, 12
    rest = fingerprint_bytes + numbers_bytes
    return rest + len(encode(_COMMAND)) + len(encode(pending)), rest + len(encode(_committed(pending)))


def _log_bytes(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size
