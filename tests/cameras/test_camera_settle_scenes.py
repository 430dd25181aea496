"""The bench's scenes, a few of each kind; the rates over thousands are the bench's."""

from itertools import islice

import cv2
import numpy as np
import pytest

from edge_daemon.bench.camera.drawn_scenes import drawn_scene
from edge_daemon.bench.camera.scene import MS, Change, Scene, Shot, judge_scene
from edge_daemon.bench.camera.scenes import scenes
from edge_daemon.bench.camera.small_sensor import SensorTraits, SmallSensor
from edge_daemon.bench.camera.stories import KINDS
from edge_daemon.cameras.imaging import decode_small_grey
from edge_daemon.cameras.settle_noise import block_step


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_drawn_scene_nothing_is_said_that_is_not_so(kind: str) -> None:
    verdict = judge_scene(drawn_scene(kind, np.random.default_rng(20)))
    assert not verdict.wrong, verdict.wrong
    assert verdict.pictures >= 8


def test_a_seeds_scenes_are_the_same_again_and_another_seeds_are_not() -> None:
    def first(seed: int) -> list[bytes]:
        shots = [shot for scene in islice(scenes(seed), 3) for shot in scene.shots]
        return [shot.grey.tobytes() for shot in shots if shot.grey is not None]

    assert first(3) == first(3) != first(4)


def test_the_small_sensors_pictures_are_what_a_decoder_makes_of_a_jpeg() -> None:
    """The same bench and screen, once as a JPEG of full size: of every block's mean, and its rounding."""
    rng = np.random.default_rng(5)
    sensor = SmallSensor(rng, (1280, 720), (544, 250), SensorTraits(noise_sigma=0.0, quality=60))
    canvas = cv2.resize(
        rng.integers(0, 255, (25, 55)).astype(np.uint8), (544, 250), interpolation=cv2.INTER_CUBIC
    )
    clean = sensor.clean(canvas)
    small = sensor.expose(clean, 10**9)
    full = cv2.resize(clean, (1280, 720), interpolation=cv2.INTER_NEAREST)
    full = np.clip(np.rint(full), 0, 255).astype(np.uint8)
    jpeg = cv2.imencode(".jpg", full, [cv2.IMWRITE_JPEG_QUALITY, 60])[1].tobytes()
    decoded = decode_small_grey(jpeg, 4)
    assert sensor.step == block_step(jpeg) == pytest.approx(13 / 8)
    assert np.abs(small.astype(int) - decoded).mean() < 1.0


def screen(*, changes: list[Change], levels: list[int], learning_ns: int = 0) -> Scene:
    """Pictures every 50 ms; the screen is of one level, with a bright half so that it is not dark."""

    def picture(level: int) -> np.ndarray:
        grey = np.full((180, 320), level, np.uint8)
        grey[::16] = 240
        return grey

    shots = [Shot(k * 50 * MS, grey=picture(level)) for k, level in enumerate(levels)]
    return Scene("made", 50 * MS, 0, iter(shots), changes=changes, learning_ns=learning_ns)


def test_a_still_verdict_over_a_change_is_falsely_settled() -> None:
    hidden = Change(600 * MS, 600 * MS, 600 * MS, 600 * MS)
    assert judge_scene(screen(changes=[hidden], levels=[90] * 20)).false_settled
    assert not judge_scene(screen(changes=[hidden], levels=[90] * 13)).false_settled
    assert not judge_scene(screen(changes=[], levels=[90] * 20)).wrong


def test_a_verdict_that_is_late_is_falsely_moving() -> None:
    levels = [90] * 12 + [200] * 12
    seen = judge_scene(screen(changes=[Change(575 * MS, 575 * MS, 575 * MS, 575 * MS)], levels=levels))
    assert not seen.wrong
    unannounced = judge_scene(screen(changes=[], levels=levels))
    assert unannounced.false_moving
    assert "moving at 600 ms" in unannounced.wrong
    assert not judge_scene(screen(changes=[], levels=levels, learning_ns=10**9)).false_moving
