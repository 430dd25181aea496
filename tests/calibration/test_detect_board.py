import numpy as np
import pytest

from calibration.detect import BoardFinder
from calibration.errors import Blurred, BoardNotFound, HalfOutOfView, TooDark
from calibration.targets import charuco_target, draw_charuco, draw_dots

POSES = {
    "upright": {},
    "lying": {"tilt": (0.1, -0.08, 1.6), "distance_mm": 160.0},
    "upside down": {"tilt": (0.1, 0.2, 3.1), "distance_mm": 250.0},
    "through a strong lens": {"distortion": (-0.3, 0.12, 0.001, -0.001, 0.0)},
}


@pytest.fixture
def finder():
    return BoardFinder(charuco_target(1080, 2340))


@pytest.fixture
def page():
    return draw_charuco(1080, 2340)


@pytest.mark.parametrize("pose", POSES.values(), ids=POSES.keys())
def test_corners_are_found_within_a_fifth_of_a_pixel(pose, finder, page, screen, shoot, make_rig):
    lens = make_rig(lens=pose).lens
    view = finder.find(shoot(page, lens))
    corners_mm = screen.px_to_mm(charuco_target(1080, 2340).corners_px())
    off = view.px - lens.project(corners_mm[view.ids])
    assert len(view.ids) == len(corners_mm)
    assert np.abs(off).max() < 0.2
    assert np.abs(off.mean(axis=0)).max() < 0.02


def test_a_dark_picture_is_refused_as_too_dark(finder, page, lens, shoot):
    with pytest.raises(TooDark, match="brightness"):
        finder.find(shoot(page, lens, gain=0.05))


def test_an_unfocused_picture_is_refused_as_blurred(finder, page, lens, shoot):
    with pytest.raises(Blurred, match="focus"):
        finder.find(shoot(page, lens, blur_px=6.0))


def test_another_page_is_refused_as_no_board(finder, lens, shoot):
    with pytest.raises(BoardNotFound, match="show it"):
        finder.find(shoot(draw_dots(1080, 2340, 68.0, 147.3, [(20.0, 30.0)]), lens))


@pytest.mark.parametrize(
    ("pose", "corners"),
    [
        ({"shift_mm": (0.0, -60.0)}, "top left, top right"),
        ({"shift_mm": (0.0, 60.0)}, "bottom right, bottom left"),
        ({"distance_mm": 160.0}, "top left, top right, bottom right, bottom left"),
    ],
)
def test_a_screen_half_out_of_view_is_refused_and_says_which_side(
    pose, corners, finder, page, shoot, make_rig
):
    with pytest.raises(HalfOutOfView, match=corners):
        finder.find(shoot(page, make_rig(lens=pose).lens))
