"""A key that the ledger knows is answered from there, whatever speaks against acting now."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import trio

from edge_daemon.contract import Actor, LongPress, Outcome, Tap

RunRig = Callable[[], AbstractAsyncContextManager[Any]]
TAP = Tap(x=250.0, y=750.0)


async def test_a_known_key_is_answered_while_new_ones_are_refused_and_touches_nothing(
    run_rig: RunRig,
) -> None:
    person = Actor(kind="person", id="jo")
    async with run_rig() as rig:
        first = await rig.dispatch("known", TAP, epoch=rig.ledger.epoch)
        await rig.fleet.set_parked("phone-1", True, person)
        again = await rig.dispatch("known", TAP, epoch=rig.ledger.epoch)
        assert again.deduplicated
        assert again.receipt == first.receipt
        other = await rig.dispatch("known", Tap(x=1.0, y=1.0))
        assert other.error.code == "idempotency_conflict"
        assert (await rig.dispatch("new", TAP)).error.code == "needs_user_control"
        older = await rig.dispatch("new", TAP, epoch=rig.ledger.epoch + 1)
        assert older.error.code == "outcome_unknown"
        assert not (await rig.ledger.lookup("phone-1", "new", None)).found
        assert len(rig.phone.touches) == 1


async def test_a_known_key_is_answered_while_the_disk_owes_the_outcome_of_another(
    run_rig: RunRig, no_file_grows: Callable[[], AbstractContextManager[None]]
) -> None:
    outcomes: list[Outcome] = []
    async with run_rig() as rig, trio.open_nursery() as nursery:
        first = await rig.dispatch("known", TAP)

        async def hold() -> None:
            outcomes.append(await rig.dispatch("owed", LongPress(x=500.0, y=500.0, duration_ms=200)))

        nursery.start_soon(hold)
        await rig.rig.wait_for(lambda: len(rig.phone.touches) == 2)
        with no_file_grows():
            while rig.ledger.storage_fault is None:
                await trio.sleep(0)
            again = await rig.dispatch("known", TAP)
            assert again.error is None, "that would say that nothing was executed"
            assert again.receipt == first.receipt
            other = await rig.dispatch("known", Tap(x=1.0, y=1.0))
            assert other.error.code == "idempotency_conflict"
            assert outcomes == []
    assert outcomes[0].receipt is not None
    assert outcomes[0].receipt.status == "committed"
