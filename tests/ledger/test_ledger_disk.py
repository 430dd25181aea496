"""The simulated disk: what it loses, tears, keeps and refuses. A disk that kept too much would prove nothing."""

import errno
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from edge_daemon.bench.crash.disk import CutOff, DiskError, DiskOp, SimDisk
from edge_daemon.bench.crash.disk_file import BLOCK_BYTES, SECTOR_BYTES, Keep, SimFile
from edge_daemon.bench.crash.disk_handle import DiskHandle
from edge_daemon.ledger import LedgerInUse

SEEDS = range(200)
OLD, NEW = b"o" * (2 * BLOCK_BYTES), b"N" * SECTOR_BYTES


class Shelf:
    """A disk with one file on it, `/state/file`: OLD and durable."""

    def __init__(self, seed: int = 0) -> None:
        self.disk = SimDisk(random.Random(seed))
        self.who = self.disk.begin()
        self.disk.make_directory(self.who, "/state")
        self.disk.sync_directory(self.who, "/")
        self.file = self.disk.create(self.who, "/state/file")
        self.disk.sync_directory(self.who, "/state")
        self.write(0, OLD)
        self.disk.sync(self.who, self.file)

    def write(self, offset: int, data: bytes) -> None:
        self.disk.write(self.who, self.file, offset, data)

    def after(self, keep: Keep) -> dict[str, bytes]:
        """What is there when the power is back."""
        self.disk.power_cut(keep)
        return dict(self.disk.snapshot())

    def fail_next(self, kind: str, number: int = errno.EIO, written_bytes: int = 0) -> None:
        def hook(op: DiskOp) -> None:
            if op.kind == kind:
                self.disk.hook = None
                raise DiskError(number, written_bytes)

        self.disk.hook = hook


def content(seed: int, change: Callable[[Shelf], None], keep: Keep = "torn") -> bytes:
    shelf = Shelf(seed)
    change(shelf)
    return shelf.after(keep)["/state/file"]


def test_what_is_not_synced_is_lost_or_kept_as_the_power_cut_says():
    def change(shelf: Shelf) -> None:
        shelf.write(0, NEW)

    assert content(0, change, "nothing") == OLD
    assert content(0, change, "all") == NEW + OLD[SECTOR_BYTES:]


def test_what_is_synced_survives_and_a_process_death_loses_nothing():
    def change(shelf: Shelf) -> None:
        shelf.write(0, NEW)
        shelf.disk.sync(shelf.who, shelf.file)

    assert content(0, change, "nothing").startswith(NEW)
    shelf = Shelf()
    shelf.write(0, NEW)
    shelf.disk.process_death()
    assert shelf.disk.snapshot()["/state/file"].startswith(NEW)


def test_a_torn_write_is_kept_dropped_or_torn_inside_a_sector_and_spoils_no_other_block():
    outcomes = [content(seed, lambda shelf: shelf.write(100, NEW)) for seed in SEEDS]
    assert all(found[BLOCK_BYTES:] == OLD[BLOCK_BYTES:] for found in outcomes)
    assert OLD in outcomes
    assert OLD[:100] + NEW + OLD[100 + SECTOR_BYTES :] in outcomes
    spoiled = [found for found in outcomes if set(found) - set(OLD + NEW)]
    assert spoiled
    assert any(found[:100] != OLD[:100] for found in spoiled), "its neighbours in the block too"
    torn = [found for found in outcomes if found not in spoiled and 0 < found.count(b"N") < SECTOR_BYTES]
    assert torn


def test_unsynced_writes_are_reordered():
    def change(shelf: Shelf) -> None:
        shelf.write(0, NEW)
        shelf.write(BLOCK_BYTES, NEW)

    halves = [
        (found[:SECTOR_BYTES] == NEW, found[BLOCK_BYTES : BLOCK_BYTES + SECTOR_BYTES] == NEW)
        for found in (content(seed, change) for seed in SEEDS)
    ]
    assert set(halves) == {(False, False), (False, True), (True, False), (True, True)}


def test_a_truncation_is_durable_no_sooner_than_a_write():
    def change(shelf: Shelf) -> None:
        shelf.disk.truncate(shelf.who, shelf.file, 10)

    assert content(0, change, "nothing") == OLD
    assert content(0, change, "all") == OLD[:10]


def renamed(shelf: Shelf) -> None:
    fresh = shelf.disk.create(shelf.who, "/state/fresh")
    shelf.disk.write(shelf.who, fresh, 0, b"fresh")
    shelf.disk.sync(shelf.who, fresh)
    shelf.disk.rename(shelf.who, "/state/fresh", "/state/file")


