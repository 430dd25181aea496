"""What is kept, what is let go, and what it costs the card."""

import errno
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from edge_daemon.bench.crash.disk import DiskError, DiskOp, SimDisk
from edge_daemon.bench.crash.disk_handle import DiskHandle
from edge_daemon.bench.crash.inline_writer import InlineWriter
from edge_daemon.contract import Actor, ReceiptAnswer, Refused, Resolution
from edge_daemon.ledger import Retention, open_ledger
from edge_daemon.ledger.commit import CHECKPOINT_AFTER_WRITES

MS_PER_HOUR = 3_600_000
NS_PER_HOUR = MS_PER_HOUR * 1_000_000
FRAME_BYTES = 4096 + 24
"""A page of the log with its header, https://www.sqlite.org/fileformat2.html#walformat."""


class Hours:
    """A monotonic clock that the test moves."""

    def __init__(self, hours: float = 0) -> None:
        self.hours = hours

    def __call__(self) -> int:
        return int(self.hours * NS_PER_HOUR)


async def test_only_old_acknowledged_receipts_beyond_the_newest_are_pruned(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        await samples.finished(ledger, "old", acknowledged=True)
        await samples.finished(ledger, "old-not-acknowledged")
        await samples.accept(ledger, samples.pending("old-pending"))
        clock.hours = 5
        await samples.finished(ledger, "young", acknowledged=True)
        assert (await ledger.prune(2 * MS_PER_HOUR, keep_newest=4)).removed == 0
        assert (await ledger.prune(5 * MS_PER_HOUR, keep_newest=0)).removed == 0
        assert (await ledger.prune(2 * MS_PER_HOUR, keep_newest=0)).removed == 1
        for key in ("old-not-acknowledged", "old-pending", "young"):
            assert (await ledger.lookup("phone-1", key, None)).found


async def test_the_newest_stay_however_old(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        for number in range(10):
            await samples.finished(ledger, f"key-{number}", acknowledged=True)
        clock.hours = 1000
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5)).removed == 5
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5)).removed == 1
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5)).removed == 0


async def test_a_pruned_key_is_neither_denied_nor_executed_again(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        first = ledger.epoch
        await samples.finished(ledger, "key-1", acknowledged=True)
        clock.hours = 9
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=0)).removed == 1
    async with open_ledger(ledger_path, clock) as ledger:
        for epoch in (None, first):
            assert await ledger.lookup("phone-1", "key-1", epoch) == ReceiptAnswer(
                known=False, found=False, epoch=first
            )
        with pytest.raises(Refused) as refused:
            await samples.accept(ledger, samples.pending("key-1"))
        assert refused.value.code == "idempotency_conflict"
        await ledger.acknowledge("phone-1", "key-1")


async def test_age_is_the_time_the_machine_ran_whatever_the_wall_clock_says(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock, boot_id="first") as ledger:
        await samples.finished(ledger, "key-1", acknowledged=True)
        clock.hours = 3
    clock.hours = 0.5
    async with open_ledger(ledger_path, clock, boot_id="second") as ledger:
        assert (await ledger.prune(3 * MS_PER_HOUR, keep_newest=0)).removed == 0
        clock.hours = 1.5
        assert (await ledger.prune(3 * MS_PER_HOUR, keep_newest=0)).removed == 1


async def test_the_clock_that_goes_on_across_boots_is_never_behind_an_outcome_whatever_a_crash_left_unnoted(
    simulated_ledger, samples, autojump_clock
):
    """Command ids are drawn from it, and a board that stays up judges by them."""
    simulated = simulated_ledger(3)
    for boot in ("first", "second", "third"):
        async with simulated.open(boot) as ledger:
            for number in range(300):
                await samples.finished(ledger, f"{boot}-{number}")
            before_ns = ledger.lived_ns()
            crashed = simulated.disk.snapshot()
        simulated.disk.restore(crashed)
        simulated.restart_clock()
        async with simulated.open(f"after {boot}") as ledger:
            assert ledger.lived_ns() > before_ns
            crashed = simulated.disk.snapshot()
        simulated.disk.restore(crashed)
        simulated.restart_clock()


async def test_a_damaged_stamp_does_not_push_the_clock_across_boots_ahead(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock, boot_id="first") as ledger:
        await samples.finished(ledger, "key-1", acknowledged=True)
    with closing(sqlite3.connect(ledger_path)) as sql, sql:
        sql.execute("UPDATE receipt SET settled = settled | (1 << 40)")
    async with open_ledger(ledger_path, clock, boot_id="second") as ledger:
        assert ledger.lived_ns() == 2 * NS_PER_HOUR


