"""A rig that is calibrated within seconds: its twin in virtual time is calibrated, and the result is stored for it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from calibration.options import Options
from calibration.result import DeviceCalibration
from calibration.store import CalibrationStore
from edge_daemon.bench.calibrate.run import Outcome, calibrate_seed
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage, calibrate_stage, open_stage, staff_of
from edge_daemon.staff.conditions import conditions_of


@asynccontextmanager
async def open_calibrated_stage(
    seed: int, directory: Path, on_phase: Callable[[str], None]
) -> AsyncIterator[tuple[Stage, DeviceCalibration]]:
    """A stage whose device has a calibration in use. Raises what `open_stage` and a calibration raise."""
    on_phase("starting the simulated rig and the daemon; calibrating its twin in virtual time")
    outcomes: list[Outcome] = []

    async def calibrate() -> None:
        outcomes.append(await calibrate_seed(seed, "", 0))

    async with open_stage(seed, directory) as stage:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(calibrate)
        calibration = outcomes[0].calibration
        if calibration is None:
            # The virtual run is judged more strictly than a rig is, and refuses one sound rig in fifty.
            on_phase("its twin was refused by a hair; calibrating the rig itself, which takes two minutes")
            calibration = await calibrate_stage(stage, Options(), lambda progress: None)
        else:
            await _store(stage, calibration)
        yield stage, calibration


async def _store(stage: Stage, calibration: DeviceCalibration) -> None:
    async with staff_of(stage) as staff:
        conditions = conditions_of(await staff.rig_facts(DEVICE))
        store = CalibrationStore(stage.files.calibration_root, DEVICE)

        def save() -> None:
            store.save(calibration, conditions, origin="calibrated", note="made in virtual time")

        await trio.to_thread.run_sync(save)
        await staff.adopt_calibration(DEVICE)
