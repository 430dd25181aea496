"""What the ledger says when the disk fails: nothing that is not so, and it goes on when the disk does."""

import shutil
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import trio
import trio.testing

from edge_daemon.contract import Refused
from edge_daemon.ledger import (
    Accepted,
    Existing,
    LedgerCorrupt,
    LedgerTooNew,
    StorageUnavailable,
    open_ledger,
    schema,
)
from edge_daemon.ledger.errors import fault_of_findings
from edge_daemon.ledger.files import OS_FILES
from edge_daemon.ledger.opening import open_files


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


async def refusal(samples, ledger, key: str) -> StorageUnavailable:
    with pytest.raises(Refused) as refused:
        await samples.accept(ledger, samples.pending(key))
    assert refused.value.code == "storage_unavailable"
    assert isinstance(refused.value, StorageUnavailable)
    return refused.value


async def test_a_full_disk_refuses_and_stores_nothing_until_it_recovers(ledger_path, samples, connections):
    async with open_ledger(ledger_path, connect=connections) as ledger:
        await samples.accept(ledger, samples.pending("before"))
        (pages,) = connections.pragma("page_count")
        connections.pragma(f"max_page_count = {pages}")
        accepted = ["before"]
        for number in range(1, 40):
            try:
                await samples.accept(ledger, samples.pending(f"key-{number}"), token=number)
            except StorageUnavailable as refused:
                assert refused.fault.kind == "full"
                assert refused.info.retryable
                break
            accepted.append(f"key-{number}")
        assert ledger.storage_fault is not None
        assert ledger.highest_token("phone-1") == number - 1
        assert not (await ledger.lookup("phone-1", f"key-{number}", None)).found
        assert await samples.accept(ledger, samples.pending("before")) == Existing(samples.pending("before"))

        connections.pragma("max_page_count = 1000000")
        assert await samples.accept(ledger, samples.pending(f"key-{number}"), token=number) == Accepted()
        assert ledger.storage_fault is None
        accepted.append(f"key-{number}")
    async with open_ledger(ledger_path) as ledger:
        assert [entry.receipt.idempotency_key for entry in await ledger.pending()] == accepted


async def test_an_outcome_waits_for_the_disk_and_is_written_before_anything_new(
    ledger_path, samples, no_file_grows_beyond
):
    """A write that the kernel refuses, in the middle of a transaction's frames."""
    done = samples.pending("done")
    async with open_ledger(ledger_path, retry_s=0.01) as ledger, trio.open_nursery() as nursery:
        await samples.accept(ledger, done)
        settled = trio.Event()

        async def settle() -> None:
            await ledger.settle(samples.committed(done))
            settled.set()

        with no_file_grows_beyond(log_of(ledger_path).stat().st_size + 1000):
            nursery.start_soon(settle)
            await trio.testing.wait_all_tasks_blocked()
            assert (await refusal(samples, ledger, "new")).fault.kind == "io"
            assert (await refusal(samples, ledger, "new")).fault.kind == "io"
            assert not settled.is_set()
            assert (await ledger.lookup("phone-1", "done", None)).receipt == done
            assert not (await ledger.lookup("phone-1", "new", None)).found
            assert await ledger.unacknowledged(9) == []
        await settled.wait()
        assert ledger.storage_fault is None
        assert await samples.accept(ledger, samples.pending("new")) == Accepted()
    async with open_ledger(ledger_path) as ledger:
        assert await ledger.unacknowledged(9) == [samples.committed(done)]
        assert [entry.receipt.idempotency_key for entry in await ledger.pending()] == ["new"]


async def test_an_outcome_that_the_disk_never_took_stays_pending(ledger_path, samples, no_file_grows_beyond):
    done = samples.pending("done")
    refused: list[StorageUnavailable] = []

    async def settle(ledger) -> None:
        try:
            await ledger.settle(samples.committed(done))
        except StorageUnavailable as error:
            refused.append(error)

    with ExitStack() as bad_day:
        async with trio.open_nursery() as nursery, open_ledger(ledger_path) as ledger:
            first = ledger.epoch
            await samples.accept(ledger, done)
            bad_day.enter_context(no_file_grows_beyond(log_of(ledger_path).stat().st_size + 1000))
            nursery.start_soon(settle, ledger)
            await trio.testing.wait_all_tasks_blocked()
    assert len(refused) == 1
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first
        assert [entry.receipt for entry in await ledger.pending()] == [done]


