"""What the phone's screen shows at a moment: the page, a transition between two, what slides over it, or nothing."""

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
# A heads-up notification: how it comes and goes, and its card in px.
SLIDE_NS = 250_000_000
CARD_LEFT, CARD_TOP, CARD_HEIGHT = 36, 110, 330


@dataclass(frozen=True)
class ScreenFrame:
    """A picture of the screen (read only), a number that changes exactly when it does, and how bright it shines.

    brightness: 1.0 is a comfortable setting; the picture's own levels do not change with it.
    """

    image: Image
    serial: int
    brightness: float = 1.0


class Display:
    """Composes the screen's picture. Not safe from two threads at once: the phone locks around it."""

    def __init__(self, page: Page) -> None:
        self.on = True
        self.brightness = 1.0
        self._page = page
        self._old: Image | None = None
        self._since_ns = 0
        self._volume = 0
        self._volume_until_ns = 0
        self._note: Image | None = None
        self._note_from_ns = self._note_until_ns = 0
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

    def notify(self, words: str, now_ns: int, for_ns: int) -> None:
        """Slide a notification in over the top of the page, and out again after for_ns."""
        self._note = _card(words)
        self._note_from_ns, self._note_until_ns = now_ns, now_ns + for_ns

    def moving(self, now_ns: int) -> bool:
        """Whether a transition is under way."""
        if self._note is not None and 0.0 < self._note_share(now_ns) < 1.0:
            return True
        return self._old is not None and now_ns < self._since_ns + TRANSITION_NS

    def frame(self, clock: str, now_ns: int) -> ScreenFrame:
        """The screen at now_ns."""
        key = self._key(clock, now_ns)
        if self._shown is None or self._shown[0] != key:
            self._serial += 1
            self._shown = (key, ScreenFrame(self._compose(clock, now_ns), self._serial, self.brightness))
        return self._shown[1]

    def _transition_step(self, now_ns: int) -> int:
        """Which refresh of the transition is on the panel, -1 when none is under way.

        A camera's moment may lie a little before a transition that another thread has begun meanwhile.
        """
        return max(0, now_ns - self._since_ns) // REFRESH_NS if self.moving(now_ns) else -1

    def _key(self, clock: str, now_ns: int) -> tuple[object, ...]:
        if not self.on:
            return ("dark",)
        bar = self._volume if now_ns < self._volume_until_ns else -1
        self._page.image(clock, now_ns)
        note = round(self._note_share(now_ns) * CARD_HEIGHT)
        return (
            self._page.name,
            self._page.paintings,
            self._transition_step(now_ns),
            bar,
            note,
            self.brightness,
        )

    def _note_share(self, now_ns: int) -> float:
        """How much of the notification has slid in, 0 to 1."""
        if self._note is None or not self._note_from_ns <= now_ns < self._note_until_ns:
            return 0.0
        nearest_ns = min(now_ns - self._note_from_ns, self._note_until_ns - now_ns)
        return min(1.0, nearest_ns // REFRESH_NS * REFRESH_NS / SLIDE_NS)

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
        share = self._note_share(now_ns)
        if self._note is not None and share > 0.0:
            picture = _with_card(picture, self._note, share)
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


def _card(words: str) -> Image:
    """The notification as it lies over a page: an icon, who it is from, what it says."""
    card = draw.canvas(WIDTH - 2 * CARD_LEFT, CARD_HEIGHT, colour("#f7f8fb"))
    draw.disc(card, 100, 100, 46, colour("#2f7df0"))
    draw.text(card, "M", 100, 122, 60, draw.WHITE, 600, "center")
    draw.text(card, "Messages", 180, 90, 40, colour("#5a6070"))
    draw.text(card, "now", WIDTH - 2 * CARD_LEFT - 50, 90, 36, colour("#5a6070"), 400, "right")
    draw.text(card, words, 180, 160, 50, colour("#1b1d24"), 500)
    draw.rounded(card, 180, 215, 230, 76, 38, colour("#dfe6fb"))
    draw.text(card, "Reply", 295, 268, 42, colour("#3459d6"), 500, "center")
    return card


def _with_card(page: Image, card: Image, share: float) -> Image:
    """`card` slides in from above; share 1.0 is its resting place. Its round corners show the page."""
    bottom = round((CARD_TOP + CARD_HEIGHT) * share)
    top = max(0, bottom - CARD_HEIGHT)
    height, width = bottom - top, card.shape[1]
    if height <= 0:
        return page
    mask = draw.canvas(width, CARD_HEIGHT, BLACK)
    draw.rounded(mask, 0, 0, width, CARD_HEIGHT, 60, draw.WHITE)
    picture = page.copy()
    place = (slice(top, bottom), slice(CARD_LEFT, CARD_LEFT + width))
    shown = mask[CARD_HEIGHT - height :] > 127
    picture[place] = np.where(shown, card[CARD_HEIGHT - height :], picture[place])
    return picture
