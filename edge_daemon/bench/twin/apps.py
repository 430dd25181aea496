"""The phone's working apps: a panel of buttons, a notes field, a long list."""

import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import WHITE, Image, colour
from edge_daemon.bench.twin.pages import (
    APP_ACCENT,
    APP_FAINT,
    APP_INK,
    APP_PAPER,
    Finger,
    Page,
    Target,
    app_frame,
    gesture_pill,
    status_bar,
)
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

TILES = ("lamp", "fan", "heating", "blinds", "alarm", "speaker", "coffee", "door")
NOTE_SIZE_PX = 56
NOTE_LINE_PX = 84
NOTE_TOP_PX = 420
NOTE_LINES = 20
CURSOR_BLINK_NS = 530_000_000  # Android's Editor.BLINK is 500 ms plus the frame it waits for
# Android's fling slows down roughly by 1/e in this time.
FLING_TAU_S = 0.325
FLING_OVER_S = 1.6


class PanelPage(Page):
    """Eight switches that change colour, and a count of the taps they took."""

    name = "panel"

    def __init__(self) -> None:
        super().__init__()
        self.on: set[str] = set()
        self.taps = 0
        self.last = "–"
        self._targets = tuple(
            Target(name, 60 + 490 * (i % 2), 560 + 400 * (i // 2), 470, 370) for i, name in enumerate(TILES)
        )

    def targets(self) -> tuple[Target, ...]:
        return self._targets

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        self.on ^= {target.name}
        self.taps += 1
        self.last = f"{target.name} {'held' if held else 'tapped'}"
        return None

    def paint(self, clock: str) -> Image:
        picture = app_frame(clock, "Home panel")
        draw.rounded(picture, 60, 310, WIDTH - 120, 190, 44, WHITE)
        count = "1 tap" if self.taps == 1 else f"{self.taps} taps"
        draw.text(picture, count, 110, 430, 66, APP_ACCENT, 600)
        draw.text(picture, self.last, WIDTH - 110, 426, 48, APP_FAINT, 400, "right")
        for target in self._targets:
            on = target.name in self.on
            ground = colour("#ffc94d") if on else WHITE
            if target.name == self.pressed:
                ground = colour("#e0a92e") if on else colour("#d3d8e6")
            draw.rounded(picture, target.x, target.y, target.w, target.h, 52, ground)
            knob = target.x + target.w - (70 if on else 130)
            track = colour("#b06a00") if on else colour("#c9cdd8")
            draw.rounded(picture, target.x + target.w - 160, target.y + 50, 120, 64, 32, track)
            draw.disc(picture, knob, target.y + 82, 25, WHITE)
            draw.text(picture, target.name.capitalize(), target.x + 46, target.y + 270, 58, APP_INK, 500)
            draw.text(picture, "on" if on else "off", target.x + 46, target.y + 330, 42, APP_FAINT, 400)
        return picture


class NotesPage(Page):
    """A text field with a blinking cursor; what a keyboard types ends up here."""

    name = "notes"

    def __init__(self) -> None:
        super().__init__()
        self.written = ""
        self._touched_ns = 0

    def opened(self, now_ns: int) -> None:
        self._touched_ns = now_ns

    def targets(self) -> tuple[Target, ...]:
        return (
            Target("clear", WIDTH - 290, 180, 230, 96),
            Target("text", 40, 320, WIDTH - 80, HEIGHT - 420),
        )

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        if target.name == "clear":
            self.write("", now_ns)
        self._touched_ns = now_ns
        return None

    def write(self, written: str, now_ns: int) -> None:
        """Replace the note's text; the cursor shows solid for a moment, as when typing."""
        self.written = written
        self._touched_ns = now_ns
        self.revision += 1

    def key(self, now_ns: int) -> tuple[object, ...]:
        self._cursor_on = (now_ns - self._touched_ns) // CURSOR_BLINK_NS % 2 == 0
        return (self.revision, self._cursor_on)

    def paint(self, clock: str) -> Image:
        picture = app_frame(clock, "Notes")
        ground = colour("#c9d3f5") if self.pressed == "clear" else colour("#e2e8fb")
        draw.rounded(picture, WIDTH - 290, 180, 230, 96, 48, ground)
        draw.text(picture, "Clear", WIDTH - 175, 245, 46, APP_ACCENT, 500, "center")
        draw.rounded(picture, 40, 320, WIDTH - 80, HEIGHT - 420, 44, WHITE)
        lines = self.lines()[-NOTE_LINES:]
        if not self.written:
            draw.text(picture, "Write something", 90, NOTE_TOP_PX, NOTE_SIZE_PX, colour("#b4b9c6"))
        for row, line in enumerate(lines):
            if line:
                draw.text(picture, line, 90, NOTE_TOP_PX + NOTE_LINE_PX * row, NOTE_SIZE_PX, APP_INK)
        if self._cursor_on:
            x = 94 + draw.text_width(lines[-1], NOTE_SIZE_PX)
            baseline = NOTE_TOP_PX + NOTE_LINE_PX * (len(lines) - 1)
            draw.rounded(picture, x, baseline - 52, 6, 68, 3, APP_ACCENT)
        return picture

    def lines(self) -> list[str]:
        """The text as it is broken on the screen."""
        broken: list[str] = []
        for paragraph in self.written.split("\n"):
            line = ""
            for character in paragraph:
                if draw.text_width(line + character, NOTE_SIZE_PX) > WIDTH - 190:
                    broken.append(line)
                    line = ""
                line += character
            broken.append(line)
        return broken


SETTINGS = (
    ("Network and internet", "Wi-Fi, mobile, hotspot"),
    ("Connected devices", "Bluetooth, pairing"),
    ("Apps", "Recent apps, default apps"),
    ("Notifications", "History, conversations"),
    ("Battery", "86 % – about 1 day left"),
    ("Storage", "41 % used – 75 GB free"),
    ("Sound and vibration", "Volume, haptics"),
    ("Display", "Dark theme, font size, brightness"),
    ("Wallpaper and style", "Colours, themed icons"),
    ("Accessibility", "Screen reader, interaction controls"),
    ("Security", "Screen lock, fingerprint"),
    ("Privacy", "Permissions, account activity"),
    ("Location", "On – 6 apps have access"),
    ("Safety and emergency", "Alerts, medical info"),
    ("Passwords and accounts", "Saved passwords"),
    ("Digital wellbeing", "Screen time, timers"),
    ("System", "Languages, gestures, time"),
    ("Keyboard", "Physical keyboard layout"),
    ("Developer options", "USB debugging"),
    ("About phone", "Bench twin 1"),
)
ROW_PX = 210
LIST_TOP_PX = 320


class SettingsPage(Page):
    """A list longer than the screen: it follows the finger and runs on after a flick."""

    name = "settings"

    def __init__(self) -> None:
        super().__init__()
        self.chosen: str | None = None
        self._offset = 0.0
        self._grabbed_at = 0.0
        self._fling_px_s = 0.0
        self._fling_from_ns = 0
        self._trail: list[tuple[int, float]] = []
        self._scrolling = False
        self._rows: tuple[tuple[object, ...], Image] | None = None

    @property
    def lowest_px(self) -> float:
        return float(ROW_PX * len(SETTINGS) - (HEIGHT - LIST_TOP_PX) + 60)

    def offset_px(self, now_ns: int) -> float:
        """How far the list is scrolled now."""
        gone_s = min((now_ns - self._fling_from_ns) / 1e9, FLING_OVER_S)
        run_px = self._fling_px_s * FLING_TAU_S * (1.0 - float(np.exp(-gone_s / FLING_TAU_S)))
        return min(max(self._offset + run_px, 0.0), self.lowest_px)

    def key(self, now_ns: int) -> tuple[object, ...]:
        self._shown_px = round(self.offset_px(now_ns))
        return (self.revision, self._shown_px)

    def targets(self) -> tuple[Target, ...]:
        top = LIST_TOP_PX - round(self._offset)
        return tuple(
            Target(title, 30, top + ROW_PX * row, WIDTH - 60, ROW_PX)
            for row, (title, _) in enumerate(SETTINGS)
            if LIST_TOP_PX <= top + ROW_PX * row <= HEIGHT - ROW_PX
        )

    def finger_down(self, finger: Finger) -> None:
        self._offset = self.offset_px(finger.now_ns)
        self._fling_px_s = 0.0
        self._grabbed_at = self._offset
        self._scrolling = False
        self._trail = [(finger.now_ns, finger.y)]
        super().finger_down(finger)

    def finger_move(self, finger: Finger) -> None:
        super().finger_move(finger)
        self._trail = [*self._trail[-8:], (finger.now_ns, finger.y)]
        if finger.wandered or self._scrolling:
            self._scrolling = True
            wanted = self._grabbed_at + finger.down_y - finger.y
            self._offset = min(max(wanted, 0.0), self.lowest_px)

    def finger_up(self, finger: Finger) -> str | None:
        if self._scrolling:
            self._fling_px_s = self._flick_px_s(finger)
            self._fling_from_ns = finger.now_ns
        return super().finger_up(finger)

    def _flick_px_s(self, finger: Finger) -> float:
        recent = [(at, y) for at, y in self._trail if finger.now_ns - at <= 100_000_000]
        if len(recent) < 2 or recent[-1][0] == recent[0][0]:
            return 0.0
        return (recent[0][1] - recent[-1][1]) / ((recent[-1][0] - recent[0][0]) / 1e9)

    def tapped(self, target: Target, held: bool, now_ns: int) -> str | None:
        self.chosen = target.name
        return None

    def paint(self, clock: str) -> Image:
        rows = self._row_sheet()
        picture = draw.canvas(WIDTH, HEIGHT, APP_PAPER)
        shown = rows[self._shown_px : self._shown_px + HEIGHT - LIST_TOP_PX]
        picture[LIST_TOP_PX : LIST_TOP_PX + len(shown)] = shown
        status_bar(picture, clock, APP_INK)
        draw.text(picture, "Settings", 60, 250, 84, APP_INK, 500)
        gesture_pill(picture, APP_INK)
        return picture

    def _row_sheet(self) -> Image:
        key = (self.pressed, self.chosen)
        if self._rows is None or self._rows[0] != key:
            self._rows = (key, self._paint_rows())
        return self._rows[1]

    def _paint_rows(self) -> Image:
        sheet = draw.canvas(WIDTH, ROW_PX * len(SETTINGS) + 80, APP_PAPER)
        for row, (title, detail) in enumerate(SETTINGS):
            top = ROW_PX * row
            if title == self.pressed or title == self.chosen:
                shade = "#d3d8e6" if title == self.pressed else "#dfe6fb"
                draw.rounded(sheet, 30, top + 8, WIDTH - 60, ROW_PX - 16, 40, colour(shade))
            hue = colour(("#4a86e8", "#e8824a", "#4ab06a", "#a06ae0", "#e0507a")[row % 5])
            draw.disc(sheet, 120, top + ROW_PX / 2, 46, hue)
            draw.disc(sheet, 120, top + ROW_PX / 2, 18, WHITE)
            draw.text(sheet, title, 220, top + 98, 54, APP_INK, 400)
            draw.text(sheet, detail, 220, top + 156, 38, APP_FAINT, 400)
        return sheet
