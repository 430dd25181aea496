"""Decoding and encoding, in one place with its traps."""

from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.contract.frames import ImageFormat

# One picture at a time on a machine that also has serial lines to serve: OpenCV's own threads only fight
# for cores.
cv2.setNumThreads(1)

Grey = npt.NDArray[np.uint8]
"""(height, width) uint8."""
Bgr = npt.NDArray[np.uint8]
"""(height, width, 3) uint8."""

_REDUCED = {4: cv2.IMREAD_REDUCED_GRAYSCALE_4, 8: cv2.IMREAD_REDUCED_GRAYSCALE_8}


def decode_bgr(jpeg: bytes) -> Bgr:
    """The picture as the sensor gave it: an orientation tag is ignored, because pixels are what is
    calibrated.

    Raises BadPicture.
    """
    return _decode(jpeg, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)


def decode_small_grey(jpeg: bytes, reduction: int) -> Grey:
    """Grey, each side divided by `reduction` (4 or 8) inside the JPEG decoder. Raises BadPicture."""
    return _decode(jpeg, _REDUCED[reduction] | cv2.IMREAD_IGNORE_ORIENTATION)


def encode(image: Bgr, image_format: ImageFormat, *, jpeg_quality: int = 90) -> bytes:
    """PNG (fast compression: it is sent, not archived) or JPEG. Raises BadPicture when OpenCV refuses the
    array."""
    if image_format == "png":
        suffix, options = ".png", [cv2.IMWRITE_PNG_COMPRESSION, 1]
    else:
        suffix, options = ".jpg", [cv2.IMWRITE_JPEG_QUALITY, jpeg_quality]
    done, encoded = cv2.imencode(suffix, image, options)
    if not done:
        raise BadPicture(f"an image of shape {image.shape} cannot be encoded as {image_format}")
    return encoded.tobytes()


def _decode(jpeg: bytes, flags: int) -> npt.NDArray[np.uint8]:
    try:
        image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), flags)
    except cv2.error as error:
        raise BadPicture(f"{len(jpeg)} bytes that OpenCV cannot decode: {error.err}") from error
    if image is None:
        raise BadPicture(f"{len(jpeg)} bytes that are no picture")
    return cast(npt.NDArray[np.uint8], image)
