"""The receipts of a ledger whose daemon does not run: read, and left as they are."""

import os
import shutil
from pathlib import Path

import pytest

from edge_daemon.contract import ReceiptQuery
from edge_daemon.ledger import LedgerCorrupt, LedgerTooNew, open_ledger
from edge_daemon.ledger.offline import NoLedger, daemon_has, offline_receipts


def state_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir()}


async def killed(ledger_path: Path, samples) -> Path:
    """What a killed daemon leaves: the newest receipts are in the log alone."""
    left = ledger_path.parent.with_name("left")
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "done")
        await samples.accept(ledger, samples.pending("under-way", "phone-2"))
        left.mkdir()
        for file in ledger_path.parent.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, left)
    return left / ledger_path.name


async def test_what_a_killed_daemon_wrote_last_is_read_and_nothing_is_touched(ledger_path, samples):
    path = await killed(ledger_path, samples)
    before = state_of(path.parent)
    with offline_receipts(path) as receipts:
        page = receipts.page(ReceiptQuery())
        assert [one.idempotency_key for one in page.receipts] == ["under-way", "done"]
        assert page.next is None
        assert receipts.devices() == ["phone-1", "phone-2"]
        assert receipts.lookup("phone-2", "under-way").found
        assert not receipts.lookup("phone-1", "under-way").found
    assert state_of(path.parent) == before


@pytest.mark.parametrize("place", [0.0001, 0.5])
async def test_receipts_behind_a_damaged_block_of_the_log_do_not_seem_never_written(
    ledger_path, samples, place
):
    """Its header, or a block in the middle."""
    left = ledger_path.parent.with_name("left")
    async with open_ledger(ledger_path) as ledger:
        for number in range(9):
            await samples.finished(ledger, f"key-{number}")
        left.mkdir()
        for name in (ledger_path.name, f"{ledger_path.name}-wal"):
            shutil.copy(ledger_path.with_name(name), left)
    path = left / ledger_path.name
    log = Path(f"{path}-wal")
    sound = log.read_bytes()
    damaged = bytearray(sound)
    damaged[int(len(sound) * place)] ^= 1
    log.write_bytes(damaged)
    before = state_of(left)
    with pytest.raises(LedgerCorrupt, match="its log is damaged") as refused, offline_receipts(path):
        pass
    assert refused.value.fault.path == path
    assert state_of(left) == before
    log.write_bytes(sound)
    with offline_receipts(path) as receipts:
        assert len(receipts.page(ReceiptQuery()).receipts) == 9


async def test_a_damaged_receipt_is_named_with_the_ledger_that_it_is_in(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        await samples.finished(ledger, "key-damaged")
    content = bytearray(ledger_path.read_bytes())
    content[content.index(b"key-damaged") + 4] ^= 0x01
    ledger_path.write_bytes(content)
    with offline_receipts(ledger_path) as receipts, pytest.raises(LedgerCorrupt) as refused:
        receipts.lookup("phone-1", "key-damaged")
    assert refused.value.fault.path == ledger_path


async def test_a_ledger_that_a_daemon_has_open_is_left_to_it(ledger_path):
    async with open_ledger(ledger_path):
        assert daemon_has(ledger_path)
        with pytest.raises(NoLedger, match="a process has it open"), offline_receipts(ledger_path):
            pass
    assert not daemon_has(ledger_path)


async def test_a_ledger_that_changes_while_it_is_copied_is_asked_for_again(ledger_path, samples, monkeypatch):
    path = await killed(ledger_path, samples)
    copy = shutil.copyfile

    def copied_late(source: Path, target: Path) -> None:
        copy(source, target)
        os.utime(path)

    monkeypatch.setattr(shutil, "copyfile", copied_late)
    with pytest.raises(NoLedger, match="ask again"), offline_receipts(path):
        pass


async def test_what_cannot_be_read_says_why(tmp_path, ledger_path):
    with pytest.raises(NoLedger, match="there is no ledger"), offline_receipts(tmp_path / "none.db"):
        pass
    (tmp_path / "other.db").write_bytes(b"no database, but longer than its header would be" * 99)
    with pytest.raises(LedgerCorrupt), offline_receipts(tmp_path / "other.db"):
        pass
    async with open_ledger(ledger_path):
        pass
    content = bytearray(ledger_path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")  # user_version, https://www.sqlite.org/fileformat.html
    ledger_path.write_bytes(content)
    with pytest.raises(LedgerTooNew, match=f"ledger {ledger_path} has"), offline_receipts(ledger_path):
        pass
