import numpy as np
import pytest

from calibration import Options, calibrate
from calibration.errors import (
    AcceptanceFailed,
    ContactNotFound,
    Declined,
    HalfOutOfView,
    NoDot,
    OptionsInvalid,
    OutOfReach,
    OutsideModel,
    PageChanged,
    ResidualRefused,
    RigMoved,
    TwoDots,
)
from calibration.rig import Envelope
from calibration.screen import ScreenGeometry


def true_errors(rig, calibration):
    """Where a noiseless hand would land when sent through the calibration, against where it was asked to."""
    grid = np.array([(x, y) for x in np.linspace(0, 1000, 9) for y in np.linspace(0, 1000, 15)])
    sent = calibration.hand.map_grid(grid) - rig.hand.backlash_mm / 2
    landed = np.array([rig.hand.reaches(place) for place in sent])
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
    assert len(verdict.touches) == 8
    assert verdict.max_mm <= 0.2
    assert verdict.p95_mm <= 0.15
    assert acceptance_errors(rig, calibration).max() <= 0.2


def test_the_reported_errors_are_the_true_ones_to_a_thirtieth_of_a_mm(calibrated):
    rig, calibration, _ = calibrated
    reported = np.array([touch.error_mm for touch in calibration.acceptance.touches])
    assert np.abs(reported - acceptance_errors(rig, calibration)).max() < 0.033


def test_the_whole_screen_is_right_and_not_only_the_touched_places(calibrated):
    assert true_errors(*calibrated[:2]).max() < 0.15


def test_the_acceptance_reaches_within_four_mm_of_all_four_corners(calibrated):
    targets = [touch.target_mm for touch in calibrated[1].acceptance.touches]
    for corner in ((4.0, 4.0), (64.0, 4.0), (64.0, 143.3), (4.0, 143.3)):
        assert min(np.hypot(x - corner[0], y - corner[1]) for x, y in targets) < 0.01


def test_held_out_places_are_places_that_the_fit_did_not_touch(calibrated):
    fitted = [r.seen_mm for r in calibrated[1].touches if r.step != "acceptance" and r.seen_mm]
    for touch in calibrated[1].acceptance.touches:
        assert min(np.hypot(x - touch.target_mm[0], y - touch.target_mm[1]) for x, y in fitted) > 2.4


def test_contact_heights_are_known_to_a_tenth_of_a_mm_everywhere(calibrated):
    rig, calibration, _ = calibrated
    grid = np.array([(x, y) for x in (0, 500, 1000) for y in (0, 500, 1000)], dtype=np.float64)
    off = [calibration.contact_z(x, y) - rig.hand.glass_z((x, y)) for x, y in calibration.hand.map_grid(grid)]
    assert np.abs(off).max() < 0.1


def test_no_touch_presses_further_than_one_coarse_step(calibrated):
    assert max(calibrated[0].overtravels) <= 1.05


def test_a_default_calibration_needs_at_most_sixty_touches_and_one_look_each(calibrated):
    rig, calibration, _ = calibrated
    assert len(calibration.touches) <= 60
    assert rig.looks == len(calibration.touches) + 5 + 1 + 1
    assert rig.asked == ["charuco", "dots", "charuco"]


def test_progress_names_each_step_with_its_caution_in_order(calibrated):
    told = calibrated[2]
    numbers = [progress.number for progress in told]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, told[0].steps + 1))
    assert all(progress.step.title and progress.step.caution for progress in told)
    assert told[-1].touches == len(calibrated[1].touches)


def test_a_press_deeper_than_the_hard_limit_is_refused(calibrated):
    calibration = calibrated[1]
    assert calibration.press_z(110.0, 90.0) == pytest.approx(calibration.contact_z(110.0, 90.0) - 0.3)
    for overtravel in (1.51, -0.1, float("nan")):
        with pytest.raises(OutsideModel, match="overtravel"):
            calibration.press_z(110.0, 90.0, overtravel)


