"""Changes of light are told from changes of the page."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from edge_daemon.cameras.settle import SettleDetector, SettleVerdict

PERIOD_NS = 66_666_667
"""15 fps"""
SCREEN = (slice(30, 690), slice(480, 800))
ROWS = np.arange(720)[:, None, None] / 720


def judge(
    view: Any, picture: Callable[[int], np.ndarray], count: int, sigma: float = 2
) -> list[SettleVerdict]:
    detector = SettleDetector(mask=view.SCREEN)
    return [detector.feed_jpeg(view.shot(picture(k), sigma), 10**9 + k * PERIOD_NS) for k in range(count)]


def states(verdicts: list[SettleVerdict]) -> list[str]:
    return [verdict.state for verdict in verdicts]


def lit(image: np.ndarray, gain: Any, offset: Any = 0.0) -> np.ndarray:
    """The screen in another light, the bench as it is."""
    changed = image.astype(np.float32)
    changed[SCREEN] = (changed * gain + offset)[SCREEN]
    return np.clip(changed, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("to", [0.5, 0.85, 1.04])
def test_a_brightness_that_ramps_is_no_change_of_the_page_and_is_told(view: Any, to: float) -> None:
    page = view.page(1)
    verdicts = judge(view, lambda k: lit(page, np.interp(k, (5, 21), (1.0, to))), 26)
    assert states(verdicts)[4:] == ["still"] * 22
    assert verdicts[25].still_since_ns == 10**9
    # 4 % in a second and a half are not worth telling.
    assert verdicts[15].light_changes == (to < 0.9)
    assert not verdicts[25].light_changes


def test_a_brightness_that_jumps_is_a_change(view: Any) -> None:
    page = view.page(1)
    verdicts = judge(view, lambda k: lit(page, 1.0 if k < 6 else 0.6), 12)
    assert states(verdicts)[5:11] == ["still"] + ["moving"] * 4 + ["still"]
    assert "brightness" in verdicts[6].reason


def test_a_page_change_during_a_ramp_is_seen(view: Any) -> None:
    pages = [view.page(1), view.page(2)]
    verdicts = judge(view, lambda k: lit(pages[k >= 10], 1.0 - 0.01 * min(k, 13)), 18)
    assert states(verdicts)[9:] == ["still"] + ["moving"] * 5 + ["still"] * 3
    assert verdicts[16].still_since_ns == 10**9 + 11 * PERIOD_NS


def test_a_slow_fade_into_a_darker_page_is_not_still_on_its_way(view: Any) -> None:
    """Most of what changes is the light of its paper: a gain that rises and falls with the page."""
    page, darker = view.page(1), lit(view.page(1), 0.55)
    darker[300:420, 560:720] = darker[500:620, 560:720]
    verdicts = judge(
        view, lambda k: cv2.addWeighted(page, 1 - k / 36, darker, k / 36, 0) if k < 36 else darker, 42
    )
    seen = states(verdicts)
    begun = next(k for k, verdict in enumerate(verdicts) if verdict.state == "moving")
    assert begun < 14
    assert "still" not in seen[begun:36]
    assert seen[-1] == "still"


def test_a_fade_to_white_is_no_change_of_light(view: Any) -> None:
    """Black does not stay black."""
    page, white = view.page(1), view.page(1)
    white[SCREEN] = 250
    verdicts = judge(view, lambda k: cv2.addWeighted(page, 1 - k / 40, white, k / 40, 0), 20)
    assert "still" not in states(verdicts)


def bands(k: int, cycles: float, depth: float) -> np.ndarray:
    """Rows of a rolling shutter over a display dimmed by pulses, the phase another in each picture."""
    return 0.97 - depth + depth * np.abs(((ROWS * cycles + 0.37 * k) % 1.0) * 4 - 2) - depth / 2


@pytest.mark.parametrize("cycles", [2.0, 5.7])
@pytest.mark.parametrize("depth", [0.03, 0.10])
def test_a_dimmed_displays_bands_are_no_change(view: Any, cycles: float, depth: float) -> None:
    page = view.page(1)
    verdicts = judge(view, lambda k: lit(page, bands(k, cycles, depth)), 12)
    assert states(verdicts)[4:] == ["still"] * 8


def test_a_row_that_is_marked_is_seen_through_the_bands(view: Any) -> None:
    """A list row over the whole width, 25 levels darker: what a band looks like, but it does not repeat."""
    page, marked = view.page(1), view.page(1)
    marked[250:310, 480:800] = np.maximum(marked[250:310, 480:800], 25) - 25
    verdicts = judge(view, lambda k: lit(page if k < 8 else marked, bands(k, 3.3, 0.05)), 16)
    assert states(verdicts)[7:13] == ["still"] + ["moving"] * 4 + ["still"]


@pytest.mark.parametrize("dark", [True, False])
def test_a_lamp_that_flickers_on_the_glass_is_no_change(view: Any, dark: bool) -> None:
    """Offsets of whole rows: on a dark page they would pass for a display's bands."""
    page = view.page(1)
    if dark:
        page[SCREEN] = 255 - page[SCREEN]
    verdicts = judge(view, lambda k: lit(page, 0.95, 8 + 2 * np.sin(2 * np.pi * (ROWS + 0.31 * k))), 12)
    assert states(verdicts)[4:] == ["still"] * 8


def test_a_page_change_on_a_dim_screen_is_seen(view: Any) -> None:
    pages = [view.page(1), view.page(2)]
    verdicts = judge(view, lambda k: lit(pages[k >= 8], 0.3), 14)
    assert states(verdicts)[4:13] == ["still"] * 4 + ["moving"] * 4 + ["still"]


@pytest.mark.parametrize("brightness", [0.0, 0.08])
def test_a_screen_too_dark_to_tell_pages_apart_is_unreliable_and_named(view: Any, brightness: float) -> None:
    """The bench around it is well lit."""
    page = view.page(1)
    verdicts = judge(view, lambda k: lit(page, 1.0 if k < 6 else brightness), 14)
    assert states(verdicts)[4:] == ["still"] * 2 + ["unreliable"] * 8
    assert "the screen is dark" in verdicts[13].reason
    assert "off, or too dim to tell" in verdicts[13].reason
