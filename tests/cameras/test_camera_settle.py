from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import pytest

from edge_daemon.cameras.settle import SettleDetector, SettleVerdict, noise_sigma

MS = 1_000_000
PERIOD_NS = 66_666_667
"""15 fps"""


def judge(detector: SettleDetector, jpegs: Sequence[bytes]) -> list[SettleVerdict]:
    return [detector.feed_jpeg(jpeg, 10**9 + i * PERIOD_NS) for i, jpeg in enumerate(jpegs)]


def states(verdicts: Sequence[SettleVerdict]) -> list[str]:
    return [verdict.state for verdict in verdicts]


@pytest.mark.parametrize("sigma", [0, 1.5, 3, 6])
def test_a_still_screen_is_still_whatever_the_sensors_noise(view: Any, sigma: float) -> None:
    page = view.page(1)
    verdicts = judge(SettleDetector(mask=view.SCREEN), [view.shot(page, sigma) for _ in range(7)])
    assert states(verdicts) == ["unreliable"] * 4 + ["still"] * 3
    assert verdicts[4].still_since_ns == verdicts[6].still_since_ns == 10**9
    assert not any(verdict.busy_small or verdict.light_changes for verdict in verdicts)


def test_still_takes_three_frames_and_a_quarter_of_a_second_of_exposure_time(view: Any) -> None:
    jpeg = view.shot(view.page(1), 0)

    def at(*times_ms: float) -> str:
        detector = SettleDetector()
        return [detector.feed_jpeg(jpeg, round(t * MS)) for t in times_ms][-1].state

    assert at(0, 260) == "unreliable"
    assert at(0, 100, 249) == "unreliable"
    assert at(0, 100, 250) == "still"


def test_before_a_whole_stretch_was_watched_nothing_is_claimed_in_either_direction(view: Any) -> None:
    verdicts = judge(SettleDetector(mask=view.SCREEN), [view.shot(view.page(1), 2) for _ in range(4)])
    assert states(verdicts) == ["unreliable"] * 4
    assert "watched for only 4 pictures over 200 ms" in verdicts[3].reason


def test_a_page_change_begins_the_still_stretch_anew(view: Any) -> None:
    pages = [view.page(1)] * 5 + [view.page(2)] * 5
    verdicts = judge(SettleDetector(mask=view.SCREEN), [view.shot(page, 2) for page in pages])
    assert states(verdicts) == ["unreliable"] * 4 + ["still"] + ["moving"] * 4 + ["still"]
    assert verdicts[9].still_since_ns == 10**9 + 5 * PERIOD_NS
    assert "changed" in verdicts[5].reason


def faded(view: Any, k: int) -> np.ndarray:
    return cv2.addWeighted(view.page(1), 1 - k / 60, view.page(2), k / 60, 0)


def scrolled(view: Any, k: int) -> np.ndarray:
    image = view.page(1)
    image[40:680, 480:800] = np.roll(image[40:680, 480:800], k, 0)
    return image


def slid_in(view: Any, k: int) -> np.ndarray:
    image = view.page(1)
    edge = 800 - 8 * (k + 1)
    image[30:690, edge:800] = view.page(2)[30:690, 480 : 480 + 800 - edge]
    return image


def played(view: Any, k: int) -> np.ndarray:
    image = view.page(1)
    image[300:420, 500:780] = 60
    cv2.circle(image, (540 + 25 * (k % 9), 360), 30, (200, 120, 90), -1)
    return image


@pytest.mark.parametrize("moving", [faded, scrolled, slid_in, played])
@pytest.mark.parametrize("sigma", [0, 6])
def test_what_moves_slowly_or_in_a_substantial_part_is_never_called_still(
    view: Any, sigma: int, moving: Callable[[Any, int], np.ndarray]
) -> None:
    """A fade of four seconds, a scroll of one pixel a frame, a slide, a video in 15 % of the screen."""
    jpegs = [view.shot(moving(view, k), sigma) for k in range(11)]
    verdicts = judge(SettleDetector(mask=view.SCREEN), jpegs)
    assert "still" not in states(verdicts)
    assert states(verdicts)[4:] == ["moving"] * 7


