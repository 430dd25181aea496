"""A camera that moves is named; nothing else outside the screen is taken for it."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from edge_daemon.cameras.settle import SettleDetector, SettleVerdict

PERIOD_NS = 66_666_667
"""15 fps"""


def bench(view: Any, seed: int = 1) -> np.ndarray:
    """The page on a bed with lines and markers."""
    page = view.page(seed)
    image = page.copy()
    image[::48], image[:, ::48] = (85, 95, 90), (85, 95, 90)
    for x, y in ((60, 60), (300, 500), (900, 90), (1120, 560)):
        cv2.rectangle(image, (x, y), (x + 80, y + 80), (230, 230, 230), -1)
        cv2.rectangle(image, (x + 20, y + 20), (x + 50, y + 60), (20, 20, 20), -1)
    image[:, 470:811] = page[:, 470:811]
    return image


def moved(image: np.ndarray, right: float, down: float) -> np.ndarray:
    matrix = np.array([[1.0, 0.0, right], [0.0, 1.0, down]])
    return cv2.warpAffine(image, matrix, (1280, 720), borderMode=cv2.BORDER_REPLICATE)


def judge(
    view: Any, picture: Callable[[int], np.ndarray], count: int = 10, sigma: float = 2
) -> list[SettleVerdict]:
    detector = SettleDetector(mask=view.SCREEN, noise_sigma=0.5)
    return [detector.feed_jpeg(view.shot(picture(k), sigma), 10**9 + k * PERIOD_NS) for k in range(count)]


@pytest.mark.parametrize(
    ("shift", "sigma"), [((2.0, 0.0), 6), ((-3.0, 5.0), 0), ((0.0, -14.0), 6), ((26.0, 9.0), 3)]
)
def test_a_camera_that_has_moved_is_named_as_long_as_it_stays_so(
    view: Any, shift: tuple[float, float], sigma: float
) -> None:
    image = bench(view)
    verdicts = judge(view, lambda k: moved(image, *shift) if k >= 6 else image, sigma=sigma)
    assert [verdict.state for verdict in verdicts] == ["unreliable"] * 4 + ["still"] * 2 + ["unreliable"] * 4
    for verdict in verdicts[6:]:
        assert "the camera moved" in verdict.reason
        assert verdict.camera_shift_px == pytest.approx(shift, abs=1.5)


def test_a_camera_that_has_come_back_is_trusted_again(view: Any) -> None:
    image = bench(view)
    verdicts = judge(view, lambda k: moved(image, 6.0, 0.0) if 6 <= k < 8 else image, 14)
    assert [verdict.state for verdict in verdicts][5:] == ["still"] + ["unreliable"] * 6 + ["still"] * 2
    assert verdicts[7].camera_shift_px is not None
    assert verdicts[8].camera_shift_px is None
    assert verdicts[13].still_since_ns == 10**9 + 8 * PERIOD_NS


def test_a_hand_that_leaves_the_picture_is_no_camera_that_moves(view: Any) -> None:
    def picture(k: int) -> np.ndarray:
        image = bench(view)
        cv2.rectangle(image, (820, 100 + 40 * k), (1000, 400 + 40 * k), (40, 40, 45), -1)
        cv2.circle(image, (900, 200 + 40 * k), 40, (160, 160, 170), -1)
        return image

    verdicts = judge(view, picture)
    assert [verdict.state for verdict in verdicts][4:] == ["still"] * 6


def test_a_hand_over_a_plain_bed_is_no_camera_that_moves(view: Any) -> None:
    """There is nothing else outside that could contradict."""

    def picture(k: int) -> np.ndarray:
        image = view.page(1)
        cv2.rectangle(image, (900 + 6 * k, 200), (1000 + 6 * k, 420), (180, 180, 170), -1)
        return image

    verdicts = judge(view, picture)
    assert [verdict.state for verdict in verdicts][4:] == ["still"] * 6


def test_a_scroll_is_no_camera_that_moves(view: Any) -> None:
    def picture(k: int) -> np.ndarray:
        image = bench(view)
        image[40:680, 480:800] = np.roll(image[40:680, 480:800], 9 * k, 0)
        return image

    verdicts = judge(view, picture)
    assert [verdict.state for verdict in verdicts][1:] == ["moving"] * 9
    assert all(verdict.camera_shift_px is None for verdict in verdicts)


def test_a_lamp_that_flickers_over_the_bed_is_no_camera_that_moves(view: Any) -> None:
    image = bench(view).astype(np.float32)
    rows = np.arange(720)[:, None, None] / 720

    def picture(k: int) -> np.ndarray:
        light = 1 + 0.15 * np.sin(2 * np.pi * (rows + 0.31 * k))
        light = np.broadcast_to(light, image.shape).copy()
        light[30:690, 480:800] = 1
        return np.clip(image * light, 0, 255).astype(np.uint8)

    verdicts = judge(view, picture)
    assert [verdict.state for verdict in verdicts][4:] == ["still"] * 6


def test_without_a_mask_the_rim_of_the_picture_tells(view: Any) -> None:
    image = bench(view)
    detector = SettleDetector()
    shots = [view.shot(moved(image, 5.0, 3.0) if k >= 6 else image, 2) for k in range(9)]
    verdicts = [detector.feed_jpeg(shot, k * PERIOD_NS) for k, shot in enumerate(shots)]
    assert verdicts[5].state == "still"
    assert verdicts[8].camera_shift_px == pytest.approx((5.0, 3.0), abs=1.5)
