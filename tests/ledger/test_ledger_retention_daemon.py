"""The daemon itself lets old receipts go, as its configuration says."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from edge_daemon.bench.crash.disk import SimDisk
from edge_daemon.bench.crash.disk_handle import DiskHandle
from edge_daemon.bench.crash.inline_writer import InlineWriter
from edge_daemon.config import LedgerSection, load_config
from edge_daemon.daemon import Machine, run_rig
from edge_daemon.ledger import Ledger, open_ledger
from edge_daemon.staff.unattended import Unattended

S_PER_DAY = 86_400
S_PER_HOUR = 3_600
EXAMPLE = Path(__file__).parents[2] / "systemd" / "edge-daemon.example.toml"


def now_ns() -> int:
    return round(trio.current_time() * 1e9)


class Rig:
    """The daemon's own composition, of no device, on a virtual clock and a simulated disk."""

    def __init__(self, section: LedgerSection) -> None:
        example = load_config(EXAMPLE)
        self._config = msgspec.structs.replace(example, ledger=section, boards={}, cameras={}, devices={})
        self._rng = random.Random(1)
        self._disk = SimDisk(self._rng)
        self.ledger: Ledger

    async def run(self, told_to_stop) -> None:
        machine = Machine("boot", now_ns, open_ledger=self._open)
        await run_rig(self._config, machine, Unattended({}), self._listen, told_to_stop)

    @asynccontextmanager
    async def _open(self, path: Path) -> AsyncIterator[Ledger]:
        handle = DiskHandle(self._disk, self._rng)
        async with open_ledger(
            path,
            now_ns,
            boot_id="boot",
            connect=handle.connect,
            files=handle.files(),
            new_writer=partial(InlineWriter, rng=self._rng),
        ) as self.ledger:
            yield self.ledger

    async def _listen(self, fleet, clock, task_status=trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()


@pytest.mark.parametrize(("keep_days", "keep_newest"), [(1, 100), (3, 130)])
async def test_a_daemon_lets_receipts_go_after_the_configured_days_but_for_the_newest(
    samples, autojump_clock, keep_days, keep_newest
):
    rig = Rig(LedgerSection(keep_days=keep_days, keep_newest=keep_newest))

    async def kept() -> list[int]:
        answers = [await rig.ledger.lookup("phone-1", str(number), None) for number in range(150)]
        return [number for number, answer in enumerate(answers) if answer.found]

    async def told_to_stop() -> None:
        for number in range(150):
            await samples.finished(rig.ledger, str(number), acknowledged=True)
        await trio.sleep(keep_days * S_PER_DAY - S_PER_HOUR)
        assert await kept() == list(range(150))
        await trio.sleep(3 * S_PER_HOUR)
        assert await kept() == list(range(150 - keep_newest, 150))

    await rig.run(told_to_stop)
