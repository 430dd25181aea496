import cv2
import numpy as np
import pytest

from calibration.detect import BoardFinder, MarkFinder
from calibration.errors import MarksOff, PageChanged, PictureRefused, TooDark, UpsideDown
from calibration.fit_camera import fit_camera
from calibration.models import CameraModel
from calibration.targets import TURNS, charuco_target, control_marks_mm, draw_charuco, draw_dots


@pytest.fixture(scope="module")
def models():
    return {}


@pytest.fixture
def camera(models, lens, screen, shoot) -> CameraModel:
    """What one look at the board says of the lens."""
    if "lens" not in models:
        target = charuco_target(screen.width_px, screen.height_px)
        view = BoardFinder(target).find(shoot(draw_charuco(screen.width_px, screen.height_px), lens))
        board_mm = screen.px_to_mm(target.corners_px())
        models["lens"], _ = fit_camera(screen, (1280, 720), view.ids, board_mm, view.px, 0.35)
    return models["lens"]


@pytest.fixture
def marks(screen):
    return control_marks_mm(screen.width_mm, screen.height_mm)


@pytest.fixture
def finder(camera, screen, marks):
    return MarkFinder(camera, screen, marks)


@pytest.fixture
def page(screen):
    def draw(dots=(), turn="portrait"):
        size = (screen.width_px, screen.height_px, screen.width_mm, screen.height_mm)
        return draw_dots(*size, dots, turn)

    return draw


def errors_mm(records):
    return np.array([np.subtract(record.seen_mm, record.drawn_mm) for record in records])


def test_every_mark_is_seen_where_it_is_drawn_without_a_common_shift(finder, page, lens, shoot, marks):
    records = finder.find(shoot(page(), lens))
    assert [record.drawn_mm for record in records] == marks
    errors = errors_mm(records)
    assert np.hypot(*errors.T).max() < 0.03
    assert np.abs(errors.mean(axis=0)).max() < 0.01


def test_a_model_that_is_half_a_pixel_off_shows_in_all_marks(camera, screen, marks, page, lens, shoot):
    shifted = make_shifted(camera, 0.5)
    errors = errors_mm(MarkFinder(shifted, screen, marks).find(shoot(page(), lens)))
    scale = camera.px_per_mm(np.array([[34.0, 73.6]]))[0]
    assert float(np.hypot(*errors.mean(axis=0))) == pytest.approx(0.5 / scale, rel=0.1)


def make_shifted(camera, px):
    """The same model with its picture moved to the right."""
    homography = np.array(camera.homography).reshape(3, 3)
    move = np.array([[1.0, 0.0, px / camera.radius_px], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return type(camera)(
        image_width=camera.image_width,
        image_height=camera.image_height,
        homography=tuple(float(v) for v in (move @ homography).ravel()),
        k1=camera.k1,
        k2=camera.k2,
        p1=camera.p1,
        p2=camera.p2,
    )


def test_marks_that_a_dot_laps_over_or_something_hides_are_left_out(finder, page, lens, shoot, marks):
    lapped = (marks[0][0] + 1.0, marks[0][1])
    picture = shoot(page([lapped]), lens)
    x, y = (int(v) for v in lens.project(np.array([marks[5]]))[0])
    picture[y - 8 : y + 8, x - 2 : x + 14] = (90, 120, 160)
    found = {record.drawn_mm for record in finder.find(picture)}
    assert found == set(marks) - {marks[0], marks[5]}


def test_touch_dots_as_near_as_they_are_allowed_do_not_pull_a_mark(finder, page, lens, shoot, marks):
    beside = [(x + 3.4, y) for x, y in marks if x < 60.0]
    errors = errors_mm(finder.find(shoot(page(beside), lens)))
    assert len(errors) == len(marks)
    assert np.hypot(*errors.T).max() < 0.03


@pytest.mark.parametrize("shown", [turn for turn in TURNS if turn != "portrait"])
def test_a_page_that_turned_is_refused_and_its_turn_named(shown, finder, page, lens, shoot):
    with pytest.raises(UpsideDown, match=f"fit {shown}, portrait was asked for"):
        finder.find(shoot(page(turn=shown), lens))


def test_marks_of_a_turned_page_are_found_when_asked_for(camera, screen, page, lens, shoot):
    for turn in TURNS:
        marks = control_marks_mm(screen.width_mm, screen.height_mm, turn)
        assert len(MarkFinder(camera, screen, marks).find(shoot(page(turn=turn), lens))) == len(marks)


def test_another_page_is_refused(finder, lens, shoot):
    with pytest.raises(PageChanged, match="front"):
        finder.find(shoot(draw_charuco(1080, 2340), lens))
    with pytest.raises(PageChanged, match="front"):
        finder.find(shoot(np.full((2340, 1080, 3), 170, np.uint8), lens))


def test_marks_further_off_than_the_limit_are_refused(finder, page, shoot, make_rig):
    pushed = make_rig(lens={"shift_mm": (2.3, -1.0)}).lens
    with pytest.raises(MarksOff, match=r"0\.\d+ mm off, the limit is 0\.5 mm"):
        finder.find(shoot(page(), pushed))


def test_a_screen_that_is_half_covered_is_refused(finder, page, lens, shoot):
    picture = shoot(page(), lens)
    picture[: picture.shape[0] // 2] = 40
    with pytest.raises(MarksOff, match="at least 60%"):
        finder.find(picture)


def test_a_dark_screen_and_another_picture_size_are_refused(finder, page, lens, shoot):
    with pytest.raises(TooDark):
        finder.find(shoot(page(), lens, gain=0.1))
    with pytest.raises(PictureRefused, match="resolution"):
        finder.find(shoot(page(), lens)[:700])


def test_a_move_since_the_start_is_told_in_pixels(finder, page, lens, shoot):
    start = shoot(page(), lens, roll=1)
    assert finder.shift_px(start) == (0.0, 0.0, 0.0)
    still = finder.shift_px(shoot(page([(30.0, 40.0)]), lens, roll=2))
    assert still.worst_px < 0.12
    assert np.hypot(still.dx_px, still.dy_px) < 0.05
    move = np.float32([[1, 0, 0.6], [0, 1, -0.3]])
    later = cv2.warpAffine(shoot(page(), lens, roll=3), move, (1280, 720), flags=cv2.INTER_CUBIC)
    shift = finder.shift_px(later)
    assert (shift.dx_px, shift.dy_px) == pytest.approx((0.6, -0.3), abs=0.06)
    assert shift.worst_px == pytest.approx(np.hypot(0.6, 0.3), abs=0.15)
