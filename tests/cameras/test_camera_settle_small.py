"""Cursors, spinners and switches: which small changes leave the page as it is."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from edge_daemon.cameras.settle import SettleDetector, SettleVerdict

PERIOD_NS = 66_666_667
"""15 fps"""


def judge(view: Any, draw: Callable[[np.ndarray, int], None], count: int) -> list[SettleVerdict]:
    detector = SettleDetector(mask=view.SCREEN)
    verdicts = []
    for k in range(count):
        image = view.page(1)
        draw(image, k)
        verdicts.append(detector.feed_jpeg(view.shot(image, 2), 10**9 + k * PERIOD_NS))
    return verdicts


def states(verdicts: list[SettleVerdict]) -> list[str]:
    return [verdict.state for verdict in verdicts]


def cursor(image: np.ndarray, k: int) -> None:
    """2 x 22 px: a text cursor; half a period is eight pictures."""
    if k // 8 % 2:
        cv2.rectangle(image, (556, 300), (557, 321), (30, 30, 30), -1)


def block_cursor(image: np.ndarray, k: int) -> None:
    """30 x 40 px: larger than the switch."""
    if k // 8 % 2:
        cv2.rectangle(image, (556, 290), (585, 329), (30, 30, 30), -1)


def spinner(image: np.ndarray, k: int) -> None:
    cv2.rectangle(image, (620, 340), (660, 380), (245, 245, 245), -1)
    cv2.ellipse(image, (640, 360), (14, 14), 0, k * 40, k * 40 + 90, (60, 60, 60), 4)


def switch(image: np.ndarray, k: int) -> None:
    """38 x 20 px; its knob moves in pictures 8 to 10 and stays."""
    share = min(max((k - 7) / 3, 0.0), 1.0)
    cv2.rectangle(image, (556, 240), (593, 259), (190 - 110 * share, 190 + 10 * share, 190 - 110 * share), -1)
    cv2.circle(image, (566 + round(18 * share), 250), 8, (255, 255, 255), -1)


def test_a_text_cursor_never_holds_a_still_screen_back_and_is_told(view: Any) -> None:
    verdicts = judge(view, cursor, 24)
    assert states(verdicts)[4:] == ["still"] * 20
    assert not verdicts[7].busy_small
    assert all(verdict.busy_small for verdict in verdicts[8:])
    assert "something small goes on" in verdicts[8].reason


def test_a_switch_is_a_change_of_the_page_which_then_is_still(view: Any) -> None:
    verdicts = judge(view, switch, 16)
    assert states(verdicts) == ["unreliable"] * 4 + ["still"] * 4 + ["moving"] * 6 + ["still"] * 2
    assert verdicts[15].still_since_ns == 10**9 + 10 * PERIOD_NS


def test_a_blinking_mark_larger_than_a_switch_is_known_once_it_has_come_back(view: Any) -> None:
    verdicts = judge(view, block_cursor, 28)
    # Its first change may be a page's; 250 ms later the screen is still again.
    assert states(verdicts)[4:12] == ["still"] * 4 + ["moving"] * 4
    # Back at picture 16, and to and fro from then on.
    assert states(verdicts)[12:] == ["still"] * 16
    assert all(verdict.busy_small for verdict in verdicts[16:])
    assert verdicts[27].still_since_ns == 10**9 + 8 * PERIOD_NS


def test_a_small_spinner_is_known_after_less_than_a_second_and_is_told(view: Any) -> None:
    verdicts = judge(view, spinner, 24)
    assert "still" not in states(verdicts)[:9]
    assert states(verdicts)[20:] == ["still"] * 4
    assert all(verdict.busy_small for verdict in verdicts[20:])


def test_a_spinner_that_gives_way_to_a_page_is_a_change(view: Any) -> None:
    def draw(image: np.ndarray, k: int) -> None:
        if k < 24:
            spinner(image, k)
        else:
            image[:] = view.page(2)

    verdicts = judge(view, draw, 30)
    assert states(verdicts)[23:] == ["still"] + ["moving"] * 4 + ["still"] * 2


def test_a_spinner_larger_than_one_percent_of_the_screen_is_an_animation(view: Any) -> None:
    def draw(image: np.ndarray, k: int) -> None:
        cv2.ellipse(image, (640, 360), (34, 34), 0, k * 40, k * 40 + 90, (60, 60, 60), 9)

    assert "still" not in states(judge(view, draw, 20))


def test_a_small_thing_that_travels_is_never_called_still_on_its_way(view: Any) -> None:
    def draw(image: np.ndarray, k: int) -> None:
        cv2.circle(image, (500 + 10 * min(k, 25), 236), 7, (200, 60, 60), -1)

    verdicts = judge(view, draw, 34)
    assert "still" not in states(verdicts)[:26]
    assert states(verdicts)[29:] == ["still"] * 5


def test_letters_that_appear_one_after_another_are_no_cursor(view: Any) -> None:
    def draw(image: np.ndarray, k: int) -> None:
        for letter in range(min(max(k - 6, 0) // 2, 8)):
            x = 500 + 14 * letter
            cv2.putText(image, "W", (x, 245), 0, 0.5, (20, 20, 20), 2)

    verdicts = judge(view, draw, 34)
    # The first letter alone might be a cursor.
    assert "still" not in states(verdicts)[11:24]
    assert states(verdicts)[29:] == ["still"] * 5


def test_a_switch_flips_unmistaken_while_a_cursor_blinks_beside_it(view: Any) -> None:
    def draw(image: np.ndarray, k: int) -> None:
        switch(image, k - 8)
        cursor(image, k)

    verdicts = judge(view, draw, 34)
    assert states(verdicts)[4:16] == ["still"] * 12
    assert states(verdicts)[16:22] == ["moving"] * 6
    assert states(verdicts)[22:] == ["still"] * 12
    assert verdicts[33].still_since_ns == 10**9 + 18 * PERIOD_NS


@pytest.mark.parametrize("places", [3, 8])
def test_small_changes_in_many_places_are_a_page(view: Any, places: int) -> None:
    """Pictures of a list arrive: each no larger than a cursor, all within a moment."""

    def draw(image: np.ndarray, k: int) -> None:
        for place in range(places if k >= 8 else 0):
            cv2.rectangle(image, (500 + 30 * place, 236), (507 + 30 * place, 250), (40, 40, 40), -1)

    verdicts = judge(view, draw, 14)
    assert states(verdicts)[7:13] == ["still"] + ["moving"] * 4 + ["still"]
