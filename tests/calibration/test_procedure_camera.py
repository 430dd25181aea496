import msgspec
import pytest

from calibration import Options, measure_camera, recalibrate_camera
from calibration.errors import CameraMismatch, MarksOff

QUICK = Options(board_looks=3, mark_looks=1)


def test_the_camera_alone_is_measured_judged_and_touches_nothing(hid_rig_kind, make_rig, screen, lens):
    rig = make_rig(kind=hid_rig_kind)
    camera = measure_camera(rig, screen, QUICK)
    outline = screen.outline_mm()
    assert abs(camera.model.project(outline) - lens.project(outline)).max() < 0.2
    assert len(camera.marks) == 12
    assert camera.marks_max_mm < 0.1
    assert rig.asked == ["charuco", "dots"]
    assert rig.touches == []


def test_a_camera_that_moved_keeps_the_hands_part(calibrated, make_rig, screen):
    rig = make_rig(lens={"shift_mm": (4.0, 2.0)})
    camera = measure_camera(rig, screen, QUICK, previous=calibrated[1])
    renewed = recalibrate_camera(calibrated[1], camera)
    assert renewed.camera == camera != calibrated[1].camera
    assert renewed.hand == calibrated[1].hand
    assert renewed.acceptance == calibrated[1].acceptance


def test_a_camera_with_another_picture_size_is_not_put_under_an_old_hand(calibrated):
    camera = calibrated[1].camera
    other = msgspec.structs.replace(camera, model=msgspec.structs.replace(camera.model, image_width=1920))
    with pytest.raises(CameraMismatch, match="1920 x 720"):
        recalibrate_camera(calibrated[1], other)


def test_a_limit_that_the_marks_do_not_keep_refuses_the_camera(hid_rig_kind, make_rig, screen):
    with pytest.raises(MarksOff, match=r"the limit is 0\.01 mm"):
        measure_camera(
            make_rig(kind=hid_rig_kind), screen, Options(board_looks=3, mark_looks=1, marks_max_mm=0.01)
        )
