import numpy as np
import pytest

from calibration.detect import BoardFinder, DotFinder
from calibration.errors import NoDot, PageChanged, PictureRefused, TooDark, TwoDots
from calibration.fit_camera import fit_camera
from calibration.targets import charuco_target, draw_charuco, draw_dots


@pytest.fixture(scope="module")
def seen_through():
    """A function (lens, screen, shoot) -> DotFinder that knows the lens only by its own look at the board."""

    def build(lens, screen, shoot):
        target = charuco_target(screen.width_px, screen.height_px)
        view = BoardFinder(target).find(shoot(draw_charuco(screen.width_px, screen.height_px), lens))
        board_mm = screen.px_to_mm(target.corners_px())
        model, _ = fit_camera(screen, (1280, 720), view.ids, board_mm, view.px, 0.35)
        return DotFinder(model, screen)

    return build


@pytest.fixture
def finder(seen_through, lens, screen, shoot):
    return seen_through(lens, screen, shoot)


@pytest.fixture
def picture(lens, screen, shoot):
    def take(dots, roll, **light):
        page = draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm, dots)
        return shoot(page, lens, roll=roll, **light)

    return take


def test_fresh_dots_are_measured_within_a_thirtieth_of_a_mm_all_over_the_screen(finder, picture):
    old, before = [], picture([], 0)
    for roll, x in enumerate((4.0, 19.0, 34.0, 49.0, 64.0)):
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


def test_a_touch_without_a_dot_is_refused_as_no_dot(finder, picture):
    with pytest.raises(NoDot):
        finder.find(picture([(10.0, 10.0)], 1), picture([(10.0, 10.0)], 2))


def test_two_dots_after_one_touch_are_refused_and_located(finder, picture):
    with pytest.raises(TwoDots, match=r"\(20\.0, 30\.0\).*\(50\.0, 100\.0\)"):
        finder.find(picture([], 1), picture([(20.0, 30.0), (50.0, 100.0)], 2))


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
