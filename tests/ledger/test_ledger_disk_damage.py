"""A damaged, shortened or old ledger, and a disk that has failed for good: refused with the reason, or true.

Not told apart from the truth: a log whose last two transactions were damaged, or that was cut off at its end, for that
is what a power cut leaves of what was never synced; and a byte flipped in what has no checksum of its own, the digests
of pruned keys and the devices' marks.
"""

import errno
import sqlite3
from collections.abc import Iterable
from contextlib import asynccontextmanager, closing

import pytest
import trio

from edge_daemon.bench.crash.disk import DiskError, DiskOp, Snapshot
from edge_daemon.contract import Refused
from edge_daemon.ledger import (
    Accepted,
    Existing,
    Hold,
    Ledger,
    LedgerCorrupt,
    StorageUnavailable,
    schema,
)
from edge_daemon.ledger.commit import CHECKPOINT_AFTER_WRITES
from edge_daemon.ledger.log_check import missing_transactions

FILE, LOG, WITNESS = "/state/ledger.db", "/state/ledger.db-wal", "/state/ledger.db.witness"
KEYS = [f"key-{number}" for number in range(12)]
FRAME_BYTES = 24 + schema.PAGE_BYTES


@pytest.fixture
def simulated(simulated_ledger):
    return simulated_ledger(1)


async def lived(simulated, samples) -> tuple[Snapshot, Snapshot, int]:
    """The disk while the ledger was open, as a crash leaves it, and after it was closed: every KEY committed.

    And the epoch in which that was.
    """
    async with simulated.open() as ledger:
        for key in KEYS:
            await samples.finished(ledger, key)
        await ledger.set_hold("phone-1", Hold("a check", "technician"))
        await ledger.set_hold("phone-1", None)
        await ledger.set_hold("phone-1", Hold("a check", "technician"))
        crashed = simulated.disk.snapshot()
    return crashed, simulated.disk.snapshot(), ledger.epoch


async def is_true_or_refused(simulated, samples, epoch: int, keys: Iterable[str] = KEYS) -> bool:
    """Whether anything was refused. Fails when an answer is wrong, or an action would be done twice."""
    refused = False
    try:
        async with simulated.open("after") as ledger:
            for key in keys:
                refused |= not await key_is_true(ledger, samples, key, epoch)
    except LedgerCorrupt as error:
        assert error.code == "storage_unavailable"
        return True
    return refused


async def key_is_true(ledger: Ledger, samples, key: str, epoch: int) -> bool:
    try:
        answer = await ledger.lookup("phone-1", key, epoch)
        assert answer.receipt in (None, samples.committed(samples.pending(key)))
        assert answer.found or not answer.known, f"{key}: a false 'not found'"
        again = await samples.accept(ledger, samples.pending(key), token=9)
    except StorageUnavailable:
        return False
    assert answer.receipt is None or again == Existing(answer.receipt)
    return True


def with_flipped(snapshot: Snapshot, path: str, offset: int) -> Snapshot:
    content = bytearray(snapshot[path])
    content[offset] ^= 0x15
    return {**snapshot, path: bytes(content)}


async def test_a_flipped_byte_of_the_file_makes_no_answer_wrong(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    refusals = 0
    for offset in range(3, len(closed[FILE]), 67):
        simulated.disk.restore(with_flipped(closed, FILE, offset))
        refusals += await is_true_or_refused(simulated, samples, epoch)
    assert refusals > 20


def salt_of(file: bytes) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        # As a file in no WAL mode; a copy in memory has no log.
        connection.deserialize(file[:18] + bytes([1, 1]) + file[20:])
        (salt,) = connection.execute("SELECT salt FROM meta").fetchone()
    assert isinstance(salt, bytes)
    return salt


@pytest.mark.parametrize("what", ["salt", "tables"])
async def test_what_finds_the_rows_is_refused_when_damaged(simulated, samples, what):
    """With another salt, or another table, no key would be found."""
    _, closed, epoch = await lived(simulated, samples)
    sought = salt_of(closed[FILE]) if what == "salt" else b"fingerprint BLOB NOT NULL,"
    place = closed[FILE].index(sought)
    for offset in range(place, place + len(sought) - 1):
        simulated.disk.restore(with_flipped(closed, FILE, offset))
        if what == "salt" or offset < place + len("fingerprint"):
            with pytest.raises(LedgerCorrupt):
                async with simulated.open():
                    pass
        else:
            await is_true_or_refused(simulated, samples, epoch)


async def test_a_flipped_byte_of_the_log_loses_no_receipt_in_silence(simulated, samples):
    crashed, _, epoch = await lived(simulated, samples)
    # Behind the last receipt: three transactions of a frame and its padding.
    receipts_end = len(crashed[LOG]) - 6 * FRAME_BYTES
    offsets = [*range(32), *range(32, receipts_end, 911)]
    refusals = 0
    for offset in offsets:
        simulated.disk.restore(with_flipped(crashed, LOG, offset))
        refusals += await is_true_or_refused(simulated, samples, epoch)
    assert refusals > len(offsets) * 0.9
    simulated.disk.restore(crashed)
    assert not await is_true_or_refused(simulated, samples, epoch)


async def test_a_damaged_log_is_left_as_found(simulated, samples):
    crashed, _, _ = await lived(simulated, samples)
    simulated.disk.restore(with_flipped(crashed, LOG, FRAME_BYTES * 5))
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match="log is damaged"):
            async with simulated.open():
                pass
        assert len(simulated.disk.snapshot()[LOG]) == len(crashed[LOG])


