"""What the ledger promises about a receipt, from acceptance to acknowledgement."""

import msgspec
import pytest
import trio
import trio.testing

from edge_daemon.contract import ReceiptAnswer, Refused, Tap, TypeText, canonical
from edge_daemon.ledger import (
    Accepted,
    Existing,
    LedgerClosed,
    PendingEntry,
    SettledAlready,
    UnknownReceipt,
    open_ledger,
)


async def test_a_new_key_is_accepted_and_found_pending(ledger_path, samples):
    receipt = samples.pending("key-1")
    async with open_ledger(ledger_path) as ledger:
        assert await samples.accept(ledger, receipt) == Accepted()
        assert await ledger.lookup("phone-1", "key-1", None) == ReceiptAnswer(
            known=True, found=True, epoch=ledger.epoch, receipt=receipt
        )
        assert await ledger.pending() == [PendingEntry(receipt, samples.command)]


async def test_the_same_key_with_the_same_action_is_answered_with_what_exists(ledger_path, samples):
    receipt = samples.pending("key-1")
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, receipt)
        assert await samples.accept(ledger, receipt) == Existing(receipt)
        await ledger.settle(samples.committed(receipt))
        assert await samples.accept(ledger, receipt) == Existing(samples.committed(receipt))


async def test_of_two_acceptances_at_the_same_time_one_wins(ledger_path, samples):
    receipt = samples.pending("key-1")
    answers = []

    async def accept() -> None:
        answers.append(await samples.accept(ledger, receipt))

    async with open_ledger(ledger_path) as ledger:
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(accept)
    assert answers.count(Accepted()) == 1
    assert answers.count(Existing(receipt)) == 7


async def test_the_same_key_with_another_action_is_a_conflict(ledger_path, samples):
    other = Tap(x=512.25, y=733.75)
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("key-1"))
        with pytest.raises(Refused) as refused:
            await samples.accept(ledger, samples.pending("key-1", action=other), action=other)
        assert refused.value.code == "idempotency_conflict"
        await samples.accept(ledger, samples.pending("key-1", "phone-2", other), action=other)
        assert len(await ledger.pending()) == 2


async def test_device_and_key_are_told_apart_where_they_meet(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("bc", "a"))
        assert await samples.accept(ledger, samples.pending("c", "ab")) == Accepted()


async def test_a_receipt_is_settled_exactly_once(ledger_path, samples):
    receipt = samples.pending("key-1")
    late = msgspec.structs.replace(
        receipt, status="failed", reason="outcome_unknown", requires_manual_review=True
    )
    async with open_ledger(ledger_path) as ledger:
        with pytest.raises(UnknownReceipt):
            await ledger.settle(samples.committed(receipt))
        await samples.accept(ledger, receipt)
        await ledger.settle(samples.committed(receipt))
        with pytest.raises(SettledAlready) as settled:
            await ledger.settle(late)
        assert settled.value.receipt == samples.committed(receipt)
        assert (await ledger.lookup("phone-1", "key-1", None)).receipt == samples.committed(receipt)
        assert await ledger.pending() == []


async def test_a_receipt_comes_in_pending_and_goes_out_final(ledger_path, samples):
    receipt = samples.pending("key-1")
    async with open_ledger(ledger_path) as ledger:
        with pytest.raises(ValueError, match="pending"):
            await samples.accept(ledger, samples.committed(receipt))
        await samples.accept(ledger, receipt)
        with pytest.raises(ValueError, match="pending"):
            await ledger.settle(receipt)


async def test_final_receipts_wait_in_order_of_settling_until_acknowledged(ledger_path, samples):
    def stopped() -> int:
        """Order must not hang on a clock that moves."""
        return 3_600_000_000_000

    receipts = {key: samples.pending(key) for key in ("a", "b", "c", "d")}
    async with open_ledger(ledger_path, stopped) as ledger:
        for receipt in receipts.values():
            await samples.accept(ledger, receipt)
        for key in ("c", "a", "d"):
            await ledger.settle(samples.committed(receipts[key]))
        assert [receipt.idempotency_key for receipt in await ledger.unacknowledged(2)] == ["c", "a"]
    async with open_ledger(ledger_path, stopped) as ledger:
        await ledger.settle(samples.committed(receipts["b"]))
        assert [receipt.idempotency_key for receipt in await ledger.unacknowledged(9)] == ["c", "a", "d", "b"]
        await ledger.acknowledge("phone-1", "a")
        await ledger.acknowledge("phone-1", "a")
        assert [receipt.idempotency_key for receipt in await ledger.unacknowledged(9)] == ["c", "d", "b"]
    async with open_ledger(ledger_path, stopped) as ledger:
        assert await ledger.unacknowledged(9) == [samples.committed(receipts[key]) for key in ("c", "d", "b")]
        assert (await ledger.lookup("phone-1", "a", None)).found


async def test_only_a_final_receipt_can_be_acknowledged(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("key-1"))
        for key in ("key-1", "never-seen"):
            with pytest.raises(UnknownReceipt):
                await ledger.acknowledge("phone-1", key)


async def test_typed_text_is_in_none_of_the_files(ledger_path, samples):
    secret = "Tr0ub4dor&3-Grüße"
    action = TypeText(text=secret)
    async with open_ledger(ledger_path) as ledger:
        receipt = samples.pending("key-1", action=action, text_digest=ledger.digest(secret))
        await samples.accept(ledger, receipt, action=action)
        await ledger.settle(samples.committed(receipt))
        names = {file.name for file in ledger_path.parent.iterdir()}
        content = b"".join(file.read_bytes() for file in ledger_path.parent.iterdir())
    assert {"ledger.db", "ledger.db-wal"} <= names
    assert b"org_4f8a1c" in content
    for form in (secret.encode(), secret.encode("utf-16-le"), canonical(action), b"Tr0ub4dor"):
        assert form not in content


async def test_digests_are_salted_per_ledger_and_stable_within_one(tmp_path):
    async with open_ledger(tmp_path / "one.db") as one, open_ledger(tmp_path / "other.db") as other:
        digest = one.digest("1234")
        assert digest != one.digest("1235")
        assert digest != other.digest("1234")
        assert one.ledger_id != other.ledger_id
    async with open_ledger(tmp_path / "one.db") as one:
        assert one.digest("1234") == digest


async def test_a_cancelled_wait_does_not_undo_what_was_queued(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(samples.accept, ledger, samples.pending(f"key-{number}"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    async with open_ledger(ledger_path) as ledger:
        assert len(await ledger.pending()) == 5
        assert ledger.highest_token("phone-1") == 1


async def test_after_closing_it_says_so(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        pass
    with pytest.raises(LedgerClosed):
        await samples.accept(ledger, samples.pending("key-1"))
