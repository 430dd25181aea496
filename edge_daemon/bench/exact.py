"""Calibrations that nobody measured: of a hand without any error, under a camera that nobody asks."""

from calibration.acceptance import Acceptance
from calibration.fit_camera import CameraQuality
from calibration.fit_hand import HandQuality
from calibration.models import CameraModel, ContactPlane, HandModel, Nine
from calibration.result import CameraPart, DeviceCalibration, HandPart
from calibration.screen import ScreenGeometry

AS_IS: Nine = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""The homography that changes nothing."""
_PLACES = 12


def exact_calibration(
    screen: ScreenGeometry,
    origin_mm: float,
    approach_mm: float,
    picture_px: tuple[int, int],
    homography: Nine = AS_IS,
) -> DeviceCalibration:
    """The hand lands where it is sent, and the glass lies at z = 0.

    origin_mm: the screen's top left corner in hand millimetres, both axes; the axes run the same way.
    """
    half_x, half_y = screen.width_mm / 2, screen.height_mm / 2
    hand = HandPart(
        model=HandModel(
            kind="affine", coefficients=(origin_mm + half_x, half_x, 0.0, origin_mm + half_y, 0.0, half_y)
        ),
        contact=ContactPlane(a=0.0, b=0.0, c=0.0),
        overtravel_mm=0.5,
        overtravel_limit_mm=1.0,
        quality=HandQuality(leave_one_out_rms_mm={"affine": 0.0}, places=_PLACES, outliers=()),
        touches=(),
        approach_mm=approach_mm,
    )
    places = [(screen.width_mm * number / (_PLACES + 1), half_y) for number in range(1, _PLACES + 1)]
    accepted = Acceptance.of(screen, [(at, at) for at in places], p95_limit_mm=0.3, max_limit_mm=0.5)
    camera = unasked_camera(picture_px, homography)
    return DeviceCalibration(screen=screen, camera=camera, hand=hand, acceptance=accepted)


def unasked_camera(picture_px: tuple[int, int], homography: Nine = AS_IS) -> CameraPart:
    """Of a calibration whose camera nobody asks. picture_px: width, height."""
    return CameraPart(
        model=CameraModel(
            image_width=picture_px[0],
            image_height=picture_px[1],
            homography=homography,
            k1=0.0,
            k2=0.0,
            p1=0.0,
            p2=0.0,
        ),
        quality=CameraQuality(
            held_out_rms_px=0.1,
            held_out_max_px=0.2,
            corners_used=90,
            corners_on_board=112,
            outlier_ids=(),
            lens_terms=2,
        ),
        corners=(),
    )
