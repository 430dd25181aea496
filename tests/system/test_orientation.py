"""A phone that lies or is held turned: said to the plane, set by staff, touched where it was meant."""

import math
import sys

import pytest
import trio

from calibration.targets import TURNS, Turn
from calibration.targets.turns import is_landscape
from edge_daemon.bench.plane import Plane, PlaneError
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import SCREEN_MM, Stage, staff_of
from edge_daemon.bench.twin.technician_pages import as_read_mm
from edge_daemon.contract import Refused

PLACE = (200.0, 300.0)


def config_of(stage: Stage) -> str:
    return str(stage.files.config)


async def command(stage: Stage, *words: str) -> str:
    """What `edge-daemon devices orientation` says; standard error where it fails."""
    told = await trio.run_process(
        [sys.executable, "-m", "edge_daemon", "devices", "orientation", *words, "--config", config_of(stage)],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return (told.stdout if told.returncode == 0 else told.stderr).decode()


@pytest.mark.parametrize("turn", TURNS)
async def test_what_is_touched_is_what_the_picture_showed_in_each_orientation(
    calibrated: Stage, plane: Plane, turn: Turn
) -> None:
    phone = calibrated.rig.phone
    phone.show_page("dots", turn=turn)
    try:
        async with staff_of(calibrated) as staff:
            await staff.set_orientation(DEVICE, turn)
        await plane.wait_until(lambda: plane.devices[DEVICE]["orientation"] == turn)
        picture = await plane.look(DEVICE)
        assert picture["orientation"] == turn
        assert "orientationMismatch" not in picture
        size = picture["pixelSize"]
        assert (size["width"] > size["height"]) == is_landscape(turn)
        across_mm, down_mm = SCREEN_MM[::-1] if is_landscape(turn) else SCREEN_MM
        x, y = PLACE
        tap = {"type": "tap", "x": x, "y": y}
        assert (await plane.dispatch(DEVICE, tap, observed_frame=picture["frameId"])).committed
        touch = phone.touches[-1]
        read_x, read_y = as_read_mm((touch.x_mm, touch.y_mm), turn)
        assert math.hypot(read_x - x / 1000 * across_mm, read_y - y / 1000 * down_mm) < 0.8
    finally:
        async with staff_of(calibrated) as staff:
            await staff.set_orientation(DEVICE, "portrait")
        phone.show_page("launcher")


async def test_a_picture_that_contradicts_the_orientation_says_so_and_no_place_of_it_is_touched(
    calibrated: Stage, plane: Plane
) -> None:
    phone = calibrated.rig.phone
    phone.show_page("dots", turn="landscape_left")
    try:
        picture = await plane.look(DEVICE)
        assert (picture["orientation"], picture["orientationMismatch"]) == ("portrait", "landscape_left")
        before = len(phone.touches)
        tap = {"type": "tap", "x": 500.0, "y": 400.0}
        answer = await plane.dispatch(DEVICE, tap, observed_frame=picture["frameId"])
        assert answer.error is not None
        assert (answer.error["code"], answer.error["field"]) == ("stale_frame", "observedFrame")
        assert "landscape_left" in answer.error["message"]
        assert len(phone.touches) == before
        # A key is at no place.
        key = {"type": "pressKey", "key": "volume_up"}
        assert (await plane.dispatch(DEVICE, key, observed_frame=picture["frameId"])).committed

        assert await command(calibrated, DEVICE, "found") == f"{DEVICE}: landscape_left\n"
        picture = await plane.look(DEVICE)
        assert picture["orientation"] == "landscape_left"
        assert "orientationMismatch" not in picture
        assert (await plane.dispatch(DEVICE, tap, observed_frame=picture["frameId"])).committed
    finally:
        async with staff_of(calibrated) as staff:
            await staff.set_orientation(DEVICE, "portrait")
        phone.show_page("launcher")


async def test_an_orientation_that_the_picture_does_not_show_is_not_guessed(
    calibrated: Stage, plane: Plane
) -> None:
    phone = calibrated.rig.phone
    phone.set_brightness(0.02)
    try:
        async with staff_of(calibrated) as staff:
            with pytest.raises(Refused) as refused:
                await staff.set_orientation(DEVICE, "found")
        assert (refused.value.code, refused.value.info.field) == ("invalid_argument", "orientation")
        picture = await plane.look(DEVICE, wait_settled_ms=0)
        assert "orientationMismatch" not in picture
    finally:
        phone.set_brightness(1.0)
    assert "no table [devices.phone-9]" in await command(calibrated, "phone-9", "portrait")
    with pytest.raises(PlaneError) as foreign:
        await plane.ask({"type": "setOrientation", "deviceId": DEVICE, "orientation": "portrait"})
    assert foreign.value.code == "permission_denied"
