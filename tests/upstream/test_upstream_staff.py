"""Staff over the real socket, with the client that the command line uses."""

import pytest
import trio
import trio.testing

from edge_daemon.bench.plane import open_plane
from edge_daemon.contract import Refused
from edge_daemon.upstream import EdgeGone, StaffTouchAt, connect_staff

AT = StaffTouchAt(x_mm=31.25, y_mm=60.5, press_z_mm=-0.5, hover_z_mm=8.0, dwell_ms=60)


async def test_every_verb_reaches_the_rig(edge) -> None:
    edge.rig.record("k-1")
    async with connect_staff(edge.staff_socket, "jo") as staff:
        assert (staff.edge_id, staff.boot_id) == ("edge-7", "boot-1")
        assert [device.device_id for device in await staff.list_devices()] == ["phone-1", "phone-2"]
        assert (await staff.get_receipt("phone-1", "k-1")).found
        facts = await staff.rig_facts("phone-1")
        assert facts.screen.width_px == 1080
        assert facts.hid_uid is None
        await staff.take_hold("phone-1", "calibration")
        picture = await staff.look("phone-1")
        assert picture.exposed_ns == 5
        await staff.touch("phone-1", AT)
        assert [at for _, at in edge.rig.touches] == [_only_the_touch(edge.rig.touches[0][1])]
        await staff.park("phone-1")
        await staff.adopt_calibration("phone-1")
        assert edge.rig.adopted == ["phone-1"]
        await staff.estop("phone-1")
        assert edge.rig.stopped == {"phone-1"}
        await staff.clear_estop("phone-1")
        assert edge.rig.stopped == set()
        await staff.release_hold("phone-1")
        assert edge.rig.holds == {}


def _only_the_touch(touch: StaffTouchAt) -> StaffTouchAt:
    for name in StaffTouchAt.__struct_fields__:
        assert getattr(touch, name) == getattr(AT, name)
    return touch


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
        for field, wrong in (("x_mm", float("nan")), ("press_z_mm", 2000.5), ("dwell_ms", 0)):
            at = StaffTouchAt(**{**{n: getattr(AT, n) for n in AT.__struct_fields__}, field: wrong})
            with pytest.raises(Refused) as refused:
                await staff.touch("phone-1", at)
            assert refused.value.info.code == "invalid_argument"
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
