import cv2
import numpy as np
import pytest

from calibration.errors import TargetImpossible
from calibration.targets import (
    DOT_BGR,
    DOT_DIAMETER_MM,
    DOTS_BACKGROUND_BGR,
    charuco_target,
    draw_charuco,
    draw_dots,
)

PHONES = [(1080, 2340), (1080, 1920), (1170, 2532), (1440, 3200), (720, 1600), (750, 1334), (1200, 1920)]


@pytest.mark.parametrize("size", PHONES)
def test_every_corner_is_drawn_where_the_shared_definition_says(size):
    target = charuco_target(*size)
    page = draw_charuco(*size)
    assert page.shape == (size[1], size[0], 3)
    corners, ids, _, _ = cv2.aruco.CharucoDetector(target.board()).detectBoard(
        cv2.cvtColor(page, cv2.COLOR_BGR2GRAY)
    )
    ids = np.asarray(ids).ravel()
    assert len(ids) == target.corner_count
    # Pixel centres are half a px from the screen's edge.
    drawn = np.asarray(corners).reshape(-1, 2) + 0.5
    assert np.abs(drawn - target.corners_px()[ids]).max() < 0.05


@pytest.mark.parametrize("size", PHONES)
def test_the_board_reaches_close_to_every_edge(size):
    target = charuco_target(*size)
    assert target.left_px <= 0.03 * size[0]
    assert target.top_px <= target.square_px
    assert target.top_px + target.squares_y * target.square_px >= size[1] - target.square_px


@pytest.mark.parametrize("size", [(2340, 1080), (100, 200), (0, 0), (300, 2000)])
def test_a_screen_that_no_board_fits_is_refused(size):
    with pytest.raises(TargetImpossible, match="px"):
        charuco_target(*size)


def test_dots_are_centred_on_their_places_and_of_the_shared_size():
    page = draw_dots(1080, 2340, 68.0, 147.3, [(20.3, 31.7)])
    assert tuple(page[0, 0]) == DOTS_BACKGROUND_BGR
    dark = (float(DOTS_BACKGROUND_BGR[0]) - page[:, :, 0]) / (DOTS_BACKGROUND_BGR[0] - DOT_BGR[0])
    rows, columns = np.mgrid[:2340, :1080]
    mm_x, mm_y = 68.0 / 1080, 147.3 / 2340
    assert ((columns + 0.5) * dark).sum() / dark.sum() * mm_x == pytest.approx(20.3, abs=0.01)
    assert ((rows + 0.5) * dark).sum() / dark.sum() * mm_y == pytest.approx(31.7, abs=0.01)
    diameter = 2 * np.sqrt(dark.sum() * mm_x * mm_y / np.pi)
    assert diameter == pytest.approx(DOT_DIAMETER_MM, abs=0.1)
