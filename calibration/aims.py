"""From a place on the screen to the touch that the product sends there: a calibration as it is used."""

from collections.abc import Callable

import numpy as np

from calibration.errors import RigRefused
from calibration.fit_hid import DigitizerModel, PointerModel
from calibration.models import ContactPlane, HandModel
from calibration.result import DeviceCalibration
from calibration.rig import DigitizerTouch, HandTouch, PointerTouch, Touch
from calibration.screen import Pair, ScreenGeometry

ProductAim = Callable[[Pair], Touch]
"""A place on the portrait screen, mm, to a touch. Raises OutsideModel off the screen."""


def hand_aim(
    screen: ScreenGeometry, model: HandModel, plane: ContactPlane, overtravel_mm: float
) -> ProductAim:
    """A hand's: from the low side of both axes, pressing overtravel_mm beyond the glass."""

    def aim(place: Pair) -> Touch:
        x, y = model.grid_to_hand(*_grid(screen, place))
        return HandTouch(x, y, plane.contact_z(x, y) - overtravel_mm)

    return aim


def digitizer_aim(screen: ScreenGeometry, model: DigitizerModel) -> ProductAim:
    """A HID board's touch screen's."""

    def aim(place: Pair) -> Touch:
        return DigitizerTouch(*model.grid_to_fraction(*_grid(screen, place)))

    return aim


def pointer_aim(model: PointerModel) -> ProductAim:
    """A HID board's pointer's, in whole counts."""

    def aim(place: Pair) -> Touch:
        return PointerTouch(*model.mm_to_counts(*place))

    return aim


def aim_of(calibration: DeviceCalibration) -> ProductAim:
    """That of whatever touches this device. Raises RigRefused when nothing does."""
    screen = calibration.screen
    if calibration.hand is not None:
        hand = calibration.hand
        return hand_aim(screen, hand.model, hand.contact, hand.overtravel_mm)
    if calibration.digitizer is not None:
        return digitizer_aim(screen, calibration.digitizer.model)
    if calibration.pointer is not None:
        return pointer_aim(calibration.pointer.model)
    raise RigRefused(
        "nothing touches this device, so its touches cannot be checked; look at it again instead"
    )


def _grid(screen: ScreenGeometry, place: Pair) -> Pair:
    x, y = screen.mm_to_grid(np.array([place]))[0]
    return float(x), float(y)
