import msgspec
import numpy as np
import pytest

from calibration import Options, verify
from calibration.errors import RigRefused, UpsideDown

QUICK = Options(mark_looks=1)


def test_a_calibration_that_holds_is_good_after_five_touches_and_one_page(calibrated, make_rig):
    rig, before, told = make_rig(), msgspec.json.encode(calibrated[1]), []
    found = verify(rig, calibrated[1], Options(), told.append)
    assert found.verdict == "good"
    assert found.good
    assert found.max_mm < 0.2
    assert found.p50_mm <= found.max_mm == found.worst.error_mm
    assert found.camera_shift_px < 0.1
    assert len(found.touches) == len(rig.touches) == 5
    assert rig.asked == ["dots"]
    assert rig.looks == 5 + 3
    assert msgspec.json.encode(calibrated[1]) == before
    assert told[-1].fraction == 1.0


def test_a_camera_that_moved_is_told_with_its_shift_and_nothing_is_touched(
    calibrated, make_rig, screen, lens
):
    moved = {"shift_mm": (1.8, -1.0)}
    rig = make_rig(lens=moved)
    found = verify(rig, calibrated[1], QUICK)
    middle = np.array([[34.0, 73.6]])
    true_px = np.linalg.norm(type(lens)(**moved).project(middle) - lens.project(middle))
    assert found.verdict == "moved"
    assert found.camera_shift_px == pytest.approx(true_px, abs=0.15)
    assert f"{found.camera_shift_px:.2f} px" in found.message
    assert rig.touches == []


def test_a_camera_that_moved_far_is_told_by_the_outline_and_without_a_number(calibrated, make_rig):
    found = verify(make_rig(lens={"shift_mm": (3.7, -1.0)}), calibrated[1], QUICK)
    assert (found.verdict, found.camera_shift_px) == ("moved", None)


def test_a_hand_that_slipped_is_told_with_the_worst_place(calibrated, make_rig):
    found = verify(make_rig(hand={"centre_offset_mm": (4.8, -9.0)}), calibrated[1], QUICK)
    assert found.verdict == "off"
    assert found.max_mm == pytest.approx(0.8, abs=0.15)
    x, y = found.worst.target_mm
    assert f"({x:.1f}, {y:.1f}) mm" in found.message
    assert "0.5 mm" in found.message


def test_a_screen_that_feels_nothing_is_a_verdict_and_not_an_error(calibrated, make_rig):
    rig = make_rig(mishaps=dict.fromkeys(range(100), "missed"))
    found = verify(rig, calibrated[1], Options(mark_looks=1, redo_max=1))
    assert (found.verdict, found.max_mm) == ("off", None)
    assert "no dot" in found.message
    assert len(rig.touches) == 2


def test_a_turned_page_is_no_verdict_on_the_calibration(calibrated, rig_kind, make_rig):
    def show(self, target, turn):
        rig_kind.show(self, target, "landscape_left")

    with pytest.raises(UpsideDown):
        verify(make_rig(kind=type("TurnedRig", (rig_kind,), {"show": show})), calibrated[1], QUICK)


def test_a_device_that_nothing_touches_cannot_be_verified_by_touches(calibrated, make_rig):
    untouched = msgspec.structs.replace(calibrated[1], hand=None, acceptance=None)
    with pytest.raises(RigRefused, match="nothing touches this device"):
        verify(make_rig(), untouched, QUICK)
