"""The phone's home screen: wallpaper, clock, app icons, dock; and the page of recent apps."""

import functools
from collections.abc import Callable

import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import WHITE, Colour, Image, colour
from edge_daemon.bench.twin.pages import Page, Target, gesture_pill, status_bar
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

ICON_PX = 168.0
COLUMNS_X = (66.0, 326.0, 586.0, 846.0)
ROWS_Y = (860.0, 1146.0, 1432.0)
DOCK_Y = 2060.0

# Rows of the home screen, then the dock: app name and icon colour.
APPS: tuple[tuple[str, str], ...] = (
    ("panel", "#f0a020"),
    ("notes", "#f7d04a"),
    ("settings", "#7a8496"),
    ("calendar", "#fdfdfd"),
    ("maps", "#34a874"),
    ("music", "#e0457b"),
    ("weather", "#4aa3e8"),
    ("clock", "#22252e"),
    ("calculator", "#3b4252"),
    ("gallery", "#8f6be8"),
    ("files", "#3f8de0"),
    ("contacts", "#2fae8f"),
    ("dialer", "#35b14a"),
    ("messages", "#2f7df0"),
    ("browser", "#f0603a"),
    ("camera", "#30343f"),
)
DOCK = 4


@functools.cache
def wallpaper() -> Image:
    """Dusk over hills; not to be written into."""
    picture = draw.gradient(WIDTH, HEIGHT, colour("#1c2a5e"), colour("#e58f7b"))
    draw.disc(picture, 800, 1500, 150, colour("#f6c9a0"))
    x = np.linspace(0, WIDTH, 60)
    hills = (("#8a5a86", 1660, 70, 0.0), ("#5c4478", 1800, 90, 1.7), ("#33305e", 1960, 60, 3.1))
    for code, level, swing, phase in hills:
        crest = level + swing * np.sin(x / 210.0 + phase)
        for left, right, y0, y1 in zip(x[:-1], x[1:], crest[:-1], crest[1:], strict=True):
            slice_ = np.array([(left - 1, y0), (right + 1, y1), (right + 1, HEIGHT), (left - 1, HEIGHT)])
            draw.polygon(picture, slice_, colour(code))
    return picture


def _glyph_panel(p: Image, x: float, y: float, ink: Colour) -> None:
    for dx in (-30, 30):
        for dy in (-30, 30):
            draw.rounded(p, x + dx - 22, y + dy - 22, 44, 44, 12, ink)


def _glyph_notes(p: Image, x: float, y: float, ink: Colour) -> None:
    for row, width in enumerate((84, 84, 52)):
        draw.rounded(p, x - 42, y - 40 + 34 * row, width, 13, 6, ink)


def _glyph_settings(p: Image, x: float, y: float, ink: Colour) -> None:
    for angle in np.arange(0.0, 2 * np.pi, np.pi / 4):
        tip = (x + 54 * np.cos(angle), y + 54 * np.sin(angle))
        draw.stroke(p, [(x, y), tip], 22, ink)
    draw.disc(p, x, y, 42, ink)
    draw.disc(p, x, y, 17, colour("#7a8496"))


