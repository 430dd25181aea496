"""Staff over the real socket, with the client that the command line uses."""

import re

import msgspec
import pytest
import trio
import trio.testing

from edge_daemon.bench.plane import open_plane
from edge_daemon.contract import Actor, Refused
from edge_daemon.upstream import (
    DigitizerTouchAt,
    EdgeGone,
    HandTouchAt,
    PointerTouchAt,
    SessionLimits,
    connect_staff,
)

AT = HandTouchAt(x_mm=31.25, y_mm=60.5, press_z_mm=-0.5, hover_z_mm=8.0, dwell_ms=60, approach_x="high")
ON_SCREEN = DigitizerTouchAt(x=0.25, y=1.0, dwell_ms=60)
BY_POINTER = PointerTouchAt(x_counts=512, y_counts=0, home_counts=4000, step_counts=4, dwell_ms=60)
STAFF = Actor(kind="staff", id="jo")


async def test_every_verb_reaches_the_rig(edge) -> None:
    edge.rig.record("k-1")
    async with connect_staff(edge.staff_socket, "jo") as staff:
        assert (staff.edge_id, staff.boot_id) == ("edge-7", "boot-1")
        assert [device.device_id for device in await staff.list_devices()] == ["phone-1", "phone-2"]
        assert (await staff.get_receipt("phone-1", "k-1")).found
        facts = await staff.rig_facts("phone-1")
        assert facts.screen.width_px == 1080
        assert facts.hand is not None
        assert facts.hand.approach_mm == 0.6
        assert facts.hid is None
        await staff.take_hold("phone-1", "calibration")
        picture = await staff.look("phone-1")
        assert picture.exposed_ns == 5
        for touch in (AT, ON_SCREEN, BY_POINTER):
            await staff.touch("phone-1", touch)
        assert [at for _, at in edge.rig.touches] == [AT, ON_SCREEN, BY_POINTER]
        assert (await staff.check_drift("phone-1")).verdict == "still"
        await staff.set_orientation("phone-1", "found")
        assert edge.rig.described["phone-1"].orientation == "landscape_left"
        await staff.park("phone-1")
        await staff.adopt_calibration("phone-1")
        assert edge.rig.adopted == ["phone-1"]
        await staff.estop("phone-1")
        assert edge.rig.stopped == {"phone-1"}
        await staff.clear_estop("phone-1")
        assert edge.rig.stopped == set()
        await staff.release_hold("phone-1")
        assert edge.rig.holds == {}


