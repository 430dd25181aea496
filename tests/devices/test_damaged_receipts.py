"""One damaged row of the ledger: the rig goes on, its device does nothing new, everybody is told once and truly."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from edge_daemon.cli.devices import _show
from edge_daemon.contract import Refused, Tap, TypeText, canonical
from edge_daemon.ledger import CommandRef

TAP = Tap(x=250.0, y=750.0)
DEVICE = "phone-1"
DAMAGE = "UPDATE receipt SET crc = crc + 1 WHERE "
BEYOND_READING = "UPDATE receipt SET receipt = zeroblob(length(receipt)) WHERE "

RunRig = Callable[[], AbstractAsyncContextManager[Any]]


def damage(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount == 1


async def left_pending(rig: Any, key: str, device_id: str = DEVICE) -> None:
    """As a daemon that died leaves it."""
    receipt = (await rig.ledger.lookup(DEVICE, "old", None)).receipt
    receipt = msgspec.structs.replace(
        receipt,
        device_id=device_id,
        idempotency_key=key,
        status="pending",
        committed_at=None,
        finished_ns=None,
    )
    (board,) = (
        said for said in rig.fleet.devices()[0].metadata.values() if isinstance(said, dict) and "uid" in said
    )
    command = CommandRef(board_uid=board["uid"], board_boot_id=board["bootId"] ^ 1, cmd_id=1)
    await rig.ledger.accept(receipt, canonical(TAP), 1, command)


async def refuses_what_is_new_and_says_how_to_go_on(rig: Any) -> None:
    touches = len(rig.phone.touches)
    refused = (await rig.dispatch("new", TAP)).error
    assert refused.code == "storage_unavailable"
    assert not refused.retryable
    assert "does not match its checksum" in refused.message or "cannot be read" in refused.message
    assert "begin anew" in refused.message
    assert len(rig.phone.touches) == touches
    (device,) = rig.fleet.devices()
    assert "begin anew" in device.metadata["storageFault"]
    assert (await rig.fleet.get_receipt(DEVICE, "old", None)).receipt.status == "committed"
    assert (await rig.dispatch("old", TAP)).receipt.status == "committed", "old answers are truthful"


def drained(changes: trio.MemoryReceiveChannel[Any]) -> list[Any]:
    found = []
    while True:
        try:
            found.append(changes.receive_nowait())
        except trio.WouldBlock:
            return found


def times_named(caplog: pytest.LogCaptureFixture) -> int:
    return sum("nothing new is accepted for" in record.message for record in caplog.records)


async def test_a_receipt_damaged_while_its_action_is_under_way_ends_that_action_and_not_the_daemon(
    run_rig: RunRig, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Any] = []
    async with run_rig() as rig:
        assert (await rig.dispatch("old", TAP)).receipt.status == "committed"

        async def type_text() -> None:
            told.append(await rig.dispatch("under-way", TypeText(text="abcdefgh" * 10)))

        with rig.fleet.subscribe() as changes:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(type_text)
                await rig.rig.wait_for(lambda: len(rig.phone.typed) > 8)
                damage(rig.ledger_path, DAMAGE + "settled IS NULL")
            said = [getattr(change, "metadata", {}) for change in drained(changes)]
            assert any("storageFault" in metadata for metadata in said), "whoever watches is told at once"
        (outcome,) = told
        assert len(rig.phone.typed) == 80
        # It was executed, so it is no refusal, which would say that nothing was.
        assert outcome.error is None
        assert outcome.receipt.requires_manual_review
        assert outcome.receipt.error.code == "storage_unavailable"
        assert "its outcome, committed, could not be recorded" in outcome.receipt.error.message
        again = await rig.dispatch("under-way", TypeText(text="abcdefgh" * 10))
        assert again.error.code == "storage_unavailable"
        assert len(rig.phone.typed) == 80, "and it is not typed again"
        await refuses_what_is_new_and_says_how_to_go_on(rig)
        assert times_named(caplog) == 1
        _show(rig.fleet.devices())
        assert "phone-1: nothing new is accepted: ledger" in capsys.readouterr().out


@pytest.mark.parametrize("how", [DAMAGE, BEYOND_READING])
async def test_a_receipt_found_damaged_at_the_start_does_not_keep_the_rig_from_starting(
    run_rig: RunRig, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async with run_rig() as rig:
        assert (await rig.dispatch("old", TAP)).receipt.status == "committed"
        await left_pending(rig, "pending")
        await left_pending(rig, "behind")
        damage(
            rig.ledger_path,
            how + "settled IS NULL AND id = (SELECT min(id) FROM receipt WHERE settled IS NULL)",
        )
    async with run_rig() as rig:
        await refuses_what_is_new_and_says_how_to_go_on(rig)
        with pytest.raises(Refused, match="receipt row"):
            await rig.fleet.get_receipt(DEVICE, "pending", None)
        # Its board has restarted since, for all that is known: asked about, not guessed.
        assert (await rig.dispatch("behind", TAP)).receipt.reason == "outcome_unknown"
        assert times_named(caplog) == 1


async def test_the_way_out_that_is_named_leads_out(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        epoch = rig.ledger.epoch
        assert (await rig.dispatch("old", TAP, epoch=epoch)).receipt.status == "committed"
        await left_pending(rig, "pending")
        damage(rig.ledger_path, DAMAGE + "settled IS NULL")
    rig.ledger_path.rename(rig.ledger_path.with_name("damaged"))
    async with run_rig() as rig:
        (device,) = rig.fleet.devices()
        assert "storageFault" not in device.metadata
        assert (await rig.dispatch("new", TAP)).receipt.status == "committed"
        for key in ("old", "pending"):
            assert (await rig.dispatch(key, TAP, epoch=epoch)).error.code == "outcome_unknown"
        assert len(rig.phone.touches) == 2
