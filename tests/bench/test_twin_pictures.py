"""What a picture may have wrong with it, each by a clear switch, and that geometry is the same at any quality."""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from calibration import targets
from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.frames import HOME, PX_PER_MM_X, PX_PER_MM_Y, Placement
from edge_daemon.bench.twin.picture_options import Glare, PictureOptions
from edge_daemon.bench.twin.scenery import StrayBoard
from edge_daemon.bench.twin.screen_warp import ScreenWarp
from edge_daemon.bench.twin.shutter import RollingShutter
from edge_daemon.bench.twin.truth import (
    SCREEN_HEIGHT_MM,
    SCREEN_HEIGHT_PX,
    SCREEN_WIDTH_MM,
    SCREEN_WIDTH_PX,
    Truth,
)
from edge_daemon.bench.twin.view import View
from edge_daemon.bench.twin.virtual import VirtualRig

TRUTH = Truth(6)
S = 1_000_000_000
Grey = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def shared() -> VirtualRig:
    return VirtualRig(TRUTH, quality="realtime")


@pytest.fixture
def rig(shared: VirtualRig) -> VirtualRig:
    """One rig for all tests of this file: building its picture takes a second. It comes as new."""
    shared.phone.set_brightness(1.0, shared.now_ns)
    shared.phone.show_page("dots", shared.now_ns)
    if shared.sensor.options != PictureOptions():
        shared.sensor.set_options(PictureOptions())
    shared.pass_ms(8_000)
    return shared


def picture(rig: VirtualRig) -> Grey:
    jpeg = np.frombuffer(rig.take_picture().jpeg, dtype=np.uint8)
    decoded = cv2.imdecode(jpeg, cv2.IMREAD_GRAYSCALE)
    assert decoded is not None
    return decoded.astype(np.float64)


def around(rig: VirtualRig, x_mm: float, y_mm: float, reach: int = 12) -> tuple[slice, slice]:
    x, y = rig.sensor.truth_project(np.array([[x_mm, y_mm]]))[0].round().astype(int)
    return slice(y - reach, y + reach), slice(x - reach, x + reach)


def board_errors_px(rig: VirtualRig, turn: targets.Turn) -> Grey:
    rig.phone.show_page("charuco", rig.now_ns, turn)
    target = targets.charuco_target(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX, turn)
    corners, ids, _, _ = cv2.aruco.CharucoDetector(target.board()).detectBoard(picture(rig).astype(np.uint8))
    chosen = np.asarray(ids).ravel()
    assert len(chosen) > 0.9 * target.corner_count
    true = rig.sensor.truth_project(target.corners_px()[chosen] / [PX_PER_MM_X, PX_PER_MM_Y])
    return np.asarray(np.asarray(corners).reshape(-1, 2) - true, dtype=np.float64)


@pytest.mark.parametrize("turn", targets.TURNS)
def test_the_board_is_seen_where_the_truth_says_in_every_turn(rig: VirtualRig, turn: targets.Turn) -> None:
    errors = board_errors_px(rig, turn)
    assert np.abs(errors.mean(axis=0)).max() < 0.02
    assert np.sqrt((errors**2).mean()) < 0.10


def test_both_qualities_look_at_the_same_places() -> None:
    lens, pose = TRUTH.camera.lens, TRUTH.camera.pose
    coarse = View(TRUTH, lens, pose, HOME, 1).display_mm()
    fine = View(TRUTH, lens, pose, HOME, 2).display_mm()
    middles = fine.reshape(720, 2, 1280, 2, 2).mean(axis=(1, 3))
    # 7.4 px a mm.
    assert np.abs(middles - coarse)[20:700, 20:1260].max() * 7.4 < 0.01


def test_what_a_px_looks_at_is_what_the_truth_projects_there() -> None:
    rig = VirtualRig(TRUTH)
    lens, pose = TRUTH.camera.lens, TRUTH.camera.pose
    looked = View(TRUTH, lens, pose, HOME, 1).display_mm()
    pixels = np.array([(x, y) for x in range(110, 1180, 29) for y in range(70, 650, 31)])
    at = looked[pixels[:, 1], pixels[:, 0]]
    screen_mm = np.column_stack([at[:, 1] + SCREEN_WIDTH_MM / 2, at[:, 0] + SCREEN_HEIGHT_MM / 2]).astype(
        np.float64
    )
    assert np.abs(rig.sensor.truth_project(screen_mm) - pixels).max() < 0.01


