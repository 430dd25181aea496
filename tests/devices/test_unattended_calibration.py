"""The daemon calibrates by itself: it shows its page, uses what was accepted, and gives the device back on any exit."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from calibration.store import CalibrationStore
from edge_daemon.bench.browser import open_page
from edge_daemon.bench.twin.picture_options import PictureOptions
from edge_daemon.contract import Actor, Refused, Tap

RunRig = Callable[[], AbstractAsyncContextManager[Any]]
STAFF = Actor(kind="staff", id="jo")


def described(run: Any) -> Any:
    (device,) = run.fleet.devices()
    return device


async def test_it_is_held_shown_touched_judged_stored_used_and_given_back(run_rig: RunRig) -> None:
    stages: list[Any] = []
    async with run_rig() as run, trio.open_nursery() as phone:
        await phone.start(open_page, run.phone, run.unattended.page_url("phone-1"))
        refusals: list[str] = []

        async def meanwhile() -> None:
            """What others are told while it runs."""
            await run.rig.wait_for(lambda: len(run.phone.touches) > 0, 30)
            refusals.append((await run.dispatch("meanwhile", Tap(x=1.0, y=1.0))).error.code)
            with pytest.raises(Refused) as caught:
                await run.fleet.calibrate("phone-1", "full", STAFF, lambda stage: None)
            refusals.append(caught.value.code)

        async with trio.open_nursery() as others:
            others.start_soon(meanwhile)
            outcome = await run.fleet.calibrate("phone-1", "full", STAFF, stages.append)
        assert refusals == ["leased", "leased"]
        assert outcome.verdict == "accepted"
        assert outcome.max_mm is not None
        assert outcome.max_mm < 0.25
        assert stages[-1].fraction == 1.0
        assert [stage.fraction for stage in stages] == sorted(stage.fraction for stage in stages)
        device = described(run)
        assert device.calibrated
        assert device.staff_hold is None
        assert device.metadata["calibration"]["id"] == outcome.calibration_id
        run.phone.show_page("launcher")
        assert (await run.dispatch("after", Tap(x=250.0, y=750.0))).receipt.status == "committed"
        assert run.phone.touch_at_grid(run.phone.touches[-1]) == pytest.approx((250.0, 750.0), abs=4.0)
        phone.cancel_scope.cancel()
    async with run_rig() as run:
        device = described(run)
        assert device.calibrated, "after a restart it is loaded again"
        assert device.metadata["calibration"]["id"] == outcome.calibration_id


async def test_without_a_page_that_is_open_it_says_what_to_open(run_rig: RunRig) -> None:
    async with run_rig() as run:
        with pytest.raises(Refused) as caught:
            await run.fleet.calibrate("phone-1", "full", STAFF, lambda stage: None)
        assert caught.value.code == "capability_unsupported"
        assert run.unattended.page_url("phone-1") in str(caught.value)
        assert described(run).staff_hold is None


async def test_what_the_camera_cannot_use_is_a_named_refusal_and_changes_nothing(run_rig: RunRig) -> None:
    async with run_rig() as run, trio.open_nursery() as phone:
        await phone.start(open_page, run.phone, run.unattended.page_url("phone-1"))
        run.rig.camera.set_options(PictureOptions(blur_px=6.0))
        outcome = await run.fleet.calibrate("phone-1", "full", STAFF, lambda stage: None)
        assert outcome.verdict == "refused"
        assert outcome.refusal in ("Blurred", "BoardNotFound")
        assert outcome.reason
        device = described(run)
        assert device.staff_hold is None
        assert not device.calibrated
        assert run.phone.touches == []
        with pytest.raises(Refused) as caught:
            await run.fleet.check_drift("phone-1")
        assert caught.value.code == "uncalibrated"
        phone.cancel_scope.cancel()


async def test_taken_back_it_ends_there_and_the_device_is_free(run_rig: RunRig) -> None:
    async with run_rig() as run, trio.open_nursery() as phone:
        await phone.start(open_page, run.phone, run.unattended.page_url("phone-1"))

        async def calibrate() -> None:
            with pytest.raises(Refused) as caught:
                await run.fleet.calibrate("phone-1", "full", STAFF, lambda stage: None)
            assert caught.value.code == "canceled"

        async with trio.open_nursery() as job:
            job.start_soon(calibrate)
            await run.rig.wait_for(lambda: len(run.phone.touches) > 0, 30)
            await run.fleet.stop_calibration("phone-1", STAFF)
            assert described(run).staff_hold is None
        touches = len(run.phone.touches)
        assert not described(run).calibrated
        assert CalibrationStore(run.ledger_path.parent / "calibration", "phone-1").history() == []
        assert (await run.dispatch("after", Tap(x=500.0, y=500.0))).receipt.status == "committed"
        assert len(run.phone.touches) == touches + 1
        phone.cancel_scope.cancel()


async def test_a_hold_of_a_calibration_that_died_with_the_daemon_is_lifted_at_its_next_start(
    run_rig: RunRig,
) -> None:
    async with run_rig() as run:
        await run.fleet.take_hold("phone-1", "Being calibrated by itself.", "edge:calibration")
        assert described(run).staff_hold is not None
    async with run_rig() as run:
        assert described(run).staff_hold is None
