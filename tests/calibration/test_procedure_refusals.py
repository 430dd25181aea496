"""Bad input: each ends in a refusal that names it, before the hand has gone anywhere it should not."""

import numpy as np
import pytest

from calibration import Options, calibrate
from calibration.aims import aim_of
from calibration.errors import (
    AcceptanceFailed,
    BacklashTooLarge,
    BadExposure,
    Blurred,
    ContactNotFound,
    Declined,
    HalfOutOfView,
    MarksOff,
    NoDot,
    OptionsInvalid,
    OutOfReach,
    PageChanged,
    RigMoved,
    RigRefused,
    SecondBoard,
    TooDark,
    TwoDots,
    UpsideDown,
)
from calibration.models import ContactPlane
from calibration.places import grid_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.hand import touch_with_hand
from calibration.procedure.judging import judge
from calibration.procedure.place import touch_place
from calibration.rig import Envelope, HandTouch, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.targets import draw_charuco

QUICK = Options.quick()


def rig_that(rig_kind, **methods):
    return type("TroubledRig", (rig_kind,), methods)


@pytest.fixture
def touch_on(start_run, screen):
    """touch_on(rig): a quick calibration from the dots page on, the camera being known."""

    def run(rig):
        touch_with_hand(start_run(rig, QUICK), rig.hand, grid_places(screen, QUICK))

    return run


def with_second_board(page):
    """The page, with a board of the same kind lying on its lower half: another phone that shows it, say."""
    other = draw_charuco(540, 1170)[::2, ::2]
    seen = page.copy()
    seen[-other.shape[0] :, : other.shape[1]] = other
    return seen