def test_what_happens_outside_the_mask_or_inside_an_ignored_part_is_not_watched(view: Any) -> None:
    def busy(k: int) -> bytes:
        image = view.page(1)
        cv2.circle(image, (100 + 30 * k, 300), 60, (255, 255, 255), -1)
        return bytes(view.shot(image, 2))

    jpegs = [busy(k) for k in range(6)]
    assert states(judge(SettleDetector(), jpegs))[5] == "moving"
    assert states(judge(SettleDetector(mask=view.SCREEN), jpegs))[5] == "still"
    left = [(0, 0), (470, 0), (470, 719), (0, 719)]
    assert states(judge(SettleDetector(ignore=[left]), jpegs))[5] == "still"


def test_pictures_whose_exposure_times_do_not_advance_are_unreliable(view: Any) -> None:
    jpeg = view.shot(view.page(1), 0)
    detector = SettleDetector()
    verdicts = [detector.feed_jpeg(jpeg, t) for t in (5 * MS, 5 * MS, 4 * MS)]
    assert states(verdicts) == ["unreliable"] * 3
    assert "do not advance" in verdicts[1].reason
    assert "do not advance" in verdicts[2].reason


def test_an_unwatched_gap_begins_the_stretch_anew_and_says_so(view: Any) -> None:
    jpeg = view.shot(view.page(1), 0)
    detector = SettleDetector()
    verdicts = [detector.feed_jpeg(jpeg, round(t * MS)) for t in (0, 100, 1200, 1300, 1460)]
    assert states(verdicts) == ["unreliable"] * 4 + ["still"]
    assert "no picture for 1100 ms" in verdicts[2].reason
    assert verdicts[4].still_since_ns == 1200 * MS


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda view: view.shot(np.zeros((720, 1280, 3), np.uint8), 3), "black"),
        (lambda view: view.shot(cv2.resize(view.page(1), (640, 360)), 0), "changed its size"),
        (lambda view: b"\xff\xd8 nothing \xff\xd9", "frame header"),
    ],
    ids=["black", "another size", "no picture"],
)
def test_a_picture_that_cannot_be_judged_is_unreliable_and_ends_the_stretch(
    view: Any, spoil: Callable[[Any], bytes], reason: str
) -> None:
    good = view.shot(view.page(1), 0)
    verdicts = judge(SettleDetector(), [good, good, good, spoil(view), good, good])
    assert verdicts[3].state == "unreliable"
    assert reason in verdicts[3].reason
    assert "still" not in states(verdicts)


def test_a_picture_that_changes_everywhere_for_long_is_unreliable() -> None:
    random = np.random.default_rng(1)
    noise = [random.integers(0, 255, (180, 320), np.uint8) for _ in range(10)]
    detector = SettleDetector()
    verdicts = [detector.feed(grey, i * PERIOD_NS) for i, grey in enumerate(noise)]
    assert states(verdicts) == ["unreliable"] + ["moving"] * 7 + ["unreliable"] * 2
    assert "noise or lamps" in verdicts[9].reason


def test_a_given_noise_is_used_as_measured(view: Any) -> None:
    page = view.page(1)
    measured = noise_sigma([view.shot(page, 6) for _ in range(5)])
    assert 0.2 < measured < 0.6
    verdict = judge(SettleDetector(noise_sigma=measured), [view.shot(page, 6) for _ in range(5)])[4]
    assert (verdict.state, verdict.noise_sigma) == ("still", measured)


def test_a_coarse_jpegs_roundings_are_no_change(view: Any) -> None:
    """At quality 40 a block's mean jumps by 2.5 levels between pictures that differ by a fraction of one."""
    page = view.page(1).astype(np.float32)
    images = [np.clip(page * (1 + 0.004 * (k % 3)), 0, 255).astype(np.uint8) for k in range(12)]
    verdicts = judge(
        SettleDetector(mask=view.SCREEN), [view.shot(image, 0.5, quality=40) for image in images]
    )
    assert states(verdicts)[4:] == ["still"] * 8


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"mask": [(0, 0), (1, 1)]}, "three corners"),
        ({"ignore": [[(0, 0), (1, 1)]]}, "three corners"),
        ({"noise_sigma": 7.0}, r"0\.\.6"),
        ({"noise_sigma": float("nan")}, r"0\.\.6"),
        ({"min_still_ms": 100}, "at least 250"),
        ({"min_still_ms": float("nan")}, "at least 250"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SettleDetector(**arguments)


def test_a_mask_outside_the_picture_is_refused(view: Any) -> None:
    detector = SettleDetector(mask=[(5000, 5000), (5100, 5000), (5100, 5100)])
    with pytest.raises(ValueError, match="leave nothing to watch in a picture of 320x180"):
        detector.feed_jpeg(view.shot(view.page(1), 0), 0)
