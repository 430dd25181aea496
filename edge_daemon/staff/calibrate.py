"""Calibrates one device through its daemon: hold, procedure, store, adopt, give back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from calibration.options import Options
from calibration.procedure import Progress, calibrate
from calibration.result import DeviceCalibration
from calibration.screen import ScreenGeometry
from calibration.store import save
from edge_daemon.staff.rig import Asker, DaemonRig
from edge_daemon.upstream.client import StaffClient

HINT = "Being calibrated; about three minutes."


async def calibrate_device(
    client: StaffClient,
    device_id: str,
    asker: Asker,
    options: Options,
    on_progress: Callable[[Progress], None],
) -> DeviceCalibration:
    """Runs the whole procedure; the daemon uses the result when this returns.

    Raises `CalibrationError` (named, previous calibration untouched), `Refused` or `EdgeGone`. On any exit the
    hand is parked and the hold given back.
    """
    facts = await client.rig_facts(device_id)
    screen = ScreenGeometry(
        width_px=facts.screen.width_px,
        height_px=facts.screen.height_px,
        width_mm=facts.screen.width_mm,
        height_mm=facts.screen.height_mm,
    )
    await client.take_hold(device_id, HINT)
    try:
        rig = DaemonRig(client, facts, asker)
        # Not abandoned on cancellation: the thread's next verb raises Cancelled and ends the procedure there,
        # with no touch of it under way when the hold is given back.
        result = await trio.to_thread.run_sync(partial(calibrate, rig, screen, options, on_progress))
        store = partial(
            save, Path(facts.calibration_path), result, device_id=device_id, board_uid=facts.hand_uid
        )
        await trio.to_thread.run_sync(store)
        await client.adopt_calibration(device_id)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10.0):
            await client.release_hold(device_id)
    return result
