"""What a receipt notes about its frame, held against what the simulated camera and hand really did."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
import trio

from edge_daemon.bench.plane import Plane
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage, staff_of
from edge_daemon.bench.twin.sensor import Exposure
from edge_daemon.upstream import HandTouchAt

InRig = Callable[..., Awaitable[None]]
TAP = {"type": "tap", "x": 300.0, "y": 480.0}
FRAME_NS = 1_000_000_000 // 15


@pytest.fixture(autouse=True)
async def still_page(calibrated: Stage) -> AsyncIterator[None]:
    """On the dots page nothing moves by itself, and a touch opens nothing."""
    calibrated.rig.phone.show_page("dots")
    yield
    calibrated.rig.phone.show_page("launcher")


def exposure_of(stage: Stage, picture: dict[str, Any]) -> Exposure:
    """The true exposure behind a picture: the one that began nearest to when the picture says it was taken."""
    taken = datetime.fromisoformat(picture["capturedAt"]).timestamp()
    taken_ns = time.monotonic_ns() - round((time.time() - taken) * 1e9)
    nearest = min(stage.rig.camera.exposures, key=lambda exposure: abs(exposure.begin_ns - taken_ns))
    assert abs(nearest.begin_ns - taken_ns) < FRAME_NS / 2
    return nearest


async def tapped(plane: Plane, picture: dict[str, Any]) -> dict[str, Any]:
    """The receipt of a tap bound to this picture."""
    answer = await plane.dispatch(DEVICE, TAP, observed_frame=picture["frameId"])
    assert answer.committed, answer.outcome
    assert answer.receipt is not None
    return answer.receipt


def accepted_ns(receipt: dict[str, Any]) -> int:
    return int(receipt["requestedNs"] + receipt["timing"]["acceptedMs"] * 1e6)


async def test_age_and_newer_frames_are_what_the_camera_really_did(calibrated: Stage, plane: Plane) -> None:
    picture = await plane.look(DEVICE)
    frame = exposure_of(calibrated, picture)
    for _ in range(2):
        receipt = await tapped(plane, picture)
        notes, at_ns = receipt["frameNotes"], accepted_ns(receipt)
        assert abs(notes["ageMs"] - (at_ns - frame.begin_ns) / 1e6) < FRAME_NS / 1e6
        later = [one for one in calibrated.rig.camera.exposures if one.sequence > frame.sequence]
        # The one that was being exposed at that moment may count or not.
        ended = sum(one.end_ns <= at_ns for one in later)
        begun = sum(one.begin_ns <= at_ns for one in later)
        assert ended <= notes["newerFrames"] <= begun
        assert not notes["edgeMovedSince"], "the hand moved for the plane alone"


async def test_a_frame_from_before_the_hands_last_move_is_not_settled(
    calibrated: Stage, plane: Plane
) -> None:
    picture = await plane.look(DEVICE)
    assert (await tapped(plane, picture))["frameNotes"]["settled"]
    notes = (await tapped(plane, picture))["frameNotes"]
    assert (notes["settled"], notes["settleReason"]) == (False, "the hand has moved since the frame")


async def test_a_frame_with_the_hand_in_it_is_not_settled(calibrated: Stage, plane: Plane) -> None:
    await tapped(plane, await plane.look(DEVICE))
    # Nobody waited, so the hand still stands over the phone.
    picture = await plane.look(DEVICE, wait_settled_ms=0)
    assert picture["handInPicture"]
    notes = (await tapped(plane, picture))["frameNotes"]
    assert not notes["settled"]
    assert notes["settleReason"]


async def test_a_look_asked_for_after_an_action_shows_the_screen_after_it(
    calibrated: Stage, plane: Plane
) -> None:
    receipt = await tapped(plane, await plane.look(DEVICE))
    touch = calibrated.rig.phone.touches[-1]
    for wait_ms in (0, 2000):
        picture = await plane.look(DEVICE, wait_settled_ms=wait_ms)
        assert touch.up_ns is not None
        assert exposure_of(calibrated, picture).begin_ns > max(touch.up_ns, receipt["finishedNs"])


async def test_a_camera_that_restarted_serves_nothing_from_before_and_counts_on(
    calibrated: Stage, in_rig: InRig, plane: Plane
) -> None:
    picture = await plane.look(DEVICE)
    frame = exposure_of(calibrated, picture)
    await in_rig(calibrated.rig.kill, "camera")
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "offline")
    await in_rig(calibrated.rig.revive, "camera")
    back_ns = time.monotonic_ns()
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")
    later = await plane.look(DEVICE)
    assert exposure_of(calibrated, later).begin_ns > back_ns
    assert later["sequence"] > picture["sequence"]
    receipt = await tapped(plane, picture)
    # What was exposed while nobody was connected never became a frame: no fewer than the looks tell, no more than were.
    begun = sum(
        frame.begin_ns < one.begin_ns <= accepted_ns(receipt) for one in calibrated.rig.camera.exposures
    )
    assert later["sequence"] - picture["sequence"] <= receipt["frameNotes"]["newerFrames"] <= begun


async def restarted(stage: Stage, in_rig: InRig, plane: Plane) -> None:
    await in_rig(stage.rig.reset_board, "hand")
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "offline")
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")


async def stopped(stage: Stage, in_rig: InRig, plane: Plane) -> None:
    async with staff_of(stage) as staff:
        await staff.estop(DEVICE)
        await staff.clear_estop(DEVICE)
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")


async def jogged(stage: Stage, in_rig: InRig, plane: Plane) -> None:
    async with staff_of(stage) as staff:
        await staff.take_hold(DEVICE, "A look at the stylus.")
        facts = await staff.rig_facts(DEVICE)
        assert facts.hand is not None
        high = facts.hand.park.z_mm
        at = HandTouchAt(x_mm=100.0, y_mm=20.0, press_z_mm=high - 2.0, hover_z_mm=high, dwell_ms=50)
        await staff.touch(DEVICE, at)
        await staff.release_hold(DEVICE)


@pytest.mark.parametrize("cause", [restarted, stopped, jogged])
async def test_a_move_of_the_edge_between_frame_and_action_is_noted(
    calibrated: Stage, in_rig: InRig, plane: Plane, cause: Callable[..., Awaitable[None]]
) -> None:
    picture = await plane.look(DEVICE)
    await cause(calibrated, in_rig, plane)
    with trio.fail_after(20):
        notes = (await tapped(plane, picture))["frameNotes"]
    assert notes["edgeMovedSince"]
    assert not notes["settled"]
