"""The hidden truth of one simulated rig: everything a calibration has to find out, drawn from a seed.

Frames used by the whole twin:

* world mm: origin at the middle of the phone's screen, on the glass; X along the screen's long side (screen
  y), Y along its short side (screen x), Z up. The cradle holds the phone with its top to the left in the
  picture.
* hand mm: what the hand's drives believe. ``HandTruth`` says where that really is.

The camera, the hand's rotation, its play and so on are one thing; what a solver's model cannot simply have in it –
a bowed arm, an eccentric pulley, glass that is not flat and gives way – is another, and is on top of them.

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

# The cover glass goes on beside the screen.
BEZEL_GLASS_MM = 2.6

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
class ArmTruth:
    """What the hand's rails and pulleys do that no scale, skew or rotation describes.

    bow_of_x_mm: how far the rail along x bends away sideways (hand y), as (quadratic, cubic) over the travel above a
    screen: q (u² - 1/3) + c (u³ - 0.6 u) with u from -1 to 1, the shapes that no affine map contains. bow_of_y_mm:
    the other rail. Each pulley adds amplitude * sin(2 pi travel / period + phase) along its own axis.
    """

    bow_of_x_mm: tuple[float, float] = (0.0, 0.0)
    bow_of_y_mm: tuple[float, float] = (0.0, 0.0)
    pulley_amplitude_mm: tuple[float, float] = (0.0, 0.0)
    pulley_period_mm: tuple[float, float] = (36.0, 36.0)
    pulley_phase_rad: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class GlassShape:
    """What the phone's glass and cradle add to a tilted plane.

    bow_mm: how much lower the middles of the screen's edges lie than its centre. rim_mm over rim_width_mm: the
    rounding of a "2.5D" glass along its outline, a parabola from nothing to rim_mm at the screen's edge and on beside
    it. compliance_mm_per_n: how far the phone sinks in its cradle under 1 N at its centre; on four corner holders it
    sinks up to three times as far at a corner (a rigid plate on four springs: 1 + (x/a)² + (y/b)²).
    """

    bow_mm: float = 0.0
    rim_mm: float = 0.0
    rim_width_mm: float = 5.0
    compliance_mm_per_n: float = 0.0

    def drop_mm(self, x_mm: float, y_mm: float) -> float:
        """How far the glass lies below its plane at a point in the phone's own mm (origin at its centre)."""
        u, v = x_mm / (SCREEN_HEIGHT_MM / 2), y_mm / (SCREEN_WIDTH_MM / 2)
        drop = self.bow_mm * (u * u + v * v)
        for inside_mm in (SCREEN_HEIGHT_MM / 2 - abs(x_mm), SCREEN_WIDTH_MM / 2 - abs(y_mm)):
            if inside_mm < self.rim_width_mm:
                share = 1.0 - max(inside_mm, -BEZEL_GLASS_MM) / self.rim_width_mm
                drop += self.rim_mm * share * share
        return drop

    def sink_mm_per_n(self, x_mm: float, y_mm: float) -> float:
        """How far the phone gives way there, per newton."""
        u, v = x_mm / (SCREEN_HEIGHT_MM / 2), y_mm / (SCREEN_WIDTH_MM / 2)
        return self.compliance_mm_per_n * (1.0 + u * u + v * v)


@dataclass(frozen=True)
class DisplayTruth:
    """Where the pixels lie and how they shine.

    cover_mm: the pixels lie this far under the glass's surface; cover_index refracts what the camera sees of them.
    pwm_hz, pwm_depth, pwm_duty, pwm_phase: the panel is dimmer by pwm_depth for 1 - pwm_duty of each period.
    readout_ms: the camera's rows open one after another, the last so much later than the first.
    """

    cover_mm: float = 0.0
    cover_index: float = 1.5
    pwm_hz: float = 240.0
    pwm_depth: float = 0.0
    pwm_duty: float = 0.5
    pwm_phase: float = 0.0
    readout_ms: float = 0.0


@dataclass(frozen=True)
class HidTruth:
    """What the phone makes of a HID board's coordinates.

    margins: shares of the screen that a digitizer's full range leaves free at the left, top, right and bottom
    (negative: it reaches beyond). follows_rotation: the digitizer's axes turn with the display; else they keep to the
    portrait area. mm_per_count and fast_gain: a relative pointer's scale for small steps, and how much more a big
    step moves. reboot_gain: what the scale becomes multiplied with when the phone restarts.
    """

    margins: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    follows_rotation: bool = False
    mm_per_count: float = 0.09
    fast_gain: float = 1.0
    reboot_gain: float = 1.0