@pytest.mark.parametrize(
    "hand",
    [
        {"rotation_rad": 1.6},
        {"rotation_rad": -3.0, "mirrored": True},
        {"glass": (0.04, -0.03, 3.0)},
        {"bow_mm": 0.5},
        {"centre_offset_mm": (-14.0, 30.0)},
    ],
    ids=["turned", "mirrored", "steep glass", "bowed", "off centre"],
)
def test_however_the_hand_stands_the_touches_land(hand, make_rig, screen):
    rig = make_rig(
        hand=hand,
        limits=Envelope(
            x_min_mm=10.0, x_max_mm=210.0, y_min_mm=-10.0, y_max_mm=190.0, z_min_mm=-8.0, z_max_mm=40.0
        ),
    )
    calibration = calibrate(rig, screen, Options.quick())
    assert len(calibration.acceptance.touches) == 5
    assert calibration.acceptance.max_mm < 0.3
    assert true_errors(rig, calibration).max() < 0.3
    assert max(rig.overtravels) <= 1.1


def test_a_phone_that_lies_across_the_picture_is_calibrated_too(make_rig, screen):
    rig = make_rig(lens={"tilt": (0.1, -0.08, 1.6), "distance_mm": 160.0})
    assert calibrate(rig, screen, Options.quick()).acceptance.max_mm < 0.2


def test_coming_from_one_side_lands_closer_than_coming_from_any(make_rig, screen):
    def typical(one_sided):
        run = calibrate(make_rig(one_sided=one_sided, hand={"backlash_mm": 0.3}), screen, Options.quick())
        return np.median([touch.error_mm for touch in run.acceptance.touches])

    assert typical(one_sided=True) < 0.7 * typical(one_sided=False)


def rig_that(rig_kind, **methods):
    return type("TroubledRig", (rig_kind,), methods)


def test_a_stylus_that_slips_before_the_acceptance_fails_it_and_the_worst_place_is_named(
    rig_kind, make_rig, screen
):
    def touch(self, x_mm, y_mm, press_z_mm):
        slip = 1.0 if len(self.landed) >= 39 else 0.0
        rig_kind.touch(self, x_mm + slip, y_mm, press_z_mm)

    with pytest.raises(AcceptanceFailed, match=r"landed 1\.\d\d mm .* from \(\d+\.\d, ") as caught:
        calibrate(make_rig(kind=rig_that(rig_kind, touch=touch)), screen, Options.quick())
    assert caught.value.acceptance.max_mm == pytest.approx(1.0, abs=0.2)
    assert not caught.value.acceptance.passed


def test_a_stricter_limit_refuses_what_the_default_accepts(make_rig, screen):
    with pytest.raises(AcceptanceFailed, match=r"the limit is 0\.05 mm"):
        calibrate(
            make_rig(hand={"noise_mm": 0.12}),
            screen,
            Options(held_out=5, grid_rows=3, acceptance_max_mm=0.05),
        )


def test_a_loose_stylus_is_refused_by_the_fit(make_rig, screen):
    with pytest.raises(ResidualRefused, match="stylus"):
        calibrate(make_rig(hand={"noise_mm": 0.5}), screen, Options.quick())


def test_a_phone_that_moves_during_the_calibration_is_noticed(rig_kind, make_rig, screen):
    def ask(self, request):
        if request.target == "charuco" and self.asked:
            self.lens = type(self.lens)(shift_mm=(1.9, -1.0))
        rig_kind.ask(self, request)

    with pytest.raises(RigMoved, match="fix the phone"):
        calibrate(make_rig(kind=rig_that(rig_kind, ask=ask)), screen, Options.quick())


def test_a_place_where_the_screen_feels_nothing_is_refused_and_named(rig_kind, make_rig, screen):
    def put_dot(self, place):
        if not (np.abs(np.asarray(place) - [34.0, 7.0]) < 5.0).all():
            rig_kind.put_dot(self, place)

    with pytest.raises(NoDot, match=r"\(34\.0, 7\.0\) mm"):
        calibrate(make_rig(kind=rig_that(rig_kind, put_dot=put_dot)), screen, Options.quick())


