"""What a calibration leaves behind: the models, their verdict, and every raw measurement."""

from typing import Literal

import msgspec
import numpy as np

from calibration.acceptance import Acceptance
from calibration.backlash import Backlash
from calibration.drift import DriftReference
from calibration.errors import OutsideModel
from calibration.fit_camera import CameraQuality
from calibration.fit_hand import HandQuality
from calibration.fit_hid import DigitizerModel, HidQuality, PointerModel
from calibration.models import CameraModel, ContactPlane, HandModel
from calibration.picture_checks import PictureChecks
from calibration.rig import Side, Turn
from calibration.screen import Pair, ScreenGeometry

TouchStep = Literal["contact", "triangle", "plane", "backlash", "grid", "acceptance", "verify"]

AreaBehaviour = Literal["keeps", "turns"]
"""Of a digitizer's area when the page is turned: it keeps its place on the glass, or turns with the page."""


class TouchRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One touch as it was sent and seen.

    sent: hand mm, digitizer fractions or pointer counts. seen_mm: screen mm, None where it left no dot.
    press_z_mm: hand mm, None without a hand. approach: the sides that hand x and hand y came from. outlier: the fit
    dropped it. replaced: a person had its place touched again, so no fit may use it.
    """

    step: TouchStep
    sent: Pair
    press_z_mm: float | None
    seen_mm: Pair | None
    whole: bool
    target_mm: Pair | None = None
    outlier: bool = False
    approach: tuple[Side, Side] = ("low", "low")
    replaced: bool = False


class CornerRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One board corner, averaged over the pictures it was found in, raw camera px."""

    id: int
    px: Pair
    looks: int


class MarkRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One control mark of the dots page: where the page draws it and where the camera model sees it, screen mm."""

    drawn_mm: Pair
    seen_mm: Pair


class CameraPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the camera sees the screen. None: not measured by the version that made it.

    turn: how the board's page was turned, without which its corners' ids say nothing.
    """

    model: CameraModel
    quality: CameraQuality
    corners: tuple[CornerRecord, ...]
    marks: tuple[MarkRecord, ...] = ()
    noise_sigma: float | None = None
    checks: PictureChecks | None = None
    reference: DriftReference | None = None
    turn: Turn = "portrait"

    @property
    def marks_mean_mm(self) -> float | None:
        """How far all control marks together lie from where the page draws them: a bias of the model."""
        return None if not self.marks else float(np.hypot(*self._mark_errors().mean(axis=0)))

    @property
    def marks_max_mm(self) -> float | None:
        """The worst control mark's distance from where the page draws it."""
        return None if not self.marks else float(np.hypot(*self._mark_errors().T).max())

    def _mark_errors(self) -> "np.typing.NDArray[np.float64]":
        return np.array([np.subtract(mark.seen_mm, mark.drawn_mm) for mark in self.marks])


class HandPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the hand must go for a place on the screen, and how deep.

    contact_residual_mm: the largest distance of a measured contact height from the plane, for glass that is curved
    or gives way.
    """

    model: HandModel
    contact: ContactPlane
    overtravel_mm: float
    overtravel_limit_mm: float
    quality: HandQuality
    touches: tuple[TouchRecord, ...]
    approach_mm: float | None = None
    backlash: Backlash | None = None
    contact_residual_mm: float | None = None

    def grid_to_hand(self, x: float, y: float) -> Pair:
        """Grid units 0..1000 (portrait) to hand mm. Raises OutsideModel off the grid."""
        return self.model.grid_to_hand(x, y)

    def contact_z(self, x_mm: float, y_mm: float) -> float:
        """The height in hand mm at which the stylus meets the glass at hand coordinates."""
        return self.contact.contact_z(x_mm, y_mm)

    def press_z(self, x_mm: float, y_mm: float, overtravel_mm: float | None = None) -> float:
        """The height to press to at hand coordinates: contact less the overtravel.

        Raises OutsideModel for an overtravel beyond the hard limit of this calibration, or a negative one.
        """
        beyond = self.overtravel_mm if overtravel_mm is None else overtravel_mm
        if not 0.0 <= beyond <= self.overtravel_limit_mm:
            raise OutsideModel(
                f"an overtravel of {beyond} mm is outside 0 to {self.overtravel_limit_mm} mm; "
                "the stylus or the glass would suffer"
            )
        return self.contact_z(x_mm, y_mm) - beyond


class DigitizerPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a HID board's touch screen must report a contact for a place on the screen.

    turn: how the page was turned meanwhile. area: what the digitizer's area does in another turn; None where that
    was not measured.
    """

    model: DigitizerModel
    quality: HidQuality
    touches: tuple[TouchRecord, ...]
    turn: Turn = "portrait"
    area: AreaBehaviour | None = None


class PointerPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many counts carry a relative pointer from its corner to a place on the screen."""

    model: PointerModel
    quality: HidQuality
    touches: tuple[TouchRecord, ...]


class DeviceCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the acting path needs, and what it was computed from.

    One of hand, digitizer and pointer at most: what touches the phone. Without any, acceptance is None.
    """

    screen: ScreenGeometry
    camera: CameraPart
    hand: HandPart | None = None
    digitizer: DigitizerPart | None = None
    pointer: PointerPart | None = None
    acceptance: Acceptance | None = None

    @property
    def touches(self) -> tuple[TouchRecord, ...]:
        """Every touch that was made for it; none where nothing touches."""
        part = self.hand or self.digitizer or self.pointer
        return part.touches if part is not None else ()
