"""The real process tree for the kills: boards behind ptys, a camera, files, the daemon as a process of its own."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import cv2
import numpy as np
import trio

from calibration.result import DeviceCalibration
from calibration.store import CalibrationStore
from edge_daemon.bench.crash.real_board import RealBoard
from edge_daemon.bench.crash.real_hand import RealHand
from edge_daemon.bench.crash.real_keys import RealKeys
from edge_daemon.bench.crash.real_notes import BoardKind, PhoneLog
from edge_daemon.bench.crash.real_wishes import ORIGIN_MM, SCREEN
from edge_daemon.bench.daemon_process import DaemonProcess, running_daemon
from edge_daemon.bench.exact import exact_calibration
from edge_daemon.bench.rigfile import RigFiles
from edge_daemon.bench.stage import StageFailed
from edge_daemon.bench.twin.boards import Runtime, available_runtime
from edge_daemon.bench.twin.mjpeg import MjpegServer, Part
from edge_daemon.staff.conditions import conditions_of
from edge_daemon.upstream.client import connect_staff

_PICTURE = (1280, 720)
_PICTURE_EVERY_S = 0.5
ONLINE_S = 30.0

_CONFIG = """\
[edge]
id = "bench-kills"
state_dir = "{state}"
[plane]
unix_socket = "{plane}"
[staff]
unix_socket = "{staff}"
[log]
level = "debug"
[cameras.cam-1]
type = "http_mjpeg"
url = "http://127.0.0.1:{camera_port}/stream?extra_headers=1"
"""
_DEVICE = """\
[boards.{hand}]
kind = "hand"
port = "{hand_port}"
[boards.{keys}]
kind = "hid"
port = "{keys_port}"
[devices.{device}]
hand = "{hand}"
hid = "{keys}"
camera = "cam-1"
[devices.{device}.motion]
park_x_mm = 10.0
park_y_mm = 10.0
park_z_mm = 4.0
search_z_mm = 4.0
hover_mm = 2.0
dwell_ms = 20
[devices.{device}.screen]
width_px = {width_px}
height_px = {height_px}
width_mm = {width_mm}
height_mm = {height_mm}
"""


def _calibration() -> DeviceCalibration:
    """Of a hand without any error: where its touches land is not what is tried here."""
    return exact_calibration(
        SCREEN, ORIGIN_MM, 0.2, _PICTURE, homography=(0.01, 0.0, -0.3, 0.0, 0.01, -0.4, 0.0, 0.0, 1.0)
    )


class RealPhone:
    """One phone with a hand over it and a keyboard at its plug, and what it felt of both."""

    def __init__(self, number: int, directory: Path, runtime: Runtime) -> None:
        self.log = PhoneLog()
        self.hand = RealHand(self.log, f"hand-{number}", f"4c4e4b01{number:08x}", directory, runtime)
        self.keys = RealKeys(self.log, f"keys-{number}", f"4c4e4b02{number:08x}", directory, runtime)
        self.boards: dict[BoardKind, RealBoard] = {"hand": self.hand, "hid": self.keys}


@dataclass
class RealRig:
    """What is killed, and who saw what it did. `phones` by device id."""

    files: RigFiles
    daemon: DaemonProcess
    phones: dict[str, RealPhone]


@asynccontextmanager
async def open_real_rig(
    directory: Path, devices: Sequence[str], runtime: Runtime | None = None
) -> AsyncIterator[RealRig]:
    """All of it running, calibrated and online; nothing of it is left at the end. `directory`: a short path.

    Raises what a rig raises that does not come up: StageFailed, DaemonFailed, BoardCrashed.
    """
    files = RigFiles(directory)
    kind = runtime or available_runtime()
    phones = {device: RealPhone(number, directory, kind) for number, device in enumerate(devices, start=1)}
    server = MjpegServer()
    server.open()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_film, server)
            for phone in phones.values():
                for board in phone.boards.values():
                    await nursery.start(board.run)
            _write_config(files, phones, server.port)
            async with running_daemon(files.config, files.log) as daemon:
                rig = RealRig(files, daemon, phones)
                await _calibrate(rig)
                yield rig
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(server.close)


async def _film(server: MjpegServer) -> None:
    """A dim, uneven, unmoving scene: enough for a camera that nobody looks through."""
    shade = np.linspace(60, 180, _PICTURE[0], dtype=np.uint8)
    picture = np.repeat(shade[None, :], _PICTURE[1], axis=0)
    jpeg = cv2.imencode(".jpg", picture)[1].tobytes()
    for _ in count():
        now_ns = time.monotonic_ns()
        server.publish(Part(jpeg, now_ns, now_ns))
        await trio.sleep(_PICTURE_EVERY_S)


def _write_config(files: RigFiles, phones: dict[str, RealPhone], camera_port: int) -> None:
    text = _CONFIG.format(
        state=files.state, plane=files.plane_socket, staff=files.staff_socket, camera_port=camera_port
    )
    for device, phone in phones.items():
        text += _DEVICE.format(
            hand=phone.hand.name,
            hand_port=phone.hand.port,
            keys=phone.keys.name,
            keys_port=phone.keys.port,
            device=device,
            width_px=SCREEN.width_px,
            height_px=SCREEN.height_px,
            width_mm=SCREEN.width_mm,
            height_mm=SCREEN.height_mm,
        )
    files.config.write_text(text, encoding="utf-8")


async def _calibrate(rig: RealRig) -> None:
    """Stores the calibrations as staff would, once boards and camera have announced themselves."""
    waiting_for = "the daemon's answer"
    with trio.move_on_after(ONLINE_S):
        async with connect_staff(rig.files.staff_socket, "bench") as staff:
            while True:
                offline = [it for it in await staff.list_devices() if it.status != "online"]
                if not offline:
                    break
                waiting_for = f"{offline[0].device_id}, {offline[0].status}: {offline[0].status_reason}"
                await trio.sleep(0.05)
            for device in rig.phones:
                conditions = conditions_of(await staff.rig_facts(device))
                store = CalibrationStore(rig.files.calibration_root, device)
                store.save(_calibration(), conditions, origin="calibrated")
                await staff.adopt_calibration(device)
            return
    raise StageFailed(f"the rig did not come up within {ONLINE_S:.0f} s; it waited for {waiting_for}")
