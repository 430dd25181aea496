"""What the camera always sees: the bench, the cradle and the phone's body around its screen."""

import functools

import cv2
import numpy as np

from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.draw import Image, colour
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM

PX_PER_MM = 10
HALF_LENGTH_MM = 115
HALF_WIDTH_MM = 70
# Screen to the outside of the body: this is a phone with thin, even bezels.
BEZEL_MM = 2.6
FRAME_MM = 1.0
BODY_RADIUS_MM = 8.5
SCREEN_RADIUS_MM = 3.5


@functools.cache
def bench_texture() -> Image:
    """Not to be written into. World X to the right, Y down, PX_PER_MM px per mm, world origin in its middle."""
    width, height = 2 * HALF_LENGTH_MM * PX_PER_MM, 2 * HALF_WIDTH_MM * PX_PER_MM
    picture = _mat(width, height)
    _cradle(picture)
    _phone_body(picture)
    return picture


def _mat(width: int, height: int) -> Image:
    """A blue-grey cutting mat with a 10 mm grid."""
    rng = np.random.default_rng(5)
    grain = cv2.GaussianBlur(rng.normal(0.0, 9.0, (height // 2, width // 2)).astype(np.float32), (0, 0), 1.2)
    grain = cv2.resize(grain, (width, height))
    picture = np.clip(np.array(colour("#56626b")) + grain[:, :, None], 0, 255).astype(np.uint8)
    line = colour("#67757e")
    for mm in range(-HALF_LENGTH_MM, HALF_LENGTH_MM, 10):
        x = (mm + HALF_LENGTH_MM) * PX_PER_MM
        cv2.line(picture, (x, 0), (x, height), line, 2, cv2.LINE_AA)
    for mm in range(-HALF_WIDTH_MM, HALF_WIDTH_MM, 10):
        y = (mm + HALF_WIDTH_MM) * PX_PER_MM
        cv2.line(picture, (0, y), (width, y), line, 2, cv2.LINE_AA)
    return picture


def _box(picture: Image, half_length_mm: float, half_width_mm: float, radius_mm: float, code: str) -> None:
    draw.rounded(
        picture,
        (HALF_LENGTH_MM - half_length_mm) * PX_PER_MM,
        (HALF_WIDTH_MM - half_width_mm) * PX_PER_MM,
        2 * half_length_mm * PX_PER_MM,
        2 * half_width_mm * PX_PER_MM,
        radius_mm * PX_PER_MM,
        colour(code),
    )


def _cradle(picture: Image) -> None:
    """Four printed corner holders with a screw each."""
    half_length = SCREEN_HEIGHT_MM / 2 + BEZEL_MM + FRAME_MM
    half_width = SCREEN_WIDTH_MM / 2 + BEZEL_MM + FRAME_MM
    for side_x in (-1, 1):
        for side_y in (-1, 1):
            x = HALF_LENGTH_MM + side_x * (half_length - 6) - 11
            y = HALF_WIDTH_MM + side_y * (half_width - 6) - 11
            draw.rounded(picture, x * PX_PER_MM, y * PX_PER_MM, 220, 220, 35, colour("#2c3136"))
            centre_x = HALF_LENGTH_MM + side_x * (half_length + 2.2)
            centre_y = HALF_WIDTH_MM + side_y * (half_width + 2.2)
            draw.disc(picture, centre_x * PX_PER_MM, centre_y * PX_PER_MM, 15, colour("#8d9499"))
            draw.disc(picture, centre_x * PX_PER_MM, centre_y * PX_PER_MM, 6, colour("#3a3f44"))


def _phone_body(picture: Image) -> None:
    half_length, half_width = SCREEN_HEIGHT_MM / 2, SCREEN_WIDTH_MM / 2
    outer = BEZEL_MM + FRAME_MM
    dark = np.full_like(picture, 255)
    _box(dark, half_length + outer + 1.0, half_width + outer + 1.0, BODY_RADIUS_MM + 2, "#404040")
    small = cv2.GaussianBlur(cv2.resize(dark, None, fx=0.125, fy=0.125), (0, 0), 2.2)
    picture[:] = cv2.multiply(picture, cv2.resize(small, (picture.shape[1], picture.shape[0])), scale=1 / 255)
    _box(picture, half_length + outer, half_width + outer, BODY_RADIUS_MM, "#7d858c")
    _box(picture, half_length + outer - 0.35, half_width + outer - 0.35, BODY_RADIUS_MM - 0.35, "#b4bbc1")
    _box(picture, half_length + outer - 0.7, half_width + outer - 0.7, BODY_RADIUS_MM - 0.7, "#565d63")
    _box(picture, half_length + BEZEL_MM, half_width + BEZEL_MM, BODY_RADIUS_MM - FRAME_MM, "#0b0c0e")
    # The earpiece, a slit in the top bezel (left in the picture).
    x = (HALF_LENGTH_MM - half_length - BEZEL_MM / 2 - 0.35) * PX_PER_MM
    draw.rounded(picture, x, (HALF_WIDTH_MM - 6) * PX_PER_MM, 7, 120, 3, colour("#24272b"))
    # Power and volume keys on the body's long side.
    edge = (HALF_WIDTH_MM + half_width + outer) * PX_PER_MM
    for start_mm, length_mm in ((-38.0, 11.0), (-22.0, 22.0)):
        left = (HALF_LENGTH_MM + start_mm) * PX_PER_MM
        draw.rounded(picture, left, edge - 4, length_mm * PX_PER_MM, 10, 4, colour("#666e75"))