def test_a_second_finger_is_noticed(rig_kind, make_rig, screen):
    def put_dot(self, place):
        rig_kind.put_dot(self, place)
        self.dots.append((place[0] + 9.0, place[1]))
        self.page = self.dots_page()

    with pytest.raises(TwoDots):
        calibrate(make_rig(kind=rig_that(rig_kind, put_dot=put_dot)), screen, Options.quick())


def test_a_page_that_goes_away_under_the_touches_is_noticed(rig_kind, make_rig, screen):
    def put_dot(self, place):
        rig_kind.put_dot(self, place)
        self.page = np.full_like(self.page, 40)

    with pytest.raises(PageChanged):
        calibrate(make_rig(kind=rig_that(rig_kind, put_dot=put_dot)), screen, Options.quick())


def test_glass_below_the_hands_reach_is_refused_without_going_lower(make_rig, screen):
    rig = make_rig(hand={"glass": (0.0, 0.0, -7.0)})
    with pytest.raises(ContactNotFound, match="dots page"):
        calibrate(rig, screen, Options.quick())
    assert rig.landed == [None] * 17


def test_a_screen_whose_corner_is_out_of_reach_is_refused_before_the_hand_moves_there(make_rig, screen):
    rig = make_rig(
        limits=Envelope(
            x_min_mm=85.0, x_max_mm=135.0, y_min_mm=0.0, y_max_mm=180.0, z_min_mm=-5.0, z_max_mm=40.0
        )
    )
    with pytest.raises(OutOfReach, match="hand x = "):
        calibrate(rig, screen, Options.quick())


def test_a_hand_whose_middle_is_over_the_screens_rim_is_refused(make_rig, screen):
    with pytest.raises(OutOfReach, match="move the phone"):
        calibrate(make_rig(hand={"centre_offset_mm": (-29.0, 0.0)}), screen, Options.quick())


def test_a_screen_half_out_of_view_is_refused_before_any_touch(make_rig, screen):
    rig = make_rig(lens={"shift_mm": (0.0, -60.0)})
    with pytest.raises(HalfOutOfView):
        calibrate(rig, screen, Options.quick())
    assert rig.landed == []


def test_a_refusal_of_the_person_at_the_rig_ends_the_run(rig_kind, make_rig, screen):
    def ask(self, request):
        raise Declined("nobody is here")

    with pytest.raises(Declined, match="nobody"):
        calibrate(make_rig(kind=rig_that(rig_kind, ask=ask)), screen)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("held_out", 4),
        ("overtravel_limit_mm", 9.0),
        ("coarse_step_mm", 0.0),
        ("acceptance_max_mm", float("nan")),
        ("grid_columns", 1),
    ],
)
def test_an_option_out_of_its_safe_range_is_refused_by_name(name, value):
    with pytest.raises(OptionsInvalid, match=name):
        Options(**{name: value})


def test_options_that_could_press_beyond_the_hard_limit_are_refused():
    with pytest.raises(OptionsInvalid, match="coarse_step_mm presses"):
        Options(coarse_step_mm=1.2, overtravel_limit_mm=1.0)
    with pytest.raises(OptionsInvalid, match="overtravel_mm presses"):
        Options(coarse_step_mm=0.5, overtravel_mm=0.4, overtravel_limit_mm=0.7)


@pytest.mark.parametrize(("width_mm", "height_mm"), [(6.8, 14.73), (68.0, 120.0), (147.3, 68.0)])
def test_a_mistyped_screen_size_is_refused(width_mm, height_mm):
    with pytest.raises(OptionsInvalid, match="mm"):
        ScreenGeometry(width_px=1080, height_px=2340, width_mm=width_mm, height_mm=height_mm)
