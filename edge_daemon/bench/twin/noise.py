"""The sensor's noise: what reading a px out adds, and shot noise whose variance grows with the light."""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX

# Pictures cut their noise out of larger tiles at a random place.
MARGIN_PX = 160
# The quick noise goes over a picture in bands that stay in a core's cache.
BAND_ROWS = 90
# Variance of the shot noise at level 255, as a share of the read noise's.
SHOT_SHARE = 0.6

Tile = npt.NDArray[np.float32]


def _tile(rng: np.random.Generator, sigma: float) -> Tile:
    """Noise with `sigma` in each channel; most of it is common to the three, as after a camera's demosaicing."""
    shape = (PICTURE_HEIGHT_PX + MARGIN_PX, PICTURE_WIDTH_PX + MARGIN_PX)
    common = rng.standard_normal(shape, dtype=np.float32)[:, :, None]
    own = rng.standard_normal((*shape, 3), dtype=np.float32)
    return np.asarray(sigma * (0.86 * common + 0.51 * own), dtype=np.float32)


class QuickNoise:
    """Noise of whole grey levels in a fifth of a frame's budget.

    Shot noise: ready-made noise is added only where a random threshold lies below the px' level, so that its variance
    is proportional to the level.
    """

    def __init__(self, rng: np.random.Generator, sigma: float) -> None:
        self._rng = rng
        self._read = _split(_tile(rng, sigma))
        self._shot = _split(_tile(rng, sigma * float(np.sqrt(SHOT_SHARE))))
        self._threshold = rng.integers(0, 255, self._shot[0].shape, dtype=np.uint8)
        self._bright = np.empty((BAND_ROWS, PICTURE_WIDTH_PX, 3), dtype=np.uint8)
        self._part = np.empty_like(self._bright)

    def added(self, picture: Image) -> Image:
        """The picture as this exposure has it."""
        read, shot, drawn = (_cut(self._rng) for _ in range(3))
        tiles = (
            self._threshold[drawn],
            *(tile[shot] for tile in self._shot),
            *(tile[read] for tile in self._read),
        )
        noisy = np.empty_like(picture)
        for top in range(0, PICTURE_HEIGHT_PX, BAND_ROWS):
            rows = slice(top, top + BAND_ROWS)
            self._add_to(picture[rows], noisy[rows], *(tile[rows] for tile in tiles))
        return noisy

    def _add_to(
        self,
        clean: Image,
        noisy: Image,
        threshold: Image,
        shot_up: Image,
        shot_down: Image,
        up: Image,
        down: Image,
    ) -> None:
        cv2.compare(clean, threshold, cv2.CMP_GT, dst=self._bright)
        # The smaller of a mask's 0 or 255 and the noise is the masked noise.
        cv2.min(shot_up, self._bright, dst=self._part)
        cv2.add(clean, self._part, dst=noisy)
        cv2.add(noisy, up, dst=noisy)
        cv2.subtract(noisy, down, dst=noisy)
        cv2.min(shot_down, self._bright, dst=self._part)
        cv2.subtract(noisy, self._part, dst=noisy)


class FineNoise:
    """The same noise, with fractions of a grey level."""

    def __init__(self, rng: np.random.Generator, sigma: float) -> None:
        self._rng = rng
        self._unit = _tile(rng, 1.0)
        level = np.arange(256, dtype=np.float32)
        self._sigma_of_level = (sigma * np.sqrt(1.0 + SHOT_SHARE * level / 255.0)).astype(np.float32)

    def added(self, picture: Image) -> Image:
        """The picture as this exposure has it."""
        sigma = cv2.LUT(picture, self._sigma_of_level)
        noise = cv2.multiply(sigma, self._unit[_cut(self._rng)])
        return np.asarray(cv2.add(picture, noise, dtype=cv2.CV_8U), dtype=np.uint8)


def _split(tile: Tile) -> tuple[Image, Image]:
    """What noise adds and what it takes away, in whole levels."""
    whole = np.round(tile)
    return np.maximum(whole, 0).astype(np.uint8), np.maximum(-whole, 0).astype(np.uint8)


def _cut(rng: np.random.Generator) -> tuple[slice, slice]:
    y, x = rng.integers(0, MARGIN_PX, 2)
    return slice(y, y + PICTURE_HEIGHT_PX), slice(x, x + PICTURE_WIDTH_PX)
