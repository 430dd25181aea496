import cv2
import numpy as np
import pytest

from calibration.detect import BoardFinder, turn_in_picture
from calibration.errors import (
    Blurred,
    BoardNotFound,
    HalfOutOfView,
    PictureRefused,
    SecondBoard,
    TooDark,
    UpsideDown,
)
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
def test_corners_scatter_by_a_twentieth_of_a_pixel_and_have_no_common_shift(
    pose, finder, page, screen, shoot, make_rig
):
    lens = make_rig(lens=pose).lens
    view = finder.find(shoot(page, lens))
    corners_mm = screen.px_to_mm(charuco_target(1080, 2340).corners_px())
    off = view.px - lens.project(corners_mm[view.ids])
    assert len(view.ids) == len(corners_mm)
    assert np.abs(off).max() < 0.12
    assert off.std() < 0.05
    assert np.abs(off.mean(axis=0)).max() < 0.01


def test_corners_of_a_noisy_and_heavily_compressed_picture_still_have_no_common_shift(
    finder, page, screen, lens, shoot
):
    random = np.random.default_rng(5)
    noisy = shoot(page, lens, jpeg=False) + random.normal(0.0, 6.0, (720, 1280, 3))
    encoded = cv2.imencode(".jpg", np.clip(noisy, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 80])[1]
    view = finder.find(cv2.imdecode(encoded, cv2.IMREAD_COLOR))
    off = view.px - lens.project(screen.px_to_mm(charuco_target(1080, 2340).corners_px())[view.ids])
    assert off.std() < 0.08
    assert np.abs(off.mean(axis=0)).max() < 0.02


def test_a_dark_picture_is_refused_as_too_dark(finder, page, lens, shoot):
    with pytest.raises(TooDark, match="brightness"):
        finder.find(shoot(page, lens, gain=0.05))


def test_an_unfocused_picture_is_refused_as_blurred(finder, page, lens, shoot):
    with pytest.raises(Blurred, match="focus"):
        finder.find(shoot(page, lens, blur_px=6.0))


def test_a_picture_that_is_smeared_one_way_is_told_from_one_out_of_focus(finder, page, lens, shoot):
    smeared = cv2.blur(shoot(page, lens), (25, 1))
    with pytest.raises(Blurred, match="smeared left-right"):
        finder.find(smeared)


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


@pytest.mark.parametrize("turn", ["portrait", "landscape_left", "portrait_upside_down", "landscape_right"])
def test_a_turned_board_is_found_where_its_turn_says(turn, screen, lens, shoot):
    target = charuco_target(1080, 2340, turn)
    view = BoardFinder(target).find(shoot(draw_charuco(1080, 2340, turn), lens))
    off = view.px - lens.project(screen.px_to_mm(target.corners_px())[view.ids])
    assert len(view.ids) == target.corner_count
    assert np.abs(off).max() < 0.12


@pytest.mark.parametrize(
    ("shown", "asked"), [("landscape_left", "portrait"), ("portrait", "landscape_right")]
)
def test_a_page_turned_by_a_quarter_is_refused(shown, asked, lens, shoot):
    with pytest.raises(UpsideDown, match=f"asked for in {asked}"):
        BoardFinder(charuco_target(1080, 2340), asked).find(shoot(draw_charuco(1080, 2340, shown), lens))


def test_how_the_page_is_turned_in_the_picture_is_told_in_degrees(shoot, lens, make_rig):
    for turn, degrees in (("portrait", 1.7), ("landscape_left", 91.7), ("portrait_upside_down", -178.3)):
        view = BoardFinder(charuco_target(1080, 2340, turn)).find(shoot(draw_charuco(1080, 2340, turn), lens))
        assert turn_in_picture(view) == pytest.approx(degrees, abs=1.0)
    rolled = make_rig(lens={"tilt": (0.0, 0.0, np.pi / 2)}).lens
    view = BoardFinder(charuco_target(1080, 2340)).find(shoot(draw_charuco(1080, 2340), rolled))
    assert turn_in_picture(view) == pytest.approx(90.0, abs=1.0)


def beside(picture, board, left, height):
    """The picture with a printed board lying on the desk beside the phone."""
    small = cv2.resize(board, (round(height * board.shape[1] / board.shape[0]), height), cv2.INTER_AREA)
    both = picture.copy()
    both[20 : 20 + height, left : left + small.shape[1]] = small
    return both


@pytest.mark.parametrize("layout", [(1080, 2340), (1080, 1920), (1440, 2160)])
def test_a_second_board_in_view_is_refused_and_located(layout, finder, page, lens, shoot):
    both = beside(shoot(page, lens), draw_charuco(*layout), left=20, height=600)
    with pytest.raises(SecondBoard, match=r"around \([12]\d\d, [23]\d\d\) px.*cover it"):
        finder.find(both)


def test_a_corner_of_a_second_board_is_enough_to_refuse(finder, page, lens, shoot):
    both = beside(shoot(page, lens), draw_charuco(1080, 2340)[:700], left=20, height=180)
    with pytest.raises(SecondBoard):
        finder.find(both)


def test_a_single_stray_marker_is_left_out_without_harm(finder, page, lens, shoot, screen):
    marker = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_100).generateImageMarker(17, 60)
    picture = shoot(page, lens)
    picture[300:400, 100:200] = 230
    picture[320:380, 120:180] = marker[:, :, None]
    view = finder.find(picture)
    off = view.px - lens.project(screen.px_to_mm(charuco_target(1080, 2340).corners_px())[view.ids])
    assert len(view.ids) == 112
    assert np.abs(off).max() < 0.12


def test_bed_markers_are_no_part_of_the_board_and_no_second_board(finder, page, lens, shoot):
    picture = shoot(page, lens)
    bed = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_250)
    for i, number in enumerate((200, 201, 202, 203)):
        picture[100 + 130 * i : 200 + 130 * i, 100:200] = 230
        picture[120 + 130 * i : 180 + 130 * i, 120:180] = bed.generateImageMarker(number, 60)[:, :, None]
    assert len(finder.find(picture).ids) == 112


def test_too_few_corners_do_not_tell_a_turn(finder, page, lens, shoot):
    view = finder.find(shoot(page, lens))
    with pytest.raises(PictureRefused, match="too few"):
        turn_in_picture(type(view)(ids=view.ids[:3], px=view.px[:3]))


def test_a_sharp_thing_beside_an_unfocused_screen_does_not_hide_that_it_is_blurred(finder, page, lens, shoot):
    picture = shoot(page, lens, blur_px=6.0)
    picture[:, 60:64] = 200
    picture[40:44, :300] = 200
    with pytest.raises(Blurred, match="focus"):
        finder.find(picture)
