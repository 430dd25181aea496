"""Bad input and bad moments, over the real link: a typed error, the phone untouched, the daemon up."""

import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from edge_daemon.bench.plane import Answer, Plane, PlaneError, open_plane
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage, open_stage, staff_of

InRig = Callable[..., Awaitable[None]]
TAP = {"type": "tap", "x": 400.0, "y": 620.0}


@pytest.fixture(autouse=True)
async def untouched(calibrated: Stage) -> AsyncIterator[None]:
    """Whatever is refused here must not reach the phone, and the daemon must go on."""
    phone = calibrated.rig.phone
    before = (len(phone.touches), len(phone.keys), phone.typed)
    pid = calibrated.daemon.pid
    yield
    assert (len(phone.touches), len(phone.keys), phone.typed) == before
    assert calibrated.daemon.pid == pid
    async with staff_of(calibrated) as staff:
        (device,) = await staff.list_devices()
    assert device.status == "online", device.status_reason


async def refused(plane: Plane, action: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The error of a dispatch, whichever way it is told; no receipt says anything was executed."""
    try:
        answer: Answer = await plane.dispatch(options.pop("device", DEVICE), action, **options)
    except PlaneError as error:
        return error.error
    assert answer.error is not None, answer.outcome
    if answer.receipt is not None:
        assert answer.receipt["status"] == "failed"
        assert "reason" not in answer.receipt
    return answer.error


@pytest.mark.parametrize(
    ("action", "code", "field"),
    [
        ({"type": "tap", "x": 1000.5, "y": 1.0}, "invalid_argument", "action.x"),
        ({"type": "tap", "x": float("nan"), "y": 1.0}, "invalid_argument", "action.x"),
        ({"type": "tap", "x": 1.0, "y": 1.0, "z": 1.0}, "invalid_argument", "z"),
        ({"type": "pinch"}, "invalid_argument", "action"),
        ({"type": "typeText", "text": "smile ☺"}, "invalid_argument", "action.text"),
        ({"type": "openApp", "appId": "com.example"}, "capability_unsupported", "action"),
        ({"type": "wake"}, "capability_unsupported", None),
        (
            {"type": "longPress", "x": 1.0, "y": 1.0, "durationMs": 100},
            "invalid_argument",
            "action.durationMs",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused_and_named(
    plane: Plane, action: dict[str, Any], code: str, field: str | None
) -> None:
    error = await refused(plane, action)
    assert error["code"] == code, error
    assert field is None or field in f"{error.get('field')} {error['message']}"


async def test_an_unknown_device_is_named_with_the_known_ones(plane: Plane) -> None:
    error = await refused(plane, TAP, device="phone-9")
    assert error["code"] == "unknown_device"
    assert DEVICE in error["message"]


@pytest.mark.parametrize("key", ["tab\there", "agent:1", "", "x" * 129, "nul\0"])
async def test_a_key_outside_the_contract_is_refused(plane: Plane, key: str) -> None:
    request = {
        "type": "dispatch",
        "deviceId": DEVICE,
        "idempotencyKey": key,
        "orgId": "bench",
        "actor": {"kind": "system"},
        "lease": plane.lease(),
        "action": TAP,
    }
    with pytest.raises(PlaneError) as caught:
        await plane.ask(request)
    assert caught.value.code == "invalid_argument"
    assert "idempotencyKey" in str(caught.value)


async def test_a_refused_request_leaves_no_receipt(plane: Plane) -> None:
    await refused(plane, {"type": "openApp", "appId": "com.example"}, key="left-none")
    answer = await plane.get_receipt(DEVICE, "left-none")
    assert answer["known"]
    assert not answer["found"]


async def test_an_expired_lease_and_an_expired_dispatch_are_refused(plane: Plane) -> None:
    assert (await refused(plane, TAP, remaining_ms=0))["code"] == "lease_required"


async def test_staff_hold_the_device_and_the_plane_is_told_why(calibrated: Stage, plane: Plane) -> None:
    async with staff_of(calibrated) as staff:
        await staff.take_hold(DEVICE, "Being cleaned; ten minutes.")
        error = await refused(plane, TAP)
        assert error["code"] == "leased"
        assert error["retryable"]
        assert error["hint"] == "Being cleaned; ten minutes."
        await staff.release_hold(DEVICE)


async def test_an_emergency_stop_refuses_acts_until_it_is_cleared(calibrated: Stage, plane: Plane) -> None:
    command = [sys.executable, "-m", "edge_daemon", "estop", DEVICE, "--config", str(calibrated.files.config)]
    await trio.run_process(command, capture_stdout=True)
    try:
        assert (await refused(plane, TAP))["code"] == "estopped"
        assert (await refused(plane, {"type": "pressKey", "key": "home"}))["code"] == "estopped"
    finally:
        await trio.run_process([*command, "--clear"], capture_stdout=True)
    assert (await plane.look(DEVICE))["frameId"]


async def test_an_emergency_stop_reaches_the_other_board_when_one_is_gone(
    calibrated: Stage, in_rig: InRig, plane: Plane
) -> None:
    command = [sys.executable, "-m", "edge_daemon", "estop", DEVICE, "--config", str(calibrated.files.config)]
    await in_rig(calibrated.rig.unplug, "hand")
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "offline")
    try:
        told = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
        assert told.returncode == 2, "the hand could not be stopped, and that is said"
    finally:
        await in_rig(calibrated.rig.plug, "hand")
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")
    assert (await refused(plane, {"type": "pressKey", "key": "home"}))["code"] == "estopped"
    await trio.run_process([*command, "--clear"], capture_stdout=True)


async def test_a_parked_screen_refuses_acts_and_looks_until_a_person_resumes(plane: Plane) -> None:
    await plane.set_parked(DEVICE, True, actor_kind="run")
    try:
        assert (await refused(plane, TAP))["code"] == "needs_user_control"
        with pytest.raises(PlaneError) as look:
            await plane.look(DEVICE)
        assert look.value.code == "needs_user_control"
        with pytest.raises(PlaneError) as lift:
            await plane.set_parked(DEVICE, False, actor_kind="run")
        assert lift.value.code == "permission_denied"
    finally:
        await plane.set_parked(DEVICE, False, actor_kind="person")
    assert (await plane.look(DEVICE))["frameId"]


async def test_an_observed_frame_nobody_served_is_refused(plane: Plane) -> None:
    error = await refused(plane, TAP, observed_frame="f-never")
    assert error["code"] == "stale_frame"


async def test_a_second_plane_is_refused_and_the_first_goes_on(calibrated: Stage, plane: Plane) -> None:
    with pytest.raises(PlaneError) as caught:
        async with open_plane("another-plane", calibrated.files.plane_socket):
            pass
    assert caught.value.code == "permission_denied"
    assert (await plane.list_devices())[0]["deviceId"] == DEVICE


@pytest.mark.parametrize(("part", "named"), [("hid", "keys-1"), ("camera", "cam-1")])
async def test_an_unplugged_part_is_named_and_comes_alive_when_plugged_in(
    calibrated: Stage, in_rig: InRig, plane: Plane, part: str, named: str
) -> None:
    await in_rig(calibrated.rig.unplug, part)
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "offline")
    assert named in plane.devices[DEVICE]["statusReason"]
    assert (await refused(plane, TAP))["code"] == "device_offline"
    await in_rig(calibrated.rig.plug, part)
    await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")


async def test_an_uncalibrated_hand_touches_nothing(truth_seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        async with (
            open_stage(truth_seed, Path(directory)) as stage,
            open_plane("plane-new", stage.files.plane_socket) as plane,
        ):
            error = await refused(plane, TAP)
            assert error["code"] == "uncalibrated"
            assert f"edge-daemon calibrate {DEVICE}" in error["message"]
            with pytest.raises(PlaneError) as look:
                await plane.look(DEVICE)
            assert look.value.code == "uncalibrated"
            assert stage.rig.phone.touches == []
