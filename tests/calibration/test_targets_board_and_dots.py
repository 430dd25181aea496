import cv2
import numpy as np
import pytest

from calibration.errors import TargetImpossible
from calibration.targets import (
    DOT_BGR,
    DOT_CLEARANCE_MM,
    DOT_DIAMETER_MM,
    DOTS_BACKGROUND_BGR,
    TURNS,
    charuco_target,
    control_marks_mm,
    draw_charuco,
    draw_dots,
    turned_points,
)

PHONES = [(1080, 2340), (1080, 1920), (1170, 2532), (1440, 3200), (720, 1600), (750, 1334), (904, 2316)]
ODD_PX = [(1179, 2556), (1125, 2437), (1081, 2341)]
TABLETS_AND_FOLDABLES = [(1200, 1920), (1620, 2160), (2048, 2732), (1640, 2360), (1840, 2208)]
SCREENS_PX = PHONES + ODD_PX + TABLETS_AND_FOLDABLES
SCREENS_AND_TURNS = [(size, "portrait") for size in SCREENS_PX] + [
    (size, turn) for size in [(1080, 2340), (1125, 2437), (1620, 2160)] for turn in TURNS[1:]
]
# Lit areas of a small phone, the twin's, a large phone, a foldable, and 4:3 and 16:10 tablets.
SCREENS_MM = [(49.9, 88.5), (68.0, 147.3), (71.5, 154.9), (120.0, 144.0), (160.0, 213.0), (135.0, 216.0)]


def found_corners(picture, target):
    corners, ids, _, _ = cv2.aruco.CharucoDetector(target.board()).detectBoard(
        cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    )
    if ids is None:
        return np.empty(0, dtype=int), np.empty((0, 2))
    # Pixel centres are half a px from the screen's edge.
    return np.asarray(ids).ravel(), np.asarray(corners).reshape(-1, 2) + 0.5


@pytest.mark.parametrize(("size", "turn"), SCREENS_AND_TURNS)
def test_every_corner_is_drawn_where_the_shared_definition_says_in_each_turn(size, turn):
    target = charuco_target(*size, turn)
    page = draw_charuco(*size, turn)
    assert page.shape == (size[1], size[0], 3)
    ids, drawn = found_corners(page, target)
    assert len(ids) == target.corner_count
    assert np.abs(drawn - target.corners_px()[ids]).max() < 0.05


@pytest.mark.parametrize("size", SCREENS_PX)
def test_the_board_reaches_close_to_every_edge(size):
    target = charuco_target(*size)
    assert target.left_px <= 0.03 * size[0]
    assert target.top_px <= target.square_px
    assert target.top_px + target.squares_y * target.square_px >= size[1] - target.square_px


def test_a_turned_page_lies_on_the_glass_as_the_contract_s_orientations_say():
    orientation = pytest.importorskip("edge_daemon.devices.orientation")
    corners = np.array([[0.0, 0.0], [1000.0, 0.0], [1000.0, 1000.0], [130.0, 480.0]])
    for turn in TURNS:
        expected = [orientation.to_portrait(x, y, turn) for x, y in corners]
        assert np.allclose(turned_points(corners, 1000.0, 1000.0, turn), expected)


def test_the_board_of_another_turn_is_not_taken_for_the_portrait_one():
    target = charuco_target(1080, 2340)
    for turn in ("landscape_left", "landscape_right"):
        ids, _ = found_corners(draw_charuco(1080, 2340, turn), target)
        assert len(ids) == 0


@pytest.mark.parametrize("size", [(2340, 1080), (100, 200), (0, 0), (300, 2000)])
def test_a_screen_that_no_board_fits_is_refused(size):
    with pytest.raises(TargetImpossible, match="px"):
        charuco_target(*size)


def darkness(page):
    return (float(DOTS_BACKGROUND_BGR[0]) - page[:, :, 0]) / (DOTS_BACKGROUND_BGR[0] - DOT_BGR[0])


