"""A person's word on what nobody could tell, and how people find it."""

import sqlite3

import msgspec
import pytest

from edge_daemon.contract import Actor, Receipt, ReceiptQuery, Refused, Resolution, error_info
from edge_daemon.ledger import LedgerCorrupt, SettledAlready, UnknownReceipt, open_ledger

JO = Actor(kind="staff", id="jo")


def unknown(receipt: Receipt) -> Receipt:
    return msgspec.structs.replace(
        receipt,
        status="failed",
        failed_at="2025-06-01T12:35:27.000Z",
        finished_ns=123_487_000_000_000,
        error=error_info("outcome_unknown", "its board did not appear. A person must look"),
        reason="outcome_unknown",
        requires_manual_review=True,
    )


def resolution(outcome: str = "committed", note: str = "the app is open") -> Resolution:
    return Resolution(
        outcome=outcome,
        note=note,
        actor=JO,
        resolved_at="2025-06-01T13:00:00.000Z",
        clock_synced=True,
        boot_id="boot",
        resolved_ns=5,
    )


async def told_unknown(ledger, samples, key: str, device_id: str = "phone-1") -> Receipt:
    pending = samples.pending(key, device_id)
    await samples.accept(ledger, pending)
    await ledger.settle(unknown(pending))
    return unknown(pending)


