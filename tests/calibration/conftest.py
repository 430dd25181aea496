"""A small geometric rig: a screen seen through a lens, and a hand that is crooked in every way it can be.

The procedure under test sees pictures and gives touches; the numbers in here are for the tests' verdicts.
"""

import os
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache

import cv2
import numpy as np
import pytest

from calibration import calibrate
from calibration.dots_page import DotsPage
from calibration.errors import TouchRefused
from calibration.procedure.progress import Meter, MeteredRig, Work
from calibration.procedure.run import Run
from calibration.procedure.steps import DIGITIZER_STEPS, STEPS
from calibration.rig import (
    Answer,
    DigitizerTouch,
    Envelope,
    HandFacts,
    HandTouch,
    Judge,
    Look,
    PointerTouch,
    Request,
    ShowTarget,
    Touch,
    Turn,
)
from calibration.screen import ScreenGeometry
from calibration.session import TouchSession
from calibration.targets import draw_charuco, draw_dots, turned_points

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


@lru_cache(maxsize=4)
def board_page(turn="portrait"):
    return cv2.resize(
        draw_charuco(SCREEN.width_px, SCREEN.height_px, turn), HALF_PAGE, interpolation=cv2.INTER_AREA
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
    curved_mm: float = 0.0
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

    def glass_z(self, hand_mm, screen_mm=None):
        """The glass's height; screen_mm: the place on the screen, for glass whose middle lies curved_mm lower."""
        flat = self.glass[0] * hand_mm[0] + self.glass[1] * hand_mm[1] + self.glass[2]
        if screen_mm is None or not self.curved_mm:
            return flat
        across, down = (2.0 * np.asarray(screen_mm) / [SCREEN.width_mm, SCREEN.height_mm] - 1.0) ** 2
        return flat - self.curved_mm * (1.0 - 0.5 * (across + down))


HAND_MIDDLE = np.array([110.0, 90.0])


class Unplugged(Exception):
    """What a rig's verb raises when somebody pulls a cable."""


@dataclass
class GeometricRig:
    """A calibration.rig.Rig whose phone, lens and hand are the few formulas above.

    mishaps: by the number of the touch, from 0, what happens with it: "missed", "double" (a bounce 5 mm aside),
    "notification" (over the place, for banner_looks looks), "turned" (the page turns), "shoved" (the phone slides),
    "dark" (the screen goes to sleep).
    """

    lens: Lens = field(default_factory=Lens)
    arm: Hand = field(default_factory=Hand)
    seed: int = 1
    one_sided: bool = True
    gain: float = 1.0
    blur_px: float = 0.0
    jpeg: bool = False
    limits: Envelope = field(
        default_factory=lambda: Envelope(
            x_min_mm=20.0, x_max_mm=200.0, y_min_mm=0.0, y_max_mm=180.0, z_min_mm=-5.0, z_max_mm=40.0
        )
    )
    hover_z_mm: float = 12.0
    approach_mm: float = 0.6
    mishaps: dict[int, str] = field(default_factory=dict)
    banner_looks: int = 1
    board_turned: Turn | None = None

    @property
    def hand(self) -> HandFacts | None:
        return HandFacts(self.limits, self.hover_z_mm, self.approach_mm)

    def __post_init__(self):
        self.random = np.random.default_rng(self.seed)
        self.dots, self.landed, self.overtravels, self.touches = [], [], [], []
        self.page, self.looks, self.asked, self.questions = None, 0, [], []
        self.turn, self.banner_at, self.banner_left = "portrait", None, 0
        self.drive = np.array([0.0, 0.0])

    def ask(self, request: Request) -> Answer:
        if isinstance(request, ShowTarget):
            self.asked.append(request.target)
            self.show(request.target, request.turn)
            return "done"
        self.questions.append(request)
        return "accept" if isinstance(request, Judge) else "redo"

    def show(self, target, turn):
        self.dots, self.turn = [], turn
        self.page = board_page(self.board_turned or turn) if target == "charuco" else self.dots_page()

    def dots_page(self):
        return draw_dots(*HALF_PAGE, SCREEN.width_mm, SCREEN.height_mm, self.dots, self.turn)

    def look(self) -> Look:
        self.looks += 1
        page = self.page
        if self.banner_left:
            self.banner_left -= 1
            page = with_banner(page, self.banner_at)
        return Look(
            photograph(page, self.lens, roll=self.looks, gain=self.gain, blur_px=self.blur_px, jpeg=self.jpeg)
        )

    def touch(self, touch: Touch) -> None:
        mishap = self.mishaps.get(len(self.touches))
        self.touches.append(touch)
        self.landed.append(None)
        place = self.tap(touch)
        if mishap == "turned":
            self.show("dots", "landscape_left")
        elif mishap == "dark":
            self.page = np.full_like(self.page, 12)
        elif mishap == "shoved":
            self.lens = replace(self.lens, shift_mm=(self.lens.shift_mm[0] + 0.3, self.lens.shift_mm[1]))
        elif mishap == "notification":
            self.banner_at, self.banner_left = place, self.banner_looks
        elif mishap != "missed" and place is not None:
            self.put_dot(place)
            if mishap == "double":
                self.dots.append((place[0] + (5.0 if place[0] < 34.0 else -5.0), place[1]))
                self.page = self.dots_page()

    def tap(self, touch: Touch):
        """Where the screen is touched, screen mm; None where it is not."""
        assert isinstance(touch, HandTouch)
        box = self.limits
        if not (box.x_min_mm <= touch.x_mm <= box.x_max_mm and box.y_min_mm <= touch.y_mm <= box.y_max_mm):
            raise TouchRefused(f"{touch} is out of the envelope")
        if not box.z_min_mm <= touch.press_z_mm < self.hover_z_mm:
            raise TouchRefused(f"{touch} is out of the envelope")
        wanted = np.array([touch.x_mm, touch.y_mm])
        asked = np.array([1.0 if side == "low" else -1.0 for side in (touch.approach_x, touch.approach_y)])
        side = asked if self.one_sided else np.where(wanted >= self.drive, 1.0, -1.0)
        self.drive = wanted
        stands = wanted - side * self.arm.backlash_mm / 2 + self.random.normal(0.0, self.arm.noise_mm, 2)
        place = self.arm.reaches(stands)
        overtravel = self.arm.glass_z(stands, place) + self.random.normal(0.0, 0.01) - touch.press_z_mm
        self.overtravels.append(overtravel)
        return place if overtravel >= 0.0 else None

    def put_dot(self, place) -> None:
        self.landed[-1] = (float(place[0]), float(place[1]))
        if 0 <= place[0] <= SCREEN.width_mm and 0 <= place[1] <= SCREEN.height_mm:
            self.dots.append(self.landed[-1])
            self.page = self.dots_page()


def with_banner(page, place):
    """A white strip over the whole width of the page, at the place's height."""
    covered = page.copy()
    middle = round(place[1] / SCREEN.height_mm * page.shape[0])
    half = round(7.0 / SCREEN.height_mm * page.shape[0])
    covered[max(0, middle - half) : middle + half] = 245
    return covered


@dataclass
class HidRig(GeometricRig):
    """The same phone without a hand: a HID board's touch screen and pointer touch it.

    margins: left, top, right, bottom of the digitizer's area beyond the screen, shares of it. turns_with_page: whether
    that area turns with the page. mm_per_count: of the pointer. home_mm: where its corner is.
    """

    margins: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    turns_with_page: bool = False
    mm_per_count: tuple[float, float] = (0.11, 0.13)
    home_mm: tuple[float, float] = (0.0, 0.0)
    bend: float = 0.0

    @property
    def hand(self) -> HandFacts | None:
        return None

    def tap(self, touch: Touch):
        if isinstance(touch, PointerTouch):
            counts = np.array([touch.x_counts, touch.y_counts])
            way = counts * self.mm_per_count * (1.0 + self.bend * counts / 1000.0)
            return way + self.home_mm
        assert isinstance(touch, DigitizerTouch)
        left, top, right, bottom = self.margins
        share = np.array(
            [touch.x * (1 + left + right) - left, touch.y * (1 + top + bottom) - top], dtype=np.float64
        )
        share += self.random.normal(0.0, 1e-4, 2)
        turn = self.turn if self.turns_with_page else "portrait"
        size = np.array([SCREEN.width_mm, SCREEN.height_mm])
        page = size[::-1] if turn.startswith("landscape") else size
        return turned_points((share * page)[None], *size, turn)[0]


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
        return kind(arm=replace(Hand(), **(hand or {})), lens=replace(Lens(), **(lens or {})), **fields)

    return build


@pytest.fixture
def hid_rig_kind():
    """The class HidRig, for make_rig(kind=...)."""
    return HidRig


@pytest.fixture(scope="session")
def rig_kind():
    """The class GeometricRig, for rigs that outlive a test or go wrong in their own way."""
    return GeometricRig


class PulledEverywhere(GeometricRig):
    """Before each verb the process forks: in the child the verb raises Unplugged, and the run there must end by it.

    So every verb of one run fails once, at the cost of one run. ended: by the verb's number, how its child ended.
    """

    def __post_init__(self):
        super().__post_init__()
        self.ended, self.pulled = [], False

    def look(self):
        self._pull()
        return super().look()

    def touch(self, touch):
        self._pull()
        super().touch(touch)

    def ask(self, request):
        self._pull()
        return super().ask(request)

    def _pull(self):
        if self.pulled:
            os._exit(AFTER_THE_PULL)
        with warnings.catch_warnings():
            # Python 3.12 on warns of OpenCV's threads; the child does no more than unwind and end.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            self.pulled = True
            raise Unplugged
        self.ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


EVERY_STEP = {**STEPS, **DIGITIZER_STEPS}
AS_PULLED, AFTER_THE_PULL, OTHERWISE = 0, 3, 4


@pytest.fixture(scope="session")
def calibrated():
    """(rig, calibration, all that was told on the way) of one default calibration from JPEG pictures."""
    rig, told = PulledEverywhere(jpeg=True), []
    try:
        calibration = calibrate(rig, SCREEN, on_progress=told.append)
    except BaseException as error:
        if rig.pulled:
            os._exit(AS_PULLED if isinstance(error, Unplugged) else OTHERWISE)
        raise
    return rig, calibration, told


@pytest.fixture
def start_run(calibrated):
    """start_run(rig, options, turn=): a run that has come to the dots page, by the default calibration's camera."""

    def start(rig, options, turn="portrait"):
        meter = Meter(EVERY_STEP, dict.fromkeys(EVERY_STEP, Work()), lambda: 0.0, None)
        metered, camera = MeteredRig(rig, meter), calibrated[1].camera
        page = DotsPage(metered, SCREEN, camera.model, options, turn=turn, reference=camera.reference)
        page.show()
        return Run(metered, meter, SCREEN, options, camera, page, TouchSession(metered, page, options))

    return start
