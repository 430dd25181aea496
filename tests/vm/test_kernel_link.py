"""The link over a USB serial port that is pulled and plugged around taps; the drives outside keep count."""

import os
import subprocess
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from tapping import Rig
from usb_ports import UID, Observer, UsbPorts, by_id, by_path

from edge_daemon.boards import Board, Done
from edge_daemon.boards.port import SerialPort

PLUG_CYCLES = 30
# Longer than the board's deadman lets a contact last once the host is gone.
LONG_DWELL_MS = 1500
# The machine is slow, and a person who plugs a cable is slower than the three seconds of the default.
ASK_TIMEOUT_S = 60.0
PATIENCE_S = 60.0


@pytest.fixture
async def observer(usb):
    port = await SerialPort.open(by_id("OBSERVER"))
    yield Observer(port)
    await port.aclose()


@pytest.fixture
def supervised(observer, figures):
    """``async with supervised("ALPHA") as rig``: the board behind that adapter, online and homed."""

    @asynccontextmanager
    async def run(name: str, path: str | None = None, patience_s: float = PATIENCE_S):
        board = Board(name, path or by_id(name), UID[name], "hand", ask_timeout_s=ASK_TIMEOUT_S)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.run)
            with trio.fail_after(patience_s):
                rig = Rig(name, board, observer, figures)
                await board.wait_online()
                if not board.flags.homed:
                    await rig.hand.home()
                yield rig
            nursery.cancel_scope.cancel()

    return run


async def test_a_board_whose_port_somebody_reads_says_who(usb, observer, figures):
    reader = await trio.lowlevel.open_process(["cat", by_id("ALPHA")], stdout=subprocess.DEVNULL)
    try:
        while os.path.realpath(by_id("ALPHA")) not in _open_files(reader.pid):
            await trio.sleep(0.01)
        board = Board("ALPHA", by_id("ALPHA"), UID["ALPHA"], "hand")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.run)
            with trio.fail_after(PATIENCE_S):
                await Rig("ALPHA", board, observer, figures).offline_saying(f"pid {reader.pid} (cat)")
            nursery.cancel_scope.cancel()
    finally:
        reader.kill()
        await reader.wait()


def _open_files(pid: int) -> set[str]:
    return {os.path.realpath(link) for link in Path(f"/proc/{pid}/fd").iterdir()}


async def test_unplugged_before_a_tap_nothing_is_sent_and_the_status_says_why(usb, supervised):
    async with supervised("ALPHA") as rig:
        await usb.unplug("ALPHA")
        assert "unplugged" in await rig.offline()
        assert await rig.tap() == "not_sent"
        await rig.offline_saying("is the board plugged in and powered?")
        await usb.plug("ALPHA")
        await rig.board.wait_online()
        assert await rig.tap() == "done"


async def test_unplugged_with_the_stylus_down_the_board_lifts_and_tells_afterwards(usb, supervised, observer):
    async with supervised("ALPHA") as rig:
        down = trio.Event()

        async def pull_when_down():
            await down.wait()
            await usb.unplug("ALPHA")
            await rig.offline()
            while (await observer.report("ALPHA")).z_um < 0:
                await trio.sleep(0.05)
            await usb.plug("ALPHA")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pull_when_down)
            assert (
                await rig.tap(LONG_DWELL_MS, lambda stage: down.set() if stage == "contact" else None)
                == "aborted"
            )
        assert await rig.presses() == 1
        assert await rig.tap() == "done"


async def test_unplugged_after_a_tap_it_can_still_be_asked_for(usb, supervised):
    async with supervised("ALPHA") as rig:
        assert await rig.tap() == "done"
        boot_id = rig.board.last_info.boot_id
        await usb.unplug("ALPHA")
        await rig.offline()
        await usb.plug("ALPHA")
        assert isinstance(await rig.board.ask(rig.last_id, boot_id), Done)
        assert await rig.presses() == 1


