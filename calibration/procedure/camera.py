"""The camera's part alone: for a phone that nothing touches, and for a camera that has moved."""

import time

import msgspec

from calibration.errors import CameraMismatch
from calibration.options import Options
from calibration.procedure.progress import Clock, OnProgress
from calibration.procedure.run import begin_run, camera_work
from calibration.procedure.steps import CAMERA_STEPS
from calibration.result import CameraPart, DeviceCalibration
from calibration.rig import Rig
from calibration.screen import ScreenGeometry


def measure_camera(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
    previous: DeviceCalibration | None = None,
    clock: Clock = time.monotonic,
) -> CameraPart:
    """Look at the board, fit the camera's model, and judge it by the control marks of the dots page.

    previous, on_progress and clock as in `calibrate`. Nothing is touched. Raises PictureRefused and its kinds,
    FitRefused, RigMoved, Declined.
    """
    chosen = options or Options()
    return begin_run(
        rig,
        screen,
        chosen,
        steps=CAMERA_STEPS,
        expected=camera_work(chosen),
        on_progress=on_progress,
        clock=clock,
        previous=previous.camera.model if previous else None,
    ).camera


def recalibrate_camera(previous: DeviceCalibration, camera: CameraPart) -> DeviceCalibration:
    """The calibration with a new camera part, for a camera that has moved over a phone that has not.

    What touches the phone is kept, with the acceptance it had: it maps the screen and not the picture. Whether the
    phone really lay still only touches can tell: `verify` afterwards. Raises CameraMismatch for pictures of another
    size, which the device's other settings would not fit.
    """
    old, new = previous.camera.model, camera.model
    if (old.image_width, old.image_height) != (new.image_width, new.image_height):
        raise CameraMismatch(
            f"the camera's pictures are {new.image_width} x {new.image_height} px, the calibration is for "
            f"{old.image_width} x {old.image_height}; set the camera's former size, or calibrate everything"
        )
    return msgspec.structs.replace(previous, camera=camera)
