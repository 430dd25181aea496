"""What a calibration makes of raw pictures: the screen from edge to edge, in each way it can be turned."""

import cv2
import numpy as np
import pytest

from calibration.targets import TURNS, Turn, control_marks_mm
from calibration.targets.dots import page_marks_mm
from calibration.targets.turns import is_landscape
from edge_daemon.bench.camera.seen_screen import calibration_of, raw_picture
from edge_daemon.bench.camera.turned_apps import TurnedApp
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.devices.orientation import to_portrait
from edge_daemon.devices.sight import LONG_SIDE_PX, STATUS_BAR_SHARE, Sight, outline_px

PORTRAIT_MM = (SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM)


@pytest.fixture(scope="module")
def rig() -> VirtualRig:
    return VirtualRig(Truth(7))


@pytest.fixture(scope="module")
def sight(rig: VirtualRig) -> Sight:
    return Sight.of(calibration_of(rig))


def picture_of(rig: VirtualRig, page: str, turn: Turn = "portrait") -> bytes:
    rig.phone.show_page(page, now_ns=rig.now_ns, turn=turn)
    rig.pass_ms(100)
    return raw_picture(rig)


def decoded(file: bytes) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return image


def dark_centre(grey: np.ndarray, x: float, y: float, reach: int) -> tuple[float, float]:
    """Where the dark disc around (x, y) has its middle; px from the picture's edge."""
    left, top = round(x) - reach, round(y) - reach
    patch = grey[top : top + 2 * reach, left : left + 2 * reach].astype(np.float64)
    rim = np.median(np.concatenate([patch[0], patch[-1], patch[:, 0], patch[:, -1]]))
    weight = np.clip(rim - patch - 0.15 * rim, 0.0, None)
    rows, columns = np.mgrid[0 : patch.shape[0], 0 : patch.shape[1]]
    total = weight.sum()
    return (
        left + float((weight * columns).sum() / total) + 0.5,
        top + float((weight * rows).sum() / total) + 0.5,
    )


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("image_format", ["png", "jpeg"])
def test_the_pictures_edges_are_the_grids_edges_in_every_turn(
    rig: VirtualRig, sight: Sight, turn: Turn, image_format
) -> None:
    shown, found = sight.show(picture_of(rig, "dots", turn), image_format, turn)
    grey = cv2.cvtColor(decoded(shown.image), cv2.COLOR_BGR2GRAY)
    width, height = shown.width, shown.height
    assert (height, width) == grey.shape
    assert max(width, height) == LONG_SIDE_PX
    assert (width > height) == is_landscape(turn)
    across_mm, down_mm = PORTRAIT_MM[::-1] if is_landscape(turn) else PORTRAIT_MM
    marks_mm = page_marks_mm(*PORTRAIT_MM, landscape=is_landscape(turn))
    expected = marks_mm / (across_mm, down_mm) * (width, height)
    seen = np.array([dark_centre(grey, x, y, 12) for x, y in expected])
    # What the marks say of the whole picture, carried out to its edges.
    design = np.column_stack([expected, np.ones(len(expected))])
    affine, *_ = np.linalg.lstsq(design, seen, rcond=None)
    corners = np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    off_px = np.linalg.norm(np.column_stack([corners, np.ones(4)]) @ affine - corners, axis=1)
    assert off_px.max() < 0.5
    assert found.orientation == turn


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("bars", ["android", "ios"])
def test_an_app_tells_how_it_is_turned_through_the_camera(
    rig: VirtualRig, sight: Sight, turn: Turn, bars
) -> None:
    for app in ("settings", "music"):
        page = TurnedApp(rig.phone, app, turn, bars)
        rig.phone.add_page(page)
        jpeg = picture_of(rig, page.name)
        for shown_in in ("portrait", turn):
            assert sight.show(jpeg, "jpeg", shown_in)[1].orientation == turn


@pytest.mark.parametrize("turn", TURNS)
def test_the_strip_whose_clock_is_ignored_lies_along_the_top_as_it_is_read(sight: Sight, turn: Turn) -> None:
    camera, screen = sight.calibration.camera.model, sight.calibration.screen
    grid = screen.mm_to_grid(camera.unproject(np.array(sight.status_bars[turn])))
    tall = STATUS_BAR_SHARE * SCREEN_HEIGHT_MM
    bottom = 1000.0 * tall / (SCREEN_WIDTH_MM if is_landscape(turn) else SCREEN_HEIGHT_MM)
    as_read = [(0.0, 0.0), (1000.0, 0.0), (1000.0, bottom), (0.0, bottom)]
    assert grid == pytest.approx(np.array([to_portrait(x, y, turn) for x, y in as_read]), abs=0.01)


def test_the_outline_is_where_the_glass_truly_ends(rig: VirtualRig, sight: Sight) -> None:
    true_px = rig.sensor.truth_project(sight.calibration.screen.outline_mm())
    assert np.linalg.norm(np.array(outline_px(sight.calibration)) - true_px, axis=1).max() < 0.5


def test_a_picture_is_not_written_over_by_the_next(rig: VirtualRig, sight: Sight) -> None:
    first, second = picture_of(rig, "launcher"), picture_of(rig, "settings")
    shown = sight.show(first, "png", "portrait")[0]
    kept = bytes(shown.image)
    other = sight.show(second, "png", "portrait")[0]
    assert shown.image == kept != other.image
    assert sight.show(first, "png", "portrait")[0].image == kept


def test_the_marks_of_the_four_turns_are_apart() -> None:
    """The check above would not see a wrong turn if they were not."""
    places = {turn: np.array(control_marks_mm(*PORTRAIT_MM, turn)) for turn in TURNS}
    for turn, marks in places.items():
        for other, others in places.items():
            apart = np.linalg.norm(marks[:, None] - others[None], axis=2).min()
            assert (apart > 2.0) == (turn != other)
