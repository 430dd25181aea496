"""The ChArUco board over the whole screen."""

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.errors import TargetImpossible
from calibration.targets.turns import Image, Points, Turn, is_landscape, turned_picture, turned_points

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


@dataclass(frozen=True)
class CharucoTarget:
    """The board for one portrait screen and one turn of the page.

    Squares and margins are those of the page as it is read; a landscape page has SQUARES_ACROSS squares down.
    """

    width_px: int
    height_px: int
    squares_x: int
    squares_y: int
    square_px: int
    left_px: int
    top_px: int
    turn: Turn = "portrait"

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
        """All corners by id, shape (corner_count, 2), in portrait screen px from the screen's top-left edge."""
        columns, rows = np.meshgrid(np.arange(1, self.squares_x), np.arange(1, self.squares_y))
        squares = np.column_stack([columns.ravel(), rows.ravel()]).astype(np.float64)
        page = squares * self.square_px + np.array([self.left_px, self.top_px], dtype=np.float64)
        return turned_points(page, self.width_px, self.height_px, self.turn)

    def page(self) -> Image:
        """The board's page as it is read: grey uint8, portrait or landscape as `turn` says."""
        size = (self.squares_x * self.square_px, self.squares_y * self.square_px)
        across, down = self.width_px, self.height_px
        if is_landscape(self.turn):
            across, down = down, across
        page = np.full((down, across), 255, dtype=np.uint8)
        rows = slice(self.top_px, self.top_px + size[1])
        columns = slice(self.left_px, self.left_px + size[0])
        page[rows, columns] = self.board().generateImage(size, marginSize=0, borderBits=1)
        return page


def charuco_target(width_px: int, height_px: int, turn: Turn = "portrait") -> CharucoTarget:
    """Lay the board out over a portrait screen of width_px x height_px, for a page turned that way.

    A landscape page is laid out for its own width, with ids of its own order: no turn's picture fits another
    turn's board, but upside down, which fits a camera that is upside down.

    Raises TargetImpossible where no board fits: a landscape screen, or one too long for the dictionary.
    """
    if width_px < 20 * SQUARES_ACROSS or height_px < width_px:
        raise TargetImpossible(
            f"the calibration board needs a portrait screen at least {20 * SQUARES_ACROSS} px wide, "
            f"got {width_px} x {height_px} px; give the size as it is with the phone upright"
        )
    rim_px = round(width_px * BOARD_RIM)
    square_px = (width_px - 2 * rim_px) // SQUARES_ACROSS
    squares_along = (height_px - 2 * rim_px) // square_px
    if SQUARES_ACROSS * squares_along > 2 * DICTIONARY_SIZE:
        raise TargetImpossible(
            f"a screen of {width_px} x {height_px} px is too long for the board's {DICTIONARY_SIZE} markers; "
            "check the configured screen size"
        )
    squares = (SQUARES_ACROSS, squares_along)
    margins = tuple((px - n * square_px) // 2 for px, n in zip((width_px, height_px), squares, strict=True))
    if is_landscape(turn):
        squares, margins = squares[::-1], margins[::-1]
    return CharucoTarget(
        width_px=width_px,
        height_px=height_px,
        squares_x=squares[0],
        squares_y=squares[1],
        square_px=square_px,
        left_px=margins[0],
        top_px=margins[1],
        turn=turn,
    )


def draw_charuco(width_px: int, height_px: int, turn: Turn = "portrait") -> Image:
    """Draw the board over the whole portrait screen: BGR uint8, shape (height_px, width_px, 3).

    Turned, the picture is that of the turned page in the portrait screen's px. Raises TargetImpossible as
    charuco_target does.
    """
    screen = turned_picture(charuco_target(width_px, height_px, turn).page(), turn)
    return np.repeat(screen[:, :, None], 3, axis=2)
