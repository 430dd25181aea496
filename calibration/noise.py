"""How much the pictures of a still screen differ by noise alone: what the settle detector is given as its noise_sigma.

The settle detector (edge_daemon.cameras.settle) decodes its JPEGs at a quarter of each side (an eighth from 2000 px
of width on), in grey, and smooths them 3 x 3; its noise is that of these small pictures. The same is done here to
pictures of full size, so the number needs no conversion.
"""

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from calibration.errors import PictureRefused
from calibration.targets import Image, Points

PICTURES_MIN = 3
# As the settle detector has them.
REDUCTION, REDUCTION_WIDE, WIDE_PX = 4, 8, 2000
BLOCK = 8
# The median over fewer blocks than this depends on what each happens to show.
BLOCKS_MIN = 12

_Small = npt.NDArray[np.float32]


def noise_sigma(pictures: Sequence[Image], inside: Points | None = None) -> float:
    """Temporal noise in smoothed grey levels, from raw BGR pictures of a still scene, in order, at least three.

    inside: the corners (N, 2) of the part to measure, camera px, such as the screen's outline; None is the whole
    picture. For each pair in a row the median over blocks of 8 x 8 small px of the difference's standard
    deviation, over the square root of two: what moves in less than half of the blocks, and changes of brightness,
    are left out. The largest of the pairs counts: a lamp that flickers belongs to the noise.

    Raises PictureRefused for too few pictures, pictures of different sizes, or too small a part.
    """
    if len(pictures) < PICTURES_MIN:
        raise PictureRefused(
            f"{len(pictures)} pictures are too few to measure noise; take at least {PICTURES_MIN} of a still screen"
        )
    if len({picture.shape for picture in pictures}) > 1:
        raise PictureRefused(
            "the pictures to measure noise in differ in size; do not change the camera's resolution meanwhile"
        )
    reduction = REDUCTION_WIDE if pictures[0].shape[1] >= WIDE_PX else REDUCTION
    small = [_small(picture, reduction) for picture in pictures]
    chosen = _blocks_inside(small[0].shape, inside, reduction)
    if int(chosen.sum()) < BLOCKS_MIN:
        raise PictureRefused(
            f"the part to measure noise in holds {int(chosen.sum())} blocks of {BLOCK * reduction} px, at least "
            f"{BLOCKS_MIN} are needed; bring the camera closer, or use a higher resolution"
        )
    return max(_pair_sigma(a, b, chosen) for a, b in pairwise(small))


def _small(picture: Image, reduction: int) -> _Small:
    """As the JPEG decoder's reduced picture, smoothed 3 x 3: areas of reduction x reduction px averaged."""
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    size = (-(-grey.shape[1] // reduction), -(-grey.shape[0] // reduction))
    # The decoder rounds to whole levels before anything is smoothed.
    reduced = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.blur(reduced.astype(np.float32), (3, 3)), dtype=np.float32)


def _blocks_inside(shape: tuple[int, ...], inside: Points | None, reduction: int) -> npt.NDArray[np.bool_]:
    """Which blocks lie wholly inside, (rows, columns) of blocks."""
    mask = np.full(shape, 1 if inside is None else 0, dtype=np.uint8)
    if inside is not None:
        # Centres of px: (x + 0.5) / reduction - 0.5 in the small picture.
        corners = np.rint((np.asarray(inside, np.float64) + 0.5) / reduction - 0.5).astype(np.int32)
        cv2.fillPoly(mask, [corners], (1,))
        # Rounding, reduction and smoothing each carry what lies outside in by up to one small px.
        mask = np.asarray(cv2.erode(mask, np.ones((7, 7), np.uint8)), dtype=np.uint8)
    rows, columns = (side // BLOCK for side in shape)
    blocks = mask[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK)
    return np.asarray(blocks.all(axis=(1, 3)), dtype=np.bool_)


def _pair_sigma(previous: _Small, current: _Small, chosen: npt.NDArray[np.bool_]) -> float:
    rows, columns = chosen.shape
    difference = (current - previous)[: rows * BLOCK, : columns * BLOCK]
    blocks = difference.reshape(rows, BLOCK, columns, BLOCK).std(axis=(1, 3))
    return float(np.median(blocks[chosen])) / float(np.sqrt(2.0))
