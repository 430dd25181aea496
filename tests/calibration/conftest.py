"""A small geometric rig: a screen seen through a lens, and a hand that is crooked in every way it can be.

The procedure under test sees pictures and gives touches; the numbers in here are for the tests' verdicts.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import cv2
import numpy as np
import pytest

from calibration import calibrate
from calibration.errors import TouchRefused
from calibration.rig import Envelope, Look, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.targets import draw_charuco, draw_dots

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
WIDTH, HEIGHT = 1280, 720
# Pages are drawn at half the screen's px: finer than any camera here sees, and four times as fast.
HALF_PAGE = (SCREEN.width_px // 2, SCREEN.height_px // 2)
DESK_BGR = (30, 34, 32)


@dataclass(frozen=True)
class Lens:
    """Where the camera stands over the screen's middle and how it bends: OpenCV's own model."""

    tilt: tuple[float, float, float] = (0.12, -0.09, 0.03)
    distance_mm: float = 240.0
    shift_mm: tuple[float, float] = (1.5, -1.0)
    focal_px: float = 1000.0
    centre_px: tuple[float, float] = (645.0, 356.0)
    distortion: tuple[float, ...] = (-0.16, 0.05, 0.0004, -0.0003, 0.004)

    def project(self, screen_mm):
        flat = np.asarray(screen_mm, dtype=np.float64) - [SCREEN.width_mm / 2, SCREEN.height_mm / 2]
        space = np.column_stack([flat, np.zeros(len(flat))])
        move = np.array([*self.shift_mm, self.distance_mm])
        seen, _ = cv2.projectPoints(
            space, np.array(self.tilt), move, self.matrix(), np.array(self.distortion)
        )
        return seen.reshape(-1, 2)

    def matrix(self):
        return np.array(
            [[self.focal_px, 0, self.centre_px[0]], [0, self.focal_px, self.centre_px[1]], [0, 0, 1.0]]
        )


@lru_cache(maxsize=4)
def screen_maps(lens: Lens):
    """The part of the picture with the screen in it, and for its pixels the place on the half-size page."""
    around = lens.project(SCREEN.outline_mm())
    left, top = (max(0, int(v) - 24) for v in around.min(axis=0))
    right, bottom = (
        min(size, int(v) + 24) for v, size in zip(around.max(axis=0), (WIDTH, HEIGHT), strict=True)
    )
    columns, rows = np.meshgrid(
        np.arange(left, right, dtype=np.float64), np.arange(top, bottom, dtype=np.float64)
    )
    px = np.column_stack([columns.ravel(), rows.ravel()])
    rays = cv2.undistortPoints(px.reshape(-1, 1, 2), lens.matrix(), np.array(lens.distortion)).reshape(-1, 2)
    rotation, _ = cv2.Rodrigues(np.array(lens.tilt))
    plane = np.column_stack([rotation[:, 0], rotation[:, 1], [*lens.shift_mm, lens.distance_mm]])
    flat = np.column_stack([rays, np.ones(len(rays))]) @ np.linalg.inv(plane).T
    mm = flat[:, :2] / flat[:, 2:] + [SCREEN.width_mm / 2, SCREEN.height_mm / 2]
    half = mm * [SCREEN.width_px / SCREEN.width_mm / 2, SCREEN.height_px / SCREEN.height_mm / 2] - 0.5
    maps = (half[:, i].reshape(rows.shape).astype(np.float32) for i in range(2))
    return (slice(top, bottom), slice(left, right)), *maps


@lru_cache(maxsize=1)
def noise_tile():
    return np.random.default_rng(7).normal(0.0, 2.0, (HEIGHT, WIDTH, 3)).astype(np.float32)


@lru_cache(maxsize=4)
def desk(gain: float):
    return np.full((HEIGHT, WIDTH, 3), np.array(DESK_BGR) * 0.92 * gain + 6.0, dtype=np.uint8)


@lru_cache(maxsize=1)
def board_page():
    return cv2.resize(
        draw_charuco(SCREEN.width_px, SCREEN.height_px), HALF_PAGE, interpolation=cv2.INTER_AREA
    )


def photograph(page, lens: Lens, roll: int = 0, gain: float = 1.0, blur_px: float = 0.0, jpeg: bool = True):
    """The picture a camera behind `lens` takes of a screen that shows `page`; noise in the screen's part."""
    half = cv2.resize(page, HALF_PAGE, interpolation=cv2.INTER_AREA) if page.shape[1] > HALF_PAGE[0] else page
    soft = cv2.GaussianBlur(half, (0, 0), 0.8)
    part, map_x, map_y = screen_maps(lens)
    seen = cv2.remap(
        soft, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=DESK_BGR
    )
    if blur_px:
        seen = cv2.GaussianBlur(seen, (0, 0), blur_px)
    noise = np.roll(noise_tile(), roll * 9973)[: seen.shape[0], : seen.shape[1]]
    picture = desk(gain).copy()
    picture[part] = np.clip(seen.astype(np.float32) * (0.92 * gain) + 6.0 + noise, 0, 255)
    if jpeg:
        picture = cv2.imdecode(
            cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1], cv2.IMREAD_COLOR
        )
    return picture


