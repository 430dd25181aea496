"""Moves of camera and phone, told apart in pictures of a bed with markers and a phone on it."""

from dataclasses import dataclass, replace
from functools import lru_cache

import cv2
import msgspec
import numpy as np
import pytest

from calibration.detect import BoardFinder
from calibration.drift import HOLD_PX, WARN_PX, DriftReference, make_reference, measure
from calibration.errors import PictureRefused
from calibration.fit_camera import fit_camera
from calibration.screen import ScreenGeometry
from calibration.targets import (
    BED_MARKER_IDS,
    bed_marker_cells,
    charuco_target,
    draw_charuco,
    draw_dots,
)

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
# Half of a 720-line camera: 3.7 px/mm. What holds here holds the better for a finer one.
WIDTH, HEIGHT = 640, 360
PX_PER_MM = 3.7
# The bed in screen mm, and how finely it is drawn.
LEFT, TOP, RIGHT, BOTTOM = -30.0, -16.0, 98.0, 163.0
FINE = 12
MARKERS_MM = ((-8.5, 20.0), (76.5, 15.0), (-8.5, 125.0), (76.5, 130.0))
BEZEL_MM = (2.5, 4.0)


@dataclass(frozen=True)
class Standing:
    """Where the camera stands over the bed: it lies across the phone, as over a cradle."""

    x_mm: float = 0.5
    y_mm: float = -0.7
    distance_mm: float = 260.0
    turn_rad: float = np.pi / 2


@pytest.fixture(scope="module")
def rig():
    return Standing()