async def test_a_refusal_comes_as_refused_with_its_field(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        with pytest.raises(Refused) as refused:
            await staff.rig_facts("phone-9")
        assert refused.value.info.code == "unknown_device"
        assert refused.value.info.field == "deviceId"
        with pytest.raises(Refused) as refused:
            await staff.touch("phone-1", AT)
        assert refused.value.info.code == "lease_required"
        with pytest.raises(Refused) as refused:
            await staff.take_hold("phone-1", "line\nbreak")
        assert refused.value.info.field == "hint"


async def test_a_touch_out_of_all_bounds_is_refused_by_field(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        for touch, field, wrong in (
            (AT, "x_mm", float("nan")),
            (AT, "press_z_mm", 2000.5),
            (AT, "dwell_ms", 0),
            (AT, "approach_y", "left"),
            (ON_SCREEN, "x", 1.01),
            (ON_SCREEN, "y", -0.01),
            (BY_POINTER, "x_counts", -1),
            (BY_POINTER, "step_counts", 128),
        ):
            with pytest.raises(Refused) as refused:
                await staff.touch("phone-1", msgspec.structs.replace(touch, **{field: wrong}))
            assert refused.value.info.code == "invalid_argument"
            assert refused.value.info.field == "touch." + re.sub("_(.)", lambda m: m[1].upper(), field)
    assert edge.rig.touches == []


async def test_a_staff_session_that_ends_gives_back_its_holds_and_only_those(edge, caplog) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        await staff.take_hold("phone-1", "calibration")
        await staff.take_hold("phone-2", "calibration")
        await staff.release_hold("phone-1")
    await edge.rig.wait_until(lambda: edge.rig.holds == {})
    await trio.testing.wait_all_tasks_blocked()
    assert edge.rig.parked_hands == ["phone-1", "phone-2"]
    assert "could not be given back" not in caplog.text


async def test_a_hold_whose_second_taking_was_refused_is_given_back_all_the_same(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        await staff.take_hold("phone-1", "calibration")
        edge.rig.disk_refuses = True
        with pytest.raises(Refused):
            await staff.take_hold("phone-1", "calibration, a little longer")
    with trio.fail_after(10):
        await edge.rig.wait_until(lambda: edge.rig.holds == {})


async def test_a_hold_is_given_back_only_after_the_last_touch_is_done(edge, nursery) -> None:
    edge.rig.gate = trio.Event()
    async with connect_staff(edge.staff_socket, "jo") as staff:
        await staff.take_hold("phone-1", "calibration")
        async with trio.open_nursery() as inner:
            inner.start_soon(staff.touch, "phone-1", AT)
            await edge.rig.begun.wait()
            inner.cancel_scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert "phone-1" in edge.rig.holds
    edge.rig.gate.set()
    await edge.rig.wait_until(lambda: edge.rig.holds == {})
    assert len(edge.rig.touches) == 1


async def test_a_shutdown_gives_back_the_holds_too(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        await staff.take_hold("phone-1", "calibration")
        edge.stop()
        await edge.rig.wait_until(lambda: edge.rig.holds == {})


async def test_two_sessions_of_one_technician_do_not_share_a_hold(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as one:
        await one.take_hold("phone-1", "calibration")
        async with connect_staff(edge.staff_socket, "jo") as two:
            with pytest.raises(Refused) as refused:
                await two.take_hold("phone-1", "check")
            assert refused.value.code == "leased"
        assert set(edge.rig.holds) == {"phone-1"}
        await one.touch("phone-1", AT)


async def test_a_hold_left_over_is_released_by_force_only(edge) -> None:
    edge.rig.holds["phone-1"] = "jo#of-a-process-that-died"
    async with connect_staff(edge.staff_socket, "jo") as staff:
        with pytest.raises(Refused):
            await staff.release_hold("phone-1")
        await staff.release_hold("phone-1", force=True)
        assert edge.rig.holds == {}


async def test_a_plane_sees_the_hold_and_its_end(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.list_devices()
        async with connect_staff(edge.staff_socket, "jo") as staff:
            await staff.take_hold("phone-1", "calibration, 5 minutes")
            await plane.wait_until(lambda: "staffHold" in plane.devices["phone-1"])
            assert plane.devices["phone-1"]["staffHold"]["hint"] == "calibration, 5 minutes"
        await plane.wait_until(lambda: "staffHold" not in plane.devices["phone-1"])


async def test_requests_of_several_tasks_share_one_connection(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff, trio.open_nursery() as inner:
        for _ in range(40):
            inner.start_soon(staff.look, "phone-1") if _ < 3 else inner.start_soon(staff.list_devices)


async def test_a_daemon_that_ends_is_said_to_be_gone(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        edge.stop()
        with pytest.raises(EdgeGone):
            while True:
                await staff.list_devices()


async def test_no_daemon_at_all_is_said_plainly(tmp_path) -> None:
    with pytest.raises(EdgeGone, match="is it running"):
        async with connect_staff(tmp_path / "staff.sock", "jo"):
            pass


async def test_the_plane_socket_is_not_taken_for_the_staffs(edge) -> None:
    with pytest.raises(EdgeGone, match="no staff socket"):
        async with connect_staff(edge.plane_socket, "jo"):
            pass


async def test_what_the_callers_own_block_raises_reaches_it_as_it_was(edge) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect_staff(edge.staff_socket, "jo"):
            _ = 1 // 0


async def test_a_calibration_by_the_daemon_tells_its_stages_and_its_verdict(edge) -> None:
    stages = []
    async with connect_staff(edge.staff_socket, "jo") as staff:
        outcome = await staff.calibrate("phone-1", "camera", STAFF, stages.append)
    assert outcome.verdict == "accepted"
    assert outcome.calibration_id == "3fa2b1c0"
    assert [stage.number for stage in stages] == [1, 2]
    assert edge.rig.calibrated_for == [("phone-1", "camera", STAFF)]


async def test_a_calibration_by_the_daemon_can_be_taken_back_from_another_session(edge) -> None:
    edge.rig.gate = trio.Event()
    async with connect_staff(edge.staff_socket, "jo") as one, connect_staff(edge.staff_socket, "al") as two:
        async with trio.open_nursery() as inner:

            async def calibrate() -> None:
                with pytest.raises(Refused) as refused:
                    await one.calibrate("phone-1", "full", STAFF, lambda stage: None)
                assert refused.value.code == "canceled"

            inner.start_soon(calibrate)
            await edge.rig.begun.wait()
            await two.stop_calibration("phone-1", STAFF)


async def test_only_staff_calibrate(edge) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        for kind in ("person", "api_key", "copilot", "run", "system"):
            with pytest.raises(Refused) as refused:
                await staff.calibrate("phone-1", "full", Actor(kind=kind), lambda stage: None)
            assert refused.value.code == "permission_denied"
            assert refused.value.info.field == "actor.kind"
            with pytest.raises(Refused) as refused:
                await staff.stop_calibration("phone-1", Actor(kind=kind))
            assert refused.value.code == "permission_denied"
    assert edge.rig.calibrated_for == []


CALIBRATE = {"type": "calibrate", "deviceId": "phone-1", "kind": "full", "actor": {"kind": "staff"}}


async def test_a_plane_that_nobody_allowed_it_does_not_calibrate(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello(protocol=2)
        for request in (CALIBRATE, {**CALIBRATE, "type": "stopCalibration"}):
            request = {key: value for key, value in request.items() if request is CALIBRATE or key != "kind"}
            await peer.say({**request, "id": 1})
            answer = await peer.hear()
            assert answer["error"]["code"] == "permission_denied"
            assert "staff_actions" in answer["error"]["message"]
        await peer.still_serves()
    assert edge.rig.calibrated_for == []


@pytest.mark.parametrize("limits", [SessionLimits(staff_actions=True)])
async def test_a_plane_that_the_operator_allowed_it_calibrates_and_hears_the_stages(edge, limits) -> None:
    async with edge.raw() as peer:
        await peer.hello(protocol=2)
        await peer.say({**CALIBRATE, "id": 1})
        told = [await peer.hear() for _ in range(3)]
    assert [message["type"] for message in told] == [*["calibrationProgress"] * 2, "calibrationResult"]
    assert told[2]["outcome"]["calibrationId"] == "3fa2b1c0"


@pytest.mark.parametrize("limits", [SessionLimits(staff_actions=True)])
async def test_a_session_of_version_1_has_no_such_request(edge, limits) -> None:
    async with edge.raw() as peer:
        await peer.hello(protocol=1)
        await peer.say({**CALIBRATE, "id": 1})
        answer = await peer.hear()
        assert answer["error"]["code"] == "protocol_error"
        await peer.still_serves()
    assert edge.rig.calibrated_for == []