def test_a_screen_that_changed_in_part_is_warped_as_if_all_of_it_were_new() -> None:
    lens, pose = TRUTH.camera.lens, TRUTH.camera.pose
    for placement, blur_px in ((HOME, 0.55), (Placement(0.7, -0.5, 0.01), 3.0)):
        display = View(TRUTH, lens, pose, placement, 2).display_mm()
        steps, fresh = (
            ScreenWarp(Cover(TRUTH, lens, pose, placement), placement, display, 2, blur_px) for _ in range(2)
        )
        phone = VirtualRig(TRUTH).phone
        phone.show_page("dots", S)
        steps.seen(phone.frame(2 * S))
        for count, (x_mm, y_mm) in enumerate([(3.0, 3.0), (34.0, 70.0), (66.0, 145.0)], start=3):
            phone.hid_contact(0, True, x_mm, y_mm, count * S)
            phone.hid_contact(0, False, x_mm, y_mm, count * S)
            frame = phone.frame(count * S + S // 2)
            assert (steps.seen(frame) == fresh._all(frame)).all()


def test_the_bed_s_markers_are_found_in_the_picture_and_a_stray_board_only_when_it_lies_there(
    rig: VirtualRig,
) -> None:
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(targets.BED_DICTIONARY))

    def found() -> set[int]:
        ids = detector.detectMarkers(picture(rig).astype(np.uint8))[1]
        return set() if ids is None else {int(ident) for ident in np.asarray(ids).ravel()}

    assert found() == set(targets.BED_MARKER_IDS)
    rig.sensor.set_options(PictureOptions(stray_board=StrayBoard(y_mm=-46.5)))
    assert len(found() - set(targets.BED_MARKER_IDS)) > 5


def test_the_display_s_flicker_makes_faint_bands_along_the_rows_and_deep_ones_when_told(
    rig: VirtualRig,
) -> None:
    def bands(depth: float | None) -> float:
        rig.sensor.set_options(PictureOptions(pwm_depth=depth))
        even = np.mean([picture(rig) for _ in range(6)], axis=0)
        rows = (picture(rig)[120:600, 700:800] / even[120:600, 700:800]).mean(axis=1)
        return float(np.ptp(cv2.GaussianBlur(rows.reshape(-1, 1), (1, 31), 8)))

    faint, deep = bands(None), bands(0.9)
    assert faint < 0.02
    assert deep > 3 * faint
    assert deep > 0.03


def test_rows_are_as_bright_as_the_light_during_their_own_exposure() -> None:
    shutter = RollingShutter(TRUTH, 0.8)
    display, camera = TRUTH.display, TRUTH.camera
    row, phase = 500, 0.3
    opened = phase + row * display.readout_ms / 1e3 / 720 * display.pwm_hz
    moments = np.linspace(opened, opened + camera.exposure_ms / 1e3 * display.pwm_hz, 20_001)
    light = np.where(moments % 1.0 < display.pwm_duty, 1.0, 0.2)
    mean = display.pwm_duty + 0.2 * (1.0 - display.pwm_duty)
    assert shutter.rows(phase)[row] == pytest.approx(light.mean() / mean, abs=1e-3)


def test_glare_whitens_its_place_only(rig: VirtualRig) -> None:
    plain = picture(rig)
    rig.sensor.set_options(PictureOptions(glare=Glare(x_mm=24.0, y_mm=50.0, reach_mm=6.0)))
    glaring = picture(rig)
    assert glaring[around(rig, 24.0, 50.0)].min() > 240
    far = around(rig, 44.0, 110.0)
    assert glaring[far].mean() == pytest.approx(plain[far].mean(), abs=2)


def sharpness(grey: Grey) -> float:
    return float(cv2.Laplacian(grey, cv2.CV_64F)[150:570, 200:1080].var())


def test_out_of_focus_everything_softens(rig: VirtualRig) -> None:
    rig.phone.show_page("charuco", rig.now_ns)
    plain = sharpness(picture(rig))
    rig.sensor.set_options(PictureOptions(blur_px=2.5))
    assert sharpness(picture(rig)) < 0.1 * plain


def test_moire_is_none_with_these_lenses_and_fringes_when_told(rig: VirtualRig) -> None:
    plain = picture(rig)[around(rig, 34.0, 110.0, 40)].std()
    rig.sensor.set_options(PictureOptions(moire=0.3))
    assert plain < 4
    assert picture(rig)[around(rig, 34.0, 110.0, 40)].std() > 10


