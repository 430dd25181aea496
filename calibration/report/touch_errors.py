"""Every touch of a calibration as an error vector on the screen."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.errors import OutsideModel
from calibration.result import DeviceCalibration, TouchRecord
from calibration.screen import Pair
from calibration.solve import fitted
from calibration.store.landing import landing_mm

Kind = Literal["held out", "fit", "dropped"]


@dataclass(frozen=True)
class TouchError:
    """One touch: where it should have landed and by how much it missed, screen mm.

    held out: sent to `place_mm` through the finished model. fit: one that the model was fitted to, missing what
    the model says of it. dropped: one that the fit left out as an outlier.
    """

    kind: Kind
    place_mm: Pair
    error_mm: Pair

    @property
    def distance_mm(self) -> float:
        """The length of the error."""
        return float(np.hypot(*self.error_mm))


def touch_errors(calibration: DeviceCalibration) -> list[TouchError]:
    """Held-out touches first, then those that a fit may use (`calibration.solve.fitted`), in the order made."""
    errors = []
    if calibration.acceptance is not None:
        errors += [
            _error("held out", touch.target_mm, touch.landed_mm) for touch in calibration.acceptance.touches
        ]
    for touch in (calibration.touches[number] for number in fitted(calibration.touches)):
        expected = _expected_mm(calibration, touch)
        if expected is not None and touch.seen_mm is not None:
            errors.append(_error("dropped" if touch.outlier else "fit", expected, touch.seen_mm))
    return errors


def _expected_mm(calibration: DeviceCalibration, touch: TouchRecord) -> Pair | None:
    try:
        x_mm, y_mm = landing_mm(calibration, np.array([touch.sent]))[0]
    except OutsideModel:
        return None
    return float(x_mm), float(y_mm)


def _error(kind: Kind, expected: Pair, seen: Pair) -> TouchError:
    return TouchError(kind=kind, place_mm=expected, error_mm=(seen[0] - expected[0], seen[1] - expected[1]))