@dataclass(frozen=True)
class Hand:
    """Screen mm -> the hand mm that would reach it, and the glass in hand mm."""

    rotation_rad: float = 0.035
    mirrored: bool = False
    scale: tuple[float, float] = (1.008, 0.994)
    skew: float = 0.006
    bow_mm: float = 0.0
    centre_offset_mm: tuple[float, float] = (4.0, -9.0)
    glass: tuple[float, float, float] = (0.011, -0.008, 2.4)
    noise_mm: float = 0.03
    backlash_mm: float = 0.15

    def linear(self):
        turn = np.array(
            [
                [np.cos(self.rotation_rad), -np.sin(self.rotation_rad)],
                [np.sin(self.rotation_rad), np.cos(self.rotation_rad)],
            ]
        )
        shape = np.array([[self.scale[0], self.skew], [0.0, self.scale[1]]])
        flip = np.diag([1.0, -1.0]) if self.mirrored else np.eye(2)
        return turn @ shape @ flip

    def reaches(self, hand_mm):
        """Where on the screen the stylus stands when the drives stand exactly at hand_mm."""
        local = np.linalg.solve(self.linear(), np.asarray(hand_mm, dtype=np.float64) - HAND_MIDDLE)
        middle = np.array([SCREEN.width_mm / 2, SCREEN.height_mm / 2]) + self.centre_offset_mm
        unit = local / middle
        return local + middle + self.bow_mm * np.array([unit[1] ** 2, unit[0] * unit[1]])

    def glass_z(self, hand_mm):
        return self.glass[0] * hand_mm[0] + self.glass[1] * hand_mm[1] + self.glass[2]


HAND_MIDDLE = np.array([110.0, 90.0])


@dataclass
class GeometricRig:
    """A calibration.rig.Rig whose phone, lens and hand are the few formulas above."""

    lens: Lens = field(default_factory=Lens)
    hand: Hand = field(default_factory=Hand)
    seed: int = 1
    one_sided: bool = True
    gain: float = 1.0
    jpeg: bool = False
    limits: Envelope = field(
        default_factory=lambda: Envelope(
            x_min_mm=20.0, x_max_mm=200.0, y_min_mm=0.0, y_max_mm=180.0, z_min_mm=-5.0, z_max_mm=40.0
        )
    )
    hover_z_mm: float = 12.0

    def __post_init__(self):
        self.random = np.random.default_rng(self.seed)
        self.dots, self.landed, self.overtravels = [], [], []
        self.page, self.looks, self.asked = None, 0, []
        self.drive = np.array([0.0, 0.0])

    def ask(self, request: ShowTarget) -> None:
        self.asked.append(request.target)
        self.dots = []
        if request.target == "charuco":
            self.page = board_page()
        else:
            self.page = self.dots_page()

    def dots_page(self):
        return draw_dots(*HALF_PAGE, SCREEN.width_mm, SCREEN.height_mm, self.dots)

    def look(self) -> Look:
        self.looks += 1
        return Look(photograph(self.page, self.lens, roll=self.looks, gain=self.gain, jpeg=self.jpeg))

    def touch(self, x_mm: float, y_mm: float, press_z_mm: float) -> None:
        box = self.limits
        if not (box.x_min_mm <= x_mm <= box.x_max_mm and box.y_min_mm <= y_mm <= box.y_max_mm):
            raise TouchRefused(f"({x_mm}, {y_mm}) is out of the envelope")
        if not box.z_min_mm <= press_z_mm < self.hover_z_mm:
            raise TouchRefused(f"press height {press_z_mm} is out of the envelope")
        wanted = np.array([x_mm, y_mm])
        side = np.ones(2) if self.one_sided else np.where(wanted >= self.drive, 1.0, -1.0)
        self.drive = wanted
        stands = wanted - side * self.hand.backlash_mm / 2 + self.random.normal(0.0, self.hand.noise_mm, 2)
        overtravel = self.hand.glass_z(stands) + self.random.normal(0.0, 0.01) - press_z_mm
        self.overtravels.append(overtravel)
        self.landed.append(None)
        if overtravel >= 0.0:
            self.put_dot(self.hand.reaches(stands))

    def put_dot(self, place) -> None:
        self.landed[-1] = (float(place[0]), float(place[1]))
        if 0 <= place[0] <= SCREEN.width_mm and 0 <= place[1] <= SCREEN.height_mm:
            self.dots.append(self.landed[-1])
            self.page = self.dots_page()


@pytest.fixture
def screen():
    return SCREEN


@pytest.fixture
def lens():
    return Lens()


@pytest.fixture
def shoot():
    """photograph(page, lens, roll=, gain=, blur_px=)."""
    return photograph


@pytest.fixture
def make_rig():
    """Build a rig: make_rig(hand=dict(...), lens=dict(...), **rig fields)."""

    def build(hand=None, lens=None, kind=GeometricRig, **fields):
        return kind(hand=replace(Hand(), **(hand or {})), lens=replace(Lens(), **(lens or {})), **fields)

    return build


@pytest.fixture(scope="session")
def rig_kind():
    """The class GeometricRig, for rigs that outlive a test or go wrong in their own way."""
    return GeometricRig


@pytest.fixture(scope="session")
def calibrated():
    """(rig, calibration, all that was told on the way) of one default calibration from JPEG pictures."""
    rig, told = GeometricRig(jpeg=True), []
    return rig, calibrate(rig, SCREEN, on_progress=told.append), told
