import msgspec
import numpy as np
import pytest

from calibration import Options, calibrate
from calibration.backlash import require_taken_out
from calibration.errors import OutsideModel
from calibration.rig import Envelope
from calibration.solve import solve_again


def true_errors(rig, calibration):
    """Where a noiseless hand would land when sent through the calibration, against where it was asked to."""
    grid = np.array([(x, y) for x in np.linspace(0, 1000, 9) for y in np.linspace(0, 1000, 15)])
    sent = calibration.hand.model.map_grid(grid) - rig.arm.backlash_mm / 2
    landed = np.array([rig.arm.reaches(place) for place in sent])
    return np.linalg.norm(landed - calibration.screen.grid_to_mm(grid), axis=1)


def acceptance_errors(rig, calibration):
    """The acceptance touches' true errors, from the glass itself and not from the camera."""
    judged = [
        (r.target_mm, at)
        for r, at in zip(calibration.touches, rig.landed, strict=True)
        if r.step == "acceptance"
    ]
    return np.array([np.hypot(at[0] - target[0], at[1] - target[1]) for target, at in judged])


def test_a_default_calibration_lands_every_held_out_touch_within_two_tenths_of_a_mm(calibrated):
    rig, calibration, _ = calibrated
    verdict = calibration.acceptance
    assert len(verdict.touches) == 12
    assert verdict.max_mm <= 0.2
    assert verdict.p95_mm <= 0.15
    assert acceptance_errors(rig, calibration).max() <= 0.2


def test_the_reported_errors_are_the_true_ones_to_a_thirtieth_of_a_mm(calibrated):
    rig, calibration, _ = calibrated
    reported = np.array([touch.error_mm for touch in calibration.acceptance.touches])
    assert np.abs(reported - acceptance_errors(rig, calibration)).max() < 0.033


def test_the_whole_screen_is_right_and_not_only_the_touched_places(calibrated):
    assert true_errors(*calibrated[:2]).max() < 0.15


def test_the_acceptance_reaches_all_four_corners_three_mm_from_both_edges(calibrated):
    targets = [touch.target_mm for touch in calibrated[1].acceptance.touches]
    for corner in ((3.0, 3.0), (65.0, 3.0), (65.0, 144.3), (3.0, 144.3)):
        assert min(np.hypot(x - corner[0], y - corner[1]) for x, y in targets) < 0.01


def test_held_out_places_are_places_that_the_fit_did_not_touch(calibrated):
    fitted = [r.seen_mm for r in calibrated[1].touches if r.step != "acceptance" and r.seen_mm]
    for touch in calibrated[1].acceptance.touches:
        assert min(np.hypot(x - touch.target_mm[0], y - touch.target_mm[1]) for x, y in fitted) > 2.4


def test_the_fit_has_twenty_four_places_and_each_left_a_whole_dot(calibrated):
    whole = [r for r in calibrated[1].touches if r.whole and r.target_mm and r.step in ("plane", "grid")]
    assert len({r.target_mm for r in whole}) == 24


def test_contact_heights_are_known_to_a_tenth_of_a_mm_everywhere(calibrated):
    rig, calibration, _ = calibrated
    grid = np.array([(x, y) for x in (0, 500, 1000) for y in (0, 500, 1000)], dtype=np.float64)
    off = [
        calibration.hand.contact_z(x, y) - rig.arm.glass_z((x, y))
        for x, y in calibration.hand.model.map_grid(grid)
    ]
    assert np.abs(off).max() < 0.1


def test_no_touch_presses_further_than_one_coarse_step(calibrated):
    assert max(calibrated[0].overtravels) <= 1.05


def test_the_play_is_measured_to_a_twentieth_of_a_mm_and_its_error_is_told(calibrated):
    rig, calibration, _ = calibrated
    play = calibration.hand.backlash
    for measured, sigma in ((play.x_mm, play.x_sigma_mm), (play.y_mm, play.y_sigma_mm)):
        assert measured == pytest.approx(rig.arm.backlash_mm, abs=0.05)
        assert abs(measured - rig.arm.backlash_mm) < 3.0 * sigma
    require_taken_out(play, calibration.hand.approach_mm)


def test_only_the_touches_that_measure_the_play_come_from_the_high_side(calibrated):
    rig, calibration, _ = calibrated
    for record, touch in zip(calibration.touches, rig.touches, strict=True):
        assert record.approach == (touch.approach_x, touch.approach_y)
        assert record.approach == ("low", "low") or record.step == "backlash"


def test_a_default_calibration_needs_at_most_eighty_five_touches_and_one_change_of_page(calibrated):
    rig, calibration, _ = calibrated
    assert len(calibration.touches) <= 85
    # Board, marks and the last look; the twelve held-out touches are seen four at a time.
    assert rig.looks == 5 + 3 + (len(calibration.touches) - 12) + 12 // 4 + 3
    assert rig.asked == ["charuco", "dots"]
    assert len(rig.questions) == 1


def test_the_camera_part_holds_what_the_product_needs_of_it(calibrated):
    camera = calibrated[1].camera
    assert len(camera.marks) == 12
    assert camera.marks_mean_mm < 0.03
    assert camera.marks_max_mm < 0.08
    assert 0.0 < camera.noise_sigma < 2.0
    assert 150.0 < camera.checks.white_level < 255.0
    assert set(camera.reference.edges_px) == {"top", "right", "bottom", "left"}


def test_solving_the_stored_points_again_gives_the_same_calibration(calibrated):
    calibration = calibrated[1]
    again = solve_again(calibration)
    assert again.hand == calibration.hand
    assert again.camera == calibration.camera
    assert msgspec.structs.replace(again.acceptance, cause="") == calibration.acceptance


def test_a_press_deeper_than_the_hard_limit_is_refused(calibrated):
    calibration = calibrated[1]
    assert calibration.hand.press_z(110.0, 90.0) == pytest.approx(
        calibration.hand.contact_z(110.0, 90.0) - 0.3
    )
    for overtravel in (1.51, -0.1, float("nan")):
        with pytest.raises(OutsideModel, match="overtravel"):
            calibration.hand.press_z(110.0, 90.0, overtravel)


ROOMY = Envelope(x_min_mm=10.0, x_max_mm=210.0, y_min_mm=-10.0, y_max_mm=190.0, z_min_mm=-8.0, z_max_mm=40.0)


def test_a_hand_and_a_phone_that_lie_across_mirrored_on_bent_glass_are_calibrated_all_the_same(
    make_rig, screen
):
    rig = make_rig(
        hand={
            "rotation_rad": 1.6,
            "mirrored": True,
            "bow_mm": 0.3,
            "centre_offset_mm": (-8.0, 15.0),
            "glass": (0.04, -0.03, 3.0),
            "curved_mm": 0.15,
        },
        lens={"tilt": (0.1, -0.08, 1.6), "distance_mm": 160.0},
        limits=ROOMY,
    )
    calibration = calibrate(rig, screen, Options(board_looks=3, mark_looks=1))
    assert calibration.acceptance.max_mm < 0.3
    assert true_errors(rig, calibration).max() < 0.3
    assert max(rig.overtravels) <= 1.1
    assert 0.04 <= calibration.hand.contact_residual_mm <= 0.2
