"""A camera that was knocked, a phone that was shoved: told, held, remembered, and healed only by measuring again."""

import pytest

from calibration.errors import Invalidated
from calibration.options import Options
from edge_daemon.bench.plane import PlaneError, open_plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles
from edge_daemon.bench.stage import open_stage, shows, staff_of, wait_online
from edge_daemon.staff.askers import unattended
from edge_daemon.staff.calibrate import calibrate_device

pytestmark = pytest.mark.system
TAP = {"type": "tap", "x": 400.0, "y": 620.0}


async def test_a_knocked_camera_holds_the_device_until_the_camera_is_measured_again(
    own_rig: RigFiles, truth_seed: int
) -> None:
    async with open_stage(truth_seed, own_rig.directory) as stage, staff_of(stage) as staff:
        stage.rig.phone.show_page("dots")
        async with open_plane("plane-drift", own_rig.plane_socket) as plane:

            def device() -> dict:
                return plane.devices[DEVICE]

            await plane.wait_until(lambda: "drift" in device()["metadata"].get("calibration", {}))
            assert device()["metadata"]["calibration"]["drift"]["verdict"] == "still", "measured on start"
            assert device()["calibrated"]

            stage.rig.camera.knock(0.01, 0.01)
            warned = await staff.check_drift(DEVICE)
            assert (warned.verdict, warned.warn, warned.hold) == ("camera_moved", True, False)
            await plane.wait_until(lambda: "calibrationWarning" in device()["metadata"])
            assert (await plane.dispatch(DEVICE, TAP)).committed, "a warning does not hold"

            touches = len(stage.rig.phone.touches)
            stage.rig.camera.knock(0.05, 0.05)
            # A push of the arm is what the daemon feels of it; the look parks the hand, and the pictures tell the rest.
            stage.rig.push_hand(2.0, 0.0, 0.0)
            await plane.look(DEVICE)
            await plane.wait_until(lambda: not device()["calibrated"])
            refused = (await plane.dispatch(DEVICE, TAP)).error
            assert refused is not None
            assert refused["code"] == "uncalibrated"
            assert "the camera moved by" in refused["message"]
            assert f"edge-daemon calibrate {DEVICE} --camera-only" in refused["message"]
            key = (await plane.dispatch(DEVICE, {"type": "pressKey", "key": "home"})).error
            assert key is not None, "what is decided on a false picture is not done, by whichever part"
            with pytest.raises(PlaneError) as look:
                await plane.look(DEVICE)
            assert look.value.code == "uncalibrated"

        await stage.daemon.kill()
        text = own_rig.config.read_text()
        often = "[devices.phone-1.drift]\nevery_s = 1\n[devices.phone-1.screen]"
        own_rig.config.write_text(text.replace("[devices.phone-1.screen]", often))
        await stage.daemon.start()
        await wait_online(own_rig)
        async with open_plane("plane-after", own_rig.plane_socket) as plane, staff_of(stage) as again:
            refused = (await plane.dispatch(DEVICE, TAP)).error
            assert refused is not None, "it survives the daemon"
            assert refused["code"] == "uncalibrated"
            assert "--camera-only" in refused["message"]
            assert len(stage.rig.phone.touches) == touches

            asker = unattended(shows(stage))
            stored = await calibrate_device(
                again, DEVICE, asker, Options.quick(), lambda progress: None, kind="camera"
            )
            assert stored.origin == "camera only"
            assert len(stage.rig.phone.touches) == touches, "nothing is touched for it"
            stage.rig.phone.show_page("dots")
            assert (await plane.dispatch(DEVICE, TAP)).committed

            def said() -> dict:
                return plane.devices[DEVICE]["metadata"]["calibration"]

            await plane.wait_until(lambda: said().get("drift", {}).get("verdict") == "still")
            stage.rig.nudge_phone(0.15, 0.0)
            # Nobody asks: the schedule finds it.
            await plane.wait_until(lambda: not plane.devices[DEVICE]["calibrated"])
            assert said()["drift"]["verdict"] == "phone_moved"
            assert said()["usable"] == []
            assert (await plane.dispatch(DEVICE, TAP)).error is not None
            with pytest.raises(Invalidated):
                await calibrate_device(
                    again, DEVICE, asker, Options.quick(), lambda progress: None, kind="camera"
                )
