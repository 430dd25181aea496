import numpy as np
import pytest

from calibration.errors import CameraMismatch
from calibration.pictures import EDGE_BGR, LINE_BGR, Arrow, grid_overlay, rectified, residual_overlay
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
    drawn = grid_overlay(picture, calibration.camera.model, calibration.screen, calibration.acceptance)
    assert drawn.shape == picture.shape
    assert not np.shares_memory(drawn, picture)
    for grid in ((300.0, 250.0), (500.0, 777.0), (900.0, 450.0)):
        assert near(drawn, lens.project(calibration.screen.grid_to_mm(np.array([grid])))[0], LINE_BGR)
    for grid in ((0.0, 333.0), (1000.0, 640.0), (250.0, 0.0)):
        assert near(drawn, lens.project(calibration.screen.grid_to_mm(np.array([grid])))[0], EDGE_BGR)


def test_the_rectified_picture_is_the_screens_own_picture(scene):
    picture, calibration, _ = scene
    flat = rectified(picture, calibration.camera.model, calibration.screen, 360)
    assert flat.shape == (780, 360, 3)
    drawn = draw_charuco(1080, 2340).reshape(780, 3, 360, 3, 3).mean(axis=(1, 3))[:, :, 0]
    seen = flat[:, :, 1].astype(np.float64)
    assert np.corrcoef(drawn.ravel(), seen.ravel())[0, 1] > 0.97


def test_an_error_is_drawn_from_its_place_ten_times_as_long(scene):
    picture, calibration, _ = scene
    place, error = (40.0, 70.0), (0.9, -0.4)
    without = residual_overlay(picture, calibration, [])
    drawn = residual_overlay(picture, calibration, [Arrow(place, error, (255, 0, 255))])
    rows, columns = np.nonzero(np.abs(drawn.astype(int) - without).sum(axis=2) > 60)
    ends = calibration.camera.model.project(np.array([place, np.add(place, np.multiply(10.0, error))]))
    edge = calibration.camera.model.project(calibration.screen.outline_mm())
    enlarged = max(drawn.shape) / np.ptp(edge, axis=0).max()
    drawn_px = np.hypot(np.ptp(columns), np.ptp(rows))
    assert drawn_px == pytest.approx(enlarged * np.hypot(*(ends[1] - ends[0])), rel=0.15)
    assert near(drawn, (columns.mean(), rows.mean()), (255, 0, 255), reach=6)


def test_a_limit_is_drawn_as_a_circle_ten_times_as_large(scene):
    picture, calibration, _ = scene
    without = residual_overlay(picture, calibration, [Arrow((34.0, 70.0), (0.0, 0.0), (255, 0, 255))])
    drawn = residual_overlay(picture, calibration, [Arrow((34.0, 70.0), (0.0, 0.0), (255, 0, 255), 0.3)])
    rows, columns = np.nonzero(np.abs(drawn.astype(int) - without).sum(axis=2) > 60)
    px_per_mm = calibration.camera.model.px_per_mm(np.array([[34.0, 70.0]]))[0]
    edge = calibration.camera.model.project(calibration.screen.outline_mm())
    enlarged = max(drawn.shape) / (np.ptp(edge, axis=0).max() + 33.0)
    for across in (np.ptp(rows), np.ptp(columns)):
        assert across == pytest.approx(2 * 3.0 * px_per_mm * enlarged, rel=0.15)


def test_a_picture_of_another_size_is_refused(scene):
    picture, calibration, _ = scene
    with pytest.raises(CameraMismatch, match=r"640 x 360.*1280 x 720"):
        residual_overlay(picture[::2, ::2], calibration, [])
