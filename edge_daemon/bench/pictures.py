"""The two pictures of a run: what was aimed at and touched, and how well the grid fits the raw picture."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import trio

from calibration.pictures import ERROR_MAGNIFIED, grid_overlay
from calibration.result import DeviceCalibration
from edge_daemon.bench.plane import Plane
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import SCREEN_MM, Stage, staff_of
from edge_daemon.bench.verdict import Attempt

Image = npt.NDArray[np.uint8]

TARGET_BGR = (255, 160, 0)
TOUCH_BGR = (40, 40, 230)
INK_BGR = (30, 30, 30)
_CAMERA_CAPTION = (
    f"the grid through the calibration; rings: held-out touches, errors {ERROR_MAGNIFIED:.0f} times as long"
)
SCALE = 2
"""The rectified picture is drawn twice its size: a landing error of 0.1 mm is then more than a pixel."""


async def write_pictures(
    stage: Stage, plane: Plane, calibration: DeviceCalibration, attempts: Sequence[Attempt], folder: Path
) -> list[Path]:
    """`screen.png`: the rectified screen with targets and true touches; `camera.png`: the raw view with the grid."""
    await trio.Path(folder).mkdir(parents=True, exist_ok=True)
    picture = await plane.look(DEVICE, format="png")
    async with staff_of(stage) as staff:
        await staff.take_hold(DEVICE, "Taking pictures.")
        raw = await staff.look(DEVICE)
    screen, camera = folder / "screen.png", folder / "camera.png"
    await trio.to_thread.run_sync(_write, screen, touches_overlay(_decode(picture["image"]), attempts))
    overlay = grid_overlay(_decode(raw.jpeg), calibration.camera.model, calibration.screen, calibration.acceptance)
    await trio.to_thread.run_sync(_write, camera, _with_caption(overlay, _CAMERA_CAPTION))
    return [screen, camera]


def touches_overlay(rectified: Image, attempts: Sequence[Attempt]) -> Image:
    """`rectified` (any size, its edges the grid's edges) with each target as a ring and each true touch as a dot."""
    enlarged = cv2.resize(rectified, None, fx=SCALE, fy=SCALE, interpolation=cv2.INTER_CUBIC)
    drawn: Image = np.asarray(enlarged, dtype=np.uint8)
    height, width = drawn.shape[:2]

    def at_grid(x: float, y: float) -> tuple[int, int]:
        return round(x / 1000.0 * width), round(y / 1000.0 * height)

    def at_mm(x_mm: float, y_mm: float) -> tuple[int, int]:
        return at_grid(x_mm / SCREEN_MM[0] * 1000.0, y_mm / SCREEN_MM[1] * 1000.0)

    for attempt in attempts:
        target = attempt.step.target
        if target is None:
            continue
        if attempt.step.end is not None:
            _arrow(drawn, at_grid(*target), at_grid(*attempt.step.end))
        cv2.circle(drawn, at_grid(*target), 11, TARGET_BGR, 2, cv2.LINE_AA)
        for touch in attempt.touches:
            cv2.circle(drawn, at_mm(*touch.start_mm), 4, TOUCH_BGR, -1, cv2.LINE_AA)
        _label(drawn, str(attempt.number), at_grid(*target))
    return _with_legend(drawn)


def _arrow(drawn: Image, start: tuple[int, int], end: tuple[int, int]) -> None:
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
    cv2.arrowedLine(drawn, start, end, TARGET_BGR, 2, cv2.LINE_AA, tipLength=18.0 / max(length, 18.0))


def _label(drawn: Image, text: str, at: tuple[int, int]) -> None:
    """The action's number on a small white plate right above its target."""
    (width, height), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.55, 1)
    left, bottom = at[0] + 12, at[1] - 10
    cv2.rectangle(drawn, (left, bottom - height - 6), (left + width + 8, bottom), (255, 255, 255), -1)
    cv2.putText(drawn, text, (left + 4, bottom - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.55, INK_BGR, 1, cv2.LINE_AA)


def _with_caption(drawn: Image, text: str) -> Image:
    strip = np.full((44, drawn.shape[1], 3), 255, dtype=np.uint8)
    _say(strip, text, 16, 28)
    return np.vstack([drawn, strip])


def _with_legend(drawn: Image) -> Image:
    strip = np.full((56, drawn.shape[1], 3), 255, dtype=np.uint8)
    cv2.circle(strip, (24, 28), 11, TARGET_BGR, 2, cv2.LINE_AA)
    _say(strip, "target", 44)
    cv2.circle(strip, (190, 28), 5, TOUCH_BGR, -1, cv2.LINE_AA)
    _say(strip, "where the phone says it was touched", 206)
    return np.vstack([drawn, strip])


def _say(strip: Image, text: str, x: int, baseline: int = 35) -> None:
    cv2.putText(strip, text, (x, baseline), cv2.FONT_HERSHEY_SIMPLEX, 0.65, INK_BGR, 1, cv2.LINE_AA)


def _decode(encoded: bytes) -> Image:
    image = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None, "the daemon sent a picture that cannot be decoded"
    return np.asarray(image, dtype=np.uint8)


def _write(path: Path, image: Image) -> None:
    if not cv2.imwrite(str(path), image):
        raise OSError(f"{path} cannot be written")
