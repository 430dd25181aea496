"""A technician's runs on one device, through its daemon: hold, procedure, store, adopt, give back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from calibration.options import Options
from calibration.procedure import OnProgress
from calibration.store import CalibrationStore, StoredCalibration
from calibration.verify import Verification, verify
from edge_daemon.staff.conditions import conditions_of
from edge_daemon.staff.plan import plan_for
from edge_daemon.staff.rig import Asker, RigVerbs, StaffRig
from edge_daemon.staff.runs import in_thread, run_plan
from edge_daemon.upstream.client import StaffClient
from edge_daemon.upstream.service import CalibrationKind

CALIBRATING = "Being calibrated; about three minutes."
VERIFYING = "Its calibration is being checked; half a minute."
RELEASE_S = 10.0
"""A park from the far corner takes a second or two; past this the daemon gives the hold back with the connection."""


async def calibrate_device(
    client: StaffClient,
    device_id: str,
    asker: Asker,
    options: Options,
    on_progress: OnProgress,
    *,
    kind: CalibrationKind = "full",
    note: str = "",
) -> StoredCalibration:
    """Runs the whole procedure; the daemon uses the result when this returns.

    Raises `CalibrationError` (named, previous calibration untouched), `Refused` or `EdgeGone`. On any exit the
    hand is parked and the hold given back.
    """
    facts = await client.rig_facts(device_id)
    store = CalibrationStore(Path(facts.calibration_folder), device_id)
    read = partial(plan_for, facts, kind, store, conditions_of(facts), attended=True)
    plan = await trio.to_thread.run_sync(read)
    async with held(client, device_id, CALIBRATING):
        result = await run_plan(plan, verbs_of(client, device_id), facts, options, asker, on_progress)
        # What is attached is asked again: a board that was swapped meanwhile made none of these touches.
        conditions = conditions_of(await client.rig_facts(device_id))
        stored = await trio.to_thread.run_sync(plan.save, store, conditions, result, note)
        await client.adopt_calibration(device_id)
    return stored


async def verify_device(
    client: StaffClient, device_id: str, asker: Asker, options: Options, on_progress: OnProgress
) -> tuple[StoredCalibration, Verification]:
    """Five touches against the calibration in use. Raises as `calibrate_device`, and when there is none in use."""
    facts = await client.rig_facts(device_id)
    store = CalibrationStore(Path(facts.calibration_folder), device_id)
    stored = await trio.to_thread.run_sync(store.current, conditions_of(facts))
    async with held(client, device_id, VERIFYING):
        rig = StaffRig(verbs_of(client, device_id), facts, options, asker)
        verification = await in_thread(verify, rig, stored.calibration, options, on_progress)
    return stored, verification


def verbs_of(client: StaffClient, device_id: str) -> RigVerbs:
    return RigVerbs(partial(client.look, device_id), partial(client.touch, device_id))


@asynccontextmanager
async def held(client: StaffClient, device_id: str, hint: str) -> AsyncIterator[None]:
    """The device is this connection's meanwhile; parked and given back on any exit, also a cancelled one."""
    await client.take_hold(device_id, hint)
    try:
        yield
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + RELEASE_S):
            await client.release_hold(device_id)
