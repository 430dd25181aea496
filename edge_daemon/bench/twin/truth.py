"""The hidden truth of one simulated rig: everything a calibration has to find out, drawn from a seed.

Frames used by the whole twin:

* world mm: origin at the middle of the phone's screen, on the glass; X along the screen's long side (screen
  y), Y along its short side (screen x), Z up. The cradle holds the phone with its top to the left in the
  picture.
* hand mm: what the hand's drives believe. ``HandTruth`` says where that really is.

Each group of parameters has its own random stream, so a new parameter in one leaves the others as they were.
"""

from dataclasses import dataclass, field
from math import cos, pi, radians, sin

import numpy as np

from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Lens, Pose, fit_focal_px

SCREEN_WIDTH_PX = 1080
SCREEN_HEIGHT_PX = 2340
SCREEN_WIDTH_MM = 68.0
SCREEN_HEIGHT_MM = 147.3

# Where the drawing of the rig says the middle of the phone is: the middle of the hand's envelope.
NOMINAL_CENTRE_X_MM = 100.0
NOMINAL_CENTRE_Y_MM = 65.0


@dataclass(frozen=True)
class HandTruth:
    """How the hand's own millimetres lie in the world, and how badly it repeats itself."""

    scale_x: float
    scale_y: float
    rotation_rad: float
    skew_rad: float
    offset_x_mm: float
    offset_y_mm: float
    backlash_x_mm: float
    backlash_y_mm: float
    repeatability_mm: float
    repeatability_z_mm: float


@dataclass(frozen=True)
class GlassTruth:
    """Height of the glass in the hand's z: level_mm + slope_x * X + slope_y * Y (world mm)."""

    level_mm: float
    slope_x: float
    slope_y: float
    contact_press_mm: float

    def height_mm(self, x_mm: float, y_mm: float) -> float:
        """Hand z at which the tip meets the glass above the world point (x_mm, y_mm)."""
        return self.level_mm + self.slope_x * x_mm + self.slope_y * y_mm


@dataclass(frozen=True)
class CameraTruth:
    """Lens and place of the camera, and what its sensor and driver do to a picture."""

    lens: Lens
    pose: Pose
    noise_sigma: float
    latency_ms: float
    exposure_ms: float


@dataclass(frozen=True)
class PhoneTruth:
    """The phone's own habits."""

    touch_jitter_mm: float
    input_latency_ms: float
    scan_phase_ms: float


@dataclass(frozen=True)
class Truth:
    """All hidden parameters of the rig with this seed: the same seed gives the same rig."""

    seed: int
    hand: HandTruth = field(init=False)
    glass: GlassTruth = field(init=False)
    camera: CameraTruth = field(init=False)
    phone: PhoneTruth = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hand", _draw_hand(self.stream(1)))
        object.__setattr__(self, "glass", _draw_glass(self.stream(2)))
        object.__setattr__(self, "camera", _draw_camera(self.stream(3)))
        object.__setattr__(self, "phone", _draw_phone(self.stream(4)))

    def stream(self, purpose: int) -> np.random.Generator:
        """A random stream of its own for `purpose`; 1..9 are taken by the parameters."""
        return np.random.default_rng([self.seed, purpose])


def _draw_hand(rng: np.random.Generator) -> HandTruth:
    return HandTruth(
        scale_x=1.0 + rng.uniform(-0.015, 0.015),
        scale_y=1.0 + rng.uniform(-0.015, 0.015),
        rotation_rad=radians(rng.uniform(-3.0, 3.0)),
        skew_rad=radians(rng.uniform(-0.5, 0.5)),
        offset_x_mm=rng.uniform(-6.0, 6.0),
        offset_y_mm=rng.uniform(-6.0, 6.0),
        backlash_x_mm=rng.uniform(0.10, 0.20),
        backlash_y_mm=rng.uniform(0.10, 0.20),
        repeatability_mm=rng.uniform(0.025, 0.035),
        repeatability_z_mm=rng.uniform(0.006, 0.010),
    )


def _draw_glass(rng: np.random.Generator) -> GlassTruth:
    # The tilt is stated as the difference between the highest and the lowest corner of the screen.
    difference_mm = rng.uniform(0.1, 0.6)
    direction = rng.uniform(0.0, 2.0 * pi)
    along, across = cos(direction), sin(direction)
    share = difference_mm / (abs(along) * SCREEN_HEIGHT_MM + abs(across) * SCREEN_WIDTH_MM)
    return GlassTruth(
        level_mm=rng.uniform(-0.7, 0.7),
        slope_x=share * along,
        slope_y=share * across,
        contact_press_mm=rng.uniform(0.04, 0.06),
    )


def _draw_camera(rng: np.random.Generator) -> CameraTruth:
    pose = Pose(
        distance_mm=rng.uniform(250.0, 290.0),
        tilt_rad=radians(rng.uniform(1.0, 6.0)),
        azimuth_rad=rng.uniform(0.0, 2.0 * pi),
        roll_rad=radians(rng.uniform(-1.5, 1.5)),
        aim_x_mm=rng.uniform(-2.5, 2.5),
        aim_y_mm=rng.uniform(-2.5, 2.5),
    )
    unfocused = Lens(
        fx_px=1.0,
        fy_px=1.0 + rng.uniform(-0.002, 0.002),
        cx_px=(PICTURE_WIDTH_PX - 1) / 2 + rng.uniform(-12.0, 12.0),
        cy_px=(PICTURE_HEIGHT_PX - 1) / 2 + rng.uniform(-9.0, 9.0),
        k1=rng.uniform(-0.15, -0.05),
        k2=rng.uniform(-0.03, 0.06),
        p1=rng.uniform(-0.0008, 0.0008),
        p2=rng.uniform(-0.0008, 0.0008),
        k3=rng.uniform(-0.02, 0.02),
    )
    share = rng.uniform(0.84, 0.87)
    lens = fit_focal_px(unfocused, pose, SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, share)
    return CameraTruth(
        lens=lens,
        pose=pose,
        noise_sigma=rng.uniform(1.0, 2.5),
        latency_ms=rng.uniform(40.0, 90.0),
        exposure_ms=rng.uniform(6.0, 12.0),
    )


def _draw_phone(rng: np.random.Generator) -> PhoneTruth:
    return PhoneTruth(
        touch_jitter_mm=rng.uniform(0.010, 0.025),
        input_latency_ms=rng.uniform(30.0, 55.0),
        scan_phase_ms=rng.uniform(0.0, 8.0),
    )
