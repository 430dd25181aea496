"""What the phone shows during a calibration: the ChArUco board and the page that keeps touch dots.

Whoever draws these pages (an app on the phone, a web page, a simulator) and the detection share this one
definition. Coordinates: screen px have their origin at the screen's top-left EDGE, so the centre of the
first pixel is (0.5, 0.5); screen mm are the same axes, scaled.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.errors import TargetImpossible

Image = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float64]

# Eight squares across give a marker cell of over 4 camera px when a phone stands upright in a 1280 x 720
# picture, and still seven columns of corners for the lens distortion.
SQUARES_ACROSS = 8
# White kept around the board, as a share of the screen's width: bezels and rounded corners eat the rim.
BOARD_RIM = 0.01
# Marker edge as a share of the square's; the white around a marker is what its detection stands on.
MARKER_SHARE = 0.74
# The smallest marker cells (4 x 4 bits) of OpenCV's dictionaries; 100 markers serve 8 x 25 squares.
DICTIONARY = cv2.aruco.DICT_4X4_100
DICTIONARY_SIZE = 100

# The dots page. Mid-bright, so that no camera saturates on it, and black dots, so that the sign of a
# fresh dot in a difference of two pictures is known.
DOTS_BACKGROUND_LEVEL = 170
DOTS_BACKGROUND_BGR = (DOTS_BACKGROUND_LEVEL, DOTS_BACKGROUND_LEVEL, DOTS_BACKGROUND_LEVEL)
DOT_BGR = (0, 0, 0)
DOT_DIAMETER_MM = 2.4


@dataclass(frozen=True)
class CharucoTarget:
    """The board for one portrait screen: how many squares of how many px, and where they begin."""

    width_px: int
    height_px: int
    squares_x: int
    squares_y: int
    square_px: int
    left_px: int
    top_px: int

    @property
    def corner_count(self) -> int:
        """The number of inner chessboard corners: ids run from 0 to this, exclusive."""
        return (self.squares_x - 1) * (self.squares_y - 1)

    def board(self) -> cv2.aruco.CharucoBoard:
        """OpenCV's board object, for drawing and for detection."""
        return cv2.aruco.CharucoBoard(
            (self.squares_x, self.squares_y),
            float(self.square_px),
            self.square_px * MARKER_SHARE,
            cv2.aruco.getPredefinedDictionary(DICTIONARY),
        )

    def corners_px(self) -> Points:
        """All corners by id, shape (corner_count, 2), in screen px from the screen's top-left edge."""
        columns, rows = np.meshgrid(np.arange(1, self.squares_x), np.arange(1, self.squares_y))
        squares = np.column_stack([columns.ravel(), rows.ravel()]).astype(np.float64)
        return squares * self.square_px + np.array([self.left_px, self.top_px], dtype=np.float64)


def charuco_target(width_px: int, height_px: int) -> CharucoTarget:
    """Lay the board out over a portrait screen of width_px x height_px.

    Raises TargetImpossible where no board fits: landscape, or too long for the dictionary's markers.
    """
    if width_px < 20 * SQUARES_ACROSS or height_px < width_px:
        raise TargetImpossible(
            f"the calibration board needs a portrait screen at least {20 * SQUARES_ACROSS} px wide, "
            f"got {width_px} x {height_px} px; give the size as it is with the phone upright"
        )
    rim_px = round(width_px * BOARD_RIM)
    square_px = (width_px - 2 * rim_px) // SQUARES_ACROSS
    squares_y = (height_px - 2 * rim_px) // square_px
    if SQUARES_ACROSS * squares_y > 2 * DICTIONARY_SIZE:
        raise TargetImpossible(
            f"a screen of {width_px} x {height_px} px is too long for the board's {DICTIONARY_SIZE} markers; "
            "check the configured screen size"
        )
    return CharucoTarget(
        width_px=width_px,
        height_px=height_px,
        squares_x=SQUARES_ACROSS,
        squares_y=squares_y,
        square_px=square_px,
        left_px=(width_px - SQUARES_ACROSS * square_px) // 2,
        top_px=(height_px - squares_y * square_px) // 2,
    )


def draw_charuco(width_px: int, height_px: int) -> Image:
    """Draw the board over the whole screen: BGR uint8, shape (height_px, width_px, 3).

    Raises TargetImpossible as charuco_target does.
    """
    target = charuco_target(width_px, height_px)
    size = (target.squares_x * target.square_px, target.squares_y * target.square_px)
    board = target.board().generateImage(size, marginSize=0, borderBits=1)
    page = np.full((height_px, width_px, 3), 255, dtype=np.uint8)
    down = slice(target.top_px, target.top_px + size[1])
    across = slice(target.left_px, target.left_px + size[0])
    page[down, across] = board[:, :, None]
    return page


def draw_dots(
    width_px: int,
    height_px: int,
    width_mm: float,
    height_mm: float,
    places_mm: Iterable[tuple[float, float]] = (),
) -> Image:
    """Draw the dots page with a dot at each of places_mm (screen mm): BGR uint8, (height_px, width_px, 3)."""
    page = np.full((height_px, width_px, 3), DOTS_BACKGROUND_LEVEL, dtype=np.uint8)
    across, down = width_px / width_mm, height_px / height_mm
    # OpenCV draws at fixed-point coordinates counted from the first pixel's centre.
    fixed = 1 << 8
    axes = (round(DOT_DIAMETER_MM / 2 * across * fixed), round(DOT_DIAMETER_MM / 2 * down * fixed))
    for x_mm, y_mm in places_mm:
        centre = (round((x_mm * across - 0.5) * fixed), round((y_mm * down - 0.5) * fixed))
        cv2.ellipse(page, centre, axes, 0, 0, 360, DOT_BGR, thickness=-1, lineType=cv2.LINE_AA, shift=8)
    return page
