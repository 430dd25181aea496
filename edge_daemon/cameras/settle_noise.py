"""The noise of the small pictures that the settle detector judges, and how they are decoded.

`calibration.noise` measures the same quantity at a calibration; `noise_sigma` here does it from JPEGs.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.imaging import Grey, decode_small_grey
from edge_daemon.cameras.jpeg import jpeg_size

Levels = npt.NDArray[np.float32]
"""(rows, columns) of grey levels."""

MAX_GIVEN_SIGMA = 6.0
"""Smoothed grey levels. More noise hides the screen."""
COARSE_STEP = 2.5
"""Grey levels: libjpeg's quality 40."""
_DQT, _SOS = 0xDB, 0xDA
_BLOCK = 8
_WIDE = 2000
"""Pictures at least this wide are reduced by 8 instead of 4."""


def decode_small(jpeg: bytes) -> tuple[Grey, int]:
    """The grey picture to judge, and by what its sides were divided. Raises BadPicture."""
    reduction = 8 if jpeg_size(jpeg)[0] >= _WIDE else 4
    return decode_small_grey(jpeg, reduction), reduction


def block_step(jpeg: bytes) -> float:
    """Grey levels between two means that this JPEG can give an 8 x 8 block: an eighth of its first quantisation
    step (ITU-T T.81, A.3.3 and B.2.4.1). COARSE_STEP where no table 0 is found."""
    at = 2
    while at + 4 <= len(jpeg) and jpeg[at] == 0xFF and jpeg[at + 1] != _SOS:
        end = at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
        if jpeg[at + 1] == _DQT:
            first = at + 4
            while first + 3 <= min(end, len(jpeg)):
                wide, table = jpeg[first] >> 4, jpeg[first] & 15
                if table == 0:
                    return int.from_bytes(jpeg[first + 1 : first + 2 + wide], "big") / 8.0
                first += 1 + 64 * (1 + wide)
        at = end
    return COARSE_STEP


def smoothed(grey: Grey) -> Levels:
    """3 x 3 means: what `noise_sigma` is measured on."""
    return cast(Levels, cv2.blur(grey.astype(np.float32), (3, 3)))


def pair_sigma(previous: Levels, current: Levels, block: int = _BLOCK) -> float:
    """Noise of one picture, grey levels, from two in a row: the median over blocks of the difference's standard
    deviation inside a block, over the square root of two.

    The median leaves out what moves in less than half of the picture; the deviation from the block's own
    mean leaves out a change of brightness.
    """
    difference = cv2.subtract(current, previous)
    rows, columns = (side // block for side in difference.shape)
    if rows == 0 or columns == 0:
        return float(difference.std()) / float(np.sqrt(2.0))
    whole = difference[: rows * block, : columns * block]
    size = (columns, rows)
    mean = cv2.resize(whole, size, interpolation=cv2.INTER_AREA)
    square = cv2.resize(cv2.multiply(whole, whole), size, interpolation=cv2.INTER_AREA)
    variance = np.median(square - mean * mean)
    return float(np.sqrt(max(float(variance), 0.0) / 2.0))


def noise_sigma(jpegs: Sequence[bytes]) -> float:
    """Measure the `noise_sigma` to give to SettleDetector: JPEGs of a still screen, in order, at least four.

    The largest of the pairs' values: a lamp that flickers belongs to the noise. Raises ValueError and
    BadPicture.
    """
    if len(jpegs) < 4:
        raise ValueError(
            f"{len(jpegs)} pictures are too few to measure noise: give at least four of a still screen"
        )
    smooth = [smoothed(decode_small(jpeg)[0]) for jpeg in jpegs]
    return max(pair_sigma(a, b) for a, b in pairwise(smooth))
