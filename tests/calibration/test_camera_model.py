from dataclasses import replace

import msgspec
import numpy as np
import pytest

from calibration.errors import CoverageRefused, OutsideModel, ResidualRefused
from calibration.fit_camera import fit_camera
from calibration.models import CameraModel
from calibration.targets import charuco_target

SIZE = (1280, 720)


@pytest.fixture
def board_mm(screen):
    return screen.px_to_mm(charuco_target(screen.width_px, screen.height_px).corners_px())


@pytest.fixture
def corners(board_mm, lens):
    """(ids, px) of every corner as the lens shows it, with 0.05 px of noise."""
    noise = np.random.default_rng(3).normal(0.0, 0.05, board_mm.shape)
    return np.arange(len(board_mm)), lens.project(board_mm) + noise


def whole_screen(screen):
    x, y = np.meshgrid(np.linspace(0, screen.width_mm, 9), np.linspace(0, screen.height_mm, 17))
    return np.column_stack([x.ravel(), y.ravel()])


def test_one_view_gives_the_whole_screen_within_a_twentieth_of_a_mm(screen, board_mm, corners, lens):
    model, quality = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    places = whole_screen(screen)
    off = model.unproject(lens.project(places)) - places
    assert np.linalg.norm(off, axis=1).max() < 0.05
    assert quality.held_out_rms_px < 0.1
    assert quality.corners_used == len(board_mm)


def test_unproject_undoes_project(screen, board_mm, corners):
    model, _ = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    places = whole_screen(screen)
    assert np.abs(model.unproject(model.project(places)) - places).max() < 1e-6


def test_lens_terms_are_used_where_the_lens_bends_and_nowhere_else(screen, board_mm, corners, make_rig):
    straight = make_rig(lens={"distortion": (0.0,) * 5}).lens
    noise = np.random.default_rng(3).normal(0.0, 0.05, board_mm.shape)
    ids = corners[0]
    _, flat = fit_camera(screen, SIZE, ids, board_mm, straight.project(board_mm) + noise, 0.35)
    _, bent = fit_camera(screen, SIZE, ids, board_mm, corners[1], 0.35)
    assert flat.lens_terms == 0
    assert bent.lens_terms >= 1


def test_a_picture_edge_of_the_rectified_map_is_the_screen_edge(screen, board_mm, corners, lens):
    model, _ = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    map_x, map_y = model.rectify_maps(screen, 340, 736)
    assert map_x.shape == map_y.shape == (736, 340)
    assert map_x.dtype == map_y.dtype == np.float32
    # The first pixel's centre is half a rectified pixel inside the screen's corner.
    corner = lens.project([[screen.width_mm / 340 / 2, screen.height_mm / 736 / 2]])[0]
    assert np.hypot(map_x[0, 0] - corner[0], map_y[0, 0] - corner[1]) < 0.3


def test_a_misdetected_corner_is_dropped_and_named(screen, board_mm, corners, lens):
    corners[1][37] += [3.0, -2.0]
    model, quality = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    assert quality.outlier_ids == (37,)
    places = whole_screen(screen)
    assert np.linalg.norm(model.unproject(lens.project(places)) - places, axis=1).max() < 0.05


def test_many_misdetected_corners_are_refused(screen, board_mm, corners):
    corners[1][::6] += [4.0, 3.0]
    with pytest.raises(ResidualRefused, match="corners"):
        fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)


def test_corners_that_the_model_does_not_predict_are_refused(screen, board_mm, corners):
    shaken = corners[1] + np.random.default_rng(5).normal(0.0, 0.8, corners[1].shape)
    with pytest.raises(ResidualRefused, match="held-out"):
        fit_camera(screen, SIZE, corners[0], board_mm, shaken, 0.35)


def test_too_few_corners_are_refused(screen, board_mm, corners):
    with pytest.raises(CoverageRefused, match="112 corners"):
        fit_camera(screen, SIZE, corners[0][::3], board_mm, corners[1][::3], 0.35)


def test_corners_on_one_part_of_the_screen_are_refused(screen, board_mm, corners):
    left = board_mm[:, 0] < 0.70 * screen.width_mm
    with pytest.raises(CoverageRefused, match="width"):
        fit_camera(screen, SIZE, corners[0][left], board_mm, corners[1][left], 0.35)


