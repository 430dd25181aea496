"""A stage for a suite: simulated rig, daemon process, calibration, all owned by one `async with`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from calibration.options import Options
from calibration.procedure import Progress
from calibration.result import DeviceCalibration
from calibration.rig import ShowTarget
from edge_daemon.bench.daemon_process import DaemonProcess, running_daemon
from edge_daemon.bench.rigfile import DEVICE, RigFiles, write_config
from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_WIDTH_PX
from edge_daemon.staff.askers import Shower, unattended
from edge_daemon.staff.calibrate import calibrate_device
from edge_daemon.upstream.client import StaffClient, connect_staff

SCREEN_MM = (SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM)
ONLINE_S = 30.0


class StageFailed(Exception):
    """The rig did not come up; the message says what was missing."""


@dataclass
class Stage:
    """What a suite plays on."""

    rig: SimulatedRig
    daemon: DaemonProcess
    files: RigFiles


@asynccontextmanager
async def open_stage(seed: int, directory: Path) -> AsyncIterator[Stage]:
    """A simulated rig and the daemon that drives it, online and not yet calibrated."""
    files = RigFiles(directory)
    async with SimulatedRig(seed, directory) as rig:
        write_config(
            files,
            hand_port=Path(rig.hand_port),
            hid_port=Path(rig.hid_port),
            camera_url=rig.camera_url,
            screen_px=(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX),
            screen_mm=SCREEN_MM,
        )
        async with running_daemon(files.config, files.log) as daemon:
            await wait_online(files)
            yield Stage(rig, daemon, files)


async def wait_online(files: RigFiles) -> None:
    """Until the device is online. Raises `StageFailed` with the daemon's own reason."""
    reason = "the daemon did not answer"
    with trio.move_on_after(ONLINE_S):
        async with connect_staff(files.staff_socket, "bench") as staff:
            while True:
                (device,) = await staff.list_devices()
                if device.status == "online":
                    return
                reason = f"{device.status}: {device.status_reason}"
                await trio.sleep(0.1)
    raise StageFailed(f"the simulated device is not online within {ONLINE_S:.0f} s; {reason}")


async def calibrate_stage(
    stage: Stage, options: Options, on_progress: Callable[[Progress], None]
) -> DeviceCalibration:
    """The technician's part, played by the bench: the pages are shown on the simulated phone."""

    async with staff_of(stage) as staff:
        asker = unattended(shows(stage))
        return (await calibrate_device(staff, DEVICE, asker, options, on_progress)).calibration


def shows(stage: Stage) -> Shower:
    """The simulated phone shows a page at once, the way it is asked to be turned."""

    async def show(request: ShowTarget) -> None:
        stage.rig.phone.show_page(request.target, turn=request.turn)

    return show


@asynccontextmanager
async def staff_of(stage: Stage) -> AsyncIterator[StaffClient]:
    async with connect_staff(stage.files.staff_socket, "bench") as staff:
        yield staff
