"""What is said is on the disk: killed at any moment, opened again, it is there."""

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from edge_daemon.ledger import LedgerInUse, open_ledger
from edge_daemon.ledger.epoch import never_raised
from edge_daemon.ledger.writer import MAX_WAITING

ROOT = Path(__file__).parents[2]
KILLS = 12
BLOCK = 4096


async def test_pending_is_in_the_file_when_accept_returns(ledger_path, samples):
    async with open_ledger(ledger_path) as ledger:
        for number in range(1, 4):
            await samples.accept(ledger, samples.pending(f"key-{number}"))
            with closing(sqlite3.connect(f"{ledger_path.as_uri()}?mode=ro", uri=True)) as reader:
                assert reader.execute("SELECT count(*) FROM receipt WHERE settled IS NULL").fetchone() == (
                    number,
                )


async def test_every_commit_is_synced(ledger_path, connections):
    async with open_ledger(ledger_path, connect=connections):
        assert connections.pragma("synchronous") == (2,)
        assert connections.pragma("journal_mode") == ("wal",)


def last_two_pages(log: Path) -> tuple[bytes, bytes]:
    """Number and content, without commit mark and checksum (https://www.sqlite.org/fileformat2.html#walformat)."""
    frames = log.read_bytes()[32:]
    last, before = frames[-24 - BLOCK :], frames[-2 * (24 + BLOCK) : -24 - BLOCK]
    return before[:4] + before[24:], last[:4] + last[24:]


async def test_a_commit_never_touches_a_block_that_holds_an_earlier_one(ledger_path, samples):
    """Pages as large as blocks; and what ends in a commit's last block of the log is only a copy of its end."""
    log = Path(f"{ledger_path}-wal")
    async with open_ledger(ledger_path) as ledger:
        with closing(sqlite3.connect(f"{ledger_path.as_uri()}?mode=ro", uri=True)) as reader:
            assert reader.execute("PRAGMA page_size").fetchone() == (BLOCK,)
        for number in range(20):
            await samples.accept(ledger, samples.pending(f"key-{number}"))
            before, last = last_two_pages(log)
            assert before == last
            await ledger.settle(samples.committed(samples.pending(f"key-{number}")))
            before, last = last_two_pages(log)
            assert before == last


async def test_many_acceptances_share_few_transactions(ledger_path, samples, connections):
    count = MAX_WAITING + 50
    async with open_ledger(ledger_path, connect=connections) as ledger:
        connections.statements.clear()
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(samples.accept, ledger, samples.pending(f"key-{number}"))
        assert len(await ledger.pending()) == count
        assert connections.statements.count("COMMIT") < count / 4


@contextmanager
def launcher(path: Path) -> Iterator[subprocess.Popen[str]]:
    child = Path(__file__).with_name("accepting_child.py")
    with subprocess.Popen(
        [sys.executable, str(child), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def killed_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """All that a worker said which was killed once it had said `lines` lines."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    pid = int(process.stdout.readline().removeprefix("pid "))
    said: list[str] = []
    for line in iter(process.stdout.readline, "reaped\n"):
        said.append(line.strip())
        if len(said) == lines:
            os.kill(pid, signal.SIGKILL)
    assert len(said) >= lines, "the worker died by itself"
    return said


async def test_whatever_was_said_before_a_kill_is_there_afterwards(ledger_path, samples):
    choose = random.Random(7)
    said: list[str] = []
    epochs: set[int] = set()
    with launcher(ledger_path) as process:
        for _ in range(KILLS):
            said += killed_after(process, choose.randrange(1, 120))
            async with open_ledger(ledger_path) as ledger:
                epochs.add(ledger.epoch)
                pending = {entry.receipt.idempotency_key for entry in await ledger.pending()}
                final = {receipt.idempotency_key for receipt in await ledger.unacknowledged(1_000_000)}
            accepted = {line.removeprefix("accepted ") for line in said if line.startswith("accepted ")}
            settled = {line.removeprefix("settled ") for line in said if line.startswith("settled ")}
            assert accepted <= pending | final
            assert settled <= final
            assert not pending & final
    assert len(settled) > KILLS
    assert len(epochs) == 1
    assert never_raised(*epochs)


async def test_a_killed_ledger_keeps_the_highest_token(ledger_path):
    with launcher(ledger_path) as process:
        for holder in (1, 2, 3):
            assert killed_after(process, 1)[0].endswith(f"-{holder}")
    async with open_ledger(ledger_path) as ledger:
        assert ledger.highest_token("phone-1") == 3


async def test_a_second_process_is_refused_and_told_who_has_it(ledger_path, samples):
    script = (
        "import sys, pathlib, trio\n"
        "from edge_daemon.ledger import LedgerInUse, open_ledger\n"
        "async def main():\n"
        "    try:\n"
        "        async with open_ledger(pathlib.Path(sys.argv[1])): print('opened')\n"
        "    except LedgerInUse as refused: print(refused.holder_pid, refused)\n"
        "trio.run(main)\n"
    )
    command = [sys.executable, "-c", script, str(ledger_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with open_ledger(ledger_path) as ledger:
        result = await trio.run_process(command, capture_stdout=True, env=environment)
        assert result.stdout.decode().startswith(f"{os.getpid()} ")
        assert str(ledger_path) in result.stdout.decode()
        with pytest.raises(LedgerInUse):
            async with open_ledger(ledger_path):
                pass
        await samples.accept(ledger, samples.pending("key-1"))
    async with open_ledger(ledger_path) as ledger:
        assert len(await ledger.pending()) == 1


async def test_nobody_else_may_read_the_files(ledger_path, samples):
    usual = os.umask(0)
    try:
        async with open_ledger(ledger_path) as ledger:
            await samples.accept(ledger, samples.pending("key-1"))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in ledger_path.parent.iterdir()}
    finally:
        os.umask(usual)
    assert set(modes) == {
        "ledger.db",
        "ledger.db-wal",
        "ledger.db-shm",
        "ledger.db.lock",
        "ledger.db.witness",
    }
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(ledger_path.parent.stat().st_mode) == 0o700


async def test_a_copy_with_wide_rights_is_restricted(ledger_path):
    async with open_ledger(ledger_path):
        pass
    ledger_path.chmod(0o644)
    async with open_ledger(ledger_path):
        assert stat.S_IMODE(ledger_path.stat().st_mode) == 0o600
