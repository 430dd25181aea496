"""The rig's machine restarts, or gets a new card, and its board stays up: a HID board is powered by its phone.

What such a board never received is not executed, before and after: it is asked, and it knows.
"""

from collections.abc import Callable

import pytest
import trio

from edge_daemon.bench.crash.oracle import judge
from edge_daemon.bench.crash.play import _played, _Run
from edge_daemon.bench.crash.scenario import FIRST_TOKEN, Stage
from edge_daemon.bench.crash.world import World
from firmware import wire

ENOUGH_TO_FORGET = wire.RESULTS_KEPT + 8


def killed(world: World) -> None:
    world.kill()


def machine_restarted(world: World) -> None:
    world.cut_power("all")


def card_replaced(world: World) -> None:
    world.cut_power("all")
    world.meanwhile(world.replace_card)


@pytest.mark.parametrize("happens", [killed, machine_restarted, card_replaced])
def test_what_a_board_that_stayed_up_never_received_is_not_executed(happens: Callable[[World], None]) -> None:
    async def act(stage: Stage) -> None:
        world, (device,) = stage.world, stage.world.devices
        await stage.ready([device])
        for _ in range(ENOUGH_TO_FORGET):
            await stage.act(stage.wishes.tap(stage.plane, device, FIRST_TOKEN))
        happens(world)
        await trio.sleep(2)
        await stage.ready([device])
        # What is written to the board from now on is lost, and its cable is pulled for a moment.
        line = world.line_of(device)
        wish = stage.wishes.tap(stage.plane, device, FIRST_TOKEN)
        stage.act_soon(wish)
        while not any(
            entry.name == wish.name and hasattr(entry, "stage") for entry in world.notebook.entries
        ):
            line.lose_next()
            await trio.sleep(0.0005)
        line.fall_silent(200)
        line.pull(700, power=False)
        await trio.sleep(5)
        told.append(wish.name)

    told: list[tuple[str, str]] = []
    name = happens.__name__
    run, _ = _played(1, name, lambda: _Run(World(name, ("hid",)), ("plane",), lambda stage: None, act))
    touches = [touch for phone in run.world.phones.values() for touch in phone.touches]
    verdict = judge(run.world.notebook, run.world.schedule, touches, finished=run.finished)
    assert not verdict.problems
    last = [
        entry.receipt
        for entry in run.world.notebook.entries
        if entry.name == told[0] and getattr(entry, "receipt", None)
    ]
    assert last
    assert {(receipt["status"], receipt.get("reason")) for receipt in last} == {("failed", None)}
