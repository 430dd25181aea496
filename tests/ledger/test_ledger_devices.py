"""Fencing tokens, holds and parkings outlive a restart."""

import sqlite3

import pytest
import trio

from edge_daemon.contract import Refused, Tap
from edge_daemon.ledger import Existing, Hold, open_ledger, schema


async def test_a_lower_fencing_token_is_refused_also_after_a_restart(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("key-1"), token=7)
        assert ledger.highest_token("phone-1") == 7
        assert ledger.highest_token("phone-2") == 0
    async with open_ledger(ledger_path) as ledger:
        assert ledger.highest_token("phone-1") == 7
        with pytest.raises(Refused) as refused:
            await samples.accept(ledger, samples.pending("key-2"), token=6)
        assert refused.value.code == "lease_mismatch"
        assert not (await ledger.lookup("phone-1", "key-2", None)).found
        await samples.accept(ledger, samples.pending("key-2"), token=7)
        await samples.accept(ledger, samples.pending("key-3", "phone-2"), token=1)


async def test_a_repeated_key_is_answered_whatever_its_token(ledger_path, samples):
    receipt = samples.pending("key-1")
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, receipt, token=3)
        await samples.accept(ledger, samples.pending("key-2"), token=9)
        for token in (3, 12):
            assert await samples.accept(ledger, receipt, token=token) == Existing(receipt)
        assert ledger.highest_token("phone-1") == 9


async def test_a_token_that_was_seen_counts_whatever_becomes_of_its_request(ledger_path, samples):
    other = Tap(x=1, y=1)
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("key-1"), token=3)
        await ledger.note_token("phone-1", 9)
        with pytest.raises(Refused):
            await samples.accept(ledger, samples.pending("key-1", action=other), action=other, token=9)
        assert ledger.highest_token("phone-1") == 9
    async with open_ledger(ledger_path) as ledger:
        assert ledger.highest_token("phone-1") == 9
        assert ledger.highest_token("phone-2") == 0
        with pytest.raises(Refused) as refused:
            await samples.accept(ledger, samples.pending("key-2"), token=8)
        assert refused.value.code == "lease_mismatch"


async def test_of_tokens_noted_at_once_in_any_order_the_highest_stays(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        await ledger.set_parked("phone-1", True, "enters a password")
        async with trio.open_nursery() as nursery:
            for token in (5, 9, 7, 8):
                nursery.start_soon(ledger.note_token, "phone-1", token)
        assert ledger.highest_token("phone-1") == 9
        assert ledger.parked("phone-1")
    async with open_ledger(ledger_path) as ledger:
        assert ledger.highest_token("phone-1") == 9


async def test_only_a_token_higher_than_any_before_is_written(ledger_path, connections):
    async with open_ledger(ledger_path, connect=connections) as ledger:
        await ledger.note_token("phone-1", 9)
        connections.statements.clear()
        for token in (9, 8, 1):
            await ledger.note_token("phone-1", token)
        assert connections.statements == []
        await ledger.note_token("phone-1", 10)
        assert connections.statements.count("COMMIT") == 1


async def test_holds_survive_a_restart_and_are_given_back(ledger_path, samples):
    hold = Hold(hint="calibration, 10 minutes", owner="staff-3")
    async with open_ledger(ledger_path) as ledger:
        assert ledger.hold("phone-1") is None
        await ledger.set_hold("phone-1", hold)
        assert ledger.hold("phone-1") == hold
        await samples.accept(ledger, samples.pending("key-1"), token=4)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.hold("phone-1") == hold
        assert ledger.highest_token("phone-1") == 4
        await ledger.set_hold("phone-1", None)
        assert ledger.hold("phone-1") is None
    async with open_ledger(ledger_path) as ledger:
        assert ledger.hold("phone-1") is None
        assert ledger.highest_token("phone-1") == 4


async def test_of_two_who_take_a_hold_at_once_one_gets_it(ledger_path):
    got: list[str] = []
    refused: list[str] = []

    async def take(owner: str) -> None:
        try:
            await ledger.set_hold("phone-1", Hold(hint="check", owner=owner))
            got.append(owner)
        except Refused as refusal:
            refused.append(f"{refusal.code}: {refusal.info.hint}")

    async with open_ledger(ledger_path) as ledger:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, "ann")
            nursery.start_soon(take, "bob")
        assert len(got) == 1
        assert refused == ["leased: check"]
        hold = ledger.hold("phone-1")
        assert hold is not None
        assert hold.owner == got[0]
        longer = Hold(hint="check, a little longer", owner=got[0])
        await ledger.set_hold("phone-1", longer)
        assert ledger.hold("phone-1") == longer


async def test_a_hold_is_given_back_by_its_owner_alone_and_by_force(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        await ledger.set_hold("phone-1", Hold(hint="check", owner="bob"))
        with pytest.raises(Refused) as refused:
            await ledger.set_hold("phone-1", None, held_by="ann")
        assert refused.value.code == "permission_denied"
        await ledger.set_hold("phone-1", None, held_by="bob")
        assert ledger.hold("phone-1") is None
        await ledger.set_hold("phone-1", None, held_by="bob")
        await ledger.set_hold("phone-1", Hold(hint="check", owner="bob"))
        await ledger.set_hold("phone-1", None)
        assert ledger.hold("phone-1") is None


async def test_parking_survives_a_restart_apart_from_a_hold(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        await ledger.set_parked("phone-1", True, "enters a password")
        await ledger.set_parked("phone-2", True)
        await ledger.set_hold("phone-1", Hold(hint="check", owner="staff-1"))
        await ledger.set_hold("phone-1", None)
        assert ledger.parked("phone-1")
    async with open_ledger(ledger_path) as ledger:
        assert ledger.parked_note("phone-1") == "enters a password"
        assert ledger.parked("phone-2")
        assert not ledger.parked("phone-3")
        await ledger.set_parked("phone-1", False)
        assert not ledger.parked("phone-1")
    async with open_ledger(ledger_path) as ledger:
        assert not ledger.parked("phone-1")
        assert ledger.parked("phone-2")


async def test_an_orientation_that_was_set_outlives_a_restart_and_other_marks(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        assert ledger.orientation("phone-1") is None
        await ledger.set_orientation("phone-1", "landscape_left")
        await ledger.set_hold("phone-1", Hold("cleaning", "jo#1"))
        await samples.accept(ledger, samples.pending("key-1"), token=7)
        assert ledger.orientation("phone-1") == "landscape_left"
        assert ledger.orientation("phone-2") is None
    async with open_ledger(ledger_path) as ledger:
        assert ledger.orientation("phone-1") == "landscape_left"
        assert ledger.hold("phone-1") == Hold("cleaning", "jo#1")
        await ledger.set_orientation("phone-1", None)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.orientation("phone-1") is None


async def test_a_ledger_from_before_orientations_were_kept_is_brought_up_to_date(ledger_path, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        connection = sqlite3.connect(":memory:", isolation_level=None)
        schema.migrate(connection, ledger_path)
        connection.execute("INSERT INTO device (device_id, parked_note) VALUES ('phone-1', 'a person')")
    schema.migrate(connection, ledger_path)
    assert connection.execute("SELECT parked_note, orientation FROM device").fetchall() == [
        ("a person", None)
    ]
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE device SET orientation = 'sideways'")
    connection.close()