@pytest.mark.parametrize(
    ("refusal", "rig"),
    [
        (HalfOutOfView, {"lens": {"shift_mm": (0.0, -60.0)}}),
        (Blurred, {"blur_px": 1.5}),
        (Blurred, {"blur_px": 6.0}),
        (TooDark, {"gain": 0.04}),
        (BadExposure, {"gain": 0.2}),
        (BadExposure, {"gain": 1.3}),
        (UpsideDown, {"board_turned": "landscape_left"}),
        (UpsideDown, {"board_turned": "landscape_right"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(map(str, value)),
)
def test_a_board_that_cannot_be_measured_is_refused_by_name_before_any_touch(refusal, rig, make_rig, screen):
    troubled = make_rig(**rig)
    with pytest.raises(refusal):
        calibrate(troubled, screen, QUICK)
    assert troubled.touches == []


def test_a_page_upside_down_is_noticed_by_the_calibration_before(calibrated, make_rig, screen):
    rig = make_rig(board_turned="portrait_upside_down")
    with pytest.raises(UpsideDown, match=r"180 degrees .* without the previous calibration"):
        calibrate(rig, screen, QUICK, previous=calibrated[1])
    assert rig.touches == []


def test_a_second_board_in_view_is_refused(rig_kind, make_rig, screen):
    def show(self, target, turn):
        rig_kind.show(self, target, turn)
        self.page = with_second_board(self.page)

    with pytest.raises(SecondBoard):
        calibrate(make_rig(kind=rig_that(rig_kind, show=show)), screen, QUICK)


def test_a_camera_model_that_the_control_marks_refute_moves_nothing(rig_kind, make_rig, screen):
    def show(self, target, turn):
        # Half a camera pixel between the board and the dots page: neither is seen where it is.
        rig_kind.show(self, target, turn)
        if target == "dots":
            self.page = np.roll(self.page, 1, axis=1)

    rig = make_rig(kind=rig_that(rig_kind, show=show))
    with pytest.raises(MarksOff, match=r"0\.1\d+ mm off on the mean, the limit is 0\.05 mm"):
        calibrate(rig, screen, QUICK)
    assert rig.touches == []


def test_a_dots_page_that_is_turned_is_refused_before_any_touch(rig_kind, make_rig, screen):
    def show(self, target, turn):
        rig_kind.show(self, target, "portrait_upside_down" if target == "dots" else turn)

    rig = make_rig(kind=rig_that(rig_kind, show=show))
    with pytest.raises(UpsideDown, match="dots page is turned"):
        calibrate(rig, screen, QUICK)
    assert rig.touches == []


@pytest.mark.parametrize(
    ("mishap", "refusal"),
    [("turned", UpsideDown), ("shoved", RigMoved), ("dark", TooDark)],
)
def test_what_happens_to_the_phone_under_a_touch_is_named(mishap, refusal, touch_on, make_rig):
    rig = make_rig(mishaps={10: mishap})
    with pytest.raises(refusal):
        touch_on(rig)
    assert len(rig.touches) == 11


def test_a_notification_that_stays_is_refused_and_nothing_is_touched_under_it(touch_on, make_rig):
    rig = make_rig(mishaps={10: "notification"}, banner_looks=1000)
    with pytest.raises(PageChanged):
        touch_on(rig)
    assert len(rig.touches) == 11


def test_touches_that_always_bounce_are_refused_after_as_many_tries_as_allowed(
    calibrated, start_run, make_rig
):
    rig = make_rig(mishaps=dict.fromkeys(range(100), "double"))
    run, aim = start_run(rig, Options(redo_max=2)), aim_of(calibrated[1])
    with pytest.raises(TwoDots, match=r"point 5 of the grid step, touched 3 times"):
        touch_place(run, "grid", 5, (30.0, 60.0), 3.0, lambda place, missed: aim(place))
    assert len(rig.touches) == 3
    assert [question.point for question in rig.questions] == [5, 5]


def test_a_place_where_the_screen_feels_nothing_is_refused_and_named(calibrated, start_run, make_rig):
    rig = make_rig(mishaps=dict.fromkeys(range(100), "missed"))
    run, aim = start_run(rig, Options()), aim_of(calibrated[1])
    with pytest.raises(NoDot, match=r"\(30\.0, 60\.0\) mm of the screen, pressing to .* touched 4 times"):
        touch_place(run, "grid", 5, (30.0, 60.0), 3.0, lambda place, missed: aim(place))


def test_a_person_who_will_not_repeat_a_touch_ends_the_run_with_its_refusal(
    calibrated, start_run, rig_kind, make_rig
):
    def ask(self, request):
        return "done" if isinstance(request, ShowTarget) and not rig_kind.ask(self, request) else "reject"

    rig = make_rig(kind=rig_that(rig_kind, ask=ask), mishaps={0: "missed"})
    rig.show("dots", "portrait")
    run, aim = start_run(rig, Options()), aim_of(calibrated[1])
    with pytest.raises(NoDot):
        touch_place(run, "grid", 5, (30.0, 60.0), 3.0, lambda place, missed: aim(place))
    assert len(rig.touches) == 1


def test_a_stylus_that_slips_fails_the_acceptance_and_the_worst_place_is_named(
    calibrated, start_run, make_rig
):
    def slipped(place):
        x, y = calibrated[1].hand.grid_to_hand(place[0] / 0.068, place[1] / 0.1473)
        return HandTouch(x + 1.0, y, calibrated[1].hand.press_z(x, y))

    run = start_run(make_rig(), Options(mark_looks=1))
    with pytest.raises(
        AcceptanceFailed,
        match=r"refused: max 1\.\d\d mm, the limit is 0\.5 mm; .* from \(\d+\.\d, .* likely cause: ",
    ) as caught:
        judge(run, FittingPlaces(run, [(5.0, 5.0)], slipped), lambda: slipped)
    assert caught.value.acceptance.max_mm == pytest.approx(1.0, abs=0.2)
    assert not caught.value.acceptance.passed


def test_play_that_coming_from_one_side_does_not_take_out_is_refused(touch_on, make_rig):
    rig = make_rig(hand={"backlash_mm": 0.65})
    with pytest.raises(BacklashTooLarge, match="approach"):
        touch_on(rig)
    assert {touch.approach_x for touch in rig.touches} == {"low", "high"}


def test_glass_below_the_hands_reach_is_refused_without_going_lower(touch_on, make_rig):
    rig = make_rig(hand={"glass": (0.0, 0.0, -7.0)})
    with pytest.raises(ContactNotFound, match="dots page"):
        touch_on(rig)
    assert rig.landed == [None] * 17
    assert min(touch.press_z_mm for touch in rig.touches) == rig.limits.z_min_mm


def test_a_screen_whose_corner_is_out_of_reach_is_refused_before_the_hand_moves_there(touch_on, make_rig):
    rig = make_rig(
        limits=Envelope(
            x_min_mm=85.0, x_max_mm=135.0, y_min_mm=0.0, y_max_mm=180.0, z_min_mm=-5.0, z_max_mm=40.0
        )
    )
    with pytest.raises(OutOfReach, match="hand x = "):
        touch_on(rig)


def test_a_hand_whose_middle_is_over_the_screens_rim_is_refused(touch_on, make_rig):
    with pytest.raises(OutOfReach, match="move the phone"):
        touch_on(make_rig(hand={"centre_offset_mm": (-29.0, 0.0)}))


def test_nothing_is_pressed_deeper_than_the_hard_limit_below_a_known_surface(start_run, make_rig):
    rig = make_rig()
    run = start_run(rig, Options(mark_looks=1))
    run.session.surface = ContactPlane(a=0.0, b=0.0, c=3.0)
    with pytest.raises(OutOfReach, match=r"1\.52 mm beyond the glass, the hard limit is 1\.5 mm"):
        run.session.touch("grid", HandTouch(110.0, 90.0, 3.0 - 1.52), None)
    assert rig.touches == []
    run.session.touch("grid", HandTouch(110.0, 90.0, 3.0 - 1.5), None)
    assert len(rig.touches) == 1


@pytest.mark.parametrize(("side", "x_mm"), [("low", 20.5), ("high", 199.5)])
def test_a_place_that_can_only_be_come_to_from_beyond_the_envelope_is_out_of_reach(
    side, x_mm, start_run, make_rig
):
    rig = make_rig()
    run = start_run(rig, Options(mark_looks=1))
    with pytest.raises(OutOfReach, match="hand x"):
        run.session.touch("grid", HandTouch(x_mm, 90.0, 3.0, approach_x=side), None)
    assert rig.touches == []


def test_a_refusal_of_the_person_at_the_rig_ends_the_run(rig_kind, make_rig, screen):
    def ask(self, request):
        raise Declined("nobody is here")

    with pytest.raises(Declined, match="nobody"):
        calibrate(make_rig(kind=rig_that(rig_kind, ask=ask)), screen)


def test_a_rig_without_a_hand_is_refused_in_words(hid_rig_kind, make_rig, screen):
    with pytest.raises(RigRefused, match="measure_camera"):
        calibrate(make_rig(kind=hid_rig_kind), screen)


def test_whichever_verb_fails_the_run_ends_in_its_error_and_calls_no_other(calibrated):
    rig = calibrated[0]
    assert len(rig.ended) == rig.looks + len(rig.touches) + len(rig.asked) + len(rig.questions)
    assert set(rig.ended) == {0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("held_out", 11),
        ("overtravel_limit_mm", 9.0),
        ("coarse_step_mm", 0.0),
        ("acceptance_max_mm", float("nan")),
        ("grid_columns", 1),
        ("redo_max", -1),
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
