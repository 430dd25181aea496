"""A ledger that may lack receipts never says that there was none."""

import errno
import shutil
import sqlite3
from pathlib import Path

import pytest

from edge_daemon.contract import ReceiptAnswer
from edge_daemon.ledger import LedgerCorrupt, StorageUnavailable, open_ledger
from edge_daemon.ledger.epoch import Lineage, Stamp, Witness, lineage, read_witness
from edge_daemon.ledger.files import OS_FILES


def witness_of(path: Path) -> Path:
    return path.with_name(path.name + ".witness")


@pytest.mark.parametrize(
    ("witness", "stamp", "epoch", "renewed"),
    [
        (None, None, 1, False),
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
        (None, Stamp(1, "n"), 2, True),
    ],
)
def test_the_epoch_follows_from_what_is_found(witness, stamp, epoch, renewed):
    line = lineage(witness, stamp)
    assert line == Lineage(epoch, line.renewed)
    assert (line.renewed is not None) == renewed


async def test_the_first_ledger_has_seen_everything(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 1
        assert ledger.renewed is None
        await samples.accept(ledger, samples.pending("here"))
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 1
        for epoch in (None, 1):
            assert await ledger.lookup("phone-1", "absent", epoch) == ReceiptAnswer(
                known=True, found=False, epoch=1
            )
        assert await ledger.lookup("phone-1", "absent", 2) == ReceiptAnswer(known=False, found=False, epoch=1)
        assert (await ledger.lookup("phone-1", "here", 2)).found


async def test_a_missing_ledger_is_made_anew_in_a_higher_epoch(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        first = ledger.ledger_id
        await samples.accept(ledger, samples.pending("lost"))
    ledger_path.unlink()
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 2
        assert ledger.renewed == "the ledger file was missing"
        assert ledger.ledger_id != first
        for epoch in (None, 1, 3):
            assert await ledger.lookup("phone-1", "lost", epoch) == ReceiptAnswer(
                known=False, found=False, epoch=2
            )
        assert await ledger.lookup("phone-1", "absent", 2) == ReceiptAnswer(known=True, found=False, epoch=2)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 2
        assert ledger.renewed is None


async def test_a_restored_older_copy_raises_the_epoch(ledger_path, samples, tmp_path):
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("old"))
    shutil.copy(ledger_path, tmp_path / "backup")
    async with open_ledger(ledger_path) as ledger:
        await samples.accept(ledger, samples.pending("newer"))
    shutil.copy(tmp_path / "backup", ledger_path)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 2
        assert await ledger.lookup("phone-1", "newer", 1) == ReceiptAnswer(known=False, found=False, epoch=2)
        old = await ledger.lookup("phone-1", "old", 1)
        assert (old.known, old.found) == (True, True)


async def test_a_copy_taken_while_it_was_open_is_told_from_what_was_closed(ledger_path, samples, tmp_path):
    async with open_ledger(ledger_path) as ledger:
        with sqlite3.connect(tmp_path / "backup") as backup, sqlite3.connect(ledger_path) as source:
            source.backup(backup)
        backup.close()
        source.close()
        await samples.accept(ledger, samples.pending("newer"))
    shutil.copy(tmp_path / "backup", ledger_path)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 2
        assert not (await ledger.lookup("phone-1", "newer", 1)).known


@pytest.mark.parametrize("content", [None, b"", b"{}\n#00000000\n"])
async def test_a_ledger_without_a_sound_witness_goes_on_in_a_higher_epoch(ledger_path, content):
    async with open_ledger(ledger_path):
        pass
    if content is None:
        witness_of(ledger_path).unlink()
    else:
        witness_of(ledger_path).write_bytes(content)
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 2


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
        assert ledger.epoch == 1
        assert ledger.renewed is None


async def test_the_plane_may_raise_the_epoch_and_only_raise_it(ledger_path):
    async with open_ledger(ledger_path) as ledger:
        await ledger.raise_epoch(1)
        assert ledger.epoch == 1
        await ledger.raise_epoch(4)
        assert ledger.epoch == 5
        await ledger.raise_epoch(2)
        assert ledger.epoch == 5
        assert not (await ledger.lookup("phone-1", "absent", None)).known
        assert not (await ledger.lookup("phone-1", "absent", 4)).known
        assert (await ledger.lookup("phone-1", "absent", 5)).known
    async with open_ledger(ledger_path) as ledger:
        assert ledger.epoch == 5
        assert ledger.renewed is None


async def test_the_nonce_changes_at_each_opening_and_closing(ledger_path):
    seen = []
    for _ in range(2):
        async with open_ledger(ledger_path):
            seen.append(read_witness(OS_FILES, witness_of(ledger_path)))
        seen.append(read_witness(OS_FILES, witness_of(ledger_path)))
    assert len({witness.nonce for witness in seen}) == 4
    assert all(witness.next is None for witness in seen)
