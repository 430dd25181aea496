"""What the bench knows without the daemon: which exposure a picture shows, and what the boards were sent."""

from collections.abc import Iterator
from functools import cache

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_daemon.bench.camera.commands import Command, CommandLog
from edge_daemon.bench.camera.marks import NUMBERS, Marks, read, unwrapped
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.cameras.imaging import decode_small_grey
from firmware import wire

Image = npt.NDArray[np.uint8]
WIDTH, HEIGHT = 462, 1000


@pytest.fixture(scope="module")
def rig() -> VirtualRig:
    return VirtualRig(Truth(3), quality="realtime")


@pytest.fixture(scope="module")
def marks(rig: VirtualRig) -> Marks:
    return Marks(rig.sensor.truth_project, (720, 1280))


@pytest.fixture(scope="module")
def raws(rig: VirtualRig) -> list[Image]:
    """Raw pictures of a bright and a dark page, at full and at low brightness."""
    pictures = []
    for page in ("launcher", "charuco"):
        for brightness in (1.0, 0.3):
            rig.phone.show_page(page, now_ns=rig.now_ns)
            rig.phone.set_brightness(brightness, rig.now_ns)
            rig.pass_ms(100)
            shutter = rig.sensor.open_shutter(rig.now_ns)
            rig.pass_ns(rig.sensor.exposure_ns)
            pictures.append(rig.sensor.close_shutter(shutter, rig.now_ns))
    return pictures


@cache
def places(rig: VirtualRig) -> np.ndarray:
    """(HEIGHT, WIDTH, 2) float32: where the true camera sees each pixel of the rectified picture. Takes seconds."""
    across, down = np.meshgrid((np.arange(WIDTH) + 0.5) / WIDTH, (np.arange(HEIGHT) + 0.5) / HEIGHT)
    screen_mm = np.column_stack([across.ravel() * SCREEN_WIDTH_MM, down.ravel() * SCREEN_HEIGHT_MM])
    return rig.sensor.truth_project(screen_mm).astype(np.float32).reshape(HEIGHT, WIDTH, 2)


def rectified(rig: VirtualRig, jpeg: bytes) -> Image:
    """By the true camera, encoded once more as the daemon does it."""
    px = places(rig)
    raw = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    shown = cv2.remap(raw, px[:, :, 0], px[:, :, 1], cv2.INTER_LINEAR)
    again = cv2.imdecode(cv2.imencode(".jpg", shown, [cv2.IMWRITE_JPEG_QUALITY, 85])[1], cv2.IMREAD_COLOR)
    return np.asarray(again, np.uint8)


def test_the_number_of_an_exposure_is_read_off_its_rectified_picture(
    rig: VirtualRig, marks: Marks, raws: list[Image]
) -> None:
    for number, raw in zip((1, 0x5555, 0xAAAA, NUMBERS + 31_337), raws, strict=True):
        painted = raw.copy()
        marks.paint(painted, number)
        assert read(rectified(rig, rig.sensor.encode(painted))) == number % NUMBERS


def test_a_picture_without_a_number_has_none(rig: VirtualRig, raws: list[Image]) -> None:
    assert read(rectified(rig, rig.sensor.encode(raws[0]))) is None


def test_two_numbers_look_the_same_in_grey(rig: VirtualRig, marks: Marks, raws: list[Image]) -> None:
    """The daemon judges stillness by grey levels."""
    greys = []
    for number in (0, NUMBERS - 1):
        painted = raws[0].copy()
        marks.paint(painted, number)
        greys.append(decode_small_grey(rig.sensor.encode(painted), 4).astype(int))
    assert int(np.abs(greys[0] - greys[1]).max()) <= 1


def test_a_number_that_ran_over_belongs_to_the_latest_exposure_that_has_it() -> None:
    assert unwrapped(5, newest=7) == 5
    assert unwrapped(5, newest=NUMBERS + 7) == NUMBERS + 5
    assert unwrapped(5, newest=NUMBERS + 3) == 5


def frame(frame_type: int, *fields: int, tail: bytes = b"") -> bytes:
    return wire.encode_frame(frame_type, 1, 1, 0, wire.pack_body(frame_type, *fields, tail=tail))


@pytest.fixture
def ticks() -> Iterator[int]:
    return iter(range(100, 1000, 100))


def test_the_line_tells_when_a_command_was_sent_accepted_and_done(ticks: Iterator[int]) -> None:
    log = CommandLog(now_ns=lambda: next(ticks))
    command = frame(wire.CMD, 7, wire.OP_KEY, tail=wire.pack_args(wire.OP_KEY, 0))
    log.hear("to_board", command[:5])
    log.hear("to_board", command[5:])
    log.hear("to_board", command)
    log.hear("to_host", frame(wire.ACCEPTED, 7, 1))
    log.hear("to_host", frame(wire.DONE, 7, 1, 0, 2))
    assert log.commands() == [Command(wire.OP_KEY, sent_ns=200, accepted_ns=400, ended_ns=500)]


def test_data_and_answers_to_nothing_are_no_commands(ticks: Iterator[int]) -> None:
    log = CommandLog(now_ns=lambda: next(ticks))
    text = wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=b"x")
    log.hear("to_board", frame(wire.CMD, 0, wire.OP_TEXT_LOAD, tail=text))
    log.hear("to_host", frame(wire.ACCEPTED, 9, 1))
    assert log.commands() == []


def test_a_session_that_was_opened_anew_is_remembered(ticks: Iterator[int]) -> None:
    log = CommandLog(now_ns=lambda: next(ticks))
    log.hear("to_host", frame(wire.OPENED, 1))
    assert log.opened_ns() == [100]
