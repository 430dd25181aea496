"""What the camera always sees: the bench with its printed markers, the cradle, and the phone's body.

Two sheets: the bed's, in world mm, and the phone's, in the phone's own mm, so that a phone can be nudged on the bed.
Both are PX_PER_MM px per mm, X to the right, Y down, with the origin in the middle.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, sin

import cv2
import numpy as np
import numpy.typing as npt

from calibration.targets import BED_MARKER_MM, DICTIONARY, MARKER_SHARE, bed_marker_cells
from edge_daemon.bench.twin import draw
from edge_daemon.bench.twin.bed import (
    BEZEL_MM,
    FRAME_MM,
    PAPER_MM,
    POST_RADIUS_MM,
    BedMarker,
    posts_mm,
)
from edge_daemon.bench.twin.draw import Image, colour
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM

PX_PER_MM = 10
HALF_LENGTH_MM = 115
HALF_WIDTH_MM = 70
BODY_RADIUS_MM = 8.5
SCREEN_RADIUS_MM = 3.5
# A stray printed board: a strip of small squares, as left over from another rig.
STRAY_SQUARE_MM = 5.0
STRAY_SQUARES = (22, 3)

PAPER = colour("#d9dbd6")
INK = colour("#1d1e20")


@dataclass(frozen=True)
class StrayBoard:
    """Another printed board on the mat: the middle of it in world mm, and its turn."""

    x_mm: float = 10.0
    y_mm: float = 46.5
    turn_rad: float = 0.02


def bed_sheet(markers: Sequence[BedMarker], stray: StrayBoard | None = None) -> Image:
    """The mat with the cradle's posts, the markers stuck to it and, if it is there, the stray board."""
    sheet = _mat().copy()
    if stray is not None:
        _stick(sheet, _stray_print(), stray.x_mm, stray.y_mm, stray.turn_rad)
    for marker in markers:
        _stick(sheet, _marker_print(marker.ident), marker.x_mm, marker.y_mm, marker.turn_rad)
    for x_mm, y_mm in posts_mm():
        x, y = _sheet_px(x_mm, y_mm)
        draw.disc(sheet, x, y, POST_RADIUS_MM * PX_PER_MM, colour("#2c3136"))
        draw.disc(sheet, x, y, 15, colour("#8d9499"))
        draw.disc(sheet, x, y, 6, colour("#3a3f44"))
    return sheet


@functools.cache
def phone_sheet() -> tuple[Image, npt.NDArray[np.uint8]]:
    """The phone's body around its (black) screen, and how much of each px it covers, 0..255. Read only."""
    picture = np.zeros((*_sheet_shape(), 3), dtype=np.uint8)
    half_length, half_width = SCREEN_HEIGHT_MM / 2, SCREEN_WIDTH_MM / 2
    outer = BEZEL_MM + FRAME_MM
    cover = np.zeros_like(picture)
    _box(cover, half_length + outer, half_width + outer, BODY_RADIUS_MM, "#ffffff")
    picture[:] = colour("#7d858c")
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
        draw.rounded(cover, left, edge - 4, length_mm * PX_PER_MM, 10, 4, draw.WHITE)
    return picture, cover[:, :, 0]


@functools.cache
def phone_shadow() -> Image:
    """What is left of the lamp's light on the bed under and beside the phone, 0..255 in one channel. Read only."""
    dark = np.full((*_sheet_shape(), 3), 255, dtype=np.uint8)
    outer = BEZEL_MM + FRAME_MM + 1.0
    _box(dark, SCREEN_HEIGHT_MM / 2 + outer, SCREEN_WIDTH_MM / 2 + outer, BODY_RADIUS_MM + 2, "#404040")
    small = cv2.GaussianBlur(cv2.resize(dark, None, fx=0.125, fy=0.125), (0, 0), 2.2)
    return np.asarray(cv2.resize(small, (dark.shape[1], dark.shape[0]))[:, :, 0], dtype=np.uint8)


def _sheet_shape() -> tuple[int, int]:
    return 2 * HALF_WIDTH_MM * PX_PER_MM, 2 * HALF_LENGTH_MM * PX_PER_MM


def _sheet_px(x_mm: float, y_mm: float) -> tuple[float, float]:
    return (x_mm + HALF_LENGTH_MM) * PX_PER_MM, (y_mm + HALF_WIDTH_MM) * PX_PER_MM


@functools.cache
def _mat() -> Image:
    """A blue-grey cutting mat with a 10 mm grid. Read only."""
    height, width = _sheet_shape()
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


# Prints are drawn finer than the sheet, so that their edges come out smooth.
PRINT_PX_PER_MM = 30


def _marker_print(ident: int) -> Image:
    """One bed marker on its white paper, as it is read."""
    cells = bed_marker_cells(ident)
    cell_px = round(BED_MARKER_MM / len(cells) * PRINT_PX_PER_MM)
    black = np.kron(cells, np.ones((cell_px, cell_px), dtype=np.bool_))
    rim = round((PAPER_MM - BED_MARKER_MM) / 2 * PRINT_PX_PER_MM)
    return _inked(np.pad(black, rim, constant_values=False))


def _stray_print() -> Image:
    square_px = round(STRAY_SQUARE_MM * PRINT_PX_PER_MM)
    board = cv2.aruco.CharucoBoard(
        STRAY_SQUARES, 1.0, MARKER_SHARE, cv2.aruco.getPredefinedDictionary(DICTIONARY)
    )
    size = (STRAY_SQUARES[0] * square_px, STRAY_SQUARES[1] * square_px)
    black = np.asarray(board.generateImage(size)) < 128
    return _inked(np.pad(black, square_px // 4, constant_values=False))


def _inked(black: npt.NDArray[np.bool_]) -> Image:
    return np.where(black[:, :, None], np.array(INK), np.array(PAPER)).astype(np.uint8)


def _stick(sheet: Image, print_: Image, x_mm: float, y_mm: float, turn_rad: float) -> None:
    """Lay a print on the sheet: read with X to the left and Y up, as the picture's right way round needs it."""
    scale = PX_PER_MM / PRINT_PX_PER_MM
    # Shrunk in one step with the turn, each sheet px would pick one print px: shrink smoothly first.
    small = cv2.resize(print_, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    height, width = small.shape[:2]
    x, y = _sheet_px(x_mm, y_mm)
    c, s = cos(turn_rad), sin(turn_rad)
    # A print px (u, v) from its middle lies at (u, -v), turned: the sheet's Y is the world's and not the picture's.
    matrix = np.array(
        [
            [c, s, x - 0.5 - c * (width - 1) / 2 - s * (height - 1) / 2],
            [s, -c, y - 0.5 - s * (width - 1) / 2 + c * (height - 1) / 2],
        ]
    )
    size = (sheet.shape[1], sheet.shape[0])
    over = cv2.warpAffine(small, matrix, size, flags=cv2.INTER_LINEAR)
    share = cv2.warpAffine(
        np.full((height, width), 255, dtype=np.uint8), matrix, size, flags=cv2.INTER_LINEAR
    )
    touched = share > 0
    alpha = (share[touched] / 255.0)[:, None]
    # The border of `over` is already faded to black by the warp: add only the share of the sheet that is left.
    sheet[touched] = np.clip(over[touched] + sheet[touched] * (1.0 - alpha), 0, 255).astype(np.uint8)


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
