"""What a screenshot costs, against the least it can cost: decode, one remap, encode, on the same pictures in turn.

    python -m edge_daemon.bench.camera.screenshot [COUNT]

The screenshot is the product's own way from a raw JPEG to the answer's bytes: into a worker thread and back, the turn,
the look for the screen's orientation. Pictures are the simulated camera's, at 1280 x 720 and enlarged to 1920 x 1080.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import cv2
import numpy as np
import trio

from calibration.result import DeviceCalibration
from edge_daemon.bench.camera.seen_screen import calibration_of, raw_picture
from edge_daemon.bench.twin.truth import Truth
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.cameras.orientation import TURNS
from edge_daemon.contract import Orientation
from edge_daemon.devices.sight import LONG_SIDE_PX, Sight

SEED = 7
SIZES = ((1280, 720), (1920, 1080))
APPS = ("launcher", "settings", "panel")
ANSWER_QUALITY = 90
WARM_UP = 5
_ORIENTATIONS: tuple[Orientation, ...] = tuple(TURNS)
_Map = tuple[cv2.typing.MatLike, cv2.typing.MatLike]


@dataclass(frozen=True)
class ScreenshotCost:
    """In ms, over `count` pictures of this size. floor_ms: median of decode + remap + encode. ratio: of the medians."""

    width: int
    height: int
    count: int
    screenshot_p50_ms: float
    screenshot_p99_ms: float
    floor_ms: float
    ratio: float


def measure(count: int = 200, size: tuple[int, int] = SIZES[0]) -> ScreenshotCost:
    """Screenshots and their floor, taken in turn so that both meet the same machine."""
    jpegs, calibration = _pictures(size)
    return trio.run(_measure, count, jpegs, Sight.of(calibration))


async def _measure(count: int, jpegs: Sequence[bytes], sight: Sight) -> ScreenshotCost:
    shots_ms, floors_ms = [], []
    maps = _plain_maps(sight)
    for number in range(-WARM_UP, count):
        jpeg, orientation = jpegs[number % len(jpegs)], _ORIENTATIONS[number % len(_ORIENTATIONS)]
        begun = time.perf_counter()
        await trio.to_thread.run_sync(sight.show, jpeg, "jpeg", orientation)
        shown = time.perf_counter()
        floor_ms = await trio.to_thread.run_sync(_floor_ms, jpeg, maps[TURNS[orientation]])
        if number >= 0:
            shots_ms.append((shown - begun) * 1000.0)
            floors_ms.append(floor_ms)
    width, height = (
        sight.calibration.camera.model.image_width,
        sight.calibration.camera.model.image_height,
    )
    p50, p99 = (float(np.percentile(shots_ms, share)) for share in (50, 99))
    floor = float(np.median(floors_ms))
    return ScreenshotCost(
        width, height, count, round(p50, 2), round(p99, 2), round(floor, 2), round(p50 / floor, 3)
    )


def _plain_maps(sight: Sight) -> list[_Map]:
    """The same fixed-point maps as the product's, by quarter turns, made without it."""
    screen = sight.calibration.screen
    width = round(LONG_SIDE_PX * screen.width_mm / screen.height_mm)
    upright = sight.calibration.camera.model.rectify_maps(screen, width, LONG_SIDE_PX)
    turned = [[np.ascontiguousarray(np.rot90(part, -turns)) for part in upright] for turns in range(4)]
    return [cv2.convertMaps(across, down, cv2.CV_16SC2) for across, down in turned]


def _floor_ms(jpeg: bytes, turned: _Map) -> float:
    """The three calls alone, timed inside a worker thread: where pictures are made, without the way there."""
    begun = time.perf_counter()
    raw = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    assert raw is not None, "the bench's own picture"
    cv2.imencode(
        ".jpg", cv2.remap(raw, *turned, cv2.INTER_LINEAR), [cv2.IMWRITE_JPEG_QUALITY, ANSWER_QUALITY]
    )
    return (time.perf_counter() - begun) * 1000.0


def _pictures(size: tuple[int, int]) -> tuple[list[bytes], DeviceCalibration]:
    """Raw pictures of some apps, and the calibration for them."""
    rig = VirtualRig(Truth(SEED))
    calibration = calibration_of(rig, size)
    jpegs = []
    for app in APPS:
        rig.phone.show_page(app, now_ns=rig.now_ns)
        rig.pass_ms(100)
        jpegs.append(raw_picture(rig, size))
    return jpegs, calibration


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for size in SIZES:
        sys.stdout.write(json.dumps(asdict(measure(count, size))) + "\n")


if __name__ == "__main__":
    main()
