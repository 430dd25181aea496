"""What is wrong with a camera that gives pictures: is there anything to be seen, are they new, do enough come?

Everything here is said and not acted on: the pictures are handed out all the same.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.faults import CameraFault as CameraFault
from edge_daemon.cameras.imaging import Grey, decode_small_grey

BLACK_LEVEL = 20
"""Grey level of 255. Black is coded as 0 or 16, a dark sensor's noise adds a few levels."""
LIT_FRACTION = 0.005
"""A single lit button on a dark screen is about this much of the picture: then it is not black."""
GLASS_SHARE = 0.25
"""A screen that is off still mirrors the room: 4 to 8 % of its light by the glass alone, more under a lamp. Below
this share of the room's own brightness a screen shows nothing of its own."""
RIM_SHARE = 0.06
"""Of the screen's size, left out at each edge: the bezel, and a calibration that is off by a little."""
STARVED_SHARE, FED_SHARE = 0.7, 0.8
"""Of the rate that should come: below the first the camera starves, above the second it does no longer."""
BROKEN_SHARE = 0.1
"""More broken pictures than this, and it starves: a crowded bus cuts pictures before it loses them."""
RATE_WINDOW_NS, RATE_STEP_NS = 2_000_000_000, 200_000_000

Outline = Sequence[tuple[float, float]]
"""Corners of a screen in raw camera pixels."""


@dataclass(frozen=True)
class Degradation:
    """Something that is wrong while pictures come: its name, and a sentence for people."""

    fault: CameraFault
    words: str


def is_black(grey: Grey) -> bool:
    """Nearly every pixel is dark: the lens is covered, the light is off, or the exposure failed."""
    return bool(np.quantile(grey, 1.0 - LIT_FRACTION) < BLACK_LEVEL)


def is_screen_off(grey: Grey, outline: Outline, reduction: int = 1) -> bool:
    """The screen's surroundings are to be seen and the screen shows nothing. Grey (height, width) uint8 whose sides
    were divided by `reduction`; the outline is in pixels of the whole picture. False where no screen is in it."""
    corners = (np.asarray(outline, np.float64) + 0.5) / reduction - 0.5
    inside = _filled(
        grey.shape, corners.mean(axis=0) + (corners - corners.mean(axis=0)) * (1 - 2 * RIM_SHARE)
    )
    outside = _filled(grey.shape, corners) == 0
    if not inside.any() or not outside.any():
        return False
    room = float(np.quantile(grey[outside], 0.9))
    shown = float(np.quantile(grey[inside != 0], 1.0 - LIT_FRACTION))
    return shown < max(float(BLACK_LEVEL), GLASS_SHARE * room)


def _filled(shape: tuple[int, ...], corners: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    mask = np.zeros(shape, np.uint8)
    cv2.fillPoly(mask, [np.rint(corners).astype(np.int32)], 1)
    return mask


def look(jpeg: bytes, screens: Mapping[str, Outline]) -> tuple[Degradation, ...]:
    """What is wrong with what this picture shows. `screens`: the outline of each screen, by the device's name."""
    try:
        grey = decode_small_grey(jpeg, 8)
    except BadPicture as error:
        return (Degradation(CameraFault.BROKEN_STREAM, f"the picture cannot be decoded: {error}"),)
    if is_black(grey):
        words = f"the picture is black (mean level {float(grey.mean()):.0f} of 255): lens, light or exposure"
        return (Degradation(CameraFault.BLACK, words),)
    return tuple(
        Degradation(
            CameraFault.SCREEN_OFF, f"the screen of {name} is dark while its surroundings are lit: it is off"
        )
        for name, outline in screens.items()
        if is_screen_off(grey, outline, 8)
    )


class StuckCheck:
    """The same picture under new timestamps: a driver that hands out one buffer over and over.

    No two pictures of a live sensor are equal byte for byte; a recording or a noiseless source may repeat
    one, so this is said and not acted on.
    """

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._crc32: int | None = None
        self._since_ns = 0

    def take(self, crc32: int, exposed_ns: int) -> str | None:
        """What is wrong, in words, once one picture has come for longer than the limit."""
        if crc32 != self._crc32:
            self._crc32, self._since_ns = crc32, exposed_ns
            return None
        lasted_ns = exposed_ns - self._since_ns
        if lasted_ns <= self._limit_ns:
            return None
        return "the same picture comes again and again under new timestamps: the camera is stuck"


class RateCheck:
    """Do as many whole pictures come as should?

    Counted over two seconds of exposure times, by the capture's own numbers, so that a daemon that reads late makes
    no camera starve. expected_fps: None takes the best that this camera has given.
    """

    def __init__(self, expected_fps: float | None) -> None:
        self._configured = expected_fps
        self._expected = expected_fps
        self._window: deque[tuple[int, int, int]] = deque()
        self._words: str | None = None

    def begin(self) -> None:
        """The camera was opened anew; what it can give is known still."""
        self._window.clear()
        self._words = None

    def take(self, exposed_ns: int, captured: int, broken: int) -> str | None:
        """What is wrong, in words that stay the same while it lasts. Counts since the camera was opened."""
        window = self._window
        if window and exposed_ns - window[-1][0] < RATE_STEP_NS:
            return self._words
        window.append((exposed_ns, captured, broken))
        if exposed_ns - window[0][0] < RATE_WINDOW_NS:
            return self._words
        while exposed_ns - window[1][0] >= RATE_WINDOW_NS:
            window.popleft()
        first_ns, first_captured, first_broken = window[0]
        new, spoilt = captured - first_captured, broken - first_broken
        fps = new * 1e9 / (exposed_ns - first_ns)
        self._words = self._judge(fps, spoilt / (spoilt + new))
        if self._configured is None:
            self._expected = max(self._expected or 0.0, fps)
        return self._words

    def _judge(self, fps: float, broken_share: float) -> str | None:
        limit = STARVED_SHARE if self._words is None else FED_SHARE
        expected = self._expected
        if broken_share <= BROKEN_SHARE and (expected is None or fps >= limit * expected):
            return None
        if self._words is not None:
            return self._words
        if broken_share > BROKEN_SHARE:
            return (
                f"{broken_share:.0%} of its pictures arrive broken: the bus is crowded, or the cable is bad"
            )
        said = "asked for" if self._configured is not None else "gave before"
        return (
            f"gives {fps:.1f} pictures a second, {said} {expected:.1f}: the bus is crowded (one camera a bus), or the "
            "exposure is too long for the rate"
        )
