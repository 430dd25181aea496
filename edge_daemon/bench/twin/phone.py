"""The simulated phone: it is touched, typed at and looked at, and remembers all of it.

Everything takes the time from its caller (CLOCK_MONOTONIC ns). The log has a touch the moment the panel
reports it; the screen answers after the phone's own input latency. All methods are safe from any thread.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from calibration.targets import Turn
from edge_daemon.bench.twin.apps import NotesPage, PanelPage, SettingsPage
from edge_daemon.bench.twin.display import VOLUME_STEPS, Display, ScreenFrame
from edge_daemon.bench.twin.draw import Image, colour
from edge_daemon.bench.twin.frames import mm_to_grid, mm_to_px, px_to_grid
from edge_daemon.bench.twin.launcher import APPS, LauncherPage, RecentsPage
from edge_daemon.bench.twin.mechanics import TipPose
from edge_daemon.bench.twin.pages import Finger, Page, PlaceholderPage, Target
from edge_daemon.bench.twin.technician_pages import CharucoPage, DotsPage, TechnicianPage
from edge_daemon.bench.twin.touches import (
    KeyPress,
    PanelFaults,
    PanelReport,
    Source,
    Spoiling,
    Touch,
    TouchPanel,
)
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX, SCREEN_WIDTH_PX, Truth

CLOCK_AT_START_MIN = 10 * 60 + 24
# Gesture navigation: how far from an edge a swipe must start, and how far it must go.
EDGE_PX = 45.0
SWIPE_BACK_PX = 160.0
SWIPE_HOME_PX = 380.0
# The second contact that a panel makes up by itself is none of the stylus'.
GHOST_CONTACT = 1


class UnknownPage(LookupError):
    """The phone has no page of that name."""


class Phone:
    """A phone with a launcher, a few apps and the technician's calibration pages."""

    def __init__(
        self, truth: Truth, now_ns: int | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """clock: what tells the time, in ns, where a call does not hand it in; a virtual one keeps to its own."""
        self._now = clock
        self.started_ns = self._now() if now_ns is None else now_ns
        self._latency_ns = round(truth.phone.input_latency_ms * 1e6)
        self._panel = TouchPanel(truth)
        self._lock = threading.RLock()
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = itertools.count()
        self._listeners: list[Callable[[], None]] = []
        self._touches: list[Touch] = []
        self._open: dict[tuple[Source, int], Touch] = {}
        self._finger_of: tuple[Source, int] | None = None
        self._finger: Finger | None = None
        self._keys: list[KeyPress] = []
        self._typed: list[str] = []
        self._volume = 7
        self._turn: Turn = "portrait"
        self._notes = NotesPage()
        self._recents = RecentsPage()
        apps = (LauncherPage(), PanelPage(), self._notes, SettingsPage(), self._recents)
        self._pages: dict[str, Page] = {page.name: page for page in (*apps, CharucoPage(), DotsPage())}
        for name, code in APPS:
            if name not in self._pages:
                self._pages[name] = PlaceholderPage(name, colour(code))
        self._history = ["launcher"]
        self._used: list[str] = []
        self._display = Display(self._pages["launcher"])

    # -- what the bench reads ------------------------------------------------------------------

    @property
    def touches(self) -> list[Touch]:
        """Copies of all touches so far, the oldest first; one that is still down has up_ns None."""
        with self._lock:
            return [replace(touch, path=list(touch.path)) for touch in self._touches]

    def touches_since(self, count: int) -> list[Touch]:
        """The touches after the first `count`, oldest first; for benches that make thousands."""
        with self._lock:
            return [replace(touch, path=list(touch.path)) for touch in self._touches[count:]]

    @property
    def keys(self) -> list[KeyPress]:
        """All named keys so far."""
        with self._lock:
            return list(self._keys)

    @property
    def typed(self) -> str:
        """Every character the keyboard ever produced, whether or not a field took it."""
        with self._lock:
            return "".join(self._typed)

    @property
    def text_field(self) -> str:
        """What stands in the notes field."""
        with self._lock:
            self.advance(self._now())
            return self._notes.written

    @property
    def off_screen_contacts(self) -> int:
        """How often the stylus came down beside the screen."""
        with self._lock:
            return self._panel.off_screen_contacts

    @property
    def current_page(self) -> str:
        """The page in front (a transition counts as over)."""
        with self._lock:
            self.advance(self._now())
            return self._history[-1]

    @property
    def screen_on(self) -> bool:
        with self._lock:
            self.advance(self._now())
            return self._display.on

    @property
    def volume(self) -> int:
        with self._lock:
            self.advance(self._now())
            return self._volume

    def page(self, name: str) -> Page:
        """A page object, to read its own state (panel.on, settings.chosen). Raises UnknownPage."""
        with self._lock:
            return self._known(name)

    def touch_at_grid(self, touch: Touch) -> tuple[float, float]:
        """Where a touch began, on the 0..1000 grid."""
        return mm_to_grid(touch.x_mm, touch.y_mm)

    def buttons_grid(self) -> dict[str, tuple[float, float]]:
        """The middle of everything that can be tapped on the page in front, on the grid."""
        with self._lock:
            self.advance(self._now())
            return {target.name: px_to_grid(*target.centre) for target in self._front.targets()}

    def target_at_grid(self, x: float, y: float) -> Target | None:
        """What a tap there would hit on the page in front."""
        with self._lock:
            self.advance(self._now())
            return self._front.target_at(x / 1000 * SCREEN_WIDTH_PX, y / 1000 * SCREEN_HEIGHT_PX)

    def snapshot(self) -> Image:
        """The screen now, (2340, 1080, 3) BGR uint8."""
        return self.frame(self._now()).image.copy()

    def frame(self, now_ns: int) -> ScreenFrame:
        """The screen at now_ns, not to be written into, and its serial number."""
        with self._lock:
            self.advance(now_ns)
            return self._display.frame(self._clock(now_ns), now_ns)

    def moving(self, now_ns: int) -> bool:
        """Whether a page transition is under way."""
        with self._lock:
            self.advance(now_ns)
            return self._display.moving(now_ns)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on the thread that caused it, after each touch, key, character, page change."""
        with self._lock:
            self._listeners.append(listener)

    # -- what the bench does as the technician ------------------------------------------------------

    def open_app(self, name: str, now_ns: int | None = None) -> None:
        """Open an app as its icon would, with the transition. Raises UnknownPage."""
        with self._lock:
            self._known(name)
            self._go(name, self._moment(now_ns), animate=True)
        self._tell()

    def show_page(self, name: str, now_ns: int | None = None, turn: Turn = "portrait") -> None:
        """Show a page at once; showing "dots" again clears its dots. Raises UnknownPage.

        turn: which way the display is turned; only the technician's pages turn with it.
        """
        with self._lock:
            page = self._known(name)
            moment = self._moment(now_ns)
            self._turn = turn
            if isinstance(page, TechnicianPage):
                page.turn_to(turn)
            self._go(name, moment, animate=False)
        self._tell()

    def add_page(self, page: Page) -> None:
        """One more app that can be shown, under its own name; a former one of that name is gone."""
        with self._lock:
            self._pages[page.name] = page

    @property
    def turn(self) -> Turn:
        """Which way the display is turned."""
        with self._lock:
            return self._turn

    # -- what may go wrong ---------------------------------------------------------------------------------

    def rotate(self, turn: Turn, now_ns: int | None = None) -> None:
        """The display turns under whatever it shows; the dots turn with their page."""
        with self._lock:
            self._moment(now_ns)
            self._turn = turn
            if isinstance(self._front, TechnicianPage):
                self._front.turn_to(turn)
        self._tell()

    def notify(self, words: str, now_ns: int | None = None, for_ms: float = 5_000.0) -> None:
        """A notification slides over the top of the page for a while."""
        with self._lock:
            self._display.notify(words, self._moment(now_ns), round(for_ms * 1e6))
        self._tell()

    def set_brightness(self, brightness: float, now_ns: int | None = None) -> None:
        """How bright the screen shines: 1.0 is comfortable, 0.3 dim, 0.05 all but dark."""
        with self._lock:
            self._moment(now_ns)
            self._display.brightness = brightness
        self._tell()

    def set_touch_faults(self, faults: PanelFaults) -> None:
        """How often the touch panel misses, doubles or bounces a touch of the stylus from now on."""
        with self._lock:
            self._panel.faults = faults

    def spoil_next_touch(self, how: Spoiling) -> None:
        """The stylus' next touch is missed, doubled or bounced; several calls queue up."""
        with self._lock:
            self._panel.spoil_next(how)

    # -- what happens to the phone -------------------------------------------------------------------

    def glass(self, poses: Iterable[TipPose]) -> None:
        """The stylus passed through these poses, in order of time."""
        told = False
        with self._lock:
            for pose in poses:
                if self._panel.haunted:
                    told |= self._ghost_contact(pose.at_ns)
                report = self._panel.sample(pose)
                if report is not None:
                    self._pointer("glass", 0, report)
                    told = True
        if told:
            self._tell()

    def hid_contact(self, ident: int, down: bool, x_mm: float, y_mm: float, now_ns: int) -> None:
        """A digitizer's contact `ident` is (or is no longer) down at a place in screen mm."""
        with self._lock:
            self._pointer("hid", ident, PanelReport(now_ns, down, x_mm, y_mm, 0.0))
        self._tell()

    def press_key(self, name: str, now_ns: int) -> None:
        """A named key went down."""
        with self._lock:
            self._keys.append(KeyPress(name, now_ns))
            self._later(now_ns, lambda at: self._act_on_key(name, at))
        self._tell()

    def type_character(self, character: str, now_ns: int) -> None:
        """The keyboard produced a character."""
        with self._lock:
            self._typed.append(character)
            self._later(now_ns, lambda at: self._insert(character, at))
        self._tell()

    def due_ns(self) -> int | None:
        """When the screen next answers to something that already happened, None if nothing is open."""
        with self._lock:
            dues = [self._due[0][0]] if self._due else []
            ghost_ns = self._panel.due_ns()
            return min(dues if ghost_ns is None else [*dues, ghost_ns], default=None)

    def advance(self, now_ns: int) -> None:
        """Let what is due by now_ns happen. Times before the last one change nothing."""
        with self._lock:
            acted = self._ghost_contact(now_ns)
            while self._due and self._due[0][0] <= now_ns:
                at_ns, _, act = heapq.heappop(self._due)
                act(at_ns)
                acted = True
        if acted:
            self._tell()

    def _ghost_contact(self, now_ns: int) -> bool:
        """Take what the panel reports by itself up to now_ns; whether there was something."""
        reported = False
        while (due_ns := self._panel.due_ns()) is not None and due_ns <= now_ns:
            report = self._panel.ghost(now_ns)
            assert report is not None, "a contact that is due is reported"
            self._pointer("glass", GHOST_CONTACT, report)
            reported = True
        return reported

    # -- inside -----------------------------------------------------------------------------------------

    @property
    def _front(self) -> Page:
        return self._pages[self._history[-1]]

    def _known(self, name: str) -> Page:
        page = self._pages.get(name)
        if page is None:
            raise UnknownPage(f"the phone has no page {name!r}; it has {', '.join(sorted(self._pages))}")
        return page

    def _moment(self, now_ns: int | None) -> int:
        moment = self._now() if now_ns is None else now_ns
        self.advance(moment)
        return moment

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _clock(self, now_ns: int) -> str:
        minutes = CLOCK_AT_START_MIN + (now_ns - self.started_ns) // 60_000_000_000
        return f"{minutes // 60 % 24}:{minutes % 60:02}"

    def _later(self, now_ns: int, act: Callable[[int], None]) -> None:
        heapq.heappush(self._due, (now_ns + self._latency_ns, next(self._order), act))

    def _go(self, name: str, now_ns: int, animate: bool) -> None:
        page = self._pages[name]
        self._display.change_to(page, self._clock(now_ns), now_ns, animate and page is not self._front)
        page.opened(now_ns)
        if name == "launcher":
            self._history = ["launcher"]
        elif self._history[-1] != name:
            self._history.append(name)
        if name in dict(APPS):
            self._used = [name, *(used for used in self._used if used != name)]

    def _pointer(self, source: Source, ident: int, report: PanelReport) -> None:
        known = self._open.get((source, ident))
        if known is None:
            if report.down:
                self._pointer_down(source, ident, report)
            return
        known.press_mm = max(known.press_mm, report.press_mm)
        if report.down:
            if (report.x_mm, report.y_mm) != known.path[-1][1:]:
                known.path.append((report.at_ns, report.x_mm, report.y_mm))
                self._pass_on(source, ident, "move", known, report.at_ns)
            return
        known.up_ns = report.at_ns
        del self._open[(source, ident)]
        self._pass_on(source, ident, "up", known, report.at_ns)

    def _pointer_down(self, source: Source, ident: int, report: PanelReport) -> None:
        touch = Touch(source, report.at_ns, report.x_mm, report.y_mm, press_mm=report.press_mm)
        touch.path.append((report.at_ns, report.x_mm, report.y_mm))
        touch.page = self._history[-1]
        self._touches.append(touch)
        self._open[(source, ident)] = touch
        if self._finger_of is None:
            self._finger_of = (source, ident)
        self._pass_on(source, ident, "down", touch, report.at_ns)

    def _pass_on(self, source: Source, ident: int, what: str, touch: Touch, at_ns: int) -> None:
        """Hand a change of the one finger that the pages follow to the page in front, after the latency."""
        if self._finger_of != (source, ident):
            return
        if what == "up":
            self._finger_of = None
        down_px = mm_to_px(*touch.path[0][1:])
        now_px = mm_to_px(*touch.path[-1][1:])
        finger = Finger(*down_px, touch.down_ns, *now_px, at_ns)
        self._later(at_ns, lambda at: self._finger_event(what, replace(finger, now_ns=at), touch.down_ns))

    def _finger_event(self, what: str, finger: Finger, down_ns: int) -> None:
        if not self._display.on:
            return
        # The page's clock runs behind the panel's by the latency; a touch's length must not change by it.
        finger = replace(finger, down_ns=down_ns + self._latency_ns)
        page = self._front
        if what == "down":
            page.finger_down(finger)
        elif what == "move":
            page.finger_move(finger)
        else:
            self._finger_up(page, finger)

    def _finger_up(self, page: Page, finger: Finger) -> None:
        if not isinstance(page, TechnicianPage):
            if finger.down_y >= SCREEN_HEIGHT_PX - EDGE_PX and finger.down_y - finger.y >= SWIPE_HOME_PX:
                page.pressed = None
                self._go("launcher", finger.now_ns, animate=True)
                return
            if finger.down_x <= EDGE_PX and finger.x - finger.down_x >= SWIPE_BACK_PX:
                page.pressed = None
                self._back(finger.now_ns)
                return
        wanted = page.finger_up(finger)
        if wanted is not None:
            self._go(wanted, finger.now_ns, animate=True)

    def _back(self, now_ns: int) -> None:
        if len(self._history) > 1:
            self._history.pop()
            self._display.change_to(self._front, self._clock(now_ns), now_ns, animate=True)

    def _act_on_key(self, name: str, at_ns: int) -> None:
        if name == "power":
            self._display.on = not self._display.on
        if not self._display.on:
            return
        if name == "home":
            self._go("launcher", at_ns, animate=True)
        elif name == "back":
            self._back(at_ns)
        elif name == "app_switch":
            self._recents.show(tuple(self._used))
            self._go("recents", at_ns, animate=True)
        elif name in ("volume_up", "volume_down"):
            step = 1 if name == "volume_up" else -1
            self._volume = min(max(self._volume + step, 0), VOLUME_STEPS)
            self._display.show_volume(self._volume, at_ns)
        elif name in ("enter", "delete"):
            self._edit(name, at_ns)

    def _edit(self, name: str, at_ns: int) -> None:
        if self._front is self._notes:
            written = self._notes.written
            self._notes.write(written + "\n" if name == "enter" else written[:-1], at_ns)

    def _insert(self, character: str, at_ns: int) -> None:
        if self._display.on and self._front is self._notes:
            self._notes.write(self._notes.written + character, at_ns)
