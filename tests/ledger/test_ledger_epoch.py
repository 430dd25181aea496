"""A ledger that may lack receipts never says that there was none."""

import errno
import shutil
import sqlite3
from pathlib import Path

import pytest

from edge_daemon.contract import ReceiptAnswer, Refused
from edge_daemon.ledger import EpochsExhausted, LedgerCorrupt, StorageUnavailable, open_ledger
from edge_daemon.ledger.epoch import (
    HIGHEST,
    HIGHEST_REMEMBERED,
    LINEAGE_BYTES,
    Lineage,
    Stamp,
    Witness,
    epoch_of_a_copy,
    first_epoch,
    lineage,
    never_raised,
    raised_for,
    read_witness,
    write_witness,
)
from edge_daemon.ledger.files import OS_FILES

RANDOM = b"\1\2\3\4"


def witness_of(path: Path) -> Path:
    return path.with_name(path.name + ".witness")


@pytest.mark.parametrize(
    ("witness", "stamp", "epoch", "renewed"),
    [
        (None, None, first_epoch(RANDOM), False),
        (Witness(1, None, "new"), None, 1, False),  # cut while the first ledger was being made
        (Witness(3, None, "new"), None, 3, False),  # cut while a renewed one was being made
        (Witness(1, None, "new"), Stamp(1, "new"), 1, False),
        (Witness(1, "n"), Stamp(1, "n"), 1, False),
        (Witness(1, "n", "m"), Stamp(1, "n"), 1, False),  # cut before the ledger took the new nonce
        (Witness(1, "n", "m"), Stamp(1, "m"), 1, False),  # cut after
        (Witness(2, "n"), Stamp(1, "n"), 2, False),  # cut while the epoch was being raised
        (Witness(1, "n"), None, 2, True),
        (Witness(1, "n"), Stamp(1, "older"), 2, True),
        (Witness(4, "n"), Stamp(1, "older"), 5, True),
        (Witness(1, "n"), Stamp(4, "other"), 5, True),
        (None, Stamp(1, "n"), epoch_of_a_copy(1, RANDOM), True),
    ],
)
def test_the_epoch_follows_from_what_is_found(witness, stamp, epoch, renewed):
    line = lineage(witness, stamp, RANDOM)
    assert line == Lineage(epoch, line.renewed)
    assert (line.renewed is not None) == renewed


async def test_the_first_ledger_has_seen_everything(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
        assert never_raised(first)
        assert ledger.renewed is None
        await samples.accept(ledger, samples.pending("here"))
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first
        for epoch in (None, first):
            assert await ledger.lookup("phone-1", "absent", epoch) == ReceiptAnswer(
                known=True, found=False, epoch=first
            )
        unknown = ReceiptAnswer(known=False, found=False, epoch=first)
        assert await ledger.lookup("phone-1", "absent", first + 1) == unknown
        assert (await ledger.lookup("phone-1", "here", first + 1)).found


async def test_a_missing_ledger_is_made_anew_in_a_higher_epoch(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        first, ledger_id = ledger.epoch, ledger.ledger_id
        await samples.accept(ledger, samples.pending("lost"))
    ledger_path.unlink()
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first + 1
        assert ledger.renewed == "the ledger file was missing"
        assert ledger.ledger_id != ledger_id
        for epoch in (None, first, first + 2):
            assert await ledger.lookup("phone-1", "lost", epoch) == ReceiptAnswer(
                known=False, found=False, epoch=first + 1
            )
        complete = ReceiptAnswer(known=True, found=False, epoch=first + 1)
        assert await ledger.lookup("phone-1", "absent", first + 1) == complete
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first + 1
        assert ledger.renewed is None


async def test_a_restored_older_copy_raises_the_epoch(ledger_path, samples, tmp_path):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
        await samples.accept(ledger, samples.pending("old"))
    shutil.copy(ledger_path, tmp_path / "backup")
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("newer"))
    shutil.copy(tmp_path / "backup", ledger_path)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first + 1
        unknown = ReceiptAnswer(known=False, found=False, epoch=first + 1)
        assert await ledger.lookup("phone-1", "newer", first) == unknown
        old = await ledger.lookup("phone-1", "old", first)
        assert (old.known, old.found) == (True, True)


async def test_a_copy_taken_while_it_was_open_is_told_from_what_was_closed(ledger_path, samples, tmp_path):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
        with sqlite3.connect(tmp_path / "backup") as backup, sqlite3.connect(ledger_path) as source:
            source.backup(backup)
        backup.close()
        source.close()
        await samples.accept(ledger, samples.pending("newer"))
    shutil.copy(tmp_path / "backup", ledger_path)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first + 1
        assert not (await ledger.lookup("phone-1", "newer", first)).known


@pytest.mark.parametrize("content", [None, b"", b"{}\n#00000000\n"])
async def test_a_ledger_without_a_sound_witness_goes_on_in_a_higher_epoch(ledger_path, content):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
    if content is None:
        witness_of(ledger_path).unlink()
    else:
        witness_of(ledger_path).write_bytes(content)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch > first
        assert not never_raised(ledger.epoch)
        assert ledger.renewed is not None


async def test_without_ledger_and_with_a_damaged_witness_a_person_decides(ledger_path):
    async with open_ledger(ledger_path):
        pass
    ledger_path.unlink()
    witness_of(ledger_path).write_bytes(b"\0" * 64)
    with pytest.raises(LedgerCorrupt, match="witness"):
        async with open_ledger(ledger_path):
            pass
    assert not ledger_path.exists()


async def test_a_ledger_that_could_not_be_made_was_never_there(ledger_path):
    def disk_full(path: Path) -> sqlite3.Connection:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageUnavailable):
        async with open_ledger(ledger_path, connect=disk_full):
            pass
    async with open_ledger(ledger_path) as ledger:
        assert never_raised(ledger.epoch)
        assert ledger.renewed is None