def test_a_log_begun_over_one_that_is_in_the_file_is_no_damage():
    def frame(page: int, salts: bytes) -> bytes:
        return page.to_bytes(4, "big") + (9).to_bytes(4, "big") + salts + bytes(8) + bytes([page]) * 512

    old = b"".join(frame(page, b"old salt") for page in (1, 2, 3, 4))
    file = b"".join(bytes([page]) * 512 for page in (1, 2, 3, 4))
    assert missing_transactions(bytes(32) + old, 0, 512, lambda: file) == 0
    assert missing_transactions(bytes(32) + old, 0, 512, lambda: bytes(len(file))) == 4
    assert missing_transactions(bytes(32) + old, 4, 512, lambda: file) == 0
    assert missing_transactions(bytes(32) + old, 1, 512, lambda: file) == 3
    begun = frame(1, b"new salt") + old[len(frame(1, b"")) + 8 :]
    assert missing_transactions(bytes(32) + begun, 1, 512, lambda: file) == 0
    assert missing_transactions(b"", 0, 512, lambda: file) == 0


async def test_a_shortened_file_makes_no_answer_wrong(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    for size in range(0, len(closed[FILE]), 1024):
        simulated.disk.restore({**closed, FILE: closed[FILE][:size]})
        assert await is_true_or_refused(simulated, samples, epoch)


async def test_an_earlier_copy_from_any_moment_of_an_earlier_opening_is_noticed(simulated_ledger, samples):
    """Put back without its witness: beside the present one, or beside none."""
    simulated = simulated_ledger(1)
    copies: list[Snapshot] = []
    simulated.disk.after_hook = lambda op: copies.append(simulated.disk.snapshot())
    async with simulated.open() as ledger:
        await samples.finished(ledger, "early", acknowledged=True)
    simulated.disk.after_hook = None
    async with simulated.open() as ledger:
        for key in KEYS:
            await samples.finished(ledger, key)
        epoch = ledger.epoch
    present = simulated.disk.snapshot()[WITNESS]
    whole = [copy for copy in copies if FILE in copy]
    assert len(whole) > 50
    for copy in whole:
        for witness in ({WITNESS: present}, {}):
            older = {path: copy[path] for path in (FILE, LOG) if path in copy}
            simulated.disk.restore({**older, **witness})
            async with simulated.open("after") as ledger:
                assert ledger.renewed is not None
                assert ledger.epoch > epoch
                for key in ("early", *KEYS):
                    answer = await ledger.lookup("phone-1", key, epoch)
                    assert not answer.known or answer.found


@asynccontextmanager
async def settling(ledger: Ledger, samples, key: str):
    """While its outcome waits for the disk; done when this is left."""
    done = trio.Event()

    async def settle() -> None:
        await ledger.settle(samples.committed(samples.pending(key)))
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        await trio.sleep(5)
        assert not done.is_set()
        yield
        await done.wait()


async def refusal(ledger: Ledger, samples, key: str) -> StorageUnavailable:
    with pytest.raises(Refused) as refused:
        await samples.accept(ledger, samples.pending(key))
    assert isinstance(refused.value, StorageUnavailable)
    assert "card" in str(refused.value) or "free space" in str(refused.value)
    return refused.value


async def test_a_disk_full_for_good_takes_no_new_action_and_old_answers_stay_true(
    simulated, samples, autojump_clock
):
    async with simulated.open() as ledger:
        old = await samples.finished(ledger, "old")
        await samples.accept(ledger, samples.pending("open"))
        simulated.disk.free_bytes = 0
        async with settling(ledger, samples, "open"):
            assert (await refusal(ledger, samples, "new")).fault.kind == "full"
            assert ledger.storage_fault is not None
            assert (await ledger.lookup("phone-1", "old", ledger.epoch)).receipt == old
            assert (await ledger.lookup("phone-1", "open", ledger.epoch)).receipt == samples.pending("open")
            assert not (await ledger.lookup("phone-1", "new", ledger.epoch)).found
            assert await ledger.unacknowledged(9) == [old]
            simulated.disk.free_bytes = 2**30
        assert await samples.accept(ledger, samples.pending("new")) == Accepted()


async def test_while_no_sync_succeeds_nothing_is_taken_or_told_and_then_all_of_it_is_true(
    simulated, samples, autojump_clock
):
    """What the disk said it wrote may be gone from under SQLite: until it is read anew, no answer can be relied on."""

    def fail(op: DiskOp) -> None:
        if op.kind == "sync":
            raise DiskError(errno.EIO)

    async with simulated.open() as ledger:
        old = await samples.finished(ledger, "old")
        await samples.accept(ledger, samples.pending("open"))
        simulated.disk.hook = fail
        async with settling(ledger, samples, "open"):
            assert (await refusal(ledger, samples, "new")).fault.kind == "io"
            for _ in range(3):
                with pytest.raises(StorageUnavailable):
                    await ledger.lookup("phone-1", "old", ledger.epoch)
            simulated.disk.hook = None
        assert ledger.storage_fault is None
        assert (await ledger.lookup("phone-1", "old", ledger.epoch)).receipt == old
        assert not (await ledger.lookup("phone-1", "new", ledger.epoch)).found
        assert await samples.accept(ledger, samples.pending("new")) == Accepted()
        simulated.disk.power_cut("nothing")
    async with simulated.open() as ledger:
        assert await ledger.unacknowledged(9) == [old, samples.committed(samples.pending("open"))]
        assert [entry.receipt.idempotency_key for entry in await ledger.pending()] == ["new"]


def fail_once(simulated, kind: str) -> None:
    def fail(op: DiskOp) -> None:
        if op.kind == kind:
            simulated.disk.hook = None
            raise DiskError(errno.EIO)

    simulated.disk.hook = fail


@pytest.mark.parametrize("seed", range(12))
async def test_what_one_failing_sync_refused_is_not_there_whatever_the_disk_has_kept(
    simulated_ledger, samples, seed
):
    simulated = simulated_ledger(seed)
    async with simulated.open() as ledger:
        await samples.finished(ledger, "old")
        fail_once(simulated, "sync")
        assert (await refusal(ledger, samples, "new")).fault.kind == "io"
        assert not (await ledger.lookup("phone-1", "new", ledger.epoch)).found
        fail_once(simulated, "sync")
        with pytest.raises(StorageUnavailable):
            await ledger.set_hold("phone-1", Hold("a check", "technician"))
        assert ledger.hold("phone-1") is None
        assert await samples.accept(ledger, samples.pending("new")) == Accepted()
    async with simulated.open() as ledger:
        assert ledger.hold("phone-1") is None
        assert ledger.renewed is None


@pytest.mark.parametrize(("kind", "number"), [("write", errno.ENOSPC), ("write", errno.EIO)])
async def test_a_compaction_that_fails_for_good_stops_no_action(simulated, samples, kind, number):
    failed = 0

    def fail(op: DiskOp) -> None:
        nonlocal failed
        if op.kind == kind and op.file == FILE:
            failed += 1
            raise DiskError(number)

    async with simulated.open() as ledger:
        simulated.disk.hook = fail
        for number_of_action in range(CHECKPOINT_AFTER_WRITES):
            await samples.finished(ledger, str(number_of_action))
        assert failed
    simulated.disk.hook = None
    async with simulated.open() as ledger:
        assert len(await ledger.unacknowledged(999)) == CHECKPOINT_AFTER_WRITES


ACTIONS = CHECKPOINT_AFTER_WRITES // 2 + 5


async def acting(simulated, samples, hook) -> None:
    """So many actions that the log is moved into the file once; then the power fails."""
    async with simulated.open() as ledger:
        simulated.disk.hook = hook
        for number in range(ACTIONS):
            receipt = samples.pending(str(number))
            await samples.accept(ledger, receipt)
            await ledger.settle(samples.committed(receipt))
        simulated.disk.hook = None
        simulated.disk.power_cut("nothing")


@pytest.mark.parametrize("seed", range(4))
async def test_a_sync_that_fails_once_in_a_compaction_stops_no_action(simulated_ledger, samples, seed):
    """The ledger is opened anew, and nobody is told."""
    syncs: list[DiskOp] = []
    await acting(simulated_ledger(seed), samples, lambda op: syncs.append(op) if op.kind == "sync" else None)
    (of_file,) = [place for place, op in enumerate(syncs) if op.file == FILE]
    for failing in (syncs[of_file - 1], syncs[of_file]):

        def fail(op: DiskOp, number: int = failing.number) -> None:
            if op.number == number:
                raise DiskError(errno.EIO)

        simulated = simulated_ledger(seed)
        await acting(simulated, samples, fail)
        async with simulated.open() as ledger:
            assert len(await ledger.unacknowledged(999)) == ACTIONS