@pytest.mark.parametrize("change", ["dim", "underexposed"])
def test_a_dim_screen_and_a_short_exposure_are_dark(rig: VirtualRig, change: str) -> None:
    usual = picture(rig)
    plain, mat = usual[around(rig, 34.0, 110.0)].mean(), usual[:, :8].mean()
    if change == "dim":
        rig.phone.set_brightness(0.2, rig.now_ns)
    else:
        rig.sensor.set_options(PictureOptions(exposure=0.2))
    darker = picture(rig)
    assert darker[around(rig, 34.0, 110.0)].mean() < 0.35 * plain
    # The lamp on the mat is the room's: a dim screen leaves it as it is, a short exposure does not.
    assert (darker[:, :8].mean() < 0.4 * mat) == (change == "underexposed")


def test_a_worse_jpeg_is_smaller(rig: VirtualRig) -> None:
    good = len(rig.take_picture().jpeg)
    rig.sensor.set_options(PictureOptions(jpeg_quality=40))
    assert len(rig.take_picture().jpeg) < 0.5 * good


def test_a_notification_covers_the_top_of_the_page_for_a_while(rig: VirtualRig) -> None:
    covered = around(rig, 55.0, 24.0)
    plain = picture(rig)[covered].mean()
    rig.phone.notify("Are you there?", rig.now_ns, for_ms=3_000)
    rig.pass_ms(1_000)
    assert picture(rig)[covered].mean() > plain + 30
    rig.pass_ms(3_000)
    assert picture(rig)[covered].mean() == pytest.approx(plain, abs=3)


def test_a_nudged_phone_moves_against_the_bed_and_a_knocked_camera_moves_both() -> None:
    def places(rig: VirtualRig) -> tuple[Grey, Grey]:
        rig.phone.show_page("dots", rig.now_ns)
        detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(targets.BED_DICTIONARY))
        corners, ids, _ = detector.detectMarkers(picture(rig).astype(np.uint8))
        order = np.argsort(np.asarray(ids).ravel())
        bed = np.array([np.asarray(corners[index]).reshape(4, 2).mean(axis=0) for index in order])
        return bed, rig.sensor.truth_project(np.array([[10.0, 10.0], [60.0, 140.0]]))

    def moved(act: Callable[[VirtualRig], None]) -> tuple[float, float]:
        rig = VirtualRig(TRUTH, quality="realtime")
        before = places(rig)
        act(rig)
        after = places(rig)
        return float(np.abs(after[0] - before[0]).max()), float(np.abs(after[1] - before[1]).max())

    bed, screen = moved(lambda rig: rig.nudge_phone(0.5, 0.2))
    assert bed < 0.3
    assert screen > 3
    bed, screen = moved(lambda rig: rig.sensor.knock(0.05, 0.05))
    assert bed > 0.5
    assert screen > 0.5


def test_the_picture_of_a_nudged_phone_is_where_its_truth_says() -> None:
    rig = VirtualRig(TRUTH)
    rig.nudge_phone(0.8, -0.6, 0.4)
    errors = board_errors_px(rig, "portrait")
    assert np.abs(errors.mean(axis=0)).max() < 0.02
    assert np.sqrt((errors**2).mean()) < 0.06


def test_dots_stay_with_their_page_when_the_display_turns(rig: VirtualRig) -> None:
    rig.phone.hid_contact(0, True, 20.0, 40.0, rig.now_ns)
    rig.phone.hid_contact(0, False, 20.0, 40.0, rig.now_ns)
    rig.pass_ms(100)
    assert picture(rig)[around(rig, 20.0, 40.0, 3)].mean() < 40
    rig.phone.rotate("portrait_upside_down", rig.now_ns)
    after = picture(rig)
    assert after[around(rig, 20.0, 40.0, 3)].mean() > 100
    assert after[around(rig, SCREEN_WIDTH_MM - 20.0, SCREEN_HEIGHT_MM - 40.0, 3)].mean() < 40


def test_a_picture_depends_on_nothing_but_seed_and_times() -> None:
    first, second = (VirtualRig(Truth(9), quality="realtime") for _ in range(2))
    for rig in (first, second):
        rig.phone.show_page("charuco", rig.now_ns)
        rig.pass_ms(40)
    assert first.take_picture() == second.take_picture()
