"""Who of the staff has a device, when several ask at once."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
import trio.testing

from edge_daemon.contract import LongPress, Outcome, Receipt, Refused
from edge_daemon.ledger import CommandRef
from edge_daemon.upstream.service import DigitizerTouchAt

RunRig = Callable[[], AbstractAsyncContextManager[Any]]
NOT_YET_S = 0.4
"""For so long nothing must come that is not to come."""


async def test_of_two_staff_who_take_a_hold_at_once_only_one_is_told_he_has_it(run_rig: RunRig) -> None:
    told: dict[str, str] = {}

    async def take(owner: str) -> None:
        try:
            await rig.fleet.take_hold("phone-1", f"by {owner}", owner)
            told[owner] = "has it"
        except Refused as refusal:
            told[owner] = f"{refusal.code}: {refusal.info.hint}"

    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, "ann")
            nursery.start_soon(take, "bob")
        (owner,) = [name for name, word in told.items() if word == "has it"]
        (other,) = {"ann", "bob"} - {owner}
        assert told[other] == f"leased: by {owner}"
        with pytest.raises(Refused) as refused:
            await rig.fleet.release_hold("phone-1", other)
        assert refused.value.code == "permission_denied"
        (device,) = rig.fleet.devices()
        assert device.staff_hold.hint == f"by {owner}"
        await rig.fleet.release_hold("phone-1", owner)
        await rig.fleet.take_hold("phone-1", "now mine", other)


@pytest.mark.parametrize("ask_timeout_s", [0.01])
async def test_staff_get_the_device_only_when_the_board_of_the_last_action_has_said_what_became_of_it(
    run_rig: RunRig, ask_timeout_s: float
) -> None:
    order: list[str] = []
    outcomes: list[Outcome] = []

    async def act() -> None:
        outcomes.append(await rig.dispatch("cut off", LongPress(x=500.0, y=500.0, duration_ms=700)))
        order.append("outcome")

    async def take() -> None:
        await rig.fleet.take_hold("phone-1", "a look at the cable", "jo")
        order.append("hold")
        taken.set()

    async with run_rig() as rig, trio.open_nursery() as nursery:
        taken = trio.Event()
        nursery.start_soon(act)
        await rig.rig.wait_for(lambda: len(rig.phone.touches) == 1)
        await rig.rig.unplug("hid", keeps_power=True)
        nursery.start_soon(take)
        with trio.move_on_after(NOT_YET_S):
            await taken.wait()
        assert order == [], "the board has not been asked yet, and staff may use it"
        await rig.rig.plug("hid")
        await taken.wait()
    assert sorted(order) == ["hold", "outcome"]
    receipt = outcomes[0].receipt
    assert receipt is not None
    assert receipt.error is not None
    # It stayed up and was asked: the board itself broke the press off.
    assert "broke it off" in receipt.error.message


async def test_a_touch_that_waited_for_an_action_is_not_made_by_staff_who_have_lost_the_device(
    run_rig: RunRig,
) -> None:
    told: list[str] = []

    async def touch() -> None:
        try:
            await rig.fleet.staff_touch("phone-1", DigitizerTouchAt(x=0.5, y=0.5, dwell_ms=20), "jo")
        except Refused as refusal:
            told.append(refusal.code)

    async with run_rig() as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.dispatch, "pressed", LongPress(x=500.0, y=500.0, duration_ms=1500))
        await rig.rig.wait_for(lambda: len(rig.phone.touches) == 1)
        nursery.start_soon(rig.fleet.take_hold, "phone-1", "a check", "jo")
        while rig.ledger.hold("phone-1") is None:
            await trio.sleep(0)
        nursery.start_soon(touch)
        await trio.testing.wait_all_tasks_blocked()
        await rig.fleet.release_hold("phone-1", None)
    assert told == ["lease_required"]
    assert len(rig.phone.touches) == 1


async def test_staff_touch_nothing_while_a_board_is_waited_for_that_may_know_of_the_last_run(
    run_rig: RunRig, pending_receipt: Callable[..., Receipt]
) -> None:
    async with run_rig() as rig:
        gone = CommandRef(board_uid="gone", board_boot_id=1, cmd_id=1)
        await rig.ledger.accept(pending_receipt("left behind"), b"tap", 1, gone)
        await rig.fleet.take_hold("phone-1", "a check", "jo")
    async with run_rig() as rig:
        with trio.move_on_after(NOT_YET_S) as waiting:
            await rig.fleet.staff_touch("phone-1", DigitizerTouchAt(x=0.5, y=0.5, dwell_ms=20), "jo")
        assert waiting.cancelled_caught
        assert rig.phone.touches == []
