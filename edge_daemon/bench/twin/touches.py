"""What the phone remembers of being used, and the panel that turns a stylus on glass into touches."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

Source = Literal["glass", "hid"]

# A phone's panel at rest scans at 120 Hz.
SCAN_NS = 8_333_333


@dataclass
class Touch:
    """One touch as the phone took it: x_mm, y_mm is where it began, path every place it reported after."""

    source: Source
    down_ns: int
    x_mm: float
    y_mm: float
    up_ns: int | None = None
    path: list[tuple[int, float, float]] = field(default_factory=list)
    page: str = ""
    press_mm: float = 0.0

    @property
    def duration_ms(self) -> float | None:
        """How long it lasted, None while it is down."""
        return None if self.up_ns is None else (self.up_ns - self.down_ns) / 1e6


@dataclass(frozen=True)
class KeyPress:
    """One named key (home, back, enter, delete, …) that the phone saw go down."""

    name: str
    at_ns: int


@dataclass(frozen=True)
class PanelReport:
    """A change the panel reports: the touch at x_mm, y_mm is down (or gone), pressed in by press_mm."""

    at_ns: int
    down: bool
    x_mm: float
    y_mm: float
    press_mm: float


class TouchPanel:
    """Samples the stylus at the panel's scan rate and reports whole pixels, with a little jitter a touch."""

    def __init__(self, truth: Truth) -> None:
        self._contact_mm = truth.glass.contact_press_mm
        self._phase_ns = round(truth.phone.scan_phase_ms * 1e6)
        self._jitter_mm = truth.phone.touch_jitter_mm
        self._rng = truth.stream(12)
        self._jitter = (0.0, 0.0)
        self._last_scan = -1
        self._down = False
        self.off_screen_contacts = 0
        self._off_screen = False

    def sample(self, pose: TipPose) -> PanelReport | None:
        """One pose of the tip, in order of time. Returns what the panel reports, None for nothing new."""
        scan = (pose.at_ns - self._phase_ns) // SCAN_NS
        if scan == self._last_scan:
            return None
        self._last_scan = scan
        pressing = -pose.height_mm >= self._contact_mm
        on_screen = 0.0 <= pose.x_mm <= SCREEN_WIDTH_MM and 0.0 <= pose.y_mm <= SCREEN_HEIGHT_MM
        if pressing and not on_screen and not self._off_screen and not self._down:
            self.off_screen_contacts += 1
        self._off_screen = pressing and not on_screen
        touching = pressing and on_screen
        if not touching and not self._down:
            return None
        if touching and not self._down:
            dx, dy = self._rng.normal(0.0, self._jitter_mm, 2)
            self._jitter = (float(dx), float(dy))
        self._down = touching
        x_mm = _quantised(pose.x_mm + self._jitter[0], PX_PER_MM_X, SCREEN_WIDTH_MM)
        y_mm = _quantised(pose.y_mm + self._jitter[1], PX_PER_MM_Y, SCREEN_HEIGHT_MM)
        return PanelReport(pose.at_ns, touching, x_mm, y_mm, max(0.0, -pose.height_mm))


def _quantised(at_mm: float, px_per_mm: float, size_mm: float) -> float:
    """The middle of the pixel that holds at_mm, kept on the screen as the panel's edge electrodes do."""
    last_px = round(size_mm * px_per_mm) - 1
    return (min(max(int(np.floor(at_mm * px_per_mm)), 0), last_px) + 0.5) / px_per_mm
