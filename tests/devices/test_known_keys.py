"""A key that the ledger knows is answered from there, whatever speaks against acting now."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from edge_daemon.contract import Actor, Tap

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