def test_dots_are_centred_on_their_places_and_of_the_shared_size():
    page = draw_dots(1080, 2340, 68.0, 147.3, [(20.3, 31.7)])
    assert tuple(page[0, 0]) == DOTS_BACKGROUND_BGR
    dark = darkness(page) - darkness(draw_dots(1080, 2340, 68.0, 147.3))
    rows, columns = np.mgrid[:2340, :1080]
    mm_x, mm_y = 68.0 / 1080, 147.3 / 2340
    assert ((columns + 0.5) * dark).sum() / dark.sum() * mm_x == pytest.approx(20.3, abs=0.01)
    assert ((rows + 0.5) * dark).sum() / dark.sum() * mm_y == pytest.approx(31.7, abs=0.01)
    diameter = 2 * np.sqrt(dark.sum() * mm_x * mm_y / np.pi)
    assert diameter == pytest.approx(DOT_DIAMETER_MM, abs=0.005)


@pytest.mark.parametrize("turn", TURNS)
def test_the_page_draws_each_control_mark_as_a_dot_at_its_place_and_nothing_else(turn):
    dark = (darkness(draw_dots(1080, 2340, 68.0, 147.3, turn=turn)) > 0.5).astype(np.uint8)
    count, _, stats, centres = cv2.connectedComponentsWithStats(dark)
    marks = np.array(control_marks_mm(68.0, 147.3, turn))
    assert count - 1 == len(marks) == 12
    seen_mm = (centres[1:] + 0.5) * [68.0 / 1080, 147.3 / 2340]
    assert np.linalg.norm(seen_mm[:, None] - marks[None], axis=2).min(axis=1).max() < 0.02
    dot_px = np.pi / 4 * (DOT_DIAMETER_MM * 1080 / 68.0) ** 2
    assert stats[1:, cv2.CC_STAT_AREA] == pytest.approx(dot_px, rel=0.01)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("size", SCREENS_MM)
def test_control_marks_leave_the_grid_of_touches_and_the_acceptance_corners_their_room(size, turn):
    width, height = size
    grid = [(x, y) for x in np.linspace(7, width - 7, 4) for y in np.linspace(7, height - 7, 6)]
    corners = [(x, y) for x in (3.0, width - 3) for y in (3.0, height - 3)]
    marks = np.array(control_marks_mm(*size, turn))
    distances = np.linalg.norm(marks[:, None] - np.array(grid + corners)[None], axis=2)
    assert distances.min() >= DOT_CLEARANCE_MM


@pytest.mark.parametrize("size", SCREENS_MM)
def test_no_turn_s_marks_can_be_taken_for_another_turn_s(size):
    for turn in TURNS:
        marks = np.array(control_marks_mm(*size, turn))
        for other in set(TURNS) - {turn}:
            away = np.linalg.norm(marks[:, None] - np.array(control_marks_mm(*size, other))[None], axis=2)
            # Not one mark of the one lies on any part of a mark of the other.
            assert away.min() >= DOT_DIAMETER_MM


def test_control_marks_are_spread_over_the_whole_screen_and_leave_its_middle_free():
    marks = np.array(control_marks_mm(68.0, 147.3))
    everywhere = np.array([(x, y) for x in np.linspace(3, 65, 20) for y in np.linspace(3, 144.3, 40)])
    to_nearest = np.linalg.norm(everywhere[:, None] - marks[None], axis=2).min(axis=1)
    assert to_nearest.max() < 0.2 * 147.3
    assert np.linalg.norm(marks - [34.0, 73.65], axis=1).min() > 15.0
    rim = np.minimum(marks, [68.0, 147.3] - marks).min(axis=1)
    assert (np.abs(rim - 5.5) < 0.01).sum() >= 6


@pytest.mark.parametrize("size", [(30.0, 60.0), (147.3, 68.0)])
def test_a_screen_without_room_for_the_marks_is_refused(size):
    with pytest.raises(TargetImpossible, match="mm"):
        draw_dots(600, 1200, *size)
