import cv2
import numpy as np
import pytest

from calibration.detect import BoardFinder, DotFinder
from calibration.errors import NoDot, PageChanged, PictureRefused, TooDark, TwoDots
from calibration.fit_camera import fit_camera
from calibration.targets import charuco_target, draw_charuco, draw_dots


@pytest.fixture(scope="module")
def finders():
    return {}


@pytest.fixture
def finder(finders, lens, screen, shoot):
    """A DotFinder that knows the lens only by its own look at the board."""
    if lens not in finders:
        target = charuco_target(screen.width_px, screen.height_px)
        view = BoardFinder(target).find(shoot(draw_charuco(screen.width_px, screen.height_px), lens))
        board_mm = screen.px_to_mm(target.corners_px())
        model, _ = fit_camera(screen, (1280, 720), view.ids, board_mm, view.px, 0.35)
        finders[lens] = DotFinder(model, screen)
    return finders[lens]


@pytest.fixture
def picture(lens, screen, shoot):
    def take(dots, roll, **light):
        page = draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm, dots)
        return shoot(page, lens, roll=roll, **light)

    return take


def test_fresh_dots_are_measured_within_a_thirtieth_of_a_mm_all_over_the_screen(finder, picture):
    old, before = [], picture([], 0)
    for roll, x in enumerate((4.0, 22.0, 34.0, 49.0, 64.0)):
        for y in (4.0 + roll, 73.0 - roll, 143.3):
            old.append((x, y))
            after = picture(old, roll + len(old))
            dot = finder.find(before, after)
            assert dot.whole
            assert np.hypot(dot.x_mm - x, dot.y_mm - y) < 0.033
            before = after


def test_flicker_of_the_whole_page_is_no_change(finder, picture):
    dot = finder.find(picture([], 1), picture([(40.0, 50.0)], 2, gain=0.93))
    assert np.hypot(dot.x_mm - 40.0, dot.y_mm - 50.0) < 0.033
    with pytest.raises(NoDot):
        finder.find(picture([(40.0, 50.0)], 3), picture([(40.0, 50.0)], 4, gain=1.07))


def test_a_dot_half_on_an_older_one_says_contact_but_is_not_a_position(finder, picture):
    dot = finder.find(picture([(40.0, 50.0)], 1), picture([(40.0, 50.0), (41.0, 50.0)], 2))
    assert not dot.whole
    assert dot.area_share == pytest.approx(0.52, abs=0.15)


def test_dots_are_measured_within_a_fiftieth_of_a_mm_in_noise_of_six_levels_with_bands_of_five_percent(
    finder, picture
):
    rows = np.arange(720.0)[:, None, None]

    def take(dots, seed):
        bands = 1.0 + 0.05 * np.sin(2.0 * np.pi * (rows / 45.0 + 0.37 * seed))
        light = picture(dots, 0, jpeg=False) * bands
        noisy = light + np.random.default_rng(seed).normal(0.0, 6.0, light.shape)
        encoded = cv2.imencode(
            ".jpg", np.clip(noisy, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 85]
        )
        return cv2.imdecode(encoded[1], cv2.IMREAD_COLOR)

    before, errors = take([], 1), []
    for seed, place in enumerate([(5.0, 12.0), (31.3, 60.2), (62.5, 101.4), (22.1, 142.9), (60.7, 33.3)], 2):
        dot = finder.find(before, take([place], seed))
        assert dot.whole
        errors.append(np.hypot(dot.x_mm - place[0], dot.y_mm - place[1]))
    assert np.sqrt(np.mean(np.square(errors))) < 0.02


def test_a_dot_that_just_touches_an_older_one_is_a_position_and_one_that_laps_over_is_not(finder, picture):
    old = [(40.0, 50.0)]
    apart = finder.find(picture(old, 1), picture([*old, (42.6, 50.0)], 2))
    assert apart.whole
    assert np.hypot(apart.x_mm - 42.6, apart.y_mm - 50.0) < 0.033
    lapping = finder.find(picture(old, 1), picture([*old, (42.0, 50.0)], 2))
    assert lapping.hidden_share > 0.02
    assert not lapping.whole


def test_a_touch_without_a_dot_is_refused_as_no_dot(finder, picture):
    with pytest.raises(NoDot):
        finder.find(picture([(10.0, 10.0)], 1), picture([(10.0, 10.0)], 2))


