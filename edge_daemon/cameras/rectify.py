"""From a raw camera picture to a picture of the screen whose edges are the grid's edges."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, Self, cast

import cv2
import numpy as np
import numpy.typing as npt
import trio

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.imaging import Bgr, decode_bgr, encode
from edge_daemon.contract.frames import ImageFormat

QuarterTurns = Literal[0, 1, 2, 3]
"""Clockwise turns of the rectified (portrait) picture."""

FloatMap = npt.NDArray[np.floating]
_FixedMap = tuple[npt.NDArray[np.int16], npt.NDArray[np.uint16]]


class RectifyModel(Protocol):
    """The part of a calibration's camera model that is needed here."""

    def rectify_maps(self, width: int, height: int, /) -> tuple[FloatMap, FloatMap]:
        """For a rectified picture of width x height: where each of its pixels lies in the raw picture, as
        (map_x, map_y), each (height, width), in raw camera pixels."""
        ...


@dataclass(frozen=True)
class RectifiedPicture:
    """An encoded picture of the screen."""

    format: ImageFormat
    image: bytes
    width: int
    height: int


class Rectifier:
    """Undistortion, perspective and quarter turn fused into one fixed-point map (CV_16SC2) for each turn.

    map_x, map_y: (height, width) of the rectified picture, raw pixel coordinates. source_size: (width,
    height) of the raw pictures that the calibration was made with; others are refused. Raises ValueError
    for unusable maps.
    """

    def __init__(self, map_x: FloatMap, map_y: FloatMap, *, source_size: tuple[int, int]) -> None:
        if map_x.ndim != 2 or map_x.shape != map_y.shape or not map_x.size:
            raise ValueError(
                f"rectify maps of shapes {map_x.shape} and {map_y.shape}: both must be (height, width)"
            )
        if not (np.isfinite(map_x).all() and np.isfinite(map_y).all()):
            raise ValueError("rectify maps hold values that are not finite: the calibration is unusable")
        if max(source_size) >= 2**15:
            raise ValueError(f"raw pictures of {source_size[0]}x{source_size[1]} exceed the map's 16 bits")
        width, height = source_size
        inside = (map_x >= -1) & (map_x <= width) & (map_y >= -1) & (map_y <= height)
        if not inside.all():
            raise ValueError(
                f"{float(1 - inside.mean()):.1%} of the screen lies outside the raw picture of "
                f"{width}x{height}: "
                "move the camera so that it sees the whole screen, and calibrate again"
            )
        self._source_size = source_size
        whole, fractions = cv2.convertMaps(map_x.astype(np.float32), map_y.astype(np.float32), cv2.CV_16SC2)
        self._maps: dict[QuarterTurns, _FixedMap] = {
            0: (cast(npt.NDArray[np.int16], whole), cast(npt.NDArray[np.uint16], fractions))
        }

    @classmethod
    def from_model(
        cls, model: RectifyModel, width: int, height: int, *, source_size: tuple[int, int]
    ) -> Self:
        """For rectified pictures of width x height pixels, in the screen's portrait orientation."""
        map_x, map_y = model.rectify_maps(width, height)
        return cls(map_x, map_y, source_size=source_size)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the rectified picture before any turn."""
        height, width = self._maps[0][0].shape[:2]
        return width, height

    def rectify(self, jpeg: bytes, *, turns: QuarterTurns = 0, into: Bgr | None = None) -> Bgr:
        """(height, width, 3) uint8 BGR. Raises BadPicture when it cannot be decoded or has another size.

        into: an earlier picture of the same turn that nobody needs any more, to be written over; new memory costs a
        tenth of the remap.
        """
        raw = decode_bgr(jpeg)
        height, width = raw.shape[:2]
        if (width, height) != self._source_size:
            raise BadPicture(
                f"a picture of {width}x{height}, but the calibration was made with "
                f"{self._source_size[0]}x{self._source_size[1]}: set the camera back or calibrate again"
            )
        return cast(Bgr, cv2.remap(raw, *self._turned(turns), cv2.INTER_LINEAR, into))

    def _turned(self, turns: QuarterTurns) -> _FixedMap:
        """The map of the turned picture: a turn is a reordering of its pixels, so it costs nothing each picture."""
        known = self._maps.get(turns)
        if known is None:
            whole, fractions = self._maps[0]
            known = (
                np.ascontiguousarray(np.rot90(whole, -turns)),
                np.ascontiguousarray(np.rot90(fractions, -turns)),
            )
            # Two threads that come here at once make the same map; either stays.
            self._maps[turns] = known
        return known

    def encoded(self, image: Bgr, image_format: ImageFormat, *, jpeg_quality: int = 90) -> RectifiedPicture:
        """A rectified picture as a file."""
        height, width = image.shape[:2]
        return RectifiedPicture(
            image_format, encode(image, image_format, jpeg_quality=jpeg_quality), width, height
        )

    def render(
        self, jpeg: bytes, image_format: ImageFormat, *, turns: QuarterTurns = 0, jpeg_quality: int = 90
    ) -> RectifiedPicture:
        """Rectify, turn, encode. Blocks for tens of milliseconds; raises BadPicture."""
        return self.encoded(self.rectify(jpeg, turns=turns), image_format, jpeg_quality=jpeg_quality)

    async def picture(
        self, jpeg: bytes, image_format: ImageFormat, *, turns: QuarterTurns = 0, jpeg_quality: int = 90
    ) -> RectifiedPicture:
        """`render` in a thread. A cancelled caller leaves when the thread is done."""
        return await trio.to_thread.run_sync(
            partial(self.render, jpeg, image_format, turns=turns, jpeg_quality=jpeg_quality)
        )
