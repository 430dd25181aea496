"""How the screen is turned, read off its picture: right or nothing, never wrong."""

import cv2
import numpy as np
import pytest

from calibration.targets import TURNS, Turn, draw_charuco, draw_dots
from edge_daemon.bench.camera.drawn_pages import page as drawn_page
from edge_daemon.bench.camera.turned_apps import Bars, turned_app
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import (
    SCREEN_HEIGHT_MM,
    SCREEN_HEIGHT_PX,
    SCREEN_WIDTH_MM,
    SCREEN_WIDTH_PX,
    Truth,
)
from edge_daemon.cameras.orientation import TURNS as TURNED_BY
from edge_daemon.cameras.orientation import OrientationFinder

APPS = ("launcher", "panel", "notes", "settings", "recents", "music")
LONG_PX, SHORT_PX = 1000, 462
PAPER, INK = 235, 40


@pytest.fixture(scope="module")
def phone() -> Phone:
    return Phone(Truth(1), 0, clock=lambda: 0)


@pytest.fixture(scope="module")
def finder() -> OrientationFinder:
    return OrientationFinder(
        {
            turn: [
                cv2.cvtColor(draw_charuco(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, turn), cv2.COLOR_BGR2GRAY),
                cv2.cvtColor(
                    draw_dots(
                        SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM, turn=turn
                    ),
                    cv2.COLOR_BGR2GRAY,
                ),
            ]
            for turn in TURNS
        }
    )


