"""The phone: what it shows follows what is done to it, after its own latency, and it forgets nothing."""

import numpy as np
import pytest

from calibration import targets
from edge_daemon.bench.twin.apps import PanelPage, SettingsPage
from edge_daemon.bench.twin.display import TRANSITION_NS
from edge_daemon.bench.twin.frames import grid_to_mm, mm_to_px
from edge_daemon.bench.twin.phone import Phone, UnknownPage
from edge_daemon.bench.twin.truth import (
    SCREEN_HEIGHT_MM,
    SCREEN_HEIGHT_PX,
    SCREEN_WIDTH_MM,
    SCREEN_WIDTH_PX,
    Truth,
)

MS = 1_000_000
S = 1_000 * MS
TRUTH = Truth(4)
LATENCY_NS = round(TRUTH.phone.input_latency_ms * MS)


class User:
    """Touches a phone at made-up times, through its digitizer entry."""

    def __init__(self) -> None:
        self.now_ns = S
        self.phone = Phone(TRUTH, self.now_ns)

    def touch(self, from_grid: tuple[float, float], to_grid: tuple[float, float], ms: int = 60) -> None:
        start, end = np.array(grid_to_mm(*from_grid)), np.array(grid_to_mm(*to_grid))
        for share in np.linspace(0.0, 1.0, max(2, ms // 8)):
            x_mm, y_mm = start + (end - start) * share
            self.phone.hid_contact(0, True, float(x_mm), float(y_mm), self.now_ns)
            self.now_ns += ms * MS // max(2, ms // 8)
        self.phone.hid_contact(0, False, float(end[0]), float(end[1]), self.now_ns)

    def tap(self, name: str) -> None:
        place = self.phone._front.targets()
        x, y = next(target.centre for target in place if target.name == name)
        grid = (x / SCREEN_WIDTH_PX * 1000, y / SCREEN_HEIGHT_PX * 1000)
        self.touch(grid, grid)

    def later(self, ms: int) -> None:
        self.now_ns += ms * MS
        self.phone.advance(self.now_ns)

    def screen(self) -> np.ndarray:
        return self.phone.frame(self.now_ns).image

    @property
    def page(self) -> str:
        return self.phone._front.name


@pytest.fixture
def user() -> User:
    return User()


def test_a_tap_on_an_icon_opens_its_app_after_the_latency_with_a_transition(user: User) -> None:
    before = user.screen().copy()
    user.tap("panel")
    user.later(LATENCY_NS // MS - 1)
    assert user.page == "launcher"
    user.later(2)
    assert user.page == "panel"
    assert user.phone.moving(user.now_ns)
    user.later(40)
    during = user.screen().copy()
    user.later(TRANSITION_NS // MS)
    after = user.screen()
    assert not user.phone.moving(user.now_ns)
    assert (before != during).any()
    assert (during != after).any()


def test_a_camera_that_looks_a_moment_before_a_transition_sees_the_old_page(user: User) -> None:
    before = user.phone.frame(user.now_ns).image.copy()
    user.phone.open_app("panel", user.now_ns + 5_000_000)
    assert (user.phone.frame(user.now_ns).image == before).all()


def test_the_screen_s_serial_changes_exactly_when_its_picture_does(user: User) -> None:
    first = user.phone.frame(user.now_ns)
    user.later(700)
    assert user.phone.frame(user.now_ns) is first
    user.phone.open_app("panel", user.now_ns)
    moving = user.phone.frame(user.now_ns + 60 * MS)
    assert moving.serial > first.serial
    user.later(1000)
    still = user.phone.frame(user.now_ns)
    user.later(1000)
    assert user.phone.frame(user.now_ns).serial == still.serial


def test_a_button_shows_that_it_is_pressed_and_then_what_it_did(user: User) -> None:
    user.phone.show_page("panel", user.now_ns)
    panel = user.phone.page("panel")
    assert isinstance(panel, PanelPage)
    idle = user.screen().copy()
    x, y = user.phone.buttons_grid()["fan"]
    mm = grid_to_mm(x, y)
    user.phone.hid_contact(0, True, *mm, user.now_ns)
    user.later(LATENCY_NS // MS + 1)
    pressed = user.screen().copy()
    user.phone.hid_contact(0, False, *mm, user.now_ns)
    user.later(LATENCY_NS // MS + 1)
    px, py = (int(v) for v in mm_to_px(*mm))
    assert (idle[py, px + 150] != pressed[py, px + 150]).any()
    assert panel.on == {"fan"}
    assert panel.taps == 1
    assert (pressed != user.screen()).any()


def test_a_long_press_is_not_a_tap(user: User) -> None:
    user.touch((150, 400), (150, 400), ms=900)
    user.later(500)
    assert user.page == "launcher"
    user.phone.show_page("panel", user.now_ns)
    panel = user.phone.page("panel")
    assert isinstance(panel, PanelPage)
    x, y = user.phone.buttons_grid()["lamp"]
    user.touch((x, y), (x, y), ms=900)
    user.later(500)
    assert panel.last == "lamp held"


def test_every_touch_is_logged_with_its_place_times_and_path(user: User) -> None:
    start_ns = user.now_ns
    user.touch((500, 800), (500, 300), ms=400)
    touch = user.phone.touches[0]
    assert user.phone.touch_at_grid(touch) == pytest.approx((500, 800))
    assert touch.down_ns == start_ns
    assert touch.duration_ms == pytest.approx(400)
    assert touch.source == "hid"
    assert len(touch.path) == 50
    assert touch.path[-1][1:] == pytest.approx(grid_to_mm(500, 300))


def test_the_log_cannot_be_changed_from_outside(user: User) -> None:
    user.touch((500, 800), (500, 300))
    user.phone.touches[0].path.clear()
    user.phone.touches[0].x_mm = -1.0
    assert user.phone.touches[0].path
    assert user.phone.touches[0].x_mm > 0


def test_typed_text_appears_in_the_notes_and_nowhere_else(user: User) -> None:
    user.phone.type_character("x", user.now_ns)
    user.later(500)
    user.phone.open_app("notes", user.now_ns)
    for character in "Hi there!":
        user.phone.type_character(character, user.now_ns)
    user.phone.press_key("enter", user.now_ns)
    user.phone.type_character("?", user.now_ns)
    user.phone.type_character("?", user.now_ns)
    user.phone.press_key("delete", user.now_ns)
    user.later(500)
    assert user.phone.text_field == "Hi there!\n?"
    assert user.phone.typed == "xHi there!??"
    assert [key.name for key in user.phone.keys] == ["enter", "delete"]


def test_the_cursor_blinks_so_that_a_still_screen_is_not_quite_still(user: User) -> None:
    user.phone.show_page("notes", user.now_ns)
    serials = set()
    for _ in range(8):
        user.later(265)
        serials.add(user.phone.frame(user.now_ns).serial)
    assert len(serials) > 2


def test_a_list_follows_the_finger_and_runs_on_after_a_flick(user: User) -> None:
    user.phone.show_page("settings", user.now_ns)
    settings = user.phone.page("settings")
    assert isinstance(settings, SettingsPage)
    user.touch((500, 800), (500, 500), ms=120)
    user.later(LATENCY_NS // MS + 1)
    at_release = settings.offset_px(user.now_ns)
    assert at_release > 0.2 * SCREEN_HEIGHT_PX
    user.later(150)
    assert settings.offset_px(user.now_ns) > at_release + 100
    user.later(3000)
    resting = settings.offset_px(user.now_ns)
    user.later(100)
    assert settings.offset_px(user.now_ns) == resting
    assert settings.chosen is None


def test_keys_do_what_they_do_on_a_phone(user: User) -> None:
    user.phone.open_app("panel", user.now_ns)
    user.later(500)
    user.phone.open_app("notes", user.now_ns)
    user.later(500)
    user.phone.press_key("back", user.now_ns)
    user.later(500)
    assert user.page == "panel"
    user.phone.press_key("app_switch", user.now_ns)
    user.later(500)
    assert user.page == "recents"
    user.tap("notes")
    user.later(500)
    assert user.page == "notes"
    user.phone.press_key("home", user.now_ns)
    user.later(500)
    assert user.page == "launcher"
    plain = user.screen().copy()
    user.phone.press_key("volume_up", user.now_ns)
    user.later(100)
    assert (plain != user.screen()).any()
    user.later(2000)
    assert (plain == user.screen()).all()
    user.phone.press_key("power", user.now_ns)
    user.later(100)
    assert not user.screen().any()
    user.phone.press_key("power", user.now_ns)
    user.later(100)
    assert user.screen().any()


def test_swipes_from_the_edges_go_home_and_back(user: User) -> None:
    user.phone.open_app("panel", user.now_ns)
    user.later(500)
    user.touch((500, 998), (500, 500), ms=200)
    user.later(500)
    assert user.page == "launcher"
    user.phone.open_app("panel", user.now_ns)
    user.phone.open_app("notes", user.now_ns)
    user.touch((2, 500), (400, 500), ms=200)
    user.later(500)
    assert user.page == "panel"


def test_a_dot_stays_where_the_finger_came_down_until_the_page_is_shown_again(user: User) -> None:
    user.phone.show_page("dots", user.now_ns)
    untouched = targets.draw_dots(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM)
    assert (user.screen() == untouched).all()
    user.touch((300, 400), (300, 400))
    user.touch((700, 600), (700, 600))
    user.later(500)
    dark = (user.screen()[:, :, 0] < 40) & (untouched[:, :, 0] >= 40)
    for grid in ((300, 400), (700, 600)):
        x, y = (int(v) for v in mm_to_px(*grid_to_mm(*grid)))
        assert dark[y - 10 : y + 10, x - 10 : x + 10].all()
    diameter_px = 2 * np.sqrt(dark.sum() / 2 / np.pi)
    assert diameter_px == pytest.approx(targets.DOT_DIAMETER_MM * SCREEN_WIDTH_PX / 68.0, rel=0.03)
    user.phone.show_page("dots", user.now_ns)
    assert (user.screen() == untouched).all()


def test_the_charuco_page_is_the_calibration_s_own_drawing(user: User) -> None:
    user.phone.show_page("charuco", user.now_ns)
    assert (user.screen() == targets.draw_charuco(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX)).all()


def test_a_technician_s_page_ignores_the_gestures(user: User) -> None:
    user.phone.show_page("dots", user.now_ns)
    user.touch((500, 998), (500, 300), ms=200)
    user.later(500)
    assert user.page == "dots"


def test_everything_that_can_be_tapped_has_its_place_on_the_grid(user: User) -> None:
    buttons = user.phone.buttons_grid()
    assert {"panel", "notes", "settings", "dialer"} <= set(buttons)
    for name, (x, y) in buttons.items():
        target = user.phone.target_at_grid(x, y)
        assert target is not None
        assert target.name == name


def test_an_unknown_page_is_refused_with_the_names_that_exist(user: User) -> None:
    with pytest.raises(UnknownPage, match="launcher"):
        user.phone.open_app("bank")


def test_listeners_hear_of_touches_keys_and_page_changes(user: User) -> None:
    heard: list[int] = []
    user.phone.on_change(lambda: heard.append(1))
    user.phone.press_key("home", user.now_ns)
    after_key = len(heard)
    user.later(200)
    after_answer = len(heard)
    user.touch((500, 700), (500, 700))
    assert 0 < after_key < after_answer < len(heard)
