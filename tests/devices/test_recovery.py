"""What was pending when the process died is settled, whatever has become of its device, its board and its row."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from edge_daemon.clock import PlaneClock
from edge_daemon.contract import Receipt, Refused, Tap, canonical
from edge_daemon.devices.receipts import ReceiptWriter
from edge_daemon.devices.recovery import Recovery
from edge_daemon.ledger import CommandRef, Ledger, open_ledger

TAP = Tap(x=250.0, y=750.0)
REMOVED = "phone-removed"
GONE = CommandRef(board_uid="gone", board_boot_id=1, cmd_id=1)

RunRig = Callable[[], AbstractAsyncContextManager[Any]]


async def final(ledger: Ledger, key: str) -> Receipt:
    """Once it is."""
    while True:
        receipt = (await ledger.lookup(REMOVED, key, None)).receipt
        assert receipt is not None
        if receipt.status != "pending":
            return receipt
        await trio.sleep(0)


def recovery_without_boards(ledger: Ledger, entries: Any, told: list[Receipt]) -> Recovery:
    writer = ReceiptWriter("esp32_hid", "boot", PlaneClock(), ledger)
    return Recovery(entries, [], ledger, writer, time.monotonic_ns, told.append)


async def test_receipts_of_a_device_that_is_not_configured_any_more_end_by_the_word_of_their_board(
    run_rig: RunRig, pending_receipt: Callable[..., Receipt]
) -> None:
    async with run_rig() as rig:
        (board,) = (
            said
            for said in rig.fleet.devices()[0].metadata.values()
            if isinstance(said, dict) and "uid" in said
        )
        command = CommandRef(board_uid=board["uid"], board_boot_id=board["bootId"], cmd_id=1)
        await rig.ledger.accept(pending_receipt("first", device_id=REMOVED), canonical(TAP), 1, command)
        await rig.ledger.accept(pending_receipt("behind", device_id=REMOVED), canonical(TAP), 1, command)
    async with run_rig() as rig:
        with trio.fail_after(10):
            for key in ("first", "behind"):
                receipt = await final(rig.ledger, key)
                # Its board stands in the rig by another name, has stayed up, and knows that it never had it.
                assert (receipt.status, receipt.reason) == ("failed", "interrupted_by_restart")
                assert not receipt.requires_manual_review
        pushed = [receipt.idempotency_key for receipt in await rig.ledger.unacknowledged(9)]
        assert pushed == ["first", "behind"]


async def test_without_a_board_to_ask_the_first_is_unknown_for_a_person_to_settle_and_those_behind_were_not_begun(
    tmp_path: Path, pending_receipt: Callable[..., Receipt]
) -> None:
    told: list[Receipt] = []
    async with open_ledger(tmp_path / "ledger") as ledger:
        for key in ("first", "behind"):
            await ledger.accept(pending_receipt(key, device_id=REMOVED), canonical(TAP), 1, GONE)
        await recovery_without_boards(ledger, await ledger.pending(), told).run()
        assert [(receipt.reason, receipt.requires_manual_review) for receipt in told] == [
            ("outcome_unknown", True),
            ("interrupted_by_restart", False),
        ]
        assert await ledger.pending() == []


async def test_a_row_damaged_between_the_start_and_its_settling_does_not_keep_the_others_from_theirs(
    tmp_path: Path, pending_receipt: Callable[..., Receipt]
) -> None:
    told: list[Receipt] = []
    path = tmp_path / "ledger"
    async with open_ledger(path) as ledger:
        for key in ("damaged", "behind"):
            await ledger.accept(pending_receipt(key, device_id=REMOVED), canonical(TAP), 1, GONE)
        entries = await ledger.pending()
        with closing(sqlite3.connect(path)) as sql, sql:
            sql.execute("UPDATE receipt SET fingerprint = zeroblob(length(fingerprint)) WHERE id = 1")
        recovery = recovery_without_boards(ledger, entries, told)
        await recovery.run()
        assert [receipt.idempotency_key for receipt in told] == ["behind"]
        assert ledger.damage(REMOVED) is not None
        with pytest.raises(Refused, match="does not match its checksum"):
            await recovery.final(entries[0].receipt)
        assert (await recovery.final(msgspec.structs.replace(entries[1].receipt))).status == "failed"
