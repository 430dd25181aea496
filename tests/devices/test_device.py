"""One device: order, keys, expiry, cancel, shutdown and restart, on a real HID board behind a pty."""

import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio

from edge_daemon.contract import (
    Action,
    LongPress,
    Outcome,
    PressKey,
    ReceiptAnswer,
    Refused,
    Swipe,
    Tap,
    TypeText,
)
from edge_daemon.devices.orientation import to_portrait

HOLD = LongPress(x=500.0, y=500.0, duration_ms=700)
TAP = Tap(x=250.0, y=750.0)

RunRig = Callable[[], AbstractAsyncContextManager[Any]]


async def under_way(
    rig: Any, nursery: trio.Nursery, outcomes: dict[str, Outcome], key: str = "first"
) -> None:
    """Starts a hold and returns when the phone feels it."""
    before = len(rig.phone.touches)

    async def hold() -> None:
        outcomes[key] = await rig.dispatch(key, HOLD)

    nursery.start_soon(hold)
    await rig.rig.wait_for(lambda: len(rig.phone.touches) > before)


async def test_a_digitizer_tap_lands_on_its_grid_point_once(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        outcome = await rig.dispatch("tap", TAP)
        assert outcome.receipt.status == "committed"
        assert outcome.receipt.backend_kind == "esp32_hid"
        (touch,) = rig.phone.touches
        assert rig.phone.touch_at_grid(touch) == pytest.approx((250.0, 750.0), abs=1.0)


async def test_a_key_used_for_something_else_is_a_conflict_in_flight_and_afterwards(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            await under_way(rig, nursery, outcomes, "shared")
            meanwhile = await rig.dispatch("shared", TAP)
        afterwards = await rig.dispatch("shared", TAP)
        for outcome in (meanwhile, afterwards):
            assert outcome.error.code == "idempotency_conflict"
            assert outcome.receipt is None
        assert outcomes["shared"].receipt.status == "committed"
        assert len(rig.phone.touches) == 1


async def test_the_keys_own_action_is_not_refused_for_another_one_that_is_about_to_be(
    run_rig: RunRig,
) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        done = await rig.dispatch("known", TAP)

        async def dispatch(action: Action) -> None:
            outcomes[type(action).__name__] = await rig.dispatch("known", action)

        async with trio.open_nursery() as nursery:
            for action in (HOLD, TAP):
                nursery.start_soon(dispatch, action)
                await trio.lowlevel.checkpoint()
        assert outcomes["LongPress"].error.code == "idempotency_conflict"
        assert outcomes["Tap"].receipt == done.receipt
        assert len(rig.phone.touches) == 1


async def test_what_waited_too_long_is_expired_and_not_executed(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            await under_way(rig, nursery, outcomes)
            late = await rig.dispatch("late", TAP, expires_in_ms=50)
        assert late.receipt.status == "failed"
        assert late.receipt.error.code == "expired"
        assert late.receipt.reason is None
        assert len(rig.phone.touches) == 1


async def test_a_cancel_before_the_start_takes_it_back_and_one_after_it_does_not(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            await under_way(rig, nursery, outcomes)

            async def second() -> None:
                outcomes["second"] = await rig.dispatch("second", TAP)

            nursery.start_soon(second)
            while not (await rig.ledger.lookup("phone-1", "second", None)).found:
                await trio.sleep(0)
            taken_back = await rig.fleet.cancel("phone-1", "second")
            too_late = await rig.fleet.cancel("phone-1", "first")
        assert taken_back.receipt.error.code == "canceled"
        assert outcomes["second"].receipt == taken_back.receipt
        assert too_late.receipt.status == "pending"
        assert outcomes["first"].receipt.status == "committed"
        assert len(rig.phone.touches) == 1


async def test_pipelined_actions_run_and_are_filed_in_the_order_in_which_they_arrived(
    run_rig: RunRig,
) -> None:
    places = [Tap(x=100.0 + 100 * number, y=500.0) for number in range(3)]
    async with run_rig() as rig:
        await rig.fleet.take_hold("phone-1", "so that all of them wait", "staff")
        await rig.fleet.release_hold("phone-1", "staff")
        outcomes: dict[str, Outcome] = {}

        async def dispatch(number: int, started: trio.Event) -> None:
            waiting = rig.dispatch(f"in-order-{number}", places[number])
            started.set()
            outcomes[f"in-order-{number}"] = await waiting

        async with trio.open_nursery() as nursery:
            for number in range(3):
                started = trio.Event()
                nursery.start_soon(dispatch, number, started)
                await started.wait()
        touched = [round(rig.phone.touch_at_grid(touch)[0] / 100) for touch in rig.phone.touches]
        assert touched == [1, 2, 3]
        filed = await rig.ledger.unacknowledged(10)
        assert [receipt.idempotency_key for receipt in filed] == [f"in-order-{number}" for number in range(3)]


async def test_a_key_on_its_way_into_the_ledger_is_never_answered_as_not_found(run_rig: RunRig) -> None:
    async with run_rig() as rig, trio.open_nursery() as nursery:
        last = rig.dispatch("window-2", PressKey(key="volume_up"))
        for number in range(2):
            nursery.start_soon(rig.dispatch, f"window-{number}", PressKey(key="volume_up"))
        nursery.start_soon(lambda: last)
        # Two passes of the scheduler: all three have arrived, at most the first is with the ledger.
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert (await rig.fleet.get_receipt("phone-1", "window-2", None)).found


async def test_a_key_that_is_sent_while_the_ledger_is_asked_for_it_is_not_answered_as_not_found(
    run_rig: RunRig,
) -> None:
    answers: list[ReceiptAnswer] = []
    disk_is_slow = threading.Event()
    async with run_rig() as rig:

        async def ask() -> None:
            answers.append(await rig.fleet.get_receipt("phone-1", "meanwhile", None))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.ledger._read, disk_is_slow.wait)
            for task in (ask, partial(rig.dispatch, "meanwhile", PressKey(key="volume_up"))):
                # Two passes of the scheduler: it has arrived, and waits for the ledger.
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
                nursery.start_soon(task)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            disk_is_slow.set()
    (answer,) = answers
    assert answer.found


async def test_dispatches_of_one_key_at_once_execute_once_and_all_hear_the_outcome(run_rig: RunRig) -> None:
    outcomes: list[Outcome] = []
    async with run_rig() as rig:

        async def dispatch() -> None:
            outcomes.append(await rig.dispatch("at-once", TAP))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(dispatch)
        assert [outcome.receipt.status for outcome in outcomes] == ["committed"] * 4
        assert sorted(outcome.deduplicated for outcome in outcomes) == [False, True, True, True]
        assert len(rig.phone.touches) == 1


async def test_a_line_that_is_full_refuses_before_it_accepts(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            await under_way(rig, nursery, outcomes)
            for number in range(3):
                nursery.start_soon(rig.dispatch, f"in-line-{number}", PressKey(key="volume_up"))
            while not (await rig.ledger.lookup("phone-1", "in-line-2", None)).found:
                await trio.sleep(0)
            over = await rig.dispatch("over", TAP)
        assert over.error.code == "rate_limited"
        assert over.error.retryable
        assert not (await rig.ledger.lookup("phone-1", "over", None)).found


async def test_a_swipe_with_equal_ends_holds_still(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        swipe = Swipe(from_x=500.0, from_y=500.0, to_x=500.0, to_y=500.0, duration_ms=400)
        assert (await rig.dispatch("hold", swipe)).receipt.status == "committed"
        (touch,) = rig.phone.touches
        assert touch.duration_ms > 350
        assert len(touch.path) == 1


async def test_text_that_cannot_be_typed_is_refused_before_the_first_key(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        outcome = await rig.dispatch("text", TypeText(text="abc☃"))
        assert outcome.error.code == "invalid_argument"
        assert "abc" not in outcome.error.message
        assert "character 3 of the text, counted from 0," in outcome.error.message
        assert "2603" not in outcome.error.message, "which character it is"
        assert rig.phone.typed == ""


async def test_a_hold_taken_while_a_text_is_being_loaded_keeps_it_from_being_typed(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:

        async def dispatch() -> None:
            outcomes["text"] = await rig.dispatch("text", TypeText(text="load me " * 500))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch)
            while not (await rig.ledger.lookup("phone-1", "text", None)).found:
                await trio.sleep(0)
            await rig.fleet.take_hold("phone-1", "Stop.", "staff")
        assert outcomes["text"].receipt.status == "failed"
        assert outcomes["text"].receipt.error.code == "leased"
        assert rig.phone.typed == ""


async def test_a_drain_lets_the_action_under_way_finish_and_tells_the_line(run_rig: RunRig) -> None:
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig:
        async with trio.open_nursery() as nursery:
            await under_way(rig, nursery, outcomes)

            async def second() -> None:
                outcomes["second"] = await rig.dispatch("second", TAP)

            nursery.start_soon(second)
            while not (await rig.ledger.lookup("phone-1", "second", None)).found:
                await trio.sleep(0)
            await rig.fleet.drain()
        assert outcomes["first"].receipt.status == "committed"
        assert outcomes["second"].receipt.error.code == "interrupted_by_restart"
        assert (await rig.dispatch("third", TAP)).error.code == "device_offline"
        assert len(rig.phone.touches) == 1


async def test_after_a_hard_stop_the_board_is_asked_and_only_the_first_in_line_can_have_run(
    run_rig: RunRig,
) -> None:
    async with run_rig() as rig, trio.open_nursery() as nursery:
        await under_way(rig, nursery, {})
        for number in range(2):
            nursery.start_soon(rig.dispatch, f"behind-{number}", TAP)
        for number in range(2):
            while not (await rig.ledger.lookup("phone-1", f"behind-{number}", None)).found:
                await trio.sleep(0)
        nursery.cancel_scope.cancel()
    async with run_rig() as rig:
        again = await rig.dispatch("first", HOLD)
        assert again.deduplicated
        # The board broke the hold off when it lost its host: it was felt, and it was not completed.
        assert again.receipt.status == "failed"
        assert again.receipt.reason == "outcome_unknown"
        assert again.receipt.requires_manual_review
        for number in range(2):
            behind = await rig.dispatch(f"behind-{number}", TAP)
            assert behind.receipt.reason == "interrupted_by_restart"
            assert not behind.receipt.requires_manual_review
        assert len(rig.phone.touches) == 1
        assert rig.phone.touches[0].up_ns is not None, "nothing stays pressed"


async def test_when_the_board_restarted_too_only_the_one_that_may_have_run_is_unknown(
    run_rig: RunRig,
) -> None:
    async with run_rig() as rig, trio.open_nursery() as nursery:
        await under_way(rig, nursery, {})
        nursery.start_soon(rig.dispatch, "behind", TAP)
        while not (await rig.ledger.lookup("phone-1", "behind", None)).found:
            await trio.sleep(0)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await rig.rig.reset_board("hid")
    async with run_rig() as rig:
        first = (await rig.dispatch("first", HOLD)).receipt
        assert (first.status, first.reason) == ("failed", "outcome_unknown")
        assert first.requires_manual_review
        behind = (await rig.dispatch("behind", TAP)).receipt
        assert (behind.status, behind.reason) == ("failed", "interrupted_by_restart")
        assert not behind.requires_manual_review


async def test_a_ledger_made_anew_does_not_take_an_older_key_for_a_new_one(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        epoch = rig.ledger.epoch
        assert (await rig.dispatch("before", TAP, epoch=epoch)).receipt.status == "committed"
    for lost in rig.ledger_path.parent.glob(rig.ledger_path.name + "*"):
        if "witness" not in lost.name:
            lost.unlink()
    async with run_rig() as rig:
        assert rig.ledger.epoch > epoch
        again = await rig.dispatch("before", TAP, epoch=epoch)
        assert again.receipt is None
        assert again.error.code == "outcome_unknown"
        assert len(rig.phone.touches) == 1
        fresh = await rig.dispatch("after", TAP, epoch=rig.ledger.epoch)
        assert fresh.receipt.status == "committed"


async def test_staff_holds_and_parked_screens_survive_a_restart(run_rig: RunRig) -> None:
    async with run_rig() as rig:
        await rig.fleet.take_hold("phone-1", "Cleaning.", "staff-1")
    async with run_rig() as rig:
        held = await rig.dispatch("held", TAP)
        assert held.error.code == "leased"
        assert held.error.hint == "Cleaning."
        with pytest.raises(Refused) as other:
            await rig.fleet.take_hold("phone-1", "Mine.", "staff-2")
        assert other.value.code == "leased"
        await rig.fleet.release_hold("phone-1", None)
        assert (await rig.dispatch("held", TAP)).receipt.status == "committed", "nothing was accepted before"


@pytest.mark.parametrize(
    ("orientation", "corner"),
    [
        ("portrait", (0.0, 0.0)),
        ("landscape_left", (1000.0, 0.0)),
        ("portrait_upside_down", (1000.0, 1000.0)),
        ("landscape_right", (0.0, 1000.0)),
    ],
)
def test_the_grids_origin_is_the_top_left_corner_as_the_phone_is_held(
    orientation: Any, corner: tuple[float, float]
) -> None:
    assert to_portrait(0.0, 0.0, orientation) == corner
    # One step along the shown x axis moves by the same length on the glass, whatever the orientation.
    x, y = to_portrait(100.0, 0.0, orientation)
    assert abs(x - corner[0]) + abs(y - corner[1]) == 100.0