async def test_a_resolution_stands_beside_the_receipts_own_word_and_outlives_a_restart(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        before = await told_unknown(ledger, samples, "key-1")
        after = await ledger.resolve("phone-1", "key-1", resolution())
        assert after.resolution == resolution()
        assert not after.requires_manual_review
        undone = msgspec.structs.replace(after, resolution=None, requires_manual_review=True)
        assert undone == before
    async with open_ledger(ledger_path) as ledger:
        assert (await ledger.lookup("phone-1", "key-1", None)).receipt == after
        assert await samples.accept(ledger, samples.pending("key-1")) is not None
        with pytest.raises(SettledAlready):
            await ledger.settle(samples.committed(samples.pending("key-1")))


async def test_the_first_word_stands(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await told_unknown(ledger, samples, "key-1")
        first = await ledger.resolve("phone-1", "key-1", resolution())
        assert await ledger.resolve("phone-1", "key-1", resolution(note="looked again")) == first
        with pytest.raises(Refused, match="resolved as committed by jo"):
            await ledger.resolve("phone-1", "key-1", resolution("not_executed"))
        assert (await ledger.lookup("phone-1", "key-1", None)).receipt == first


async def test_only_what_nobody_can_tell_is_resolved(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("pending"))
        await samples.finished(ledger, "committed")
        for key, why in (
            ("pending", "is pending and needs no review"),
            ("committed", "is committed and needs"),
        ):
            with pytest.raises(Refused, match=why):
                await ledger.resolve("phone-1", key, resolution())
        with pytest.raises(UnknownReceipt, match="could be resolved"):
            await ledger.resolve("phone-1", "never-seen", resolution())


async def test_the_plane_hears_of_it_after_whatever_else_waits(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await told_unknown(ledger, samples, "key-1")
        await ledger.acknowledge("phone-1", "key-1")
        other = await samples.finished(ledger, "key-2")
        after = await ledger.resolve("phone-1", "key-1", resolution())
        assert await ledger.unacknowledged(9) == [other, after]
    async with open_ledger(ledger_path) as ledger:
        assert await ledger.unacknowledged(9) == [other, after]
        await ledger.acknowledge("phone-1", "key-1", resolved=True)
        assert await ledger.unacknowledged(9) == [other]
    async with open_ledger(ledger_path) as ledger:
        assert await ledger.unacknowledged(9) == [other]


async def test_an_acknowledgement_of_the_earlier_word_does_not_cover_the_resolution(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await told_unknown(ledger, samples, "key-1")
        after = await ledger.resolve("phone-1", "key-1", resolution())
        await ledger.acknowledge("phone-1", "key-1")
        assert await ledger.unacknowledged(9) == [after]


async def test_the_same_outcome_settled_again_changes_nothing(ledger_path, samples):
    """A commit that was refused may have become durable all the same; what is owed is then written again."""
    async with open_ledger(ledger_path) as ledger:
        final = await samples.finished(ledger, "key-1")
        await ledger.settle(final)
        assert await ledger.unacknowledged(9) == [final]


async def test_an_acknowledgement_that_became_durable_unnoticed_holds_nothing_up(
    ledger_path, samples, connections
):
    async with open_ledger(ledger_path, connect=connections) as ledger:
        for number in range(4):
            await samples.finished(ledger, f"key-{number}")
        connections.latest.execute("UPDATE receipt SET acknowledged = 1 WHERE id <= 2")
        assert await ledger.unacknowledged(2) == []
        assert [one.idempotency_key for one in await ledger.unacknowledged(2)] == ["key-2", "key-3"]


async def test_receipts_are_found_newest_first_by_device_kind_review_and_label(ledger_path, samples):
    async def keys(**wanted: object) -> list[str]:
        return [one.idempotency_key for one in (await ledger.receipts(ReceiptQuery(**wanted))).receipts]

    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "done")
        await told_unknown(ledger, samples, "reviewed")
        await ledger.resolve("phone-1", "reviewed", resolution())
        await told_unknown(ledger, samples, "open", "phone-2")
        refused = samples.pending("refused")
        await samples.accept(ledger, refused)
        await ledger.settle(
            msgspec.structs.replace(refused, status="failed", error=error_info("expired", "too late"))
        )
        late = msgspec.structs.replace(samples.pending("late"), requested_at="2025-06-02T00:00:00.000Z")
        await samples.accept(ledger, late)
        assert await keys() == ["late", "refused", "open", "reviewed", "done"]
        assert await keys(oldest_first=True) == ["done", "reviewed", "open", "refused", "late"]
        assert await keys(device_id="phone-2") == ["open"]
        assert await keys(kind="unknown") == ["open", "reviewed"]
        assert await keys(kind="failed") == ["refused"]
        assert await keys(kind="pending") == ["late"]
        assert await keys(needs_review=True) == ["open"]
        assert await keys(since="2025-06-02") == ["late"]


@pytest.mark.parametrize("oldest_first", [False, True])
async def test_pages_hold_every_receipt_once_however_few_of_them_are_wanted(
    ledger_path, samples, monkeypatch, oldest_first
):
    monkeypatch.setattr("edge_daemon.ledger.books.PAGE_ROWS", 3)
    async with open_ledger(ledger_path) as ledger:
        for number in range(10):
            device_id = "phone-2" if number % 4 == 0 else "phone-1"
            await samples.accept(ledger, samples.pending(f"key-{number}", device_id))
        for query, wanted in (
            (ReceiptQuery(limit=2), range(10)),
            (ReceiptQuery(device_id="phone-2"), range(0, 10, 4)),
        ):
            found, pages, cursor = [], 0, None
            while pages == 0 or cursor is not None:
                asked = msgspec.structs.replace(query, oldest_first=oldest_first, cursor=cursor)
                page = await ledger.receipts(asked)
                assert len(page.receipts) <= query.limit
                found += [receipt.idempotency_key for receipt in page.receipts]
                cursor, pages = page.next, pages + 1
            order = list(wanted) if oldest_first else list(wanted)[::-1]
            assert found == [f"key-{number}" for number in order]
            assert pages >= 4


async def test_a_ledger_from_before_resolutions_keeps_its_outbox_and_finds_its_reviews(
    older_ledger, ledger_path, samples
):
    receipts = (samples.committed(samples.pending("a")), unknown(samples.pending("b")))
    rows = [older_ledger.receipt_row(receipt, settled) for settled, receipt in enumerate(receipts)]
    older_ledger.made(2, rows=rows)
    async with open_ledger(ledger_path) as ledger:
        assert [one.idempotency_key for one in await ledger.unacknowledged(9)] == ["a", "b"]
        page = await ledger.receipts(ReceiptQuery(needs_review=True))
        assert [one.idempotency_key for one in page.receipts] == ["b"]


async def test_a_review_that_is_filed_as_none_is_no_answer(ledger_path, samples):
    """Also in a row from before what it is filed as was kept twice."""
    async with open_ledger(ledger_path) as ledger:
        await told_unknown(ledger, samples, "key-1")
    with sqlite3.connect(ledger_path) as file:
        file.execute("UPDATE receipt SET review = 0, filed = -9")
    file.close()
    async with open_ledger(ledger_path) as ledger:
        with pytest.raises(LedgerCorrupt, match="waits for a review"):
            await ledger.lookup("phone-1", "key-1", None)
