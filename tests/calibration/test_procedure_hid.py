import numpy as np
import pytest

from calibration import Options, calibrate_digitizer, calibrate_pointer
from calibration.errors import FitRefused, NoDot, OutOfReach, ResidualRefused
from calibration.procedure.digitizer import touch_digitizer
from calibration.procedure.pointer import click_pointer
from calibration.procedure.turned_page import with_the_page
from calibration.rig import DigitizerTouch

QUICK = Options(board_looks=3, mark_looks=1)
MARGINS = (0.04, 0.01, 0.02, 0.03)


def test_a_digitizers_margins_are_found_and_its_area_keeps_the_portrait_screen(
    hid_rig_kind, make_rig, screen
):
    rig, told = make_rig(kind=hid_rig_kind, margins=MARGINS), []
    calibration = calibrate_digitizer(rig, screen, QUICK, told.append)
    part = calibration.digitizer
    assert calibration.acceptance.passed
    assert len(calibration.acceptance.touches) == 12
    assert calibration.acceptance.max_mm < 0.1
    for u, v in ((0.0, 0.0), (1.0, 0.0), (0.5, 1.0)):
        x, y = part.model.grid_to_fraction(1000.0 * u, 1000.0 * v)
        assert x == pytest.approx((u + 0.04) / 1.06, abs=1e-3)
        assert y == pytest.approx((v + 0.01) / 1.04, abs=1e-3)
    assert (part.turn, part.area) == ("portrait", "keeps")
    assert rig.asked == ["charuco", "dots", "dots"]
    assert len(part.touches) == len(rig.touches) == 3 + 12 + 12 + 4
    assert calibration.hand is None
    assert told[-1].fraction == 1.0


@pytest.mark.parametrize(("turns_with_page", "area"), [(True, "turns"), (False, "keeps")])
def test_whether_the_area_turns_with_the_page_is_told_for_a_page_in_landscape(
    turns_with_page, area, hid_rig_kind, make_rig, start_run
):
    rig = make_rig(kind=hid_rig_kind, turns_with_page=turns_with_page)
    run = start_run(rig, QUICK, turn="landscape_right")
    part = touch_digitizer(run, "landscape_right", "portrait").digitizer
    assert (part.turn, part.area) == ("landscape_right", area)


def test_a_place_turns_with_the_page_as_the_contract_names_the_turns(screen):
    # The page's top left: on the phone turned counter-clockwise it is at the portrait screen's top right.
    assert with_the_page(screen, (0.0, 0.0), "portrait", "landscape_left") == pytest.approx([68.0, 0.0])
    assert with_the_page(screen, (0.0, 0.0), "portrait", "portrait_upside_down") == pytest.approx(
        [68.0, 147.3]
    )
    there = with_the_page(screen, (10.0, 30.0), "landscape_left", "landscape_right")
    assert with_the_page(screen, tuple(there), "landscape_right", "landscape_left") == pytest.approx(
        [10.0, 30.0]
    )


def test_an_area_that_does_neither_in_the_other_turn_is_refused(hid_rig_kind, make_rig, start_run):
    def tap(self, touch):
        place = hid_rig_kind.tap(self, touch)
        return place + np.array([3.0, 0.0]) if self.turn == "landscape_left" else place

    rig = make_rig(kind=type("OddRig", (hid_rig_kind,), {"tap": tap}))
    with pytest.raises(FitRefused, match="calibrate in landscape_left by itself"):
        touch_digitizer(start_run(rig, QUICK), "portrait", "landscape_left")


def test_a_digitizer_whose_area_ends_within_the_screen_is_refused(hid_rig_kind, make_rig, start_run):
    rig = make_rig(kind=hid_rig_kind, margins=(-0.02, 0.0, 0.0, 0.0))
    with pytest.raises(FitRefused, match=r"cannot be touched: left 20\.\d"):
        touch_digitizer(start_run(rig, QUICK), "portrait", None)


def test_fractions_beyond_the_digitizers_axes_are_never_sent(hid_rig_kind, make_rig, start_run):
    rig = make_rig(kind=hid_rig_kind)
    run = start_run(rig, QUICK)
    with pytest.raises(OutOfReach, match="0 to 1"):
        run.session.touch("grid", DigitizerTouch(1.001, 0.5), None)
    assert rig.touches == []


def test_a_pointers_gain_and_home_corner_are_found_from_nothing(hid_rig_kind, make_rig, screen):
    rig = make_rig(kind=hid_rig_kind, mm_per_count=(0.083, 0.091), home_mm=(0.6, 0.9))
    calibration = calibrate_pointer(rig, screen, QUICK)
    model = calibration.pointer.model
    assert (model.mm_per_count_x, model.mm_per_count_y) == pytest.approx((0.083, 0.091), rel=2e-3)
    assert (model.home_x_mm, model.home_y_mm) == pytest.approx((0.6, 0.9), abs=0.1)
    assert (model.step_counts, model.home_counts) == (QUICK.pointer_step_counts, QUICK.pointer_home_counts)
    assert calibration.acceptance.passed
    # Whole counts: half of one in both directions at most, and what the camera adds.
    assert calibration.acceptance.max_mm < np.hypot(0.083, 0.091) / 2.0 + 0.05
    assert rig.asked == ["charuco", "dots"]


def test_a_small_gain_is_found_without_asking_anybody(hid_rig_kind, make_rig, start_run):
    rig = make_rig(kind=hid_rig_kind, mm_per_count=(0.02, 0.02))
    part = click_pointer(start_run(rig, QUICK)).pointer
    assert part.model.mm_per_count_x == pytest.approx(0.02, rel=5e-3)
    assert len(rig.questions) == 1


def test_an_accelerated_pointer_is_refused_with_its_cause(hid_rig_kind, make_rig, start_run):
    rig = make_rig(kind=hid_rig_kind, bend=0.04)
    with pytest.raises(ResidualRefused, match="pointer acceleration: lower step_counts"):
        click_pointer(start_run(rig, QUICK))


def test_a_phone_that_shows_no_pointer_is_refused_after_a_few_clicks(hid_rig_kind, make_rig, start_run):
    rig = make_rig(kind=hid_rig_kind, mishaps=dict.fromkeys(range(100), "missed"))
    with pytest.raises(NoDot, match="shows a pointer"):
        click_pointer(start_run(rig, QUICK))
    assert len(rig.touches) == 5
