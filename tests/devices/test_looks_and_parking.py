"""A person takes the screen: a look that is under way shows nothing of it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from calibration.result import DeviceCalibration
from calibration.screen import ScreenGeometry
from calibration.store import CalibrationStore
from edge_daemon.bench.exact import unasked_camera
from edge_daemon.bench.twin.camera import Trouble
from edge_daemon.contract import Actor, Lease, Look, Picture, Refused
from edge_daemon.staff.conditions import conditions_of

RunRig = Callable[[], AbstractAsyncContextManager[Any]]
PERSON = Actor(kind="person", id="jo")
RUN = Actor(kind="run", id="run-1")
LEASE = Lease(lease_id="lease", fencing_token=1, remaining_ms=600_000)
SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
SCALE = 0.006
"""Half diagonals of the picture for a millimetre; what the pictures show does not matter here."""
UPRIGHT_IN_THE_MIDDLE = (SCALE, 0.0, -34.0 * SCALE, 0.0, SCALE, -73.65 * SCALE, 0.0, 0.0, 1.0)


async def give_it_a_camera_calibration(rig: Any) -> None:
    facts = await rig.fleet.rig_facts("phone-1")
    picture = await rig.fleet.staff_look("phone-1")
    camera = unasked_camera((picture.width, picture.height), UPRIGHT_IN_THE_MIDDLE)
    store = CalibrationStore(Path(facts.calibration_folder), "phone-1")
    store.save(DeviceCalibration(screen=SCREEN, camera=camera), conditions_of(facts), origin="calibrated")
    await rig.fleet.adopt_calibration("phone-1")


async def look(rig: Any, answers: list[object], lease: Lease | None, wait_ms: int = 0) -> None:
    asked = Look(device_id="phone-1", org_id="org", actor=RUN, lease=lease, wait_settled_ms=wait_ms)
    try:
        answers.append(await rig.fleet.look(asked))
    except Refused as refusal:
        answers.append(refusal.code)


@pytest.mark.parametrize("given_back", [False, True], ids=["kept", "given back at once"])
async def test_looks_under_way_when_a_person_takes_the_screen_are_refused_at_once(
    run_rig: RunRig, given_back: bool
) -> None:
    answers: list[object] = []
    async with run_rig() as rig:
        await give_it_a_camera_calibration(rig)
        await look(rig, answers, LEASE)
        assert isinstance(answers.pop(), Picture)
        # No new picture comes, so that the looks wait for sure.
        rig.rig.camera.set_trouble(Trouble.FROZEN)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, rig, answers, LEASE)
            nursery.start_soon(look, rig, answers, LEASE, 3000)
            nursery.start_soon(look, rig, answers, None)
            await trio.testing.wait_all_tasks_blocked()
            await rig.fleet.set_parked("phone-1", True, RUN)
            if given_back:
                await rig.fleet.set_parked("phone-1", False, PERSON)
                rig.rig.camera.set_trouble(Trouble.NONE)
        assert answers == ["needs_user_control"] * 3


async def test_after_the_person_looks_are_answered_again(run_rig: RunRig) -> None:
    answers: list[object] = []
    async with run_rig() as rig:
        await give_it_a_camera_calibration(rig)
        await rig.fleet.set_parked("phone-1", True, RUN)
        await look(rig, answers, LEASE)
        assert answers.pop() == "needs_user_control"
        await rig.fleet.set_parked("phone-1", False, PERSON)
        await look(rig, answers, LEASE)
    (picture,) = answers
    assert isinstance(picture, Picture)
    assert picture.frame_id is not None
