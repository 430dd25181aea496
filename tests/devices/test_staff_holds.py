"""Who of the staff has a device, when several ask at once."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from edge_daemon.contract import Refused

RunRig = Callable[[], AbstractAsyncContextManager[Any]]


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