@dataclass(frozen=True)
class PanelTruth:
    """edge_pull_mm: how far the touch panel pulls a touch at its very rim towards the middle; edge_reach_mm: how
    fast that dies away (1/e)."""

    edge_pull_mm: float = 0.0
    edge_reach_mm: float = 4.0


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
    """All hidden parameters of the rig with this seed: the same seed gives the same rig.

    rich: False leaves out all that a linear map, a flat glass and a plain screen do not have.
    """

    seed: int
    rich: bool = True
    hand: HandTruth = field(init=False)
    glass: GlassTruth = field(init=False)
    camera: CameraTruth = field(init=False)
    phone: PhoneTruth = field(init=False)
    arm: ArmTruth = field(init=False)
    shape: GlassShape = field(init=False)
    display: DisplayTruth = field(init=False)
    hid: HidTruth = field(init=False)
    panel: PanelTruth = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hand", _draw_hand(self.stream(1)))
        object.__setattr__(self, "glass", _draw_glass(self.stream(2)))
        object.__setattr__(self, "camera", _draw_camera(self.stream(3)))
        object.__setattr__(self, "phone", _draw_phone(self.stream(4)))
        object.__setattr__(self, "arm", _draw_arm(self.stream(5)) if self.rich else ArmTruth())
        object.__setattr__(self, "shape", _draw_shape(self.stream(6)) if self.rich else GlassShape())
        object.__setattr__(self, "display", _draw_display(self.stream(7)) if self.rich else DisplayTruth())
        object.__setattr__(self, "hid", _draw_hid(self.stream(8)) if self.rich else HidTruth())
        object.__setattr__(self, "panel", _draw_panel(self.stream(10)) if self.rich else PanelTruth())

    def stream(self, purpose: int) -> np.random.Generator:
        """A random stream of its own for `purpose`; 1..10 are taken by the parameters and the bed."""
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


def _signed(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high) * rng.choice((-1.0, 1.0)))


def _draw_arm(rng: np.random.Generator) -> ArmTruth:
    return ArmTruth(
        bow_of_x_mm=(_signed(rng, 0.10, 0.50), _signed(rng, 0.04, 0.10)),
        bow_of_y_mm=(_signed(rng, 0.10, 0.50), _signed(rng, 0.04, 0.10)),
        pulley_amplitude_mm=(rng.uniform(0.010, 0.030), rng.uniform(0.010, 0.030)),
        pulley_period_mm=(rng.uniform(32.0, 40.0), rng.uniform(32.0, 40.0)),
        pulley_phase_rad=(rng.uniform(0.0, 2.0 * pi), rng.uniform(0.0, 2.0 * pi)),
    )


def _draw_shape(rng: np.random.Generator) -> GlassShape:
    return GlassShape(
        bow_mm=rng.uniform(0.02, 0.06),
        rim_mm=rng.uniform(0.03, 0.09),
        rim_width_mm=rng.uniform(3.0, 6.0),
        compliance_mm_per_n=rng.uniform(0.008, 0.020),
    )


def _draw_display(rng: np.random.Generator) -> DisplayTruth:
    return DisplayTruth(
        cover_mm=rng.uniform(0.7, 1.0),
        cover_index=rng.uniform(1.48, 1.52),
        pwm_hz=float(rng.choice((240.0, 360.0, 480.0))),
        pwm_depth=rng.uniform(0.03, 0.10),
        pwm_duty=rng.uniform(0.5, 0.8),
        pwm_phase=rng.uniform(0.0, 1.0),
        readout_ms=rng.uniform(8.0, 14.0),
    )


def _draw_hid(rng: np.random.Generator) -> HidTruth:
    left, top, right, bottom = (_signed(rng, 0.003, 0.010) for _ in range(4))
    return HidTruth(
        margins=(left, top, right, bottom),
        follows_rotation=bool(rng.integers(0, 2)),
        mm_per_count=rng.uniform(0.06, 0.13),
        fast_gain=rng.uniform(1.3, 2.0),
        reboot_gain=float(rng.choice((0.5, 2.0))),
    )


def _draw_panel(rng: np.random.Generator) -> PanelTruth:
    return PanelTruth(edge_pull_mm=rng.uniform(0.005, 0.020), edge_reach_mm=rng.uniform(2.0, 5.0))