async def test_the_plane_may_raise_the_epoch_and_only_raise_it(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.epoch
        await ledger.raise_epoch(first)
        assert ledger.epoch == first
        await ledger.raise_epoch(first + 3)
        assert ledger.epoch == first + 4
        await ledger.raise_epoch(first + 1)
        assert ledger.epoch == first + 4
        assert not (await ledger.lookup("phone-1", "absent", None)).known
        assert not (await ledger.lookup("phone-1", "absent", first + 3)).known
        assert (await ledger.lookup("phone-1", "absent", first + 4)).known
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == first + 4
        assert ledger.renewed is None


async def test_the_nonce_changes_at_each_opening_and_closing(ledger_path):
    seen = []
    for _ in range(2):
        async with open_ledger(ledger_path):
            seen.append(read_witness(OS_FILES, witness_of(ledger_path)))
        seen.append(read_witness(OS_FILES, witness_of(ledger_path)))
    assert len({witness.nonce for witness in seen}) == 4
    assert all(witness.next is None for witness in seen)


def test_first_epochs_fit_every_reader_and_are_told_from_raised_ones():
    for random in (b"\0" * LINEAGE_BYTES, b"\xff" * LINEAGE_BYTES):
        assert 1 <= first_epoch(random) < 2**53
        assert never_raised(first_epoch(random))
        assert not never_raised(first_epoch(random) + 1)


def test_a_copy_goes_on_in_a_later_epoch_that_is_another_each_time():
    drawn = [epoch_of_a_copy(5 << 20 | 3, random) for random in (b"\0\0\0\0", b"\0\0\1\0", b"\xff" * 4)]
    assert [epoch >> 20 for epoch in drawn] == [6, 7, 5 + 2**24]
    assert not any(never_raised(epoch) for epoch in drawn)
    highest = first_epoch(b"\xff" * LINEAGE_BYTES)
    for _ in range(250):
        highest = epoch_of_a_copy(highest, b"\xff" * LINEAGE_BYTES)
    assert highest < 2**53


A, B = first_epoch(b"\0\0\0\1"), first_epoch(b"\0\0\0\2")


@pytest.mark.parametrize(
    ("remembered", "ours", "raised"),
    [
        (A, A, A),
        (A, A + 3, A + 3),  # the plane was away when it was raised
        (A + 3, A, A + 4),  # this ledger is older than what the plane saw
        (A, B, B + 1),  # another card, drawn higher
        (B + 2, A, B + 3),  # another card, drawn lower
        (A, B + 1, B + 1),  # another card, already raised for it
    ],
)
def test_what_a_plane_remembers_raises_the_epoch_where_receipts_may_be_missing(remembered, ours, raised):
    assert raised_for(remembered, ours) == raised


def test_a_plane_can_raise_the_epoch_so_far_that_room_is_left_and_no_further():
    for remembered, raised in (
        (HIGHEST_REMEMBERED - 1, HIGHEST_REMEMBERED),
        (HIGHEST_REMEMBERED, HIGHEST_REMEMBERED + 2),  # the one between looks like a beginning
    ):
        ours = raised_for(remembered, A)
        assert ours == raised
        for later in (HIGHEST_REMEMBERED + 3, HIGHEST):
            with pytest.raises(Refused, match="say the highest one") as refused:
                raised_for(later, ours)
            assert (refused.value.code, refused.value.info.field) == ("invalid_argument", "epoch")
        for _ in range(63):
            ours = epoch_of_a_copy(ours, b"\xff" * LINEAGE_BYTES)
        assert ours <= HIGHEST
        assert raised_for(ours, ours) == ours
        assert raised_for(ours - 1, ours) == ours


def test_an_epoch_that_was_raised_never_looks_like_one_in_which_a_ledger_began():
    for remembered in (B - 1, B - 2, B | 0xFFFFF):
        assert not never_raised(raised_for(remembered, A))
    assert raised_for(B - 1, A) == B + 1
    assert lineage(Witness(B - 1, "n"), None, RANDOM).epoch == B + 1


def test_behind_the_last_epoch_there_is_none():
    last = Stamp(HIGHEST, "n")
    assert lineage(Witness(HIGHEST, "n"), last, RANDOM).epoch == HIGHEST
    assert lineage(Witness(HIGHEST - 1, "n"), Stamp(HIGHEST - 1, "other"), RANDOM).epoch == HIGHEST
    beyond = Witness(HIGHEST + 1, "n")
    for witness, stamp in [
        (Witness(HIGHEST, "n"), None),
        (Witness(HIGHEST, "other"), last),
        (None, last),
        (beyond, Stamp(HIGHEST + 1, "n")),
        (Witness(HIGHEST + 1, None, "n"), None),
    ]:
        with pytest.raises(EpochsExhausted, match="move the ledger file and its witness both away"):
            lineage(witness, stamp, RANDOM)


async def test_an_epoch_that_no_edge_has_told_changes_nothing(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        epoch = ledger.epoch
        for remembered in (HIGHEST_REMEMBERED + 1, HIGHEST):
            with pytest.raises(Refused, match="none that an edge would have told"):
                await ledger.raise_epoch(remembered)
        assert ledger.epoch == epoch
        await samples.accept(ledger, samples.pending("key-1"), epoch=epoch)
        await ledger.raise_epoch(HIGHEST_REMEMBERED)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == HIGHEST_REMEMBERED + 2


async def test_a_ledger_without_another_epoch_is_left_as_it_is(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        pass
    assert ledger.epoch <= HIGHEST
    witness_of(ledger_path).unlink()
    write_witness(OS_FILES, witness_of(ledger_path), Witness(HIGHEST, "of another"))
    before = ledger_path.read_bytes()
    for _ in range(2):
        with pytest.raises(EpochsExhausted):
            async with open_ledger(ledger_path):
                pass
    assert ledger_path.read_bytes() == before


async def test_the_ledger_of_a_new_card_is_not_taken_for_the_one_that_the_plane_knows(
    ledger_path, samples, tmp_path
):
    async with open_ledger(ledger_path) as ledger:
        remembered = ledger.epoch
        await samples.accept(ledger, samples.pending("touched"))
    async with open_ledger(tmp_path / "card" / "ledger.sqlite3") as ledger:
        await ledger.raise_epoch(remembered)
        assert ledger.epoch > remembered or not never_raised(ledger.epoch)
        for epoch in (None, remembered):
            assert not (await ledger.lookup("phone-1", "touched", epoch)).known
        with pytest.raises(Refused, match="made anew or restored") as refusal:
            await samples.accept(ledger, samples.pending("touched"), epoch=remembered)
        assert refusal.value.info.code == "outcome_unknown"


async def test_a_copy_put_back_without_its_witness_is_told_however_often_it_is_put_back(
    ledger_path, samples, tmp_path
):
    """The whole folder, each time: what the plane knows is then the epoch of the time before."""
    folder, copy = ledger_path.parent, tmp_path / "copy"
    async with open_ledger(ledger_path) as ledger:
        epochs = [ledger.epoch]
        await samples.accept(ledger, samples.pending("old"))
    shutil.copytree(folder, copy)
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("0"))
    for time in range(1, 4):
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        witness_of(ledger_path).unlink()
        async with open_ledger(ledger_path) as ledger:
            assert ledger.renewed is not None
            await ledger.raise_epoch(max(epochs))
            assert ledger.epoch not in epochs
            for before, epoch in enumerate(epochs):
                for asked in (None, epoch):
                    assert not (await ledger.lookup("phone-1", str(before), asked)).known
                with pytest.raises(Refused) as refusal:
                    await samples.accept(ledger, samples.pending(str(before)), epoch=epoch)
                assert refusal.value.info.code == "outcome_unknown"
            assert (await ledger.lookup("phone-1", "old", epochs[0])).found
            await samples.accept(ledger, samples.pending(str(time)), epoch=ledger.epoch)
            epochs.append(ledger.epoch)
