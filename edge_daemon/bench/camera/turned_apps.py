"""The phone's apps as they look with the display turned: what the orientation finder is shown, and the truth about it.

The simulated phone turns its technician's pages only; an app that turns lays itself out anew. Here a wide page is two
columns of the upright one under bars as wide as the page. Bars as Android's gesture navigation draws them, as iOS does
(none but the home indicator with the phone lying), or none at all, as in a game.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from calibration.targets import TURNS, Turn, turned_picture
from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import WHITE, Colour, Image
from edge_daemon.bench.twin.pages import APP_INK, STATUS_BAR_PX, Page
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.technician_pages import TechnicianPage
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

Bars = Literal["android", "ios", "none"]
BARS: tuple[Bars, ...] = ("android", "ios", "none")

APPS = (
    "launcher",
    "panel",
    "notes",
    "settings",
    "recents",
    "calendar",
    "maps",
    "music",
    "weather",
    "clock",
    "calculator",
    "gallery",
    "files",
    "contacts",
    "dialer",
    "messages",
    "browser",
    "camera",
)
_LIGHT_BARS = ("launcher", "recents")
CLOCK = "10:24"
_PILL_ROWS = 40
# iOS, in points of a screen 390 wide: 59 of status bar, an indicator of 139 x 5, 8 above the edge; 251 lying.
_POINT_PX = WIDTH / 390.0


class TurnedApp(Page):
    """One app of a phone in one turn. Its picture is on the portrait screen's px, as every page's is."""

    def __init__(self, phone: Phone, app: str, turn: Turn, bars: Bars = "android") -> None:
        super().__init__()
        self.name = f"{app} {turn} {bars}"
        self._picture = turned_app(phone.page(app), turn, bars)

    def paint(self, clock: str) -> Image:
        return self._picture


def turned_app(page: Page, turn: Turn, bars: Bars) -> Image:
    """(2340, 1080, 3) BGR uint8: what the glass shows. A technician's page turns itself."""
    if isinstance(page, TechnicianPage):
        page.turn_to(turn)
        return page.image(CLOCK, 0)
    ink = WHITE if page.name in _LIGHT_BARS else APP_INK
    wide = turn in ("landscape_left", "landscape_right")
    read = _content(page.image(CLOCK, 0), wide)
    if bars == "android":
        _android_bars(read, ink)
    elif bars == "ios":
        _ios_bars(read, ink)
    return turned_picture(read, turn)


def turned_apps(phone: Phone) -> Iterator[tuple[str, Turn, Bars]]:
    """Every app in every turn with every kind of bars."""
    for app in APPS:
        for turn in TURNS:
            for bars in BARS:
                yield app, turn, bars


def _content(upright: Image, wide: bool) -> Image:
    """The page as it is read, its bars painted over with what lies beside them."""
    bare = upright.copy()
    bare[:STATUS_BAR_PX] = bare[STATUS_BAR_PX : STATUS_BAR_PX + 1, :1]
    bare[HEIGHT - _PILL_ROWS :, 300 : WIDTH - 300] = bare[HEIGHT - _PILL_ROWS :, 290:291]
    if not wide:
        return bare
    read = np.empty((WIDTH, HEIGHT, 3), np.uint8)
    read[:] = bare[STATUS_BAR_PX + 1, 1]
    read[:, :WIDTH] = bare[:WIDTH]
    read[STATUS_BAR_PX:, WIDTH : 2 * WIDTH] = bare[WIDTH : 2 * WIDTH - STATUS_BAR_PX]
    read[STATUS_BAR_PX:, 2 * WIDTH :] = bare[WIDTH : 2 * WIDTH - STATUS_BAR_PX, : HEIGHT - 2 * WIDTH]
    read[WIDTH - _PILL_ROWS :, :] = read[WIDTH - _PILL_ROWS - 1, :]
    return read


def _android_bars(read: Image, ink: Colour) -> None:
    height, width = read.shape[:2]
    draw.text(read, CLOCK, 56, 66, 42, ink, 500)
    _icons(read, width - 242, 66, ink)
    draw.rounded(read, width / 2 - 150, height - 30, 300, 9, 5, ink)


def _ios_bars(read: Image, ink: Colour) -> None:
    height, width = read.shape[:2]
    upright = height > width
    if upright:
        draw.text(read, CLOCK, 52 * _POINT_PX, 40 * _POINT_PX, 47, ink, 600, "center")
        _icons(read, width - 265, 40 * _POINT_PX, ink)
        island = 125 * _POINT_PX
        draw.rounded(read, (width - island) / 2, 11 * _POINT_PX, island, 37 * _POINT_PX, 60, draw.BLACK)
    length = (139 if upright else 251) * _POINT_PX
    draw.rounded(
        read, (width - length) / 2, height - 13 * _POINT_PX, length, 5 * _POINT_PX, 2.5 * _POINT_PX, ink
    )


def _icons(read: Image, x: float, base: float, ink: Colour) -> None:
    """Signal and battery, 194 px wide."""
    for bar in range(4):
        tall = 10 + 8 * bar
        draw.rounded(read, x + 12 * bar, base - tall, 8, tall, 2, ink)
    draw.disc(read, x + 90, base - 14, 17, ink)
    draw.rounded(read, x + 138, base - 34, 56, 34, 9, ink)