def test_an_unsynced_rename_may_be_lost_and_a_synced_one_may_not():
    shelf = Shelf()
    renamed(shelf)
    assert shelf.disk.snapshot() == {"/state/file": b"fresh"}
    assert shelf.after("nothing") == {"/state/file": OLD}
    assert {content(seed, renamed) for seed in SEEDS} == {OLD, b"fresh"}
    shelf = Shelf()
    renamed(shelf)
    shelf.disk.sync_directory(shelf.who, "/state")
    assert shelf.after("nothing") == {"/state/file": b"fresh"}


def test_a_synced_file_is_lost_with_its_unsynced_name_and_with_its_directory():
    shelf = Shelf()
    shelf.disk.make_directory(shelf.who, "/other")
    for path in ("/state/fresh", "/other/fresh"):
        shelf.disk.sync(shelf.who, shelf.disk.create(shelf.who, path))
    shelf.disk.sync_directory(shelf.who, "/other")
    assert shelf.after("nothing") == {"/state/file": OLD}


def test_an_unsynced_removal_may_come_back():
    shelf = Shelf()
    shelf.disk.unlink(shelf.who, "/state/file")
    assert shelf.disk.snapshot() == {}
    assert shelf.after("nothing") == {"/state/file": OLD}


def test_a_failing_sync_loses_pages_for_good_and_the_next_one_does_not_tell():
    seen_by_programs, durable = set(), set()
    for seed in SEEDS:
        shelf = Shelf(seed)
        shelf.write(0, NEW)
        shelf.fail_next("sync")
        with pytest.raises(DiskError):
            shelf.disk.sync(shelf.who, shelf.file)
        shelf.disk.sync(shelf.who, shelf.file)
        seen = shelf.disk.snapshot()["/state/file"].startswith(NEW)
        kept = shelf.after("nothing")["/state/file"].startswith(NEW)
        seen_by_programs.add((seen, kept))
        durable.add(kept)
    assert durable == {True, False}
    assert seen_by_programs == {(True, True), (True, False), (False, False)}


def test_names_that_a_failing_sync_left_are_made_durable_by_the_next():
    shelf = Shelf()
    renamed(shelf)
    shelf.fail_next("dirsync")
    with pytest.raises(DiskError):
        shelf.disk.sync_directory(shelf.who, "/state")
    shelf.disk.sync_directory(shelf.who, "/state")
    assert shelf.after("nothing") == {"/state/file": b"fresh"}


def test_a_failing_write_may_have_got_through_in_part():
    shelf = Shelf()
    shelf.fail_next("write", written_bytes=3)
    with pytest.raises(DiskError):
        shelf.write(0, NEW)
    assert shelf.disk.snapshot()["/state/file"][:5] == b"NNNoo"


def test_a_full_disk_takes_what_fits_and_what_needs_no_room():
    shelf = Shelf()
    shelf.disk.free_bytes = 5
    with pytest.raises(OSError) as refused:
        shelf.write(len(OLD), NEW)
    assert refused.value.errno == errno.ENOSPC
    assert shelf.disk.snapshot()["/state/file"] == OLD + b"NNNNN"
    assert shelf.disk.free_bytes == 0
    shelf.write(0, NEW)
    shelf.disk.truncate(shelf.who, shelf.file, 100)
    assert shelf.disk.free_bytes == len(OLD) + 5 - 100
    shelf.disk.unlink(shelf.who, "/state/file")
    assert shelf.disk.free_bytes == len(OLD) + 5


def test_whoever_is_dead_does_nothing_more():
    shelf = Shelf()
    before = shelf.disk.snapshot()

    def die(op: DiskOp) -> None:
        shelf.disk.process_death()

    shelf.disk.hook = die
    for act in (
        lambda: shelf.write(0, NEW),
        lambda: shelf.disk.read(shelf.who, shelf.file, 0, 1),
        lambda: shelf.disk.rename(shelf.who, "/state/file", "/state/other"),
        lambda: shelf.disk.sync(shelf.who, shelf.file),
    ):
        with pytest.raises(CutOff):
            act()
    assert shelf.disk.snapshot() == before


def test_a_power_cut_after_an_operation_finds_it_done_and_its_owner_dead():
    shelf = Shelf()
    shelf.disk.after_hook = lambda op: shelf.disk.power_cut("nothing")
    with pytest.raises(CutOff):
        renamed(shelf)
    assert shelf.disk.snapshot() == {"/state/file": OLD}
    assert shelf.who.dead


