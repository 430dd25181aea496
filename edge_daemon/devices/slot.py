"""The calibration in use by a device, or why there is none."""

from dataclasses import dataclass

from calibration.result import DeviceCalibration
from edge_daemon.contract import Refused


@dataclass
class CalibrationSlot:
    """Filled at start and whenever staff adopt a new calibration."""

    device_id: str
    current: DeviceCalibration | None = None
    because: str = "it has never been calibrated"

    def require(self) -> DeviceCalibration:
        """Raises `Refused`: without a calibration nobody knows where the hand would land or what is seen."""
        if self.current is None:
            raise Refused(
                "uncalibrated",
                f"{self.device_id} is not calibrated: {self.because}. "
                f"Run: edge-daemon calibrate {self.device_id}",
            )
        return self.current

    def adopt(self, calibration: DeviceCalibration) -> None:
        self.current = calibration
        self.because = ""

    def drop(self, because: str) -> None:
        self.current = None
        self.because = because
