"""Calibration of a rig: camera, hand and screen, without the daemon.

`calibrate` is handed a Rig with three verbs (look, touch, ask) and returns a DeviceCalibration that passed
its acceptance, or raises a CalibrationError that says why not. `store` keeps it; `pictures` shows it.
"""

from calibration.errors import CalibrationError
from calibration.models import CameraModel, ContactPlane, HandModel
from calibration.options import Options
from calibration.procedure import Progress, calibrate, measure_camera
from calibration.result import Acceptance, DeviceCalibration
from calibration.rig import Envelope, Look, Rig, ShowTarget
from calibration.screen import ScreenGeometry

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
    "calibrate",
    "measure_camera",
]