def test_pixels_beyond_the_lens_model_are_refused(screen, board_mm, corners):
    model, _ = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    with pytest.raises(OutsideModel, match="inverse"):
        model.unproject(np.array([[9000.0, 9000.0]]))


def test_pixels_out_of_the_picture_are_refused_where_a_lens_has_an_inverse_too(screen, board_mm, corners):
    model, _ = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    straight = msgspec.structs.replace(model, k1=0.0, k2=0.0, p1=0.0, p2=0.0)
    with pytest.raises(OutsideModel):
        straight.unproject(np.array([[640.0, 360.0], [640.0, 2400.0]]))


def test_a_place_behind_the_fold_of_a_lens_is_not_taken_for_one_on_the_screen(screen, board_mm, corners):
    """At k1 = -0.5 no light comes from beyond 0.54 half diagonals; further out only the formula has a root."""
    model, _ = fit_camera(screen, SIZE, corners[0], board_mm, corners[1], 0.35)
    folded = msgspec.structs.replace(model, k1=-0.5, k2=0.0, p1=0.0, p2=0.0)
    right = np.array([model.radius_px, 0.0])
    edge = model.centre + 0.54 * right
    assert np.allclose(folded.project(folded.unproject(edge[None, :])), edge, atol=1e-6)
    with pytest.raises(OutsideModel, match="inverse"):
        folded.unproject((model.centre + 0.56 * right)[None, :])
    with pytest.raises(OutsideModel, match="inverse"):
        folded.unproject((model.centre - 1.3 * right)[None, :])


def test_pixels_beyond_the_horizon_are_refused():
    """The screen's plane, seen very much from below, ends half a half diagonal under the picture's middle."""
    model = CameraModel(
        image_width=1280,
        image_height=720,
        homography=(0.01, 0.0, -0.34, 0.0, 0.01, -0.3, 0.0, 0.02, 1.0),
        k1=0.0,
        k2=0.0,
        p1=0.0,
        p2=0.0,
    )
    below = np.array([0.0, model.radius_px])
    near = model.unproject((model.centre + 0.45 * below)[None, :])
    assert np.allclose(model.project(near), model.centre + 0.45 * below)
    with pytest.raises(OutsideModel, match="plane"):
        model.unproject((model.centre + 0.55 * below)[None, :])


def test_every_camera_of_thirty_is_true_over_the_whole_screen_to_a_tenth_of_a_mm(screen, board_mm, lens):
    """Five-term lenses, their middle up to 12 px off the picture's, 0.1 px of corner noise over five pictures."""
    edges = whole_screen(screen)
    for seed in range(30):
        random = np.random.default_rng([31, seed])
        camera = replace(
            lens,
            tilt=(*random.uniform(-0.1, 0.1, 2), np.pi / 2 + random.uniform(-0.03, 0.03)),
            distance_mm=270.0,
            focal_px=1960.0,
            centre_px=(639.5 + random.uniform(-12, 12), 359.5 + random.uniform(-9, 9)),
            distortion=(
                random.uniform(-0.15, -0.05),
                random.uniform(-0.03, 0.06),
                *random.uniform(-0.0008, 0.0008, 2),
                random.uniform(-0.02, 0.02),
            ),
        )
        px = camera.project(board_mm) + random.normal(0.0, 0.1 / np.sqrt(5.0), board_mm.shape)
        model, _ = fit_camera(screen, SIZE, np.arange(len(board_mm)), board_mm, px, 0.35)
        off = np.linalg.norm(model.unproject(camera.project(edges)) - edges, axis=1)
        assert off.max() <= 0.10
        assert np.median(off) <= 0.02


def test_a_principal_point_off_the_pictures_middle_is_worth_two_terms(screen, board_mm, lens):
    """p1 and p2 stand for it: a strong lens 60 px off is not followed by k1 and k2."""
    camera = replace(lens, centre_px=(700.0, 330.0), distortion=(-0.2, 0.05, 0.0, 0.0, 0.0))
    px = camera.project(board_mm) + np.random.default_rng(1).normal(0.0, 0.05, board_mm.shape)
    model, quality = fit_camera(screen, SIZE, np.arange(len(board_mm)), board_mm, px, 0.35)
    assert quality.lens_terms >= 3
    off = model.unproject(camera.project(whole_screen(screen))) - whole_screen(screen)
    assert np.linalg.norm(off, axis=1).max() < 0.06
