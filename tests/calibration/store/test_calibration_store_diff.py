import msgspec
import numpy as np
import pytest

from calibration.fit_hid import DigitizerModel, HidQuality, PointerModel
from calibration.result import DigitizerPart, PointerPart
from calibration.store import diff, unsaved

change = msgspec.structs.replace
QUALITY = HidQuality(leave_one_out_rms_mm=0.03, places=15, outliers=())


@pytest.fixture
def compared(calibration, conditions):
    """compared(after, before=calibration): the difference of two calibrations."""

    def compare(after, before=calibration):
        return diff(unsaved(before, conditions), unsaved(after, conditions))

    return compare


def test_equal_calibrations_differ_in_nothing(compared, calibration):
    same = compared(calibration)
    assert same.touch.max == pytest.approx(0.0, abs=1e-9)
    assert same.camera.max_mm == pytest.approx(0.0, abs=1e-9)
    assert same.contact.corners_mm == (0.0, 0.0, 0.0, 0.0)
    assert all(figure.before == figure.after for figure in same.figures)


def test_a_shift_of_the_hand_is_told_as_a_shift_in_mm(compared, shifted):
    touch = compared(shifted(0.25)).touch
    assert (touch.unit, touch.shift) == ("mm", pytest.approx((0.25, 0.0)))
    assert (touch.mean, touch.max) == (pytest.approx(0.25), pytest.approx(0.25))
    assert (touch.rotation_deg, touch.scale, touch.rest) == (
        pytest.approx(0.0, abs=1e-9),
        pytest.approx(1.0),
        pytest.approx(0.0, abs=1e-9),
    )


def test_a_turned_and_stretched_hand_is_told_as_rotation_and_scale(compared, calibration):
    model = calibration.hand.model
    c = np.array(model.coefficients).reshape(2, 3)
    turn = 1.002 * np.array([[np.cos(0.01), -np.sin(0.01)], [np.sin(0.01), np.cos(0.01)]])
    c[:, 1:] = turn @ c[:, 1:]
    hand = change(calibration.hand, model=change(model, coefficients=tuple(float(v) for v in c.ravel())))
    touch = compared(change(calibration, hand=hand)).touch
    assert touch.rotation_deg == pytest.approx(np.degrees(0.01))
    assert touch.scale == pytest.approx(1.002)
    assert touch.rest == pytest.approx(0.0, abs=1e-9)
    assert touch.max > touch.mean > 0.1


def test_a_moved_camera_is_told_in_px_and_in_mm_on_the_screen(compared, calibration):
    model = calibration.camera.model
    move = np.eye(3)
    move[0, 2] = 3.0 / model.radius_px
    straight = change(model, k1=0.0)
    moved = change(
        straight,
        homography=tuple(float(v) for v in (move @ np.array(model.homography).reshape(3, 3)).ravel()),
    )

    def seen_by(camera_model):
        return change(calibration, camera=change(calibration.camera, model=camera_model))

    camera = compared(seen_by(moved), seen_by(straight)).camera
    assert camera.picture.unit == "px"
    assert camera.picture.shift == pytest.approx((3.0, 0.0))
    assert camera.picture.rest == pytest.approx(0.0, abs=1e-9)
    middle = calibration.screen.grid_to_mm(np.array([[500.0, 500.0]]))
    assert camera.mean_mm == pytest.approx(3.0 / straight.px_per_mm(middle)[0], rel=0.05)
    assert camera.bed_max_px is None


def test_another_picture_size_cannot_be_compared_and_that_is_said(compared, calibration):
    other = change(calibration.camera.model, image_width=1920, image_height=1080)
    difference = compared(change(calibration, camera=change(calibration.camera, model=other)))
    assert difference.camera is None
    assert any("picture's size changed" in line for line in difference.lines())


def test_a_raised_corner_of_the_glass_is_told_at_that_corner(compared, calibration):
    hand = calibration.hand
    x, _ = hand.model.grid_to_hand(0.0, 0.0)
    contact = hand.contact
    tilted = change(contact, a=contact.a + 0.01, c=contact.c - 0.01 * x)
    difference = compared(change(calibration, hand=change(hand, contact=tilted)))
    assert difference.contact.corners_mm[0] == pytest.approx(0.0, abs=1e-9)
    assert difference.contact.corners_mm[1] == pytest.approx(
        0.01 * (hand.model.grid_to_hand(1000.0, 0.0)[0] - x)
    )


def test_figures_that_only_one_has_are_told_as_not_measured(compared, calibration):
    before = change(calibration, hand=change(calibration.hand, backlash=None))
    lines = compared(calibration, before).lines()
    assert "backlash x: not measured → 0.151 mm" in lines


def digitizer(offset):
    return DigitizerPart(
        model=DigitizerModel(x=(0.1 + offset, 0.8, 0.0), y=(0.0, 0.0, 1.0)), quality=QUALITY, touches=()
    )


def test_a_digitizers_margin_is_told_as_mm_on_the_screen(compared, calibration):
    first = change(calibration, hand=None, digitizer=digitizer(0.0))
    second = change(calibration, hand=None, digitizer=digitizer(0.008))
    touch = compared(second, first).touch
    assert touch.shift == pytest.approx((0.008 / 0.8 * calibration.screen.width_mm, 0.0))
    assert touch.rest == pytest.approx(0.0, abs=1e-9)


def test_a_pointers_gain_is_told_as_scale_and_as_the_worst_place(compared, calibration):
    def pointer(gain, home_x_mm=0.0):
        model = PointerModel(
            mm_per_count_x=gain, mm_per_count_y=gain, step_counts=8, home_counts=4000, home_x_mm=home_x_mm
        )
        return change(calibration, hand=None, pointer=PointerPart(model=model, quality=QUALITY, touches=()))

    touch = compared(pointer(0.1), pointer(0.101)).touch
    screen = calibration.screen
    assert touch.scale == pytest.approx(1.01)
    assert touch.max == pytest.approx(0.01 * np.hypot(screen.width_mm, screen.height_mm))
    assert compared(pointer(0.1, 0.4), pointer(0.1)).touch.shift == pytest.approx((-0.4, 0.0), abs=1e-9)
    assert compared(pointer(0.1), pointer(0.1, 0.4)).touch.shift == pytest.approx((0.4, 0.0), abs=1e-9)