async def test_room_for_outcomes_is_kept_free(ledger_path, samples):
    receipt = samples.pending("accepted")
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, receipt)
    async with open_ledger(ledger_path, reserve_bytes=2**62) as ledger:
        assert (await refusal(samples, ledger, "new")).fault.kind == "full"
        assert await samples.accept(ledger, receipt) == Existing(receipt)
        await ledger.settle(samples.committed(receipt))
        assert await ledger.unacknowledged(9) == [samples.committed(receipt)]


async def test_a_read_only_disk_refuses_until_it_is_writable(ledger_path, samples, connections):
    async with open_ledger(ledger_path, connect=connections) as ledger:
        connections.pragma("query_only = ON")
        assert (await refusal(samples, ledger, "key-1")).fault.kind == "read_only"
        with pytest.raises(StorageUnavailable):
            await ledger.set_parked("phone-1", True)
        assert not ledger.parked("phone-1")
        connections.pragma("query_only = OFF")
        await samples.accept(ledger, samples.pending("key-1"))


async def test_a_ledger_on_a_read_only_disk_does_not_open(ledger_path):
    def connect_read_only(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)

    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
    with pytest.raises(StorageUnavailable) as refused:
        async with open_ledger(ledger_path, connect=connect_read_only):
            pass
    assert refused.value.fault.kind == "read_only"
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first


async def test_a_file_that_another_program_holds_refuses_until_it_lets_go(ledger_path, samples, connections):
    async with open_ledger(ledger_path, connect=connections) as ledger:
        with closing(sqlite3.connect(ledger_path, isolation_level=None)) as shell:
            shell.execute("BEGIN IMMEDIATE")
            assert (await refusal(samples, ledger, "key-1")).fault.kind == "locked"
            shell.execute("ROLLBACK")
        await samples.accept(ledger, samples.pending("key-1"))


