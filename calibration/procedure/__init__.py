"""The calibration procedures: of a hand, of a HID board's touch screen or pointer, and of the camera alone."""

from calibration.procedure.camera import measure_camera, recalibrate_camera
from calibration.procedure.digitizer import calibrate_digitizer
from calibration.procedure.hand import calibrate
from calibration.procedure.pointer import calibrate_pointer
from calibration.procedure.progress import Clock, OnProgress, Progress
from calibration.procedure.steps import CAMERA_STEPS, DIGITIZER_STEPS, POINTER_STEPS, STEPS, Step

__all__ = [
    "CAMERA_STEPS",
    "DIGITIZER_STEPS",
    "POINTER_STEPS",
    "STEPS",
    "Clock",
    "OnProgress",
    "Progress",
    "Step",
    "calibrate",
    "calibrate_digitizer",
    "calibrate_pointer",
    "measure_camera",
    "recalibrate_camera",
]
