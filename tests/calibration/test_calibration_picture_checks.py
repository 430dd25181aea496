"""What the checks measure on pictures whose faults are put in by formula, and where they refuse."""

import cv2
import msgspec
import numpy as np
import pytest

from calibration.detect import BoardFinder
from calibration.errors import BadExposure, Banding, Blurred, Glare, Moire
from calibration.picture_checks import LIMITS, PictureChecks, check_board_picture
from calibration.targets import charuco_target, draw_charuco

TARGET = charuco_target(1080, 2340)
ROWS, COLUMNS = (axis.astype(np.float64)[..., None] for axis in np.mgrid[0:720, 0:1280])


@pytest.fixture
def sound(lens, shoot):
    """A sharp and well exposed picture without noise."""
    return shoot(draw_charuco(1080, 2340), lens, gain=0.9, jpeg=False).astype(np.float64)


@pytest.fixture
def view(sound):
    return BoardFinder(TARGET).find(camera(sound))


def camera(light, noise=2.5, quality=90):
    """What a sensor and a JPEG make of light, (720, 1280, 3) grey levels."""
    random = np.random.default_rng(11)
    noisy = light + random.normal(0.0, noise, (*light.shape[:2], 1))
    picture = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
    encoded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(encoded, cv2.IMREAD_COLOR)


def check(light, view, **sensor) -> PictureChecks:
    return check_board_picture(camera(light, **sensor), view, TARGET)


def wave(period_px, degrees, amplitude):
    """A pattern whose brightness changes along a direction: 90 degrees is down the rows."""
    angle = np.radians(degrees)
    along = COLUMNS * np.cos(angle) + ROWS * np.sin(angle)
    return 1.0 + amplitude * np.sin(2.0 * np.pi * along / period_px)


def test_a_sound_picture_passes_and_its_levels_are_told(sound, view):
    checks = check(sound, view)
    assert checks.white_level == pytest.approx(255 * 0.92 * 0.9 + 6.0, abs=4.0)
    assert checks.black_level == pytest.approx(6.0, abs=2.0)
    assert 1.5 < checks.edge_width_px <= checks.edge_width_worst_px < 3.0
    assert max(checks.saturated_share, checks.banding, checks.glare_share) < 0.003
    assert checks.moire < 0.008
    assert msgspec.json.decode(msgspec.json.encode(checks), type=PictureChecks) == checks


def test_a_noisy_and_heavily_compressed_picture_is_not_taken_for_a_pattern(sound, view):
    checks = check(sound, view, noise=6.0, quality=75)
    assert max(checks.moire, checks.banding) < 0.01


def test_a_turned_board_is_measured_as_well(lens, shoot):
    target = charuco_target(1080, 2340, "landscape_left")
    light = shoot(draw_charuco(1080, 2340, "landscape_left"), lens, gain=0.9, jpeg=False)
    picture = camera(light.astype(np.float64))
    checks = check_board_picture(picture, BoardFinder(target).find(picture), target)
    assert checks.white_level - checks.black_level > 200.0
    assert checks.edge_width_worst_px < 3.0


@pytest.mark.parametrize("sigma_px", [0.5, 0.8])
def test_the_width_of_an_edge_is_that_of_its_blur(sigma_px, sound, view):
    before = check(sound, view).edge_width_px
    width = check(cv2.GaussianBlur(sound, (0, 0), sigma_px), view).edge_width_px
    assert width == pytest.approx(np.hypot(before, 2.563 * sigma_px), rel=0.08)


def test_blur_is_refused_beyond_the_limit_only_and_told_to_be_focus(sound, view):
    assert check(cv2.GaussianBlur(sound, (0, 0), 0.8), view).edge_width_worst_px < 3.3
    with pytest.raises(Blurred, match=r"rise over 3\.[3-9] px, the limit is 3\.\d px.*focus ring"):
        check(cv2.GaussianBlur(sound, (0, 0), 1.4), view)


@pytest.mark.parametrize(("kernel", "way"), [((6, 1), "width"), ((1, 6), "height")])
def test_blur_along_one_direction_is_told_to_be_motion(kernel, way, sound, view):
    with pytest.raises(Blurred, match=f"smeared along the page's {way}.*come to rest"):
        check(cv2.blur(sound, kernel), view)


def test_blur_at_one_end_is_told_to_be_a_tilted_camera(sound, view):
    share = np.clip((ROWS - 420.0) / 120.0, 0.0, 1.0)
    with pytest.raises(Blurred, match="sharp elsewhere, worst in the page's lower"):
        check((1.0 - share) * sound + share * cv2.GaussianBlur(sound, (0, 0), 1.8), view)


def test_exposure_is_refused_when_white_clips_and_not_just_below(sound, view):
    assert check(sound * 1.09, view).saturated_share <= LIMITS.saturated_share_max
    with pytest.raises(BadExposure, match=r"clipped.*shorten the exposure"):
        check(sound * 1.16, view)


def test_exposure_is_refused_when_white_is_dark_and_not_just_above(sound, view):
    level = check(sound, view).white_level
    assert check(sound * (104.0 / level), view).white_level == pytest.approx(104.0, abs=1.5)
    with pytest.raises(BadExposure, match=r"level 9\d of 255, at least 100.*lengthen"):
        check(sound * (96.0 / level), view)


def test_a_veil_over_everything_is_refused(sound, view):
    with pytest.raises(BadExposure, match="at least 70 levels between them"):
        check(150.0 + 0.25 * sound, view)


@pytest.mark.parametrize("period_rows", [20.0, 45.0, 90.0, 180.0])
def test_bands_are_measured_and_refused_beyond_the_limit_only(period_rows, sound, view):
    checks = check(0.85 * sound * wave(period_rows, 90.0, 0.04), view)
    assert checks.banding == pytest.approx(0.04, abs=0.008)
    assert checks.moire < 0.012
    with pytest.raises(Banding, match="multiple of the period"):
        check(0.85 * sound * wave(period_rows, 90.0, 0.07), view)


@pytest.mark.parametrize(("period_px", "degrees"), [(5.0, 40.0), (9.0, 0.0), (24.0, 20.0), (70.0, 30.0)])
def test_moire_is_measured_and_refused_beyond_the_limit_only(period_px, degrees, sound, view):
    checks = check(0.85 * sound * wave(period_px, degrees, 0.022), view)
    assert 0.013 < checks.moire < 0.026
    assert checks.banding < 0.01
    with pytest.raises(Moire, match="beat with the camera's"):
        check(0.85 * sound * wave(period_px, degrees, 0.06), view)


def test_a_reflection_is_refused_and_located_and_a_spot_passes(sound, view, lens):
    x, y = lens.project(np.array([[51.0, 110.0]]))[0]
    away = (COLUMNS - x) ** 2 + (ROWS - y) ** 2
    assert (
        check(0.85 * sound + 60.0 * np.exp(-away / (2 * 6.0**2)), view).glare_share < LIMITS.glare_share_max
    )
    with pytest.raises(Glare, match=r"around 7\d% of the page's width and 7\d% of its height; move or shade"):
        check(0.85 * sound + 120.0 * np.exp(-away / (2 * 24.0**2)), view)


def test_vignetting_and_a_lamp_from_one_side_are_no_fault(sound, view):
    middle = ((COLUMNS - 640.0) ** 2 + (ROWS - 360.0) ** 2) / 640.0**2
    light = sound * (1.0 - 0.25 * middle) + 8.0 * (COLUMNS / 1280.0)
    checks = check(light, view)
    assert checks.banding < 0.01
    assert checks.glare_share == 0.0
