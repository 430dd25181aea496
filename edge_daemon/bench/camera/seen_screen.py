"""A camera calibration of a rig in virtual time, from its own pictures of the board, and pictures of any size."""

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect import BoardFinder
from calibration.fit_camera import fit_camera
from calibration.noise import noise_sigma
from calibration.options import Options
from calibration.result import CameraPart, DeviceCalibration
from calibration.screen import ScreenGeometry
from calibration.targets import charuco_target
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_WIDTH_PX
from edge_daemon.bench.twin.virtual import VirtualRig

SCREEN = ScreenGeometry(
    width_px=SCREEN_WIDTH_PX, height_px=SCREEN_HEIGHT_PX, width_mm=SCREEN_WIDTH_MM, height_mm=SCREEN_HEIGHT_MM
)
CAMERA_QUALITY = 88
_NATIVE = (1280, 720)
_LOOKS = 4

Image = npt.NDArray[np.uint8]


def raw_picture(rig: VirtualRig, size: tuple[int, int] = _NATIVE) -> bytes:
    """The camera's next picture, a JPEG; enlarged for a size that is not the simulated camera's own."""
    jpeg = rig.take_picture().jpeg
    if size == _NATIVE:
        return jpeg
    enlarged = cv2.resize(_decoded(jpeg), size, interpolation=cv2.INTER_CUBIC)
    return cv2.imencode(".jpg", enlarged, [cv2.IMWRITE_JPEG_QUALITY, CAMERA_QUALITY])[1].tobytes()


def calibration_of(rig: VirtualRig, size: tuple[int, int] = _NATIVE) -> DeviceCalibration:
    """The camera's part alone, by the same finder and fit as a technician's calibration. The board is shown for it."""
    rig.phone.show_page("charuco", now_ns=rig.now_ns)
    rig.pass_ms(100)
    target = charuco_target(SCREEN.width_px, SCREEN.height_px)
    pictures = [_decoded(raw_picture(rig, size)) for _ in range(_LOOKS)]
    view = BoardFinder(target).find(pictures[0])
    model, quality = fit_camera(
        SCREEN,
        size,
        view.ids,
        SCREEN.px_to_mm(target.corners_px()),
        view.px,
        Options().camera_residual_max_px * size[0] / _NATIVE[0],
    )
    noise = noise_sigma(pictures, model.project(SCREEN.outline_mm()))
    return DeviceCalibration(
        screen=SCREEN, camera=CameraPart(model=model, quality=quality, corners=(), noise_sigma=noise)
    )


def _decoded(jpeg: bytes) -> Image:
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None, "the twin's own picture"
    return np.asarray(picture, np.uint8)
