"""What a calibration leaves behind: the models, their verdict, and every raw measurement."""

from typing import Literal

import msgspec
import numpy as np

from calibration.errors import OutsideModel
from calibration.fit_camera import CameraQuality
from calibration.fit_hand import HandQuality
from calibration.models import CameraModel, ContactPlane, HandModel
from calibration.screen import ScreenGeometry

Pair = tuple[float, float]
TouchStep = Literal["contact", "triangle", "plane", "grid", "acceptance"]


class TouchRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One touch as it was commanded (hand mm) and seen (screen mm, or None: it left no dot)."""

    step: TouchStep
    hand_mm: Pair
    press_z_mm: float
    seen_mm: Pair | None
    whole: bool
    target_mm: Pair | None = None
    outlier: bool = False


class CornerRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One board corner, averaged over the pictures it was found in, raw camera px."""

    id: int
    px: Pair
    looks: int


class HeldOutTouch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An acceptance touch: where it was sent and where it landed, screen mm, and the error both ways."""

    target_mm: Pair
    landed_mm: Pair
    error_mm: float
    error_grid: float


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far held-out touches landed from where they were sent: the calibration's only verdict."""

    touches: tuple[HeldOutTouch, ...]
    limit_mm: float
    p50_mm: float
    p95_mm: float
    max_mm: float
    p50_grid: float
    p95_grid: float
    max_grid: float

    @classmethod
    def of(cls, screen: ScreenGeometry, pairs: list[tuple[Pair, Pair]], limit_mm: float) -> "Acceptance":
        """Judge (target, landed) pairs in screen mm. Percentiles are interpolated linearly."""
        targets = np.array([pair[0] for pair in pairs], dtype=np.float64)
        landed = np.array([pair[1] for pair in pairs], dtype=np.float64)
        mm = np.linalg.norm(landed - targets, axis=1)
        grid = np.linalg.norm(screen.mm_to_grid(landed - targets), axis=1)
        p50_mm, p95_mm = (float(v) for v in np.percentile(mm, [50.0, 95.0]))
        p50_grid, p95_grid = (float(v) for v in np.percentile(grid, [50.0, 95.0]))
        return cls(
            touches=tuple(
                HeldOutTouch(target_mm=t, landed_mm=at, error_mm=float(e), error_grid=float(g))
                for (t, at), e, g in zip(pairs, mm, grid, strict=True)
            ),
            limit_mm=limit_mm,
            p50_mm=p50_mm,
            p95_mm=p95_mm,
            max_mm=float(mm.max()),
            p50_grid=p50_grid,
            p95_grid=p95_grid,
            max_grid=float(grid.max()),
        )

    @property
    def worst(self) -> HeldOutTouch:
        """The touch that landed furthest from its target."""
        return max(self.touches, key=lambda touch: touch.error_mm)

    @property
    def passed(self) -> bool:
        """Whether even the worst touch is within the limit."""
        return self.max_mm <= self.limit_mm


class DeviceCalibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the acting path needs, and what it was computed from."""

    screen: ScreenGeometry
    camera: CameraModel
    hand: HandModel
    contact: ContactPlane
    overtravel_mm: float
    overtravel_limit_mm: float
    acceptance: Acceptance
    camera_quality: CameraQuality
    hand_quality: HandQuality
    corners: tuple[CornerRecord, ...]
    touches: tuple[TouchRecord, ...]

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