def bed(markers=BED_MARKER_IDS):
    canvas = np.full((round((BOTTOM - TOP) * FINE), round((RIGHT - LEFT) * FINE)), 70, np.uint8)
    edge, white = 8 * FINE, 12
    for number, (x_mm, y_mm) in zip(BED_MARKER_IDS, MARKERS_MM, strict=True):
        if number not in markers:
            continue
        x, y = round((x_mm - 4 - LEFT) * FINE), round((y_mm - 4 - TOP) * FINE)
        canvas[y - white : y + edge + white, x - white : x + edge + white] = 200
        cells = np.kron(bed_marker_cells(number), np.ones((edge // 6, edge // 6), bool))
        canvas[y : y + edge, x : x + edge] = np.where(cells, 25, 200)
    return canvas


def with_phone(canvas, page, moved_mm=(0.0, 0.0)):
    """A phone that shows page on the bed, moved by a fraction of a mm."""
    phone, there = np.zeros_like(canvas), np.zeros_like(canvas)

    def px(x_mm, y_mm):
        return round((x_mm - LEFT) * FINE), round((y_mm - TOP) * FINE)

    ends = px(-BEZEL_MM[0], -BEZEL_MM[1]), px(68.0 + BEZEL_MM[0], 147.3 + BEZEL_MM[1])
    for layer, level in ((there, 255), (phone, 12)):
        cv2.rectangle(layer, *ends, level, -1)
    size = (round(68.0 * FINE), round(147.3 * FINE))
    x, y = px(0.0, 0.0)
    phone[y : y + size[1], x : x + size[0]] = cv2.resize(page[:, :, 0], size, interpolation=cv2.INTER_AREA)
    move = np.array([[1.0, 0.0, moved_mm[0] * FINE], [0.0, 1.0, moved_mm[1] * FINE]])
    phone, there = (cv2.warpAffine(layer, move, layer.shape[::-1]) for layer in (phone, there))
    share = there.astype(np.float32) / 255.0
    return canvas * (1.0 - share) + phone * share


def seen_by(camera, world, gain=0.92):
    """The light that falls on the sensor, (HEIGHT, WIDTH) grey levels."""
    smooth = cv2.GaussianBlur(world.astype(np.float32), (0, 0), 1.3)
    columns, rows = np.meshgrid(np.arange(WIDTH, dtype=np.float64), np.arange(HEIGHT, dtype=np.float64))
    x, y = columns - WIDTH / 2 + 0.5, rows - HEIGHT / 2 + 0.5
    # A barrel lens, and a tilt of a few degrees.
    bend = 1.0 + 0.05 * (x * x + y * y) / (WIDTH / 2) ** 2
    scale = camera.distance_mm / 260.0 / PX_PER_MM / (1.0 + 1e-4 * x - 0.7e-4 * y)
    x, y = x * bend * scale, y * bend * scale
    cosine, sine = np.cos(camera.turn_rad), np.sin(camera.turn_rad)
    x_mm = 34.0 + camera.x_mm + cosine * x + sine * y
    y_mm = 73.65 + camera.y_mm - sine * x + cosine * y
    maps = ((x_mm - LEFT) * FINE - 0.5, (y_mm - TOP) * FINE - 0.5)
    light = cv2.remap(smooth, *(m.astype(np.float32) for m in maps), cv2.INTER_LINEAR)
    return cv2.GaussianBlur(light, (0, 0), 0.5) * gain + 6.0


@lru_cache(maxsize=1)
def noise_tile():
    return np.random.default_rng(7).normal(0.0, 2.5, (2 * HEIGHT, 2 * WIDTH)).astype(np.float32)


def pictures(light, seed, count=3):
    """What the sensor makes of the light, with new noise in each."""
    random, taken = np.random.default_rng(seed), []
    for _ in range(count):
        top, left = random.integers(0, HEIGHT), random.integers(0, WIDTH)
        noisy = light + noise_tile()[top : top + HEIGHT, left : left + WIDTH]
        taken.append(np.repeat(np.clip(np.round(noisy), 0, 255).astype(np.uint8)[:, :, None], 3, axis=2))
    return taken


BOARD, DOTS = draw_charuco(1080, 2340), draw_dots(1080, 2340, 68.0, 147.3)


@pytest.fixture(scope="module")
def model(rig):
    target = charuco_target(1080, 2340)
    big = pictures(seen_by(rig, with_phone(bed(), BOARD)), 1)[0]
    view = BoardFinder(target).find(big)
    fitted, _ = fit_camera(
        SCREEN, (WIDTH, HEIGHT), view.ids, SCREEN.px_to_mm(target.corners_px()), view.px, 0.35
    )
    return fitted


@pytest.fixture(scope="module")
def reference(rig, model):
    return make_reference(pictures(seen_by(rig, with_phone(bed(), DOTS)), 2, count=5), model, SCREEN)


@pytest.fixture
def report(rig, model, reference):
    """Measure after a move: report(page, phone=mm, camera changes, markers=, gain=, seed=)."""

    def take(
        page=DOTS, phone=(0.0, 0.0), markers=BED_MARKER_IDS, gain=0.92, seed=3, known=reference, **camera
    ):
        light = seen_by(replace(rig, **camera), with_phone(bed(markers), page, phone), gain)
        return measure(pictures(light, seed), known, model, SCREEN)

    return take


def test_the_reference_holds_four_markers_and_every_side_and_is_plain_numbers(reference):
    assert set(reference.bed_px) == set(BED_MARKER_IDS)
    assert all(sum(place is not None for place in side) > 20 for side in reference.edges_px.values())
    assert msgspec.json.decode(msgspec.json.encode(reference), type=DriftReference) == reference


def test_over_200_draws_of_noise_a_still_rig_is_never_held_and_hardly_ever_warned(rig, model, reference):
    light = seen_by(rig, with_phone(bed(), DOTS))
    reports = [measure(pictures(light, 100 + i, 1), reference, model, SCREEN) for i in range(200)]
    assert not any(report.hold for report in reports)
    assert sum(report.warn for report in reports) <= 2
    assert sum(report.verdict == "still" for report in reports) >= 198
    # The uncertainty is honest: shifts of noise alone are what it says.
    shifts = np.array([[r.bed_shift_px, r.outline_shift_px, r.phone_shift_px] for r in reports])
    told = np.array([r.uncertainty_px for r in reports])
    assert ((shifts < 3.0 * told).mean(axis=0) > 0.95).all()


@pytest.mark.parametrize(("move_px", "hold"), [(0.3, False), (0.6, True)])
def test_a_phone_that_moved_is_told_and_its_move_measured(move_px, hold, report):
    told = report(phone=(0.6 * move_px / PX_PER_MM, 0.8 * move_px / PX_PER_MM))
    assert (told.verdict, told.warn, told.hold) == ("phone_moved", True, hold)
    assert told.phone_shift_px == pytest.approx(move_px, abs=0.06)
    assert told.bed_shift_px < WARN_PX
    assert "calibrate camera and hand again" in told.message


@pytest.mark.parametrize(("move_px", "hold"), [(0.3, False), (0.6, True)])
def test_a_camera_that_moved_is_told_and_its_move_measured(move_px, hold, report):
    told = report(x_mm=0.5 + move_px / PX_PER_MM)
    assert (told.verdict, told.warn, told.hold) == ("camera_moved", True, hold)
    assert told.bed_shift_px == pytest.approx(move_px, abs=0.06)
    assert told.outline_shift_px == pytest.approx(move_px, abs=0.06)
    assert told.phone_shift_px < 0.06
    assert "the hand's part stays true" in told.message


def test_a_camera_that_turned_or_sank_is_a_camera_that_moved(report):
    reach_px = PX_PER_MM * np.hypot(34.0, 73.65)
    for change in ({"turn_rad": np.pi / 2 + 0.4 / reach_px}, {"distance_mm": 260.0 * (1 - 0.4 / reach_px)}):
        told = report(**change)
        assert told.verdict == "camera_moved"
        assert told.bed_shift_px == pytest.approx(0.4, abs=0.08)


def test_camera_and_phone_that_both_moved_are_told(report):
    told = report(phone=(0.0, -0.6 / PX_PER_MM), x_mm=0.5 + 0.6 / PX_PER_MM)
    assert (told.verdict, told.hold) == ("both_moved", True)


def test_what_the_screen_shows_and_how_bright_it_is_moves_nothing(report):
    gradient = np.repeat(np.linspace(70, 240, 2340).astype(np.uint8)[:, None, None], 1080, axis=1)
    half_dark = np.full((2340, 1080, 3), 15, np.uint8)
    half_dark[1100:] = 180
    for page, gain in ((BOARD, 0.92), (gradient, 0.92), (half_dark, 0.92), (DOTS, 0.6)):
        told = report(page=page, gain=gain)
        assert (told.verdict, told.warn) == ("still", False)


def test_a_dark_screen_is_unmeasured_and_never_still(report):
    night = np.full((2340, 1080, 3), 6, np.uint8)
    told = report(page=night)
    assert (told.verdict, told.outline_shift_px, told.warn) == ("unmeasured", None, False)
    assert told.bed_shift_px < WARN_PX
    assert "not known" in told.message
    dim = np.full((2340, 1080, 3), 28, np.uint8)
    assert report(page=dim).outline_shift_px is None
    moved = report(page=night, x_mm=0.5 + 0.6 / PX_PER_MM)
    assert (moved.verdict, moved.hold) == ("camera_moved", True)
    assert "whether the phone moved as well is not known" in moved.message


def test_without_bed_markers_a_move_is_told_but_not_whose(report, reference):
    bare = DriftReference(bed_px={}, edges_px=reference.edges_px)
    for known, markers in ((bare, BED_MARKER_IDS), (reference, ())):
        assert report(known=known, markers=markers).verdict == "still"
        told = report(known=known, markers=markers, phone=(0.6 / PX_PER_MM, 0.0))
        assert (told.verdict, told.hold, told.bed_shift_px) == ("moved_not_told_apart", True, None)


@pytest.mark.parametrize("move_mm", [0.5, 1.5, 4.0])
def test_a_phone_that_was_shoved_far_is_held_and_not_unmeasured(move_mm, report):
    told = report(phone=(0.1 * move_mm, 0.995 * move_mm))
    assert (told.verdict, told.hold) == ("phone_moved", True)
    assert told.phone_shift_px > HOLD_PX


def test_a_page_with_a_black_frame_is_unmeasured_and_not_a_shoved_phone(report):
    for frame in ((60, 60, 60, 60), (200, 40, 40, 40), (240, 80, 40, 0)):
        page = np.zeros((2340, 1080, 3), np.uint8)
        page[frame[0] : 2340 - frame[1], frame[2] : 1080 - frame[3]] = 200
        assert report(page=page).verdict == "unmeasured"


def test_a_single_marker_that_came_loose_is_no_camera_that_moved(rig, model, reference):
    canvas = bed()
    x, y = round((MARKERS_MM[2][0] - 6 - LEFT) * FINE), round((MARKERS_MM[2][1] - 6 - TOP) * FINE)
    patch = canvas[y : y + 12 * FINE, x : x + 11 * FINE].copy()
    canvas[y : y + 12 * FINE, x : x + 11 * FINE] = 70
    canvas[y + 6 : y + 6 + 12 * FINE, x : x + 11 * FINE] = patch
    told = measure(pictures(seen_by(rig, with_phone(canvas, DOTS)), 5), reference, model, SCREEN)
    assert told.verdict == "still"
    assert told.bed_shift_px < WARN_PX


def test_no_picture_and_another_picture_size_are_refused(rig, model, reference):
    with pytest.raises(PictureRefused, match="at least one"):
        measure([], reference, model, SCREEN)
    with pytest.raises(PictureRefused, match="resolution"):
        measure([np.zeros((480, 640, 3), np.uint8)], reference, model, SCREEN)