def test_every_operation_is_counted_over_the_disks_life():
    shelf = Shelf()
    seen: list[tuple[int, str, str]] = []
    shelf.disk.hook = lambda op: seen.append((op.number, op.kind, op.file))
    first = shelf.disk.operations
    renamed(shelf)
    shelf.disk.sync_directory(shelf.who, "/state")
    kinds = ["create", "write", "sync", "rename", "dirsync"]
    assert seen == [
        (first + 1 + place, kind, "/state" if kind == "dirsync" else "/state/fresh")
        for place, kind in enumerate(kinds)
    ]


def test_a_snapshot_put_back_is_all_there_is():
    shelf = Shelf()
    copy = shelf.disk.snapshot()
    renamed(shelf)
    shelf.disk.restore({**copy, "/elsewhere/more": b"more"})
    assert shelf.who.dead
    assert shelf.after("nothing") == {"/state/file": OLD, "/elsewhere/more": b"more"}


def test_a_lock_is_one_lifes_and_ends_with_it():
    disk = SimDisk(random.Random(0))
    path = Path("/ledger.db.lock")
    one = DiskHandle(disk, random.Random(1))
    other = DiskHandle(disk, random.Random(2))
    held = one.files().lock(path, path)
    with pytest.raises(LedgerInUse):
        other.files().lock(path, path)
    held.release()
    other.files().lock(path, path)
    other.cut()
    assert other.dead
    one.files().lock(path, path)


def connected(disk: SimDisk) -> sqlite3.Connection:
    handle = DiskHandle(disk, random.Random(0))
    handle.files().create(Path("/file.db"))
    return handle.connect(Path("/file.db"))


def test_sqlite_on_it_fails_with_sqlite3s_own_errors():
    disk = SimDisk(random.Random(0))
    connection = connected(disk)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.execute("CREATE TABLE shelf (value INTEGER UNIQUE)")
    connection.executemany("INSERT INTO shelf VALUES (?)", [(1,), (2,)])
    with pytest.raises(sqlite3.IntegrityError) as twice:
        connection.execute("INSERT INTO shelf VALUES (1)")
    assert twice.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"

    def failing(kind: str, number: int) -> sqlite3.OperationalError:
        def hook(op: DiskOp) -> None:
            if op.kind == kind:
                raise DiskError(number)

        disk.hook = hook
        with pytest.raises(sqlite3.OperationalError) as failed:
            connection.execute("INSERT INTO shelf VALUES (3)")
        disk.hook = None
        return failed.value

    assert failing("write", errno.EIO).sqlite_errorcode == sqlite3.SQLITE_IOERR_WRITE
    assert failing("write", errno.ENOSPC).sqlite_errorname == "SQLITE_FULL"
    assert failing("sync", errno.ENOSPC).sqlite_errorcode == sqlite3.SQLITE_IOERR_FSYNC
    assert not connection.in_transaction
    assert [value for (value,) in connection.execute("SELECT value FROM shelf")] == [1, 2]
    connection.close()
    assert set(disk.snapshot()) == {"/file.db"}


def test_sqlite_on_it_begins_no_commit_in_a_block_that_an_earlier_one_was_synced_in():
    """As `psow=0` has it in the product."""
    disk = SimDisk(random.Random(0))
    connection = connected(disk)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE shelf (value)")
    steps: list[DiskOp] = []
    disk.hook = steps.append
    for value in range(5):
        connection.execute("INSERT INTO shelf VALUES (?)", (value,))
    assert {op.file for op in steps} == {"/file.db-wal"}
    written, synced = 0, 0
    for op in steps:
        if op.kind == "write":
            assert op.offset >= synced
            written = op.offset + op.size
        else:
            assert written % BLOCK_BYTES == 0
            synced = written
    assert synced >= 5 * BLOCK_BYTES


async def test_the_writer_without_a_thread_wakes_in_any_order_and_publishes_in_one(
    simulated_ledger, samples, autojump_clock
):
    orders, marks = set(), set()
    for seed in range(30):
        woken: list[str] = []
        async with simulated_ledger(seed).open(latency_s=1.0) as ledger:

            async def park(note: str, after_s: float, woken: list[str] = woken, ledger=ledger) -> None:
                await trio.sleep(after_s)
                await ledger.set_parked("phone-1", True, note)
                woken.append(note)

            async with trio.open_nursery() as nursery:
                for place, note in enumerate("abc"):
                    nursery.start_soon(park, note, place / 10)
            marks.add(ledger.parked_note("phone-1"))
        orders.add("".join(woken))
    assert len(orders) > 2
    assert marks == {"c"}


def test_a_file_without_changes_has_nothing_to_lose():
    file = SimFile("/file", OLD)
    for keep in ("nothing", "all", "torn"):
        file.cut_power(keep, random.Random(0))
        assert (bytes(file.seen), bytes(file.durable)) == (OLD, OLD)
