"""Calibration of a rig: camera, hand and screen, without the daemon.

`calibrate` is handed a Rig with three verbs (look, touch, ask) and returns a DeviceCalibration that passed
its acceptance, or raises a CalibrationError that says why not; `calibrate_digitizer` and `calibrate_pointer` do it
for a HID board, `measure_camera` for the camera alone. `verify` checks one in five touches. `store` keeps it;
`pictures` shows it.
"""

from calibration.acceptance import Acceptance
from calibration.errors import CalibrationError
from calibration.models import CameraModel, ContactPlane, HandModel
from calibration.options import Options
from calibration.procedure import (
    Progress,
    calibrate,
    calibrate_digitizer,
    calibrate_pointer,
    measure_camera,
    recalibrate_camera,
)
from calibration.result import DeviceCalibration
from calibration.rig import Envelope, Look, Rig, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.verify import Verification, verify

__all__ = [
    "Acceptance",
    "CalibrationError",
    "CameraModel",
    "ContactPlane",
    "DeviceCalibration",
    "Envelope",
    "HandModel",
    "Look",
    "Options",
    "Progress",
    "Rig",
    "ScreenGeometry",
    "ShowTarget",
    "Verification",
    "calibrate",
    "calibrate_digitizer",
    "calibrate_pointer",
    "measure_camera",
    "recalibrate_camera",
    "verify",
]
