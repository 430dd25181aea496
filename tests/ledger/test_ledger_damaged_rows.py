"""A damaged row among the pending and the not acknowledged receipts: named once, left out, and it hides no other."""

import sqlite3
from contextlib import closing

import pytest

from edge_daemon.contract import Refused
from edge_daemon.ledger import LedgerCorrupt, open_ledger

CHECKSUM = "crc = crc + 1"
BEYOND_READING = "receipt = zeroblob(length(receipt))"


def damage(path, change, row_id):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(f"UPDATE receipt SET {change} WHERE id = ?", (row_id,)).rowcount == 1


def keys(receipts):
    return [receipt.idempotency_key for receipt in receipts]


def named(caplog):
    return [record.message for record in caplog.records if "nothing new is accepted" in record.message]


async def test_the_others_that_are_pending_are_found_and_the_damaged_ones_device_is_told(
    ledger_path, samples, caplog
):
    async with open_ledger(ledger_path) as ledger:
        for number in (1, 2, 3):
            await samples.accept(ledger, samples.pending(f"key-{number}", f"phone-{number}"))
    damage(ledger_path, CHECKSUM, 2)
    async with open_ledger(ledger_path) as ledger:
        for _ in range(2):
            assert keys(entry.receipt for entry in await ledger.pending()) == ["key-1", "key-3"]
        assert "receipt row 2" in str(ledger.damage("phone-2"))
        assert ledger.damage("phone-1") is ledger.damage("phone-3") is None
        (words,) = named(caplog)
        assert "nothing new is accepted for phone-2" in words
        assert "begin anew" in words


async def test_when_not_even_its_device_can_be_told_it_concerns_all(ledger_path, samples, caplog):
    async with open_ledger(ledger_path) as ledger:
        for number in (1, 2):
            await samples.accept(ledger, samples.pending(f"key-{number}", f"phone-{number}"))
    damage(ledger_path, BEYOND_READING, 2)
    async with open_ledger(ledger_path) as ledger:
        assert keys(entry.receipt for entry in await ledger.pending()) == ["key-1"]
        assert ledger.damage("phone-1") is not None
        assert ledger.damage("phone-9") is not None
        (words,) = named(caplog)
        assert "nothing new is accepted for every device" in words


async def test_a_name_that_its_key_does_not_vouch_for_is_not_believed(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        for number in (1, 2):
            await samples.accept(ledger, samples.pending(f"key-{number}", f"phone-{number}"))
    damage(ledger_path, "receipt = CAST(replace(CAST(receipt AS TEXT), 'phone-2', 'phone-1') AS BLOB)", 2)
    async with open_ledger(ledger_path) as ledger:
        await ledger.pending()
        assert ledger.damage("phone-2") is not None


async def test_a_ledger_none_of_whose_receipts_can_be_read_opens_and_nothing_new_may_be_done(
    ledger_path, samples
):
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "key-1", acknowledged=True)
    damage(ledger_path, BEYOND_READING, 1)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.damage("phone-1") is not None
        assert await ledger.pending() == []
        with pytest.raises(Refused, match="does not match its checksum"):
            await ledger.lookup("phone-1", "key-1", None)


@pytest.mark.parametrize("damaged", [(1,), (2,), (1, 2), (1, 2, 3)])
async def test_the_outbox_goes_on_past_damaged_receipts(ledger_path, samples, caplog, damaged):
    found: list[str] = []
    async with open_ledger(ledger_path) as ledger:
        for number in range(1, 6):
            await samples.finished(ledger, f"key-{number}")
        ledger.watch_damage(lambda: found.append(str(ledger.damage("phone-1"))))
        for row_id in damaged:
            damage(ledger_path, CHECKSUM, row_id)
        left = [f"key-{number}" for number in range(1, 6) if number not in damaged]
        assert keys(await ledger.unacknowledged(2)) == left[:2], "as many as were asked for"
        assert len(found) >= 1
        for key in left:
            await ledger.acknowledge("phone-1", key)
        assert await ledger.unacknowledged(9) == []
        assert len(named(caplog)) == len(damaged)
    async with open_ledger(ledger_path) as ledger:
        assert await ledger.unacknowledged(9) == []
        assert ledger.damage("phone-1") is not None, "and found again at the next start"


async def test_an_outcome_that_a_damaged_row_cannot_take_is_refused_and_concerns_its_device(
    ledger_path, samples
):
    async with open_ledger(ledger_path) as ledger:
        for number in (1, 2):
            await samples.accept(ledger, samples.pending(f"key-{number}", f"phone-{number}"))
        damage(ledger_path, BEYOND_READING, 1)
        with pytest.raises(LedgerCorrupt):
            await ledger.settle(samples.committed(samples.pending("key-1", "phone-1")))
        assert ledger.damage("phone-1") is not None
        assert ledger.damage("phone-2") is None
        await ledger.settle(samples.committed(samples.pending("key-2", "phone-2")))
