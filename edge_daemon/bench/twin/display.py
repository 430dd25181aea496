"""What the phone's screen shows at a moment: the page, a transition between two, a volume bar, or nothing."""

from dataclasses import dataclass

import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import BLACK, Image, colour
from edge_daemon.bench.twin.pages import Page
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

TRANSITION_NS = 250_000_000
REFRESH_NS = 16_666_667
VOLUME_BAR_NS = 1_200_000_000
VOLUME_STEPS = 15


@dataclass(frozen=True)
class ScreenFrame:
    """A picture of the screen (read only) and a number that changes exactly when the picture does."""

    image: Image
    serial: int


class Display:
    """Composes the screen's picture. Not safe from two threads at once: the phone locks around it."""

    def __init__(self, page: Page) -> None:
        self.on = True
        self._page = page
        self._old: Image | None = None
        self._since_ns = 0
        self._volume = 0
        self._volume_until_ns = 0
        self._shown: tuple[tuple[object, ...], ScreenFrame] | None = None
        self._serial = 0
        self._dark = draw.canvas(WIDTH, HEIGHT, BLACK)

    def change_to(self, page: Page, clock: str, now_ns: int, animate: bool) -> None:
        """Bring `page` to the front, over the old one in TRANSITION_NS or at once."""
        self._old = self._compose(clock, now_ns) if animate else None
        self._since_ns = now_ns
        self._page = page

    def show_volume(self, level: int, now_ns: int) -> None:
        """Show the volume bar for a while."""
        self._volume = level
        self._volume_until_ns = now_ns + VOLUME_BAR_NS

    def moving(self, now_ns: int) -> bool:
        """Whether a transition is under way."""
        return self._old is not None and now_ns < self._since_ns + TRANSITION_NS

    def frame(self, clock: str, now_ns: int) -> ScreenFrame:
        """The screen at now_ns."""
        key = self._key(clock, now_ns)
        if self._shown is None or self._shown[0] != key:
            self._serial += 1
            self._shown = (key, ScreenFrame(self._compose(clock, now_ns), self._serial))
        return self._shown[1]

    def _transition_step(self, now_ns: int) -> int:
        """Which refresh of the transition is on the panel, -1 when none is under way."""
        return (now_ns - self._since_ns) // REFRESH_NS if self.moving(now_ns) else -1

    def _key(self, clock: str, now_ns: int) -> tuple[object, ...]:
        if not self.on:
            return ("dark",)
        bar = self._volume if now_ns < self._volume_until_ns else -1
        self._page.image(clock, now_ns)
        return (self._page.name, self._page.paintings, self._transition_step(now_ns), bar)

    def _compose(self, clock: str, now_ns: int) -> Image:
        if not self.on:
            return self._dark
        picture = self._page.image(clock, now_ns)
        if self._old is not None and self.moving(now_ns):
            picture = _slide(self._old, picture, self._transition_step(now_ns) * REFRESH_NS / TRANSITION_NS)
        else:
            self._old = None
        if now_ns < self._volume_until_ns:
            picture = _with_volume(picture, self._volume)
        return picture


def _slide(old: Image, new: Image, progress: float) -> Image:
    """The new page comes in from the right over the old one, which follows slowly and darkens."""
    eased = 1.0 - (1.0 - progress) ** 3
    edge = round(WIDTH * (1.0 - eased))
    drift = round(WIDTH * 0.25 * eased)
    picture = np.empty_like(old)
    if edge > 0:
        shown = old[:, drift : drift + edge]
        picture[:, :edge] = draw.blend(np.zeros_like(shown), shown, 1.0 - 0.5 * eased)
    picture[:, edge:] = new[:, : WIDTH - edge]
    return picture


def _with_volume(page: Image, level: int) -> Image:
    picture = page.copy()
    height = 760.0
    top = 420.0
    draw.rounded(picture, WIDTH - 190, top, 130, height, 65, colour("#2b2f3d"))
    filled = max(130.0, height * level / VOLUME_STEPS)
    draw.rounded(picture, WIDTH - 190, top + height - filled, 130, filled, 65, colour("#7f9bff"))
    return picture