def _glyph_calendar(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.rounded(p, x - 84, y - 84, 168, 50, 44, colour("#e04848"))
    draw.rounded(p, x - 84, y - 60, 168, 26, 0, colour("#e04848"))
    draw.text(p, "17", x, y + 56, 92, colour("#22252e"), 500, "center")


def _glyph_maps(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.polygon(p, np.array([(x - 35, y - 6), (x + 35, y - 6), (x, y + 58)]), ink)
    draw.disc(p, x, y - 18, 39, ink)
    draw.disc(p, x, y - 18, 15, colour("#34a874"))


def _glyph_music(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.stroke(p, [(x - 24, y + 34), (x - 24, y - 44), (x + 40, y - 54), (x + 40, y + 22)], 13, ink)
    draw.disc(p, x - 38, y + 36, 20, ink)
    draw.disc(p, x + 26, y + 24, 20, ink)


def _glyph_weather(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.disc(p, x + 26, y - 22, 32, colour("#ffd75e"))
    draw.disc(p, x - 22, y + 14, 32, ink)
    draw.disc(p, x + 18, y + 20, 27, ink)
    draw.rounded(p, x - 40, y + 14, 78, 33, 16, ink)


def _glyph_clock(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.disc(p, x, y, 60, ink)
    draw.stroke(p, [(x, y - 40), (x, y), (x + 28, y + 18)], 9, colour("#22252e"))


def _glyph_calculator(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.stroke(p, [(x - 44, y - 26), (x - 8, y - 26)], 10, ink)
    draw.stroke(p, [(x - 26, y - 44), (x - 26, y - 8)], 10, ink)
    draw.stroke(p, [(x + 12, y - 26), (x + 46, y - 26)], 10, ink)
    draw.stroke(p, [(x - 42, y + 14), (x - 12, y + 44)], 10, ink)
    draw.stroke(p, [(x - 12, y + 14), (x - 42, y + 44)], 10, ink)
    draw.stroke(p, [(x + 12, y + 18), (x + 46, y + 18)], 10, colour("#f0a020"))
    draw.stroke(p, [(x + 12, y + 40), (x + 46, y + 40)], 10, colour("#f0a020"))


def _glyph_gallery(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.rounded(p, x - 52, y - 44, 104, 88, 16, ink)
    hills = np.array([(x - 44, y + 34), (x - 10, y - 14), (x + 44, y + 34)])
    draw.polygon(p, hills, colour("#8f6be8"))
    draw.disc(p, x + 26, y - 18, 11, colour("#8f6be8"))


def _glyph_files(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.rounded(p, x - 52, y - 40, 50, 30, 10, ink)
    draw.rounded(p, x - 52, y - 26, 104, 68, 12, ink)


def _glyph_contacts(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.disc(p, x, y - 22, 27, ink)
    draw.rounded(p, x - 48, y + 14, 96, 42, 30, ink)


def _glyph_dialer(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.stroke(p, [(x - 36, y - 36), (x - 26, y + 2), (x - 2, y + 26), (x + 36, y + 36)], 22, ink)
    draw.disc(p, x - 34, y - 32, 17, ink)
    draw.disc(p, x + 32, y + 34, 17, ink)


def _glyph_messages(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.rounded(p, x - 54, y - 44, 108, 76, 26, ink)
    draw.polygon(p, np.array([(x - 36, y + 22), (x - 2, y + 24), (x - 38, y + 56)]), ink)


def _glyph_browser(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.ring(p, x, y, 52, 11, ink)
    draw.polygon(p, np.array([(x + 30, y - 30), (x + 9, y + 11), (x - 9, y - 11)]), ink)
    draw.polygon(p, np.array([(x - 30, y + 30), (x + 9, y + 11), (x - 9, y - 11)]), colour("#ffd0c0"))


def _glyph_camera(p: Image, x: float, y: float, ink: Colour) -> None:
    draw.rounded(p, x - 24, y - 50, 48, 24, 8, ink)
    draw.rounded(p, x - 56, y - 38, 112, 82, 20, ink)
    draw.disc(p, x, y + 3, 27, colour("#30343f"))
    draw.disc(p, x, y + 3, 16, colour("#7fb2ff"))


GLYPHS: dict[str, Callable[[Image, float, float, Colour], None]] = {
    "panel": _glyph_panel,
    "notes": _glyph_notes,
    "settings": _glyph_settings,
    "calendar": _glyph_calendar,
    "maps": _glyph_maps,
    "music": _glyph_music,
    "weather": _glyph_weather,
    "clock": _glyph_clock,
    "calculator": _glyph_calculator,
    "gallery": _glyph_gallery,
    "files": _glyph_files,
    "contacts": _glyph_contacts,
    "dialer": _glyph_dialer,
    "messages": _glyph_messages,
    "browser": _glyph_browser,
    "camera": _glyph_camera,
}


def icon(picture: Image, name: str, x: float, y: float, pressed: bool) -> None:
    """An app's icon with its top-left corner at x, y; a pressed one sinks in a little."""
    ground = colour(dict(APPS)[name])
    inset = 10.0 if pressed else 0.0
    size = ICON_PX - 2 * inset
    draw.rounded(picture, x + inset, y + inset, size, size, 46, ground)
    if pressed:
        dimmed = (ground[0] // 2, ground[1] // 2, ground[2] // 2)
        draw.rounded(picture, x + inset, y + inset, size, size, 46, dimmed)
    ink = colour("#5b4a10") if name == "notes" else WHITE
    GLYPHS[name](picture, x + ICON_PX / 2, y + ICON_PX / 2, ink)


class LauncherPage(Page):
    """Home: twelve apps in three rows, four in the dock. A tap on an icon opens its app."""

    name = "launcher"

    def __init__(self) -> None:
        super().__init__()
        self._wallpaper = wallpaper()
        places = [(x, y) for y in ROWS_Y for x in COLUMNS_X] + [(x, DOCK_Y) for x in COLUMNS_X]
        self._targets = tuple(
            Target(name, x, y, ICON_PX, ICON_PX) for (name, _), (x, y) in zip(APPS, places, strict=True)
        )

    def targets(self) -> tuple[Target, ...]:
        return self._targets

    def paint(self, clock: str) -> Image:
        picture = self._wallpaper.copy()
        status_bar(picture, clock, WHITE)
        draw.text(picture, clock, 70, 420, 200, WHITE, 300)
        draw.text(picture, "Tuesday, 17 June", 78, 510, 50, WHITE, 400)
        pale = picture.copy()
        draw.rounded(pale, 30, 2018, WIDTH - 60, 252, 70, WHITE)
        picture = draw.blend(picture, pale, 0.22)
        for target in self._targets:
            icon(picture, target.name, target.x, target.y, target.name == self.pressed)
            if target.y != DOCK_Y:
                label_x, label_y = target.x + ICON_PX / 2, target.y + ICON_PX + 48
                draw.text(picture, target.name.capitalize(), label_x, label_y, 34, WHITE, 400, "center")
        gesture_pill(picture, WHITE)
        return picture

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        return None if held else target.name


class RecentsPage(Page):
    """The apps used lately, one card each; a tap brings one back."""

    name = "recents"

    def __init__(self) -> None:
        super().__init__()
        self._apps: tuple[str, ...] = ()

    def show(self, apps: tuple[str, ...]) -> None:
        """Which apps to list, the latest first (three fit)."""
        self._apps = apps[:3]
        self.revision += 1

    def targets(self) -> tuple[Target, ...]:
        return tuple(
            Target(name, 140, 320 + 620 * row, WIDTH - 280, 560) for row, name in enumerate(self._apps)
        )

    def paint(self, clock: str) -> Image:
        picture = draw.gradient(WIDTH, HEIGHT, colour("#232842"), colour("#3a3350"))
        status_bar(picture, clock, WHITE)
        if not self._apps:
            draw.text(picture, "No recent apps", WIDTH / 2, HEIGHT / 2, 56, WHITE, 400, "center")
        for target in self.targets():
            ground = colour("#c8cede") if target.name == self.pressed else colour("#f3f4f8")
            draw.rounded(picture, target.x, target.y, target.w, target.h, 56, ground)
            if target.name in GLYPHS:
                icon(picture, target.name, target.x + 50, target.y + 50, False)
            title = target.name.capitalize()
            draw.text(picture, title, target.x + 260, target.y + 155, 60, colour("#1b1d24"), 500)
        gesture_pill(picture, WHITE)
        return picture

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        return None if held else target.name
