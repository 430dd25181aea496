"""Where a calibration says that what was sent lands on the screen."""

import numpy as np

from calibration.errors import OutsideModel
from calibration.result import DeviceCalibration
from calibration.screen import GRID
from calibration.targets import Points


def landing_mm(calibration: DeviceCalibration, sent: Points) -> Points:
    """Screen mm (N, 2) for hand mm, digitizer fractions or pointer counts (N, 2), whichever touches the device.

    Raises OutsideModel where the hand's model does not lead there, or nothing touches the device.
    """
    screen = calibration.screen
    if calibration.hand is not None:
        return screen.grid_to_mm(calibration.hand.model.unmap_hand(sent))
    if calibration.digitizer is not None:
        area = calibration.digitizer.model
        slopes, origin = np.array([area.x[1:], area.y[1:]]), np.array([area.x[0], area.y[0]])
        return screen.grid_to_mm(np.linalg.solve(slopes, (sent - origin).T).T * GRID)
    if calibration.pointer is not None:
        gain = calibration.pointer.model
        home = np.array([gain.home_x_mm, gain.home_y_mm])
        return np.asarray(home + sent * [gain.mm_per_count_x, gain.mm_per_count_y], dtype=np.float64)
    raise OutsideModel("nothing of this device touches the screen; there is nothing to send")
