"""What is kept, what is let go, and what it costs the card."""

from pathlib import Path

import pytest

from edge_daemon.contract import ReceiptAnswer, Refused
from edge_daemon.ledger import open_ledger
from edge_daemon.ledger.commit import CHECKPOINT_AFTER_WRITES

MS_PER_HOUR = 3_600_000
NS_PER_HOUR = MS_PER_HOUR * 1_000_000
ACCEPT_AND_SETTLE_BUDGET_BYTES = 30_000


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
        assert await ledger.prune(2 * MS_PER_HOUR, keep_newest=4) == 0
        assert await ledger.prune(5 * MS_PER_HOUR, keep_newest=0) == 0
        assert await ledger.prune(2 * MS_PER_HOUR, keep_newest=0) == 1
        for key in ("old-not-acknowledged", "old-pending", "young"):
            assert (await ledger.lookup("phone-1", key, None)).found


async def test_the_newest_stay_however_old(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        for number in range(10):
            await samples.finished(ledger, f"key-{number}", acknowledged=True)
        clock.hours = 1000
        assert await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5) == 5
        assert await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5) == 1
        assert await ledger.prune(MS_PER_HOUR, keep_newest=4, limit=5) == 0


async def test_a_pruned_key_is_neither_denied_nor_executed_again(ledger_path, samples):
    clock = Hours(1)
    async with open_ledger(ledger_path, clock) as ledger:
        await samples.finished(ledger, "key-1", acknowledged=True)
        clock.hours = 9
        assert await ledger.prune(MS_PER_HOUR, keep_newest=0) == 1
    async with open_ledger(ledger_path, clock) as ledger:
        for epoch in (None, 1):
            assert await ledger.lookup("phone-1", "key-1", epoch) == ReceiptAnswer(
                known=False, found=False, epoch=1
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
        assert await ledger.prune(3 * MS_PER_HOUR, keep_newest=0) == 0
        clock.hours = 1.5
        assert await ledger.prune(3 * MS_PER_HOUR, keep_newest=0) == 1


async def test_an_action_costs_the_card_few_bytes(ledger_path, samples):
    log = Path(f"{ledger_path}-wal")
    actions = 50
    async with open_ledger(ledger_path) as ledger:
        before = log.stat().st_size
        for number in range(actions):
            await samples.finished(ledger, f"key-{number}")
        assert (log.stat().st_size - before) / actions < ACCEPT_AND_SETTLE_BUDGET_BYTES


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
