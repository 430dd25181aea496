import cv2
import numpy as np
import pytest

from calibration.errors import PictureRefused
from calibration.noise import noise_sigma
from calibration.targets import draw_dots
from edge_daemon.cameras import settle


@pytest.fixture
def jpegs(lens, screen, shoot):
    """Pictures of a still dots page as a camera sends them: jpegs(noise, quality, count)."""
    page = draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm)
    still = shoot(page, lens, jpeg=False).astype(np.float64)

    def take(noise, quality=90, count=5):
        sent = []
        for seed in range(count):
            random = np.random.default_rng(seed)
            noisy = still + random.normal(0.0, noise, (*still.shape[:2], 1))
            picture = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
            sent.append(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes())
        return sent

    return take


def decoded(jpegs):
    return [cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) for jpeg in jpegs]


@pytest.mark.parametrize(("noise", "quality"), [(2.5, 90), (2.5, 75), (6.0, 85)])
def test_it_is_the_noise_that_the_settle_detector_measures_itself(noise, quality, jpegs):
    sent = jpegs(noise, quality)
    assert noise_sigma(decoded(sent)) == pytest.approx(settle.noise_sigma(sent), rel=0.05)


def test_more_noise_is_more(jpegs):
    assert noise_sigma(decoded(jpegs(6.0, count=3))) > 1.5 * noise_sigma(decoded(jpegs(2.5, count=3)))


def test_a_lamp_that_brightens_everything_and_a_moving_part_are_left_out(jpegs):
    pictures = decoded(jpegs(2.5))
    still = noise_sigma(pictures)
    brighter = [cv2.add(picture, (4, 4, 4, 0)) if i == 2 else picture for i, picture in enumerate(pictures)]
    assert noise_sigma(brighter) == pytest.approx(still, rel=0.1)
    moving = [picture.copy() for picture in pictures]
    for i, picture in enumerate(moving):
        picture[:250, 100 * i : 100 * i + 400] = 200
    assert noise_sigma(moving) == pytest.approx(still, rel=0.15)


def test_only_the_part_inside_the_polygon_is_measured(jpegs, lens, screen):
    inside = lens.project(screen.outline_mm())
    pictures = decoded(jpegs(2.5))
    within = noise_sigma(pictures, inside)
    random = np.random.default_rng(99)
    outside = np.ones((720, 1280), np.uint8)
    cv2.fillPoly(outside, [np.round(inside).astype(np.int32)], (0,))
    for picture in pictures:
        picture[outside > 0] = random.integers(0, 255, (int(outside.sum()), 3))
    assert noise_sigma(pictures, inside) == pytest.approx(within, rel=0.02)
    assert noise_sigma(pictures) > 3.0 * within


def test_too_few_pictures_another_size_and_too_small_a_part_are_refused(jpegs):
    pictures = decoded(jpegs(2.5, count=3))
    with pytest.raises(PictureRefused, match="at least 3"):
        noise_sigma(pictures[:2])
    with pytest.raises(PictureRefused, match="differ in size"):
        noise_sigma([*pictures[:2], pictures[2][:700]])
    with pytest.raises(PictureRefused, match="blocks of 32 px, at least 12"):
        noise_sigma(pictures, np.array([[100.0, 100.0], [180.0, 100.0], [180.0, 180.0], [100.0, 180.0]]))
