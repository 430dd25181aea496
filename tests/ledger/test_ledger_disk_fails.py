"""A disk that has failed for good, or at a bad moment: refused with the reason, and old answers stay true."""

import errno
from contextlib import asynccontextmanager

import pytest
import trio

from edge_daemon.bench.crash.disk import DiskError, DiskOp
from edge_daemon.contract import Refused
from edge_daemon.ledger import Accepted, Hold, Ledger, StorageUnavailable
from edge_daemon.ledger.commit import CHECKPOINT_AFTER_WRITES

FILE = "/state/ledger.db"


@pytest.fixture
def simulated(simulated_ledger):
    return simulated_ledger(1)


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
