"""The highest fencing token that was seen counts, whatever became of the request that brought it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest
import trio

from edge_daemon.contract import Actor, Lease, LongPress, Look, Outcome, Refused, Tap, TypeText, Wake

RunRig = Callable[[], AbstractAsyncContextManager[Any]]
TAP = Tap(x=250.0, y=750.0)
PERSON = Actor(kind="person", id="jo")


async def leased_look(rig: Any, token: int) -> str:
    lease = Lease(lease_id="lease", fencing_token=token, remaining_ms=600_000)
    try:
        await rig.fleet.look(Look(device_id="phone-1", org_id="org", actor=PERSON, lease=lease))
    except Refused as refusal:
        return refusal.code
    return "shown"


async def a_look(rig: Any, token: int) -> str:
    """Refused by a device that has no calibration."""
    return await leased_look(rig, token)


async def a_look_while_a_person_has_the_screen(rig: Any, token: int) -> str:
    await rig.fleet.set_parked("phone-1", True, PERSON)
    code = await leased_look(rig, token)
    await rig.fleet.set_parked("phone-1", False, PERSON)
    return code


async def an_action_while_a_person_has_the_screen(rig: Any, token: int) -> str:
    await rig.fleet.set_parked("phone-1", True, PERSON)
    outcome = await rig.dispatch("parked", TAP, token=token)
    await rig.fleet.set_parked("phone-1", False, PERSON)
    return str(outcome.error.code)


async def an_action_that_cannot_be_done(rig: Any, token: int) -> str:
    return str((await rig.dispatch("snow", TypeText(text="☃"), token=token)).error.code)


async def a_wake(rig: Any, token: int) -> str:
    return str((await rig.dispatch("wake", Wake(), token=token)).error.code)


async def a_key_of_another_action(rig: Any, token: int) -> str:
    return str((await rig.dispatch("known", LongPress(x=1.0, y=1.0), token=token)).error.code)


async def a_known_key(rig: Any, token: int) -> str:
    outcome = await rig.dispatch("known", TAP, token=token)
    if outcome.error is not None:
        return str(outcome.error.code)
    return "deduplicated" if outcome.deduplicated else "executed"


async def a_key_of_another_epoch(rig: Any, token: int) -> str:
    outcome = await rig.dispatch("old", TAP, token=token, epoch=rig.ledger.epoch + 1)
    return str(outcome.error.code)


REQUESTS: list[tuple[Callable[[Any, int], Awaitable[str]], str]] = [
    (a_look, "uncalibrated"),
    (a_look_while_a_person_has_the_screen, "needs_user_control"),
    (an_action_while_a_person_has_the_screen, "needs_user_control"),
    (an_action_that_cannot_be_done, "invalid_argument"),
    (a_wake, "capability_unsupported"),
    (a_key_of_another_action, "idempotency_conflict"),
    (a_known_key, "deduplicated"),
    (a_key_of_another_epoch, "outcome_unknown"),
]


async def test_a_token_that_came_with_anything_fences_off_older_holders_also_after_a_restart(
    run_rig: RunRig,
) -> None:
    token = 1
    async with run_rig() as rig:
        assert (await rig.dispatch("known", TAP, token=token)).receipt.status == "committed"
        for request, answer in REQUESTS:
            token += 1
            assert await request(rig, token) == answer
            older = await rig.dispatch(f"after-{request.__name__}", TAP, token=token - 1)
            assert older.error is not None
            assert older.error.code == "lease_mismatch", request.__name__
            assert await leased_look(rig, token - 1) == "lease_mismatch"
    async with run_rig() as rig:
        assert (await rig.dispatch("restarted", TAP, token=token - 1)).error.code == "lease_mismatch"
        # What was accepted is answered, whoever asks.
        assert (await rig.dispatch("known", TAP, token=1)).deduplicated
        assert (await rig.dispatch("newest", TAP, token=token)).receipt.status == "committed"
        assert len(rig.phone.touches) == 2


@pytest.mark.parametrize("same", [True, False], ids=["the same action", "another action"])
async def test_a_newer_holder_with_the_key_of_what_is_under_way_fences_off_what_waits_behind_it(
    run_rig: RunRig, same: bool
) -> None:
    hold = LongPress(x=500.0, y=500.0, duration_ms=700)
    outcomes: dict[str, Outcome] = {}
    async with run_rig() as rig, trio.open_nursery() as nursery:

        async def dispatch(name: str, key: str, action: Any, token: int) -> None:
            outcomes[name] = await rig.dispatch(key, action, token=token)

        nursery.start_soon(dispatch, "first", "held", hold, 1)
        await rig.rig.wait_for(lambda: len(rig.phone.touches) == 1)
        nursery.start_soon(dispatch, "waiting", "waiting", TAP, 1)
        while not (await rig.ledger.lookup("phone-1", "waiting", None)).found:
            await trio.sleep(0)
        await dispatch("again", "held", hold if same else TAP, 2)
    assert outcomes["first"].receipt is not None
    assert outcomes["first"].receipt.status == "committed"
    if same:
        assert outcomes["again"].deduplicated
        assert outcomes["again"].receipt == outcomes["first"].receipt
    else:
        assert outcomes["again"].error is not None
        assert outcomes["again"].error.code == "idempotency_conflict"
    assert outcomes["waiting"].receipt is not None
    assert outcomes["waiting"].receipt.error is not None
    assert outcomes["waiting"].receipt.error.code == "lease_mismatch"
    assert len(rig.phone.touches) == 1


async def test_a_newer_token_that_the_disk_refuses_is_not_answered_as_if_it_had_been_seen(
    run_rig: RunRig, no_file_grows: Callable[[], AbstractContextManager[None]]
) -> None:
    async def newer(request: Callable[[Any, int], Awaitable[str]]) -> str:
        try:
            return await request(rig, 2)
        except Refused as refusal:
            return refusal.code

    async with run_rig() as rig:
        assert (await rig.dispatch("known", TAP)).receipt.status == "committed"
        with no_file_grows():
            for request in (a_look, a_wake, an_action_that_cannot_be_done):
                assert await newer(request) == "storage_unavailable", request.__name__
            assert rig.ledger.highest_token("phone-1") == 1
            # Of what is known it must not be said that nothing was executed.
            assert await newer(a_known_key) == "deduplicated"
            assert await newer(a_key_of_another_action) == "idempotency_conflict"
            assert await newer(a_key_of_another_epoch) == "outcome_unknown"
        assert await a_wake(rig, 2) == "capability_unsupported"
        assert rig.ledger.highest_token("phone-1") == 2


@pytest.mark.parametrize("token", [1, 2])
async def test_looking_costs_a_commit_only_for_a_holder_who_was_not_seen_before(
    run_rig: RunRig, token: int
) -> None:
    async with run_rig() as rig:
        await leased_look(rig, 2)
        before = _log_bytes(rig)
        assert await leased_look(rig, token) in ("uncalibrated", "lease_mismatch")
        assert _log_bytes(rig) == before
        await leased_look(rig, 3)
        assert _log_bytes(rig) > before


def _log_bytes(rig: Any) -> int:
    return int(rig.ledger_path.with_name(rig.ledger_path.name + "-wal").stat().st_size)
