"""Group commit by itself, step by step, on a real connection."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import outcome
import pytest

from edge_daemon.ledger import LedgerCorrupt, StorageUnavailable
from edge_daemon.ledger.commit import GroupCommit, Job, JobKind


class Shelf:
    """One table, and the group commit over it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.sql = connection
        self.group = GroupCommit(connection, path)

    def put(self, value: int, kind: JobKind = "write", error: Exception | None = None) -> Job[None]:
        def body() -> None:
            self.sql.execute("INSERT INTO shelf VALUES (?)", (value,))
            if error is not None:
                raise error

        return Job(body, kind)

    def read(self) -> Job[list[int]]:
        return Job(lambda: self.values, "read")

    @property
    def values(self) -> list[int]:
        return [value for (value,) in self.sql.execute("SELECT value FROM shelf ORDER BY value")]

    def take_writes(self, allowed: bool) -> None:
        self.sql.execute(f"PRAGMA query_only = {'OFF' if allowed else 'ON'}")


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    path = tmp_path / "shelf.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE shelf (value INTEGER UNIQUE)")
        yield Shelf(connection, path)


def test_a_refused_job_takes_back_its_own_writes_and_nobody_elses(shelf):
    mistaken = ValueError("mistaken")
    jobs = [shelf.put(1), shelf.put(2, error=mistaken), shelf.put(3)]
    assert shelf.group.process(jobs) == jobs
    assert shelf.values == [1, 3]
    assert [type(job.result) for job in jobs] == [outcome.Value, outcome.Error, outcome.Value]
    assert jobs[1].result.error is mistaken


def test_a_mistake_in_sql_is_not_taken_for_the_disks(shelf):
    jobs = [shelf.put(1), shelf.put(1), shelf.put(2)]
    shelf.group.process(jobs)
    assert isinstance(jobs[1].result.error, sqlite3.IntegrityError)
    assert shelf.values == [1, 2]
    assert shelf.group.fault is None


def test_a_failing_system_call_in_a_job_is_the_disks(shelf):
    job = shelf.put(1, error=OSError(30, "Read-only file system"))
    shelf.group.process([job])
    assert isinstance(job.result.error, StorageUnavailable)
    assert job.result.error.fault.kind == "read_only"
    assert shelf.values == []


def test_reads_see_the_batch_they_came_with(shelf):
    read = shelf.read()
    shelf.group.process([read, shelf.put(1)])
    assert read.result.unwrap() == [1]


def test_reads_are_answered_while_the_disk_refuses(shelf):
    shelf.group.process([shelf.put(1)])
    shelf.take_writes(False)
    read, write = shelf.read(), shelf.put(2)
    shelf.group.process([write, read])
    assert read.result.unwrap() == [1]
    assert isinstance(write.result.error, StorageUnavailable)


def test_what_is_owed_goes_first_and_nothing_new_passes_it(shelf):
    shelf.take_writes(False)
    owed, new = shelf.put(1, "owed"), shelf.put(2)
    assert shelf.group.process([new, owed]) == [new]
    assert shelf.group.owes
    later = shelf.put(3, "owed")
    assert shelf.group.process([later]) == []
    shelf.take_writes(True)
    newer = shelf.put(4)
    assert shelf.group.process([newer]) == [owed, later, newer]
    assert not shelf.group.owes
    assert shelf.values == [1, 3, 4]


def large(shelf: Shelf, kind: JobKind) -> Job[object]:
    """More than fits in the room that `leave_little_room` leaves."""
    return Job(lambda: shelf.sql.execute("INSERT INTO heap VALUES (zeroblob(100000))"), kind)


def leave_little_room(shelf: Shelf) -> None:
    shelf.sql.execute("CREATE TABLE heap (content BLOB)")
    (pages,) = shelf.sql.execute("PRAGMA page_count").fetchone()
    shelf.sql.execute(f"PRAGMA max_page_count = {pages}")


def test_nothing_new_is_attempted_while_an_outcome_is_owed_even_if_it_would_fit(shelf):
    leave_little_room(shelf)
    shelf.group.process([large(shelf, "owed")])
    small = shelf.put(1)
    assert shelf.group.process([small]) == [small]
    assert isinstance(small.result.error, StorageUnavailable)
    assert shelf.values == []


def test_an_outcome_is_written_without_the_acceptances_that_do_not_fit(shelf):
    leave_little_room(shelf)
    new, owed = large(shelf, "write"), shelf.put(1, "owed")
    assert shelf.group.process([owed, new]) == [new, owed]
    assert new.result.error.fault.kind == "full"
    assert owed.result == outcome.Value(None)
    assert shelf.values == [1]


def test_nothing_waits_for_a_damaged_file_to_heal(shelf):
    damaged = sqlite3.DatabaseError("malformed")
    damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    damaged.sqlite_errorname = "SQLITE_CORRUPT"
    owed = shelf.put(1, "owed", error=damaged)
    assert shelf.group.process([owed]) == [owed]
    assert isinstance(owed.result.error, LedgerCorrupt)
    assert not shelf.group.owes


def test_what_the_disk_never_took_fails_at_the_end(shelf):
    shelf.take_writes(False)
    owed = shelf.put(1, "owed")
    shelf.group.process([owed])
    assert shelf.group.give_up() == [owed]
    assert isinstance(owed.result.error, StorageUnavailable)
    assert not shelf.group.owes


def test_a_value_is_published_only_when_it_was_committed(shelf):
    published = []
    done, refused = (Job(shelf.put(1).body, "write", published.append) for _ in range(2))
    shelf.group.process([done])
    shelf.take_writes(False)
    shelf.group.process([refused])
    for job in (done, refused):
        job.deliver()
    assert published == [None]
    assert done.done.is_set()
    assert refused.done.is_set()
