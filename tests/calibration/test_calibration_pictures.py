import numpy as np
import pytest

from calibration.pictures import EDGE_BGR, LINE_BGR, grid_overlay, rectified
from calibration.targets import draw_charuco


@pytest.fixture
def scene(calibrated, shoot):
    """(picture of the board, its calibration, the lens)."""
    rig, calibration, _ = calibrated
    return shoot(draw_charuco(1080, 2340), rig.lens), calibration, rig.lens


def near(picture, place, colour, reach=3):
    x, y = (round(float(v)) for v in place)
    patch = picture[y - reach : y + reach + 1, x - reach : x + reach + 1].astype(int)
    return np.abs(patch - np.array(colour)).sum(axis=2).min() < 120


def test_the_grid_is_drawn_where_the_lens_shows_it(scene):
    picture, calibration, lens = scene
    drawn = grid_overlay(picture, calibration.camera, calibration.screen, calibration.acceptance)
    assert drawn.shape == picture.shape
    assert not np.shares_memory(drawn, picture)
    for grid in ((300.0, 250.0), (500.0, 777.0), (900.0, 450.0)):
        assert near(drawn, lens.project(calibration.screen.grid_to_mm(np.array([grid])))[0], LINE_BGR)
    for grid in ((0.0, 333.0), (1000.0, 640.0), (250.0, 0.0)):
        assert near(drawn, lens.project(calibration.screen.grid_to_mm(np.array([grid])))[0], EDGE_BGR)


def test_the_rectified_picture_is_the_screens_own_picture(scene):
    picture, calibration, _ = scene
    flat = rectified(picture, calibration.camera, calibration.screen, 360)
    assert flat.shape == (780, 360, 3)
    drawn = draw_charuco(1080, 2340).reshape(780, 3, 360, 3, 3).mean(axis=(1, 3))[:, :, 0]
    seen = flat[:, :, 1].astype(np.float64)
    assert np.corrcoef(drawn.ravel(), seen.ravel())[0, 1] > 0.97
