"""Is an accepted calibration true? By the phone's own log of later taps, and by the camera's real geometry."""

import msgspec
import numpy as np

from calibration.result import DeviceCalibration
from edge_daemon.bench.calibrate.moves import Moves
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.contract import Orientation
from edge_daemon.devices.orientation import to_portrait

ORIENTATIONS: tuple[Orientation, ...] = ("portrait", "landscape_left")
# Taps are promised to be true from this far inside the screen's edge.
INSET_MM = 3.0
# This share of them lies exactly on that border, where fits go wrong first.
ON_BORDER = 0.2
GRID = 1000.0


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """How far 1,000 or so taps landed from where they were sent, by the phone's log; mm of screen."""

    taps: int
    p50_mm: float
    p95_mm: float
    max_mm: float
    worst_target_mm: tuple[float, float]
    missing: int
    extra: int


def judge_taps(
    rig: VirtualRig, moves: Moves, calibration: DeviceCalibration, taps: int, *, seed: int, two_sided: bool
) -> Landing:
    """Tap by the calibration as the daemon does, half of the places in portrait, half in landscape."""
    assert calibration.hand is not None
    part = calibration.hand
    targets = _targets_mm(taps, np.random.default_rng([seed, 99]))
    errors: list[float] = []
    missing = extra = 0
    counted = len(rig.phone.touches)
    for number, target in enumerate(targets):
        x, y = to_portrait(*_on_grid(target, ORIENTATIONS[number % 2]), ORIENTATIONS[number % 2])
        x_mm, y_mm = part.grid_to_hand(x, y)
        moves.act(x_mm, y_mm, part.contact_z(x_mm, y_mm), part.overtravel_mm, direct=two_sided)
        seen = rig.phone.touches_since(counted)
        counted += len(seen)
        missing += not seen
        extra += max(0, len(seen) - 1)
        errors.append(float(np.hypot(seen[0].x_mm - target[0], seen[0].y_mm - target[1])) if seen else np.nan)
    landed = np.array(errors)
    p50_mm, p95_mm = (float(value) for value in np.nanpercentile(landed, [50.0, 95.0]))
    worst = int(np.nanargmax(landed))
    return Landing(
        taps=taps,
        p50_mm=p50_mm,
        p95_mm=p95_mm,
        max_mm=float(landed[worst]),
        worst_target_mm=(float(targets[worst][0]), float(targets[worst][1])),
        missing=missing,
        extra=extra,
    )


def camera_to_screen_max_mm(rig: VirtualRig, calibration: DeviceCalibration) -> float:
    """The worst distance, over the whole screen to its very edge, of the camera model from the true camera."""
    across = np.linspace(0.0, SCREEN_WIDTH_MM, 35)
    down = np.linspace(0.0, SCREEN_HEIGHT_MM, 75)
    x, y = np.meshgrid(across, down)
    places = np.column_stack([x.ravel(), y.ravel()])
    seen = calibration.camera.model.unproject(rig.sensor.truth_project(places))
    return float(np.hypot(*(seen - places).T).max())


def _targets_mm(count: int, random: np.random.Generator) -> "np.typing.NDArray[np.float64]":
    """Places on the whole screen within the border, screen mm (count, 2); some of them on it."""
    low = np.array([INSET_MM, INSET_MM])
    high = np.array([SCREEN_WIDTH_MM - INSET_MM, SCREEN_HEIGHT_MM - INSET_MM])
    places = random.uniform(low, high, (count, 2))
    for place in places[: round(ON_BORDER * count)]:
        axis = int(random.integers(2))
        place[axis] = random.choice([low[axis], high[axis]])
    random.shuffle(places)
    return np.asarray(places, dtype=np.float64)


def _on_grid(target_mm: "np.typing.NDArray[np.float64]", orientation: Orientation) -> tuple[float, float]:
    """What the plane would send for that place with the screen so turned: the inverse of to_portrait."""
    x, y = (float(v) for v in target_mm * GRID / np.array([SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM]))
    return (x, y) if orientation == "portrait" else (y, GRID - x)
