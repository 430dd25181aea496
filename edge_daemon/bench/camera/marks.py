"""Which exposure a picture shows, told by the picture itself: the bench holds that against what the daemon says of it.

The number is painted into the twin's raw pictures, inside the screen, as colour at constant brightness: the daemon
judges stillness, corners and outlines by grey levels, in which it does not show. 16 bits of the number and 8 check
bits stand in a row of cells near the screen's upper and, once more, its lower edge; the hand may hide one of them.
Each cell is bluish above and yellowish below for a 1, the other way round for a 0, whatever lies underneath.
"""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.frames import GRID, Points, grid_to_mm

NUMBER_BITS, CHECK_BITS = 16, 8
CELLS = NUMBER_BITS + CHECK_BITS
NUMBERS = 1 << NUMBER_BITS
# Rows of cells in grid units, some 20 px high in a picture of 1280 px; clear of the bars along all four edges, by which
# the daemon tells how the screen is turned.
ROWS = ((70.0, 90.0), (910.0, 930.0))
LEFT, RIGHT = 130.0, 870.0
# How far a cell's blue-difference is moved, in levels of 255; JPEG and noise leave a level or two of error in its mean.
DEPTH = 34
# Where the screen is black or white there is no room for colour: brightness is taken into this range first.
DARKEST, BRIGHTEST = 62, 194
# A cell whose halves differ by less than this says nothing.
CLEAR = 10.0
# Of a half cell's size, left out at its edges when it is read.
RIM = 0.25


class Marks:
    """Paints numbers into pictures of one camera that looks at one phone from one place."""

    def __init__(self, project: Callable[[Points], Points], shape: tuple[int, int]) -> None:
        """project: screen mm (N, 2) to picture px (N, 2). shape: of the pictures, (height, width)."""
        labels, signs = _cells(project, shape)
        self._place = np.nonzero(labels)
        self._labels, self._signs = labels[self._place], signs[self._place]

    def paint(self, picture: Image, number: int) -> None:
        """Paint `number` (modulo 65536) into a raw picture (height, width, 3), BGR."""
        bits = _bits(number)
        table = np.zeros(CELLS + 1, np.int16)
        table[1:] = np.where(bits, DEPTH, -DEPTH)
        chroma = cv2.cvtColor(picture[self._place][None], cv2.COLOR_BGR2YCrCb)[0]
        chroma[:, 0] = np.clip(chroma[:, 0], DARKEST, BRIGHTEST)
        chroma[:, 1], chroma[:, 2] = 128, 128 + table[self._labels] * self._signs
        picture[self._place] = cv2.cvtColor(chroma[None], cv2.COLOR_YCrCb2BGR)[0]


def read(upright: Image) -> int | None:
    """The number in a rectified picture (height, width, 3), BGR, portrait and upright, its edges the screen's.

    None where no row can be read: the hand hides them, or the picture is another's.
    """
    blue = cv2.cvtColor(upright, cv2.COLOR_BGR2YCrCb)[:, :, 2].astype(np.float64)
    for row in ROWS:
        bits = [_bit(blue, row, cell) for cell in range(CELLS)]
        if None in bits:
            continue
        word = sum(int(bool(bit)) << at for at, bit in enumerate(bits))
        number = word & (NUMBERS - 1)
        if word >> NUMBER_BITS == _check(number):
            return number
    return None


def unwrapped(number: int, newest: int) -> int:
    """The latest exposure up to `newest` that carries `number`."""
    return newest - (newest - number) % NUMBERS


def _bits(number: int) -> npt.NDArray[np.bool_]:
    number %= NUMBERS
    word = number | _check(number) << NUMBER_BITS
    return np.array([word >> at & 1 for at in range(CELLS)], dtype=np.bool_)


def _check(number: int) -> int:
    """CRC-8 (polynomial 0x07, start 0xFF) of the number's two bytes: a picture of something else is no number."""
    register = 0xFF
    for byte in number.to_bytes(2, "big"):
        register ^= byte
        for _ in range(8):
            register = (register << 1 ^ 0x07 if register & 0x80 else register << 1) & 0xFF
    return register


def _halves(row: tuple[float, float], cell: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Upper and lower half of a cell: left, top, right, bottom in grid units."""
    width, (top, bottom) = (RIGHT - LEFT) / CELLS, row
    left, middle = LEFT + cell * width, (top + bottom) / 2
    return (left, top, left + width, middle), (left, middle, left + width, bottom)


def _cells(
    project: Callable[[Points], Points], shape: tuple[int, int]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
    """Two pictures: k + 1 where cell k is, and 1 in its upper half, -1 in its lower."""
    labels, signs = np.zeros(shape, np.uint8), np.zeros(shape, np.int8)
    for row in ROWS:
        for cell in range(CELLS):
            for sign, (left, top, right, bottom) in zip((1, -1), _halves(row, cell), strict=True):
                corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
                outline = np.rint(project(np.array([grid_to_mm(x, y) for x, y in corners]))).astype(np.int32)
                cv2.fillPoly(labels, [outline], cell + 1)
                cv2.fillPoly(signs, [outline], sign)
    return labels, signs


def _bit(blue: npt.NDArray[np.float64], row: tuple[float, float], cell: int) -> bool | None:
    height, width = blue.shape
    means = []
    for left, top, right, bottom in _halves(row, cell):
        rim_x, rim_y = RIM * (right - left), RIM * (bottom - top)
        across = slice(round((left + rim_x) * width / GRID), max(1, round((right - rim_x) * width / GRID)))
        down = slice(round((top + rim_y) * height / GRID), max(1, round((bottom - rim_y) * height / GRID)))
        means.append(float(blue[down, across].mean()))
    return None if abs(means[0] - means[1]) < CLEAR else means[0] > means[1]