def seen(glass: np.ndarray, gain: float = 0.85, sigma: float = 3.0) -> np.ndarray:
    """The glass as a rectified picture: blurred, dimmer, in ambient light, with noise."""
    small = cv2.GaussianBlur(
        cv2.resize(glass, (SHORT_PX, LONG_PX), interpolation=cv2.INTER_AREA), (0, 0), 0.7
    )
    light = small.astype(np.float32) * gain + 15.0
    light += np.random.default_rng(5).normal(0.0, sigma, light.shape)
    return np.clip(light, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("bars", ["android", "ios"])
@pytest.mark.parametrize("turn", TURNS)
def test_navigation_bars_tell_and_are_never_taken_for_another_turn(
    phone: Phone, finder: OrientationFinder, turn: Turn, bars: Bars
) -> None:
    told = []
    for app in APPS:
        glass = turned_app(phone.page(app), turn, bars)
        for gain in (0.85, 0.4):
            told.append(finder.find(seen(glass, gain)).orientation)
    assert set(told) <= {turn, None}
    # A handle that lies over the corner of a card, a dock that looks like a status bar: rather nothing than a guess.
    assert told.count(None) <= len(told) / 3


@pytest.mark.parametrize("turn", TURNS)
def test_a_full_screen_page_tells_nothing(phone: Phone, finder: OrientationFinder, turn: Turn) -> None:
    for app in APPS:
        assert finder.find(seen(turned_app(phone.page(app), turn, "none"))).orientation is None


def test_pages_without_system_bars_are_not_taken_for_any_turn(finder: OrientationFinder) -> None:
    rng = np.random.default_rng(11)
    for number in range(30):
        upright = drawn_page(rng, 540, 1170) if number % 2 else np.rot90(drawn_page(rng, 1170, 540))
        glass = cv2.cvtColor(np.ascontiguousarray(upright), cv2.COLOR_GRAY2BGR)
        assert finder.find(seen(glass)).orientation is None, number


@pytest.mark.parametrize("turn", TURNS)
def test_pages_of_the_calibration_tell_also_with_touches_on_them(
    finder: OrientationFinder, turn: Turn
) -> None:
    touches = [(20.0, 30.0), (34.0, 70.0), (50.0, 110.0)]
    dots = draw_dots(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM, touches, turn)
    for page in (draw_charuco(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, turn), dots):
        for gain in (0.85, 0.4):
            assert finder.find(seen(page, gain)).orientation == turn


@pytest.mark.parametrize("shown_in", TURNS)
def test_the_answer_is_the_same_however_the_picture_is_turned(
    phone: Phone, finder: OrientationFinder, shown_in: Turn
) -> None:
    for turn in TURNS:
        for glass in (
            turned_app(phone.page("settings"), turn, "android"),
            draw_charuco(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, turn),
        ):
            as_read = np.ascontiguousarray(np.rot90(seen(glass), -TURNED_BY[shown_in]))
            assert finder.find(as_read, shown_in).orientation == turn


# -- what only looks like evidence ----------------------------------------------------------------------------


def blank() -> np.ndarray:
    return np.full((LONG_PX, SHORT_PX, 3), PAPER, np.uint8)


def handle(picture: np.ndarray, ink: int = INK, shift: int = 0, length: int = 128) -> np.ndarray:
    """A handle at the bottom of an upright picture."""
    left = (SHORT_PX - length) // 2 + shift
    picture[LONG_PX - 13 : LONG_PX - 9, left : left + length] = ink
    return picture


def among_others(picture: np.ndarray) -> np.ndarray:
    """The same bar as one of a row of them, as in a line of buttons."""
    for left in (30, 330):
        picture[LONG_PX - 13 : LONG_PX - 9, left : left + 100] = INK
    return picture


def too_thick() -> np.ndarray:
    """A button of a handle's length."""
    picture = blank()
    left = (SHORT_PX - 128) // 2
    picture[LONG_PX - 18 : LONG_PX - 6, left : left + 128] = INK
    return picture


def as_an_edge(picture: np.ndarray) -> np.ndarray:
    """As wide as a handle and at its height, but the rim of something brighter that lies above it."""
    left = (SHORT_PX - 128) // 2
    picture[LONG_PX - 300 : LONG_PX - 13, left : left + 128] = (PAPER + INK) // 2
    return picture


def status_bar(picture: np.ndarray) -> np.ndarray:
    picture[14:27, 24:74] = INK
    picture[14:27, 370:440] = INK
    return picture


def test_a_handle_is_evidence_by_itself_and_a_status_bar_is_not() -> None:
    finder = OrientationFinder()
    assert finder.find(handle(blank())).orientation == "portrait"
    assert finder.find(status_bar(blank())).orientation is None


def test_a_faint_handle_needs_a_status_bar_opposite() -> None:
    finder = OrientationFinder()
    faint = handle(blank(), ink=PAPER - 11)
    assert finder.find(faint).orientation is None
    assert finder.find(status_bar(faint)).orientation == "portrait"
    assert finder.find(status_bar(handle(blank(), ink=PAPER - 4))).orientation is None


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda: handle(blank(), shift=14),  # not in the middle: a progress bar, a tab's underline
        lambda: handle(blank(), length=60),  # too short
        lambda: handle(blank(), length=420),  # from edge to edge: a divider
        lambda: among_others(handle(blank())),
        lambda: as_an_edge(handle(blank())),
        too_thick,
        lambda: handle(np.ascontiguousarray(np.flipud(handle(blank())))),  # two of them
        lambda: np.ascontiguousarray(np.flipud(status_bar(np.flipud(handle(blank()))))),  # both at the bottom
    ],
)
def test_what_only_resembles_a_handle_tells_nothing(spoilt) -> None:
    assert OrientationFinder().find(spoilt()).orientation is None


def test_a_scroll_bar_at_a_side_is_no_handle() -> None:
    picture = blank()
    picture[420:580, SHORT_PX - 8 : SHORT_PX - 4] = INK
    assert OrientationFinder().find(picture).orientation is None
    assert OrientationFinder().find(handle(picture)).orientation == "portrait"


def test_a_picture_too_small_to_tell_is_said_to_be() -> None:
    found = OrientationFinder().find(cv2.resize(handle(blank()), (231, 500)))
    assert found.orientation is None
    assert "too small" in found.evidence