async def test_an_action_costs_the_card_five_pages(ledger_path, samples):
    """A page of receipts and one of keys to accept, one to settle, and after each commit the page that keeps it out of
    the next one's block. A page is full after six receipts and splits, which adds a third of a page to each."""
    log = Path(f"{ledger_path}-wal")
    actions = 120
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "the first makes room for its device")
        before = log.stat().st_size
        for number in range(actions):
            await samples.finished(ledger, f"key-{number}")
        assert 5 * FRAME_BYTES <= (log.stat().st_size - before) / actions < 5.4 * FRAME_BYTES
        before = log.stat().st_size
        await ledger.acknowledge("phone-1", "key-7")
        assert log.stat().st_size - before == 2 * FRAME_BYTES


async def test_devices_that_act_at_once_share_their_commits(ledger_path, samples, connections):
    async def act(device_id: str) -> None:
        for number in range(4):
            receipt = samples.pending(f"key-{number}", device_id)
            await samples.accept(ledger, receipt)
            await ledger.settle(samples.committed(receipt))

    async with open_ledger(ledger_path, connect=connections) as ledger:
        connections.statements.clear()
        async with trio.open_nursery() as nursery:
            for number in range(32):
                nursery.start_soon(act, f"phone-{number}")
        assert connections.statements.count("COMMIT") <= 32 * 4 * 2 / 4


async def test_the_log_is_used_again_instead_of_growing(ledger_path, samples):
    log = Path(f"{ledger_path}-wal")
    async with open_ledger(ledger_path) as ledger:
        for number in range(CHECKPOINT_AFTER_WRITES // 2 + 1):
            await samples.finished(ledger, f"first-{number}")
        await ledger.pending()
        size = log.stat().st_size
        for number in range(CHECKPOINT_AFTER_WRITES // 4):
            await samples.finished(ledger, f"second-{number}")
        assert log.stat().st_size == size


async def test_what_waits_for_a_review_is_kept_until_a_person_has_spoken(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        receipt = samples.pending("nobody-knows")
        await samples.accept(ledger, receipt)
        unknown = msgspec.structs.replace(
            receipt, status="failed", reason="outcome_unknown", requires_manual_review=True
        )
        await ledger.settle(unknown)
        await ledger.acknowledge("phone-1", "nobody-knows")
        clock.hours = 1000
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=0)).removed == 0
        resolution = Resolution(
            outcome="not_executed",
            note="looked",
            actor=Actor(kind="staff"),
            resolved_at="2025-06-01T13:00:00.000Z",
            clock_synced=False,
            boot_id="boot",
            resolved_ns=1,
        )
        await ledger.resolve("phone-1", "nobody-knows", resolution)
        clock.hours = 2000
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=0)).removed == 0
        await ledger.acknowledge("phone-1", "nobody-knows", resolved=True)
        assert (await ledger.prune(MS_PER_HOUR, keep_newest=0)).removed == 1


async def test_old_receipts_behind_many_that_must_stay_are_found(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        for number in range(7):
            await samples.finished(ledger, f"waits-{number}")
        await samples.finished(ledger, "old", acknowledged=True)
        clock.hours = 9
        removed, after = 0, 0
        while after is not None:
            pruned = await ledger.prune(MS_PER_HOUR, keep_newest=0, after=after, limit=3)
            removed, after = removed + pruned.removed, pruned.after
        assert removed == 1


async def test_the_daemons_task_prunes_in_short_turns_and_goes_on_after_a_bad_day(samples, autojump_clock):
    """On a virtual clock, which is the ledger's too: a day is over at once."""

    def no_room(op: DiskOp) -> None:
        if op.kind == "write":
            raise DiskError(errno.ENOSPC)

    rng = random.Random(1)
    disk = SimDisk(rng)
    handle = DiskHandle(disk, rng)
    opening = open_ledger(
        Path("/state/ledger.db"),
        lambda: round(trio.current_time() * 1e9),
        boot_id="boot",
        connect=handle.connect,
        files=handle.files(),
        new_writer=partial(InlineWriter, rng=rng),
    )
    async with opening as ledger, trio.open_nursery() as nursery:
        for number in range(250):
            await samples.finished(ledger, f"key-{number}", acknowledged=True)
        nursery.start_soon(Retention(ledger, keep_days=1, keep_newest=20).run)
        await trio.sleep(23 * 3600)
        assert (await ledger.lookup("phone-1", "key-0", None)).found
        disk.hook = no_room
        await trio.sleep(2 * 3600)
        assert (await ledger.lookup("phone-1", "key-0", None)).found
        disk.hook = None
        await trio.sleep(3600)
        kept = [
            number for number in range(250) if (await ledger.lookup("phone-1", f"key-{number}", None)).found
        ]
        assert kept == list(range(230, 250))
        nursery.cancel_scope.cancel()