def test_two_dots_after_one_touch_are_refused_and_located(finder, picture):
    with pytest.raises(TwoDots, match=r"\(20\.0, 30\.0\).*\(50\.0, 100\.0\)"):
        finder.find(picture([], 1), picture([(20.0, 30.0), (50.0, 100.0)], 2))


@pytest.mark.parametrize(("apart_mm", "angle"), [(0.3, 0.0), (0.4, 1.1), (1.2, 2.0), (2.2, 0.5)])
def test_two_dots_of_a_bounce_that_overlap_are_refused(apart_mm, angle, finder, picture):
    first = (33.0, 70.0)
    second = (33.0 + apart_mm * np.cos(angle), 70.0 + apart_mm * np.sin(angle))
    with pytest.raises(TwoDots, match=r"overlap.*bounce"):
        finder.find(picture([], 1), picture([first, second], 2))


def blended(clear, dotted, share):
    return cv2.addWeighted(dotted, share, clear, 1.0 - share, 0.0)


def test_a_dot_that_is_half_drawn_is_in_its_place_and_a_faint_one_is_never_no_dot(finder, picture):
    clear, dotted = picture([], 1), picture([(40.0, 50.0)], 1)
    dot = finder.find(clear, blended(clear, dotted, 0.5))
    assert np.hypot(dot.x_mm - 40.0, dot.y_mm - 50.0) < 0.033
    with pytest.raises(PageChanged, match=r"fainter than a dot .*\(40\.0, 50\.0\)"):
        finder.find(clear, blended(clear, dotted, 0.2))


@pytest.mark.parametrize("level", [255, 210, 120, 30])
def test_a_notification_that_slides_over_the_page_is_refused(level, finder, lens, screen, shoot):
    page = draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm, [])
    banner = page.copy()
    banner[60:330, 40:1040] = level
    with pytest.raises(PageChanged):
        finder.find(shoot(page, lens, roll=1), shoot(banner, lens, roll=2))


def test_an_older_dot_that_vanishes_is_a_changed_page_and_no_dot(finder, picture):
    with pytest.raises(PageChanged, match="brighter"):
        finder.find(picture([(20.0, 30.0)], 1), picture([(50.0, 100.0)], 2))


def test_a_phone_that_is_pushed_by_the_touch_is_a_changed_page(finder, picture, screen, shoot, make_rig):
    page = draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm, [(50.0, 100.0)])
    pushed = make_rig(lens={"shift_mm": (2.3, -1.0)}).lens
    with pytest.raises(PageChanged):
        finder.find(picture([], 1), shoot(page, pushed, roll=2))


def test_another_page_is_refused_as_a_changed_page(finder, picture, lens, screen, shoot):
    with pytest.raises(PageChanged, match="in front"):
        finder.find(picture([], 1), shoot(draw_charuco(screen.width_px, screen.height_px), lens))


@pytest.mark.parametrize("gain", [0.7, 1.3])
def test_a_page_that_goes_darker_or_brighter_as_a_whole_is_no_missing_dot(gain, finder, picture):
    with pytest.raises(PageChanged, match="sleep"):
        finder.find(picture([], 1), picture([], 2, gain=gain))


def test_dots_that_vanish_are_refused_as_a_changed_page(finder, picture):
    many = [(10.0 + 8 * i, 20.0 + 9 * j) for i in range(6) for j in range(3)]
    with pytest.raises(PageChanged):
        finder.find(picture(many, 1), picture([], 2))


def test_a_dark_dots_page_is_refused_as_too_dark(finder, picture):
    with pytest.raises(TooDark):
        finder.find(picture([], 1, gain=0.1), picture([(20.0, 30.0)], 2, gain=0.1))


def test_a_picture_of_another_size_is_refused(finder, picture):
    with pytest.raises(PictureRefused, match="resolution"):
        finder.find(picture([], 1), picture([], 2)[:700])


def test_more_dark_places_than_a_touch_can_leave_are_another_page(finder, picture):
    many = [(10.0 + 8 * i, 20.0 + 30 * j) for i in range(3) for j in range(3)]
    with pytest.raises(PageChanged, match=r"\d+ dots' worth"):
        finder.find(picture([], 1), picture(many, 2))
