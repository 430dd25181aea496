"""The hidden truth: reproducible, different from seed to seed, and always a rig that could be built."""

import numpy as np
import pytest

from edge_daemon.bench.twin.frames import HOME, screen_to_world_mm
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, project, undistort, unproject
from edge_daemon.bench.twin.stylus import StylusArtist
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

SEEDS = range(150)
CORNERS_MM = np.array(
    [(0.0, 0.0), (SCREEN_WIDTH_MM, 0.0), (SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM), (0.0, SCREEN_HEIGHT_MM)]
)


def test_the_same_seed_gives_the_same_truth_and_another_seed_another() -> None:
    assert Truth(11) == Truth(11)
    assert Truth(11).hand != Truth(12).hand
    assert Truth(11).camera != Truth(12).camera
    assert Truth(11).glass != Truth(12).glass


def test_every_parameter_stays_in_its_stated_range() -> None:
    for seed in SEEDS:
        truth = Truth(seed)
        hand, glass, camera = truth.hand, truth.glass, truth.camera
        assert abs(hand.scale_x - 1) <= 0.015
        assert abs(hand.scale_y - 1) <= 0.015
        assert abs(np.degrees(hand.rotation_rad)) <= 3
        assert abs(np.degrees(hand.skew_rad)) <= 0.5
        assert max(abs(hand.offset_x_mm), abs(hand.offset_y_mm)) <= 6
        assert 0.1 <= hand.backlash_x_mm <= 0.2
        assert 0.1 <= hand.backlash_y_mm <= 0.2
        heights = [glass.height_mm(x, y) for x, y, _ in screen_to_world_mm(CORNERS_MM)]
        assert 0.1 <= np.ptp(heights) <= 0.6 + 1e-9
        assert min(heights) >= -1.01
        assert max(heights) <= 1.01
        assert np.degrees(camera.pose.tilt_rad) <= 6
        assert -0.15 <= camera.lens.k1 <= -0.05
        assert 1.0 <= camera.noise_sigma <= 2.5
        assert 40 <= camera.latency_ms <= 90
        assert 6 <= camera.exposure_ms <= 12


def test_the_whole_screen_is_in_the_picture_and_spans_most_of_its_width() -> None:
    for seed in SEEDS:
        camera = Truth(seed).camera
        corners = project(camera.lens, camera.pose, screen_to_world_mm(CORNERS_MM))
        assert corners.min() >= 8, seed
        assert corners[:, 0].max() <= PICTURE_WIDTH_PX - 8, seed
        assert corners[:, 1].max() <= PICTURE_HEIGHT_PX - 8, seed
        assert np.ptp(corners[:, 0]) >= 0.8 * PICTURE_WIDTH_PX, seed


def test_the_hand_reaches_the_whole_screen() -> None:
    for seed in SEEDS:
        hand = Hand(Truth(seed), 0)
        for x, y, _ in screen_to_world_mm(CORNERS_MM):
            x_mm, y_mm = hand.to_hand_mm(x, y)
            assert 5 <= x_mm <= 195, seed
            assert 5 <= y_mm <= 125, seed


def test_a_parked_hand_is_out_of_every_camera_s_picture_with_its_shadow() -> None:
    nothing_lit = np.zeros((PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX), dtype=np.uint8)
    for seed in SEEDS:
        truth = Truth(seed)
        artist = StylusArtist(truth.camera.lens, truth.camera.pose, HOME, nothing_lit)
        assert not artist.covers(Hand(truth, 0).pose()), seed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_looking_up_a_picture_px_undoes_the_projection(seed: int) -> None:
    camera = Truth(seed).camera
    world = np.array([(x, y, 0.0) for x in (-73.0, 0.0, 60.0) for y in (-34.0, 5.0, 30.0)])
    pixels = project(camera.lens, camera.pose, world)
    assert np.abs(unproject(camera.lens, camera.pose, pixels) - world[:, :2]).max() < 1e-6
    assert undistort(camera.lens, np.zeros((1, 2))) == pytest.approx(np.zeros((1, 2)))