async def test_a_board_that_lost_its_power_while_unplugged_leaves_one_tap_unknown_and_none_repeated(
    usb, supervised, observer
):
    async with supervised("ALPHA") as rig:
        down = trio.Event()

        async def pull_and_power_off():
            await down.wait()
            await usb.unplug("ALPHA")
            await rig.offline()
            await observer.power_cycle("ALPHA")
            await usb.plug("ALPHA")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pull_and_power_off)
            outcome = await rig.tap(LONG_DWELL_MS, lambda stage: down.set() if stage == "contact" else None)
        assert outcome == "unknown_for_good"
        assert await rig.presses() == 1
        await rig.hand.home()
        assert await rig.tap() == "done"


async def test_back_as_another_tty_it_is_found_by_its_id(usb, supervised):
    async with supervised("ALPHA") as rig:
        before = os.path.realpath(by_id("ALPHA"))
        # Root may open it beside us. As long as somebody has it open, its number is taken.
        held = os.open(before, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            await usb.unplug("ALPHA")
            await rig.offline()
            await usb.plug("ALPHA")
            await rig.board.wait_online()
            assert os.path.realpath(by_id("ALPHA")) != before
            assert await rig.tap() == "done"
        finally:
            os.close(held)


async def test_two_boards_swapped_are_told_apart_by_their_uids(usb, supervised):
    alpha_port, beta_port = by_path(1), by_path(2)
    async with supervised("ALPHA", alpha_port) as alpha, supervised("BETA", beta_port) as beta:
        await usb.unplug("ALPHA")
        await usb.unplug("BETA")
        await usb.plug("ALPHA", 2)
        await usb.plug("BETA", 1)
        await alpha.offline_saying(f"has uid {UID['BETA']}, expected {UID['ALPHA']}")
        await beta.offline_saying(f"has uid {UID['ALPHA']}, expected {UID['BETA']}")
        assert await alpha.tap() == "not_sent"
        assert await beta.tap() == "not_sent"
        await usb.all_home()
        await alpha.board.wait_online()
        await beta.board.wait_online()
        assert await alpha.tap() == "done"
        assert await beta.tap() == "done"


class PlugCycle:
    """One tap and one pull of the cable, in an order that differs from cycle to cycle, and the cable back."""

    ORDERS = ("before", "together", "accepted", "contact", "after")

    def __init__(self, usb: UsbPorts, rig: Rig, number: int) -> None:
        self._usb = usb
        self._rig = rig
        self._number = number
        self.order = self.ORDERS[number % len(self.ORDERS)]
        self._pull_now = trio.Event()
        self.online_after_ms = 0.0

    async def run(self) -> str:
        """The tap's outcome; the board is online again."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pull_and_plug)
            if self.order == "before":
                self._pull_now.set()
                await self._rig.offline()
            elif self.order == "together":
                self._pull_now.set()
            outcome = await self._rig.tap(LONG_DWELL_MS if self.order == "contact" else 30, self._on_stage)
            self._pull_now.set()
        return outcome

    def _on_stage(self, stage: str) -> None:
        if stage == self.order:
            self._pull_now.set()

    async def _pull_and_plug(self) -> None:
        await self._pull_now.wait()
        await self._usb.unplug("ALPHA")
        await self._rig.offline()
        await self._usb.plug("ALPHA", (1, 3)[self._number % 2])
        plugged = time.monotonic()
        await self._rig.board.wait_online()
        self.online_after_ms = (time.monotonic() - plugged) * 1000


async def test_thirty_plug_cycles_around_taps_double_none_and_lose_no_outcome(usb, supervised, figures):
    outcomes: Counter[str] = Counter()
    online_after_ms = []
    async with supervised("ALPHA", patience_s=PATIENCE_S * 4) as rig:
        for number in range(PLUG_CYCLES):
            cycle = PlugCycle(usb, rig, number)
            outcome = await cycle.run()
            outcomes[f"{cycle.order}: {outcome}"] += 1
            online_after_ms.append(cycle.online_after_ms)
        assert await rig.tap() == "done"
        assert rig.board.connections > PLUG_CYCLES
    figures.values["plug_cycles"] = PLUG_CYCLES
    figures.values["plug_cycle_outcomes"] = dict(outcomes)
    online_after_ms.sort()
    figures.values["online_after_plug_ms"] = {
        "p50": round(online_after_ms[len(online_after_ms) // 2]),
        "max": round(online_after_ms[-1]),
    }
    assert not any("unknown" in outcome for outcome in outcomes)