async def opening_fails_as_corrupt(path: Path, match: str) -> None:
    """And leaves everything as it was found, but for the lock."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.suffix != ".lock"}
    with pytest.raises(LedgerCorrupt, match=match) as refused:
        async with open_ledger(path):
            pass
    assert str(path) in str(refused.value)
    assert not refused.value.info.retryable
    after = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.suffix != ".lock"}
    assert {name: after.get(name) for name in before} == before


async def test_a_file_that_is_no_database_is_left_alone(ledger_path):
    async with open_ledger(ledger_path):
        pass
    ledger_path.write_bytes(b"not a database " * 1000)
    await opening_fails_as_corrupt(ledger_path, "NOTADB")


async def test_another_programs_database_is_left_alone(ledger_path):
    ledger_path.parent.mkdir()
    with closing(sqlite3.connect(ledger_path)) as other:
        other.execute("CREATE TABLE receipt (id)")
    await opening_fails_as_corrupt(ledger_path, "no ledger")


async def test_an_emptied_file_is_not_begun_anew(ledger_path):
    async with open_ledger(ledger_path):
        pass
    ledger_path.write_bytes(b"")
    await opening_fails_as_corrupt(ledger_path, "empty")


async def test_a_log_without_its_file_is_not_thrown_away(ledger_path, samples, tmp_path):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("key-1"))
        shutil.copy(log_of(ledger_path), tmp_path / "log")
    ledger_path.unlink()
    shutil.copy(tmp_path / "log", log_of(ledger_path))
    await opening_fails_as_corrupt(ledger_path, "its log ledger.db-wal is there")


async def test_a_damaged_page_is_found_at_opening(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        for number in range(50):
            await samples.accept(ledger, samples.pending(f"key-{number}"))
    content = bytearray(ledger_path.read_bytes())
    content[4096 * 3 : 4096 * 5] = bytes(4096 * 2)
    ledger_path.write_bytes(content)
    await opening_fails_as_corrupt(ledger_path, "corrupt")


@pytest.mark.parametrize(
    ("finding", "kind"),
    [
        (
            "*** in database main ***\nPage 7: unable to get the page. error code=8458",
            "io",
        ),  # IOERR_CORRUPTFS
        ("*** in database main ***\nPage 7: unable to get the page. error code=11", "corrupt"),
        ("*** in database main ***\nTree 4 page 4: btreeInitPage() returns error code 11", "corrupt"),
        ("*** in database main ***\nPage 7 is never used", "corrupt"),
    ],
)
def test_a_page_that_cannot_be_read_is_the_cards_fault_and_no_damaged_file(finding, kind):
    assert fault_of_findings([finding], Path("ledger.db")).kind == kind


async def test_a_damaged_receipt_is_never_an_answer(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "key-sound")
        await samples.finished(ledger, "key-damaged")
    content = bytearray(ledger_path.read_bytes())
    content[content.index(b"key-damaged") + 4] ^= 0x01
    ledger_path.write_bytes(content)
    async with open_ledger(ledger_path) as ledger:
        with pytest.raises(LedgerCorrupt, match="checksum"):
            await ledger.lookup("phone-1", "key-damaged", None)
        with pytest.raises(LedgerCorrupt, match="checksum"):
            await samples.accept(ledger, samples.pending("key-damaged"))
        assert (await ledger.lookup("phone-1", "key-sound", None)).found


@pytest.mark.parametrize(
    "otherwise",
    ["fingerprint = 7", "fingerprint = 'text'", "receipt = 3", "acknowledged = 0.5", "settled = 'x'"],
)
async def test_a_value_of_another_sort_is_never_an_answer(ledger_path, samples, otherwise):
    """One flipped bit makes a text or a number of a blob."""
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "key-damaged")
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as file:
        file.execute(f"UPDATE receipt SET {otherwise}, filed = -9")
    with pytest.raises(LedgerCorrupt, match="receipt row 1"):
        async with open_ledger(ledger_path) as ledger:
            await ledger.lookup("phone-1", "key-damaged", None)


async def test_a_text_that_is_none_is_never_an_answer(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        await ledger.set_parked("phone-1", True, "a password")
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as file:
        file.execute("UPDATE device_state SET device_id = CAST(x'ff' AS TEXT)")
    with pytest.raises(LedgerCorrupt, match="a text that is none"):
        async with open_ledger(ledger_path):
            pass


async def test_a_ledger_of_a_later_version_is_left_to_it(ledger_path):
    async with open_ledger(ledger_path):
        pass
    with closing(sqlite3.connect(ledger_path)) as later:
        later.execute("PRAGMA user_version = 99")
    with pytest.raises(LedgerTooNew, match="schema version 99"):
        async with open_ledger(ledger_path):
            pass


async def crashed(ledger_path: Path, samples, copy: Path) -> None:
    """`copy` is then what a crash left: a receipt in the log, and nothing moved."""
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "in the log")
        copy.parent.mkdir()
        for suffix in ("", "-wal", ".witness"):
            shutil.copy(f"{ledger_path}{suffix}", f"{copy}{suffix}")


async def test_a_ledger_that_is_no_longer_trusted_is_closed_with_its_log_left_as_it_is(
    ledger_path, samples, tmp_path
):
    copy = tmp_path / "copy" / "ledger.db"
    await crashed(ledger_path, samples, copy)
    log, file = log_of(copy).read_bytes(), copy.read_bytes()
    connection = schema.connect_file(copy)
    assert connection.execute("SELECT count(*) FROM receipt").fetchone() == (1,)
    schema.close_unmoved(connection, copy)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
    assert (log_of(copy).read_bytes(), copy.read_bytes()) == (log, file)
    schema.connect_file(copy).close()
    async with open_ledger(copy) as ledger:
        assert (await ledger.lookup("phone-1", "in the log", None)).found


async def test_while_somebody_reads_the_log_of_a_crash_nothing_is_written_behind_it(
    ledger_path, samples, tmp_path, connections
):
    """It may be in the kernel's cache alone; what came behind a gap would be lost with it."""
    copy = tmp_path / "copy" / "ledger.db"
    await crashed(ledger_path, samples, copy)
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM receipt").fetchone()
        with pytest.raises(StorageUnavailable) as refused:
            async with open_ledger(copy, connect=connections):
                pass
        assert refused.value.fault.kind == "locked"
    async with open_ledger(copy) as ledger:
        assert (await ledger.lookup("phone-1", "in the log", None)).found


async def test_a_ledger_opened_anew_after_a_failing_sync_goes_on_with_all_it_had(ledger_path, samples):
    """On real files, of which no sync fails here: what has to be done then, and that it leaves nothing open."""
    async with open_ledger(ledger_path) as ledger:
        done = await samples.finished(ledger, "before")
    opened = open_files(ledger_path, time.monotonic_ns, "boot", schema.connect_file, OS_FILES, 0)
    before = opened.connection
    for _ in range(2):
        opened.books.note_time()
        connection = opened.reopen()
        assert log_of(ledger_path).stat().st_size == 0
        assert opened.books.lookup("phone-1", "before", None).receipt == done
    with pytest.raises(sqlite3.ProgrammingError):
        before.execute("SELECT 1")
    opened.close(trusted=False)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
    async with open_ledger(ledger_path) as ledger:
        assert ledger.renewed is None
        assert await ledger.unacknowledged(9) == [done]
