"""Is there anything to be seen?"""

import numpy as np

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.imaging import Grey, decode_small_grey

BLACK_LEVEL = 20
"""Grey level of 255. Black is coded as 0 or 16, a dark sensor's noise adds a few levels."""
LIT_FRACTION = 0.005
"""A single lit button on a dark screen is about this much of the picture: then it is not black."""


def is_black(grey: Grey) -> bool:
    """Nearly every pixel is dark: the lens is covered, the light is off, or the exposure failed."""
    return bool(np.quantile(grey, 1.0 - LIT_FRACTION) < BLACK_LEVEL)


def darkness(jpeg: bytes) -> str | None:
    """What is wrong with this picture's brightness, in words; None when nothing is."""
    try:
        grey = decode_small_grey(jpeg, 8)
    except BadPicture as error:
        return f"the picture cannot be decoded: {error}"
    if is_black(grey):
        return f"the picture is black (mean level {float(grey.mean()):.0f} of 255): lens, light or exposure"
    return None


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
