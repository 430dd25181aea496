"""What the phone remembers of being used, and the panel that turns a stylus on glass into touches."""

from dataclasses import dataclass, field
from math import exp, floor
from typing import Literal

from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

Source = Literal["glass", "hid"]
Spoiling = Literal["missed", "doubled", "bounced"]

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


@dataclass(frozen=True)
class PanelFaults:
    """How often a touch goes wrong, each a probability from 0 to 1.

    missed: the panel does not see it at all. doubled: DOUBLE_AFTER_NS after it was lifted the panel reports a second,
    short one near the same place. bounced: the contact breaks for one scan soon after it was made, so that one touch
    becomes two.
    """

    missed: float = 0.0
    doubled: float = 0.0
    bounced: float = 0.0


# A ghost contact comes and goes within what a person would do as a double tap.
DOUBLE_AFTER_NS = 60_000_000
DOUBLE_FOR_NS = 40_000_000
BOUNCE_AT_SCAN = 2


class TouchPanel:
    """Samples the stylus at the panel's scan rate and reports whole pixels, with a little jitter a touch."""

    def __init__(self, truth: Truth) -> None:
        self._contact_mm = truth.glass.contact_press_mm
        self._phase_ns = round(truth.phone.scan_phase_ms * 1e6)
        self._jitter_mm = truth.phone.touch_jitter_mm
        self._panel = truth.panel
        self._rng = truth.stream(12)
        # A stream of its own: faults must not change where the good touches land.
        self._luck = truth.stream(15)
        self.faults = PanelFaults()
        self._missing = self._doubling = self._bouncing = False
        self._ordered: list[Spoiling] = []
        self._scans_down = 0
        self._ghost: tuple[int, int, float, float] | None = None
        self._ghost_down = False
        self._jitter = (0.0, 0.0)
        self._last_scan = -1
        self._down = False
        self.off_screen_contacts = 0
        self._off_screen = False

    def spoil_next(self, how: Spoiling) -> None:
        """The next touch goes wrong in this way, whatever the probabilities say; several calls queue up."""
        self._ordered.append(how)

    @property
    def haunted(self) -> bool:
        """Whether a ghost contact is to come or to go."""
        return self._ghost is not None

    def due_ns(self) -> int | None:
        """When a ghost contact comes or goes without the stylus, None if there is none."""
        if self._ghost is None:
            return None
        return self._ghost[1] if self._ghost_down else self._ghost[0]

    def ghost(self, now_ns: int) -> PanelReport | None:
        """What the panel reports by itself at now_ns: the second touch of a doubled one."""
        if self._ghost is None:
            return None
        down_ns, up_ns, x_mm, y_mm = self._ghost
        if not self._ghost_down and now_ns >= down_ns:
            self._ghost_down = True
            return PanelReport(down_ns, True, x_mm, y_mm, 0.0)
        if self._ghost_down and now_ns >= up_ns:
            self._ghost, self._ghost_down = None, False
            return PanelReport(up_ns, False, x_mm, y_mm, 0.0)
        return None

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
        if not touching and not self._scans_down:
            return None
        if touching and not self._scans_down:
            self._begin()
        self._scans_down = self._scans_down + 1 if touching else 0
        seen = touching and not self._missing and not self._broken_contact()
        if not seen and not self._down:
            return None
        was_down, self._down = self._down, seen
        report = PanelReport(pose.at_ns, seen, *self._place(pose), max(0.0, -pose.height_mm))
        if was_down and not touching and self._doubling:
            down_ns = pose.at_ns + DOUBLE_AFTER_NS
            self._ghost = (down_ns, down_ns + DOUBLE_FOR_NS, report.x_mm, report.y_mm)
        return report

    def _begin(self) -> None:
        """A touch begins: its jitter, and whether it goes wrong."""
        dx, dy = self._rng.normal(0.0, self._jitter_mm, 2)
        self._jitter = (float(dx), float(dy))
        faults = self.faults
        luck = self._luck.random(3) if faults != PanelFaults() else (1.0, 1.0, 1.0)
        ordered = self._ordered.pop(0) if self._ordered else None
        self._missing = luck[0] < faults.missed or ordered == "missed"
        self._doubling = luck[1] < faults.doubled or ordered == "doubled"
        self._bouncing = luck[2] < faults.bounced or ordered == "bounced"

    def _broken_contact(self) -> bool:
        return self._bouncing and self._scans_down == BOUNCE_AT_SCAN

    def _place(self, pose: TipPose) -> tuple[float, float]:
        x_mm = self._pulled(pose.x_mm, SCREEN_WIDTH_MM) + self._jitter[0]
        y_mm = self._pulled(pose.y_mm, SCREEN_HEIGHT_MM) + self._jitter[1]
        return _quantised(x_mm, PX_PER_MM_X, SCREEN_WIDTH_MM), _quantised(y_mm, PX_PER_MM_Y, SCREEN_HEIGHT_MM)

    def _pulled(self, at_mm: float, size_mm: float) -> float:
        """The panel's own distortion: near a rim it sees a touch a little further in."""
        pull, reach = self._panel.edge_pull_mm, self._panel.edge_reach_mm
        return at_mm + pull * (exp(-at_mm / reach) - exp((at_mm - size_mm) / reach))


def _quantised(at_mm: float, px_per_mm: float, size_mm: float) -> float:
    """The middle of the pixel that holds at_mm, kept on the screen as the panel's edge electrodes do."""
    last_px = round(size_mm * px_per_mm) - 1
    return (min(max(floor(at_mm * px_per_mm), 0), last_px) + 0.5) / px_per_mm
