"""The calibration in use by a device: which parts of it may be used, and why the others may not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibration.result import DeviceCalibration, DigitizerPart, HandPart, PointerPart
from calibration.store import Part, StoredCalibration
from edge_daemon.contract import Refused
from edge_daemon.upstream.service import DriftFound

PARTS: tuple[Part, ...] = ("camera", "hand", "digitizer", "pointer")
NEVER = "it has never been calibrated"


@dataclass
class CalibrationSlot:
    """Filled when the parts of the device announce themselves, and whenever staff adopt a calibration.

    because: why nothing that is stored may be used. none_in_use: there is not even one that is untrue. refused: why a
    part that is stored may not be used, by its name. moved: set when camera or phone were found moved since the
    calibration; nothing is done or shown then, whichever part it concerns.
    """

    device_id: str
    stored: StoredCalibration | None = None
    because: str = NEVER
    none_in_use: bool = True
    refused: Mapping[Part, str] = field(default_factory=dict)
    moved: str | None = None
    warning: str | None = None
    drift: DriftFound | None = None

    # -- what fills it ------------------------------------------------------------------------------------

    def adopt(self, stored: StoredCalibration, refused: Mapping[Part, str], moved: str | None) -> None:
        """Use this one from now on; what was measured of the former's drift says nothing about it."""
        if self.stored is None or stored.id != self.stored.id:
            self.warning = self.drift = None
        self.stored = stored
        self.refused, self.moved, self.because, self.none_in_use = dict(refused), moved, "", False

    def drop(self, because: str, moved: str | None = None, *, none_in_use: bool = False) -> None:
        """There is none that could be used, for this reason. none_in_use: because there is none."""
        self.stored = self.warning = None
        self.refused, self.moved, self.because, self.none_in_use = {}, moved, because, none_in_use

    @property
    def calibration(self) -> DeviceCalibration | None:
        """The one that is stored, whether or not all of it may be used."""
        return self.stored.calibration if self.stored is not None else None

    # -- what asks it -------------------------------------------------------------------------------------

    def usable(self) -> list[Part]:
        """The parts that may be used now."""
        return [name for name in PARTS if self._has(name) and self._why_not(name) is None]

    def why_not(self) -> str | None:
        """One sentence on what of the calibration is missing or refused; None when all of it may be used."""
        if self.calibration is None:
            return self.moved or self.because
        return self.moved or next(iter(self.refused.values()), None)

    def refuse_moved(self) -> None:
        """Raises `Refused` once camera or phone were found moved: an act decided on a false picture is no act to do."""
        if self.moved is not None:
            raise self._refused(self.moved)

    def require_camera(self) -> DeviceCalibration:
        """What pictures need. Raises `Refused`: without a calibration nobody knows what is seen where."""
        return self._require("camera")

    def require_hand(self) -> HandPart:
        """What a hand needs. Raises `Refused`: nobody knows where it would land."""
        part = self._require("hand").hand
        assert part is not None
        return part

    def require_pointer(self) -> tuple[DeviceCalibration, PointerPart]:
        """What a relative pointer needs. Raises `Refused`."""
        calibration = self._require("pointer")
        assert calibration.pointer is not None
        return calibration, calibration.pointer

    def digitizer(self) -> DigitizerPart | None:
        """The measured axes of a touch screen of the HID board; None where they never were measured.

        Raises `Refused` when they were and the measurement may not be used.
        """
        if self.none_in_use or (self.calibration is not None and not self._has("digitizer")):
            return None
        return self._require("digitizer").digitizer

    def _require(self, name: Part) -> DeviceCalibration:
        if self.calibration is None:
            raise self._refused(self.moved or self.because)
        if not self._has(name):
            raise self._refused(f"the calibration in use is not one of a {name}")
        because = self._why_not(name)
        if because is not None:
            raise self._refused(because)
        return self.calibration

    def _has(self, name: Part) -> bool:
        return self.calibration is not None and getattr(self.calibration, name) is not None

    def _why_not(self, name: Part) -> str | None:
        return self.moved or self.refused.get(name)

    def _refused(self, because: str) -> Refused:
        return Refused("uncalibrated", f"{self.device_id} is not calibrated: {because}. Run: {self.advice()}")

    def advice(self) -> str:
        """The command that makes whole again what is missing."""
        only_camera = self.calibration is not None and set(self.refused) == {"camera"}
        return f"edge-daemon calibrate {self.device_id}" + (" --camera-only" if only_camera else "")
