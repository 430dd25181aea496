"""A ledger of an earlier schema version: brought up to date with all it knew, wherever the power fails meanwhile."""

import random
import sqlite3

import pytest

from edge_daemon.bench.crash.disk import DiskOp
from edge_daemon.contract import Refused
from edge_daemon.ledger import Hold, LedgerCorrupt, open_ledger

SPENT = [f"spent-{number}" for number in range(300)]
DEVICES = """
    INSERT INTO device VALUES ('phone-1', 9007199254740991, 'a check', 'jo#1', NULL, NULL);
    INSERT INTO device VALUES ('phone-2', 3, NULL, NULL, 'a password', 'landscape_right');
    INSERT INTO device VALUES ('phone-ü', 0, NULL, NULL, '', NULL);
"""


@pytest.fixture
def of_version_3(older_ledger, samples):
    """Two receipts wait for their plane; of 300 only the digests are left."""
    spent = [
        ("INSERT INTO spent_key VALUES (?)", (older_ledger.digests.key("phone-1", key),)) for key in SPENT
    ]
    receipts = [
        older_ledger.receipt_row(samples.committed(samples.pending(key)), settled)
        for settled, key in enumerate(("first", "second"), start=80_000)
    ]
    older_ledger.made(3, DEVICES, spent + receipts)
    return older_ledger


async def must_know_all_of_it(ledger, older, samples) -> None:
    assert ledger.renewed is None
    assert (ledger.epoch, ledger.ledger_id) == (older.epoch, older.ledger_id)
    assert ledger.hold("phone-1") == Hold("a check", "jo#1")
    assert ledger.highest_token("phone-1") == 2**53 - 1
    assert (ledger.parked_note("phone-1"), ledger.orientation("phone-1")) == (None, None)
    assert (ledger.hold("phone-2"), ledger.parked_note("phone-2")) == (None, "a password")
    assert (ledger.highest_token("phone-2"), ledger.orientation("phone-2")) == (3, "landscape_right")
    assert ledger.parked("phone-ü")
    assert [one.idempotency_key for one in await ledger.unacknowledged(9)] == ["first", "second"]
    for key in SPENT:
        answer = await ledger.lookup("phone-1", key, older.epoch)
        assert (answer.known, answer.found) == (False, False)
    for key in SPENT[::10]:
        with pytest.raises(Refused) as refused:
            await samples.accept(ledger, samples.pending(key), token=2**53 - 1, epoch=older.epoch)
        assert refused.value.code == "idempotency_conflict"
    absent = await ledger.lookup("phone-1", "never sent", older.epoch)
    assert (absent.known, absent.found) == (True, False)


async def test_what_was_known_before_rows_had_checks_is_known_after(of_version_3, samples):
    for _ in range(2):
        async with open_ledger(of_version_3.path) as ledger:
            await must_know_all_of_it(ledger, of_version_3, samples)


async def test_time_lived_goes_on(of_version_3, samples):
    """Noted are 70,000 ms, and 5,000 in the boot that was the last. Receipts were settled at 80,000 and 80,001, so a
    crash left the rest unnoted."""
    now_ms = 0
    async with open_ledger(of_version_3.path, lambda: now_ms * 1_000_000, boot_id="new") as ledger:
        for key in ("first", "second"):
            await ledger.acknowledge("phone-1", key)
        now_ms = 998
        assert (await ledger.prune(1_000, keep_newest=0)).removed == 0
        now_ms = 999
        assert (await ledger.prune(1_000, keep_newest=0)).removed == 1


@pytest.mark.parametrize("keep", ["nothing", "all", "torn"])
async def test_wherever_the_power_fails_while_it_is_brought_up_to_date_nothing_is_lost(
    of_version_3, simulated_ledger, samples, keep
):
    simulated = simulated_ledger(1)
    witness = of_version_3.path.with_name(of_version_3.path.name + ".witness")
    before = {
        str(simulated.path): of_version_3.path.read_bytes(),
        f"{simulated.path}.witness": witness.read_bytes(),
    }
    number = cuts = 0

    def cut(op: DiskOp) -> None:
        nonlocal number, cuts
        number += 1
        if number == at:
            cuts += 1
            simulated.disk.power_cut(keep, random.Random(at))

    at = 0
    while at == cuts:
        at, number = at + 1, 0
        simulated.disk.restore(before)
        simulated.disk.hook = cut
        try:
            async with simulated.open():
                pass
        except Refused as refused:
            assert refused.code == "storage_unavailable"
        simulated.disk.hook = None
        async with simulated.open("after") as ledger:
            await must_know_all_of_it(ledger, of_version_3, samples)
    assert cuts > 40


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE spent_key SET key = CAST(key AS TEXT) WHERE key = (SELECT min(key) FROM spent_key)",
        "UPDATE meta SET epoch = 'none'",
        "UPDATE device SET highest_token = 'none' WHERE device_id = 'phone-1'",
    ],
)
async def test_what_was_damaged_before_is_refused_with_the_reason_each_time(of_version_3, damage):
    with sqlite3.connect(of_version_3.path) as file:
        file.execute(damage)
    file.close()
    for _ in range(2):
        with pytest.raises(LedgerCorrupt):
            async with open_ledger(of_version_3.path):
                pass
