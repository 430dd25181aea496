"""A page of the phone: what can be tapped, what it looks like, how it answers a finger.

Pages know nothing of touch panels, keyboards or time zones; phone.py routes to them. A page's picture is a
function of its `revision` and the clock text, and is drawn again only when one of them changes.
"""

from dataclasses import dataclass

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import BLACK, WHITE, Colour, Image, colour
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

STATUS_BAR_PX = 92
# Android's touch slop is 8 dp; beyond it a touch is a drag. 8 dp at 2.75 px each.
SLOP_PX = 22.0
LONG_PRESS_NS = 500_000_000


@dataclass(frozen=True)
class Target:
    """Something that can be tapped: its name and its rectangle in screen px."""

    name: str
    x: float
    y: float
    w: float
    h: float

    def holds(self, x_px: float, y_px: float) -> bool:
        return self.x <= x_px < self.x + self.w and self.y <= y_px < self.y + self.h

    @property
    def centre(self) -> tuple[float, float]:
        return self.x + self.w / 2, self.y + self.h / 2


@dataclass(frozen=True)
class Finger:
    """A finger on the page: where it came down, where it is, since when."""

    down_x: float
    down_y: float
    down_ns: int
    x: float
    y: float
    now_ns: int

    @property
    def wandered(self) -> bool:
        return abs(self.x - self.down_x) > SLOP_PX or abs(self.y - self.down_y) > SLOP_PX


class Page:
    """Base of all pages. Subclasses give paint() and targets(), and answer in tapped()."""

    name = "page"

    def __init__(self) -> None:
        self.revision = 0
        self.pressed: str | None = None
        self.paintings = 0
        self._cache: tuple[tuple[object, ...], Image] | None = None

    def opened(self, now_ns: int) -> None:
        """The page comes to the front."""

    def targets(self) -> tuple[Target, ...]:
        return ()

    def paint(self, clock: str) -> Image:
        raise NotImplementedError

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        """A tap (or a long press) on `target`. Returns the name of a page to open, or None."""
        return None

    def key(self, now_ns: int) -> tuple[object, ...]:
        """What the picture depends on besides the clock."""
        return (self.revision,)

    def image(self, clock: str, now_ns: int) -> Image:
        """The picture now; do not write into it."""
        key = (clock, *self.key(now_ns))
        if self._cache is None or self._cache[0] != key:
            self.paintings += 1
            self._cache = (key, self.paint(clock))
        return self._cache[1]

    def finger_down(self, finger: Finger) -> None:
        target = self.target_at(finger.x, finger.y)
        if target is not None:
            self.pressed = target.name
            self.revision += 1

    def finger_move(self, finger: Finger) -> None:
        if self.pressed is not None and finger.wandered:
            self.pressed = None
            self.revision += 1

    def finger_up(self, finger: Finger) -> str | None:
        name, self.pressed = self.pressed, None
        if name is None:
            return None
        self.revision += 1
        target = self.target_at(finger.x, finger.y)
        if target is None or target.name != name:
            return None
        return self.tapped(target, finger.now_ns - finger.down_ns >= LONG_PRESS_NS, finger.now_ns)

    def target_at(self, x_px: float, y_px: float) -> Target | None:
        for target in self.targets():
            if target.holds(x_px, y_px):
                return target
        return None


def status_bar(picture: Image, clock: str, ink: Colour) -> None:
    """Clock, signal, wifi and battery along the top edge."""
    draw.text(picture, clock, 56, 66, 42, ink, 500)
    for bar in range(4):
        height = 10 + 8 * bar
        draw.rounded(picture, 838 + 12 * bar, 66 - height, 8, height, 2, ink)
    for radius in (34, 24, 14):
        half = radius * 0.72
        rises = ((-1.0, 66), (-0.5, 58), (0.0, 55), (0.5, 58), (1.0, 66))
        draw.stroke(picture, [(928 + half * x, float(y - radius)) for x, y in rises], 5, ink)
    draw.disc(picture, 928, 62, 5, ink)
    draw.rounded(picture, 976, 32, 56, 34, 9, ink)
    draw.text(picture, "86", 1004, 60, 27, BLACK if ink == WHITE else WHITE, 600, "center")


def gesture_pill(picture: Image, ink: Colour) -> None:
    """The bar at the bottom edge that a swipe home starts from."""
    draw.rounded(picture, WIDTH / 2 - 150, HEIGHT - 30, 300, 9, 5, ink)


APP_PAPER = colour("#f3f4f8")
APP_INK = colour("#1b1d24")
APP_FAINT = colour("#6a6f7d")
APP_ACCENT = colour("#3459d6")


def app_frame(clock: str, title: str) -> Image:
    """An app's empty window: status bar, title, gesture pill."""
    picture = draw.canvas(WIDTH, HEIGHT, APP_PAPER)
    status_bar(picture, clock, APP_INK)
    draw.text(picture, title, 60, 250, 84, APP_INK, 500)
    gesture_pill(picture, APP_INK)
    return picture


class PlaceholderPage(Page):
    """An app that has nothing to do but be open: its name and some cards."""

    def __init__(self, name: str, accent: Colour) -> None:
        super().__init__()
        self.name = name
        self._accent = accent

    def paint(self, clock: str) -> Image:
        picture = app_frame(clock, self.name.capitalize())
        for row in range(5):
            top = 340 + row * 330
            draw.rounded(picture, 48, top, WIDTH - 96, 290, 40, WHITE)
            draw.rounded(picture, 92, top + 48, 190, 190, 36, tint(self._accent, 0.25 + 0.12 * row))
            draw.rounded(picture, 330, top + 70, 470 - 50 * (row % 3), 34, 17, colour("#c9cdd8"))
            draw.rounded(picture, 330, top + 136, 590 - 70 * (row % 2), 24, 12, colour("#e0e3ea"))
            draw.rounded(picture, 330, top + 184, 380, 24, 12, colour("#e0e3ea"))
        return picture


def tint(base: Colour, share: float) -> Colour:
    """`base` mixed with white; share 1.0 is `base` itself."""
    blue, green, red = (round(255 + (channel - 255) * min(1.0, share)) for channel in base)
    return blue, green, red
