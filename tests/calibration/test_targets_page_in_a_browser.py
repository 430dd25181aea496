"""The page in a real browser, on a simulated phone of 360 x 780 CSS px at 3 device px each.

Needs Chromium: found on PATH as chromium, chromium-browser or google-chrome, or named by CHROMIUM. One launch.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from functools import partial

import cv2
import numpy as np
import pytest
import trio
import trio.testing

from calibration.screen import ScreenGeometry
from calibration.targets import (
    DOUBLE_TAP_ASIDE_MM,
    TURNS,
    charuco_target,
    draw_charuco,
    draw_dots,
    page_html,
    turned_picture,
    turned_points,
)
from edge_daemon.staff.page_server import PageListen, page_server

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
ANGLES = {"portrait": 0, "landscape_left": 90, "portrait_upside_down": 180, "landscape_right": 270}
TYPES = {
    "portrait": "portraitPrimary",
    "landscape_left": "landscapePrimary",
    "portrait_upside_down": "portraitSecondary",
    "landscape_right": "landscapeSecondary",
}
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH (chromium, chromium-browser, google-chrome) nor in CHROMIUM"
)

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    # Of the browser itself: emulated, it would not reach the canvas's size in device px.
    "--force-device-scale-factor=3",
)
LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Chromium's debugging pipe: JSON messages, each ended by a NUL, over file descriptors 3 and 4."""

    def __init__(self, profile):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [sys.executable, "-c", LAUNCH, str(to_browser), str(from_browser), CHROMIUM, *FLAGS]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._unread, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._unread:
            assert select.select([self._in], [], [], 20)[0], "Chromium does not answer"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "Chromium has ended"
            self._unread += chunk
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)

    def turn(self, turn, width=360, height=780, scale=3.0):
        if turn.startswith("landscape"):
            width, height = height, width
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=0 if scale == 3.0 else scale,
            mobile=True,
            screenOrientation={"type": TYPES[turn], "angle": ANGLES[turn]},
        )

    def open(self, url, ready):
        """Load a page anew, and wait for a JavaScript condition that says that it is ready."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until(ready)

    def value(self, expression):
        """The value of a JavaScript expression, once it is a promise fulfilled."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition):
        """Wait, frame by frame, until a JavaScript condition holds; returns what it gave."""
        return self.value(
            "new Promise((done, fail) => { const limit = performance.now() + 10000; const look = () => {"
            f"let is; try {{ is = {condition}; }} catch {{ is = false; }}"
            "if (is) requestAnimationFrame(() => requestAnimationFrame(() => done(is)));"
            "else if (performance.now() > limit) fail(new Error('never came true'));"
            "else requestAnimationFrame(look); }; look(); })"
        )

    def picture(self):
        png = base64.b64decode(
            self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        )
        return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)

    def fingers(self, kind, *places):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def tap(self, x, y):
        self.fingers("touchStart", (x, y))
        self.fingers("touchEnd")

    def close(self):
        os.close(self._out)
        os.close(self._in)
        self._process.wait(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def page_url(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page_html(SCREEN), encoding="utf-8")
    return path.as_uri()


def showing(what):
    return f"page.showing === '{what}'"


def dots(*places_mm, turn="portrait"):
    return draw_dots(1080, 2340, 68.0, 147.3, places_mm, turn)


def mm(css_x, css_y):
    return css_x * 3 * 68.0 / 1080, css_y * 3 * 147.3 / 2340


def differing(first, second):
    """Pixels that differ by more than the smoothing of an edge can."""
    return int((np.abs(first.astype(int) - second.astype(int)).max(axis=2) > 60).sum())


@pytest.mark.parametrize("turn", TURNS)
def test_the_board_on_the_glass_is_the_shared_drawing_to_the_pixel(browser, page_url, turn):
    browser.turn(turn)
    browser.open(f"{page_url}#charuco", showing("charuco"))
    assert np.array_equal(turned_picture(browser.picture(), turn), draw_charuco(1080, 2340, turn))


@pytest.mark.parametrize("turn", ["portrait", "landscape_left"])
def test_dots_and_marks_lie_on_the_glass_where_the_shared_drawing_has_them(browser, page_url, turn):
    browser.turn(turn)
    browser.open(f"{page_url}#dots", showing("dots"))
    browser.tap(101.5, 203.25)
    browser.until("page.touches.count === 1")
    place = browser.value("[page.touches.all[0].xPx, page.touches.all[0].yPx]")
    on_page = np.array([[101.5 * 3, 203.25 * 3]])
    assert place == pytest.approx(turned_points(on_page, 1080, 2340, turn)[0], abs=0.01)
    seen = turned_picture(browser.picture(), turn)
    place_mm = (place[0] * 68.0 / 1080, place[1] * 147.3 / 2340)
    assert differing(seen, dots(place_mm, turn=turn)) == 0


def test_the_menu_is_what_a_person_sees_first_and_a_button_leads_to_the_board(browser, page_url):
    browser.turn("portrait")
    browser.open(page_url, "page.boards && page.size[0] === 1080")
    assert "1080 × 2340" in browser.value("document.getElementById('menu').innerText")
    x, y = browser.value(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        "(document.getElementById('show-charuco').getBoundingClientRect())"
    )
    browser.tap(x, y)
    browser.until(f"{showing('charuco')} && document.fullscreenElement !== null")
    assert np.array_equal(browser.picture(), draw_charuco(1080, 2340))
    browser.value("document.exitFullscreen()")
    browser.until(showing("menu"))
    assert browser.value("document.getElementById('menu-message').innerText") == "Full screen was left."


def test_a_dot_stays_where_the_finger_first_came_down(browser, page_url):
    browser.turn("portrait")
    browser.open(f"{page_url}#dots", showing("dots"))
    browser.fingers("touchStart", (200, 300))
    browser.fingers("touchMove", (240, 380))
    browser.fingers("touchMove", (300, 500))
    browser.fingers("touchEnd")
    browser.until("page.touches.count === 1")
    assert differing(browser.picture(), dots(mm(200, 300))) == 0


def test_a_second_finger_and_a_double_tap_show_as_dots_of_their_own(browser, page_url):
    browser.turn("portrait")
    browser.open(f"{page_url}#dots", showing("dots"))
    browser.fingers("touchStart", (100, 150))
    browser.fingers("touchStart", (100, 150), (250, 150))
    browser.fingers("touchEnd")
    browser.tap(100, 400)
    browser.tap(100.5, 400)
    browser.until("page.touches.count === 4")
    assert browser.value("page.touches.all.map((touch) => touch.fingers)") == [1, 2, 1, 1]
    aside = (mm(100.5, 400)[0] + DOUBLE_TAP_ASIDE_MM, mm(100.5, 400)[1])
    expected = dots(mm(100, 150), mm(250, 150), mm(100, 400), aside)
    assert differing(browser.picture(), expected) == 0


def test_only_three_fingers_at_once_lead_back_to_the_menu(browser, page_url):
    browser.turn("portrait")
    browser.open(f"{page_url}#dots", showing("dots"))
    for _ in range(6):
        browser.tap(150, 300)
    browser.fingers("touchStart", (100, 150), (250, 150))
    browser.fingers("touchEnd")
    browser.fingers("touchStart", (100, 150), (250, 150), (100, 500), (250, 500))
    browser.fingers("touchEnd")
    browser.until("page.touches.count === 12")
    assert browser.value("page.showing") == "dots"
    browser.fingers("touchStart", (100, 150), (250, 150), (180, 500))
    browser.fingers("touchEnd")
    browser.until(showing("menu"))


@pytest.mark.parametrize(
    ("change", "size"),
    [({"height": 720}, "1080 × 2160"), ({"scale": 2.0}, "720 × 1560"), ({"width": 361}, "1083 × 2340")],
)
def test_a_page_of_another_size_says_so_with_both_sizes_and_shows_no_target(browser, page_url, change, size):
    browser.turn("portrait", **change)
    browser.open(f"{page_url}#charuco", showing("wrong_size"))
    said = browser.value("document.getElementById('notice').innerText").replace("\u00a0", " ")
    assert "WRONG SIZE" in said
    assert "1080 × 2340 px" in said
    assert f"{size} px" in said
    target = charuco_target(1080, 2340)
    ids = cv2.aruco.CharucoDetector(target.board()).detectBoard(browser.picture()[:, :, 1].copy())[1]
    assert ids is None
    browser.tap(100, 100)
    assert browser.value("page.touches.count") == 0


def test_a_page_that_is_turned_says_so_and_keeps_its_dots_on_the_glass(browser, page_url):
    browser.turn("portrait")
    browser.open(f"{page_url}#dots", showing("dots"))
    browser.tap(120, 240)
    browser.until("page.touches.count === 1")
    browser.turn("landscape_right")
    browser.until(showing("turned"))
    assert "top edge now points right" in browser.value("document.getElementById('notice').innerText")
    # The notice goes by itself; its time is not waited for here.
    browser.value("page.turnedUntilMs = 0; page.update()")
    browser.until(showing("dots"))
    seen = turned_picture(browser.picture(), "landscape_right")
    assert differing(seen, dots(mm(120, 240), turn="landscape_right")) == 0


async def test_the_page_follows_the_rig_and_reports_its_own_touches(browser):
    def load(url):
        browser.turn("portrait")
        browser.open(url, "page.boards && page.size[0] === 1080")

    def touch():
        browser.tap(101.5, 203.25)
        browser.until("page.rig.received === 1")

    with trio.fail_after(30):
        async with page_server(PageListen(), SCREEN) as pages:
            await trio.to_thread.run_sync(load, pages.url)
            state = await pages.show("charuco", "portrait", 10)
            assert (state.canvas_width_px, state.canvas_height_px, state.dpr) == (1080, 2340, 3.0)
            assert np.array_equal(await trio.to_thread.run_sync(browser.picture), draw_charuco(1080, 2340))
            await pages.show("dots", "portrait", 10)
            await trio.to_thread.run_sync(touch)
            assert [(t.x_px, t.y_px, t.fingers) for t in pages.touches] == [(304.5, 609.75, 1)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pages.show, "dots", "landscape_left", 10)
                await pages_say(pages, "wrong_turn")
                await trio.to_thread.run_sync(browser.turn, "landscape_left")
            seen = turned_picture(await trio.to_thread.run_sync(browser.picture), "landscape_left")
            assert differing(seen, dots(turn="landscape_left")) == 0
            await trio.to_thread.run_sync(partial(browser.call, "Page.navigate", url="about:blank"))


async def pages_say(pages, showing):
    while pages.state.showing != showing:
        await trio.testing.wait_all_tasks_blocked(0.01)
