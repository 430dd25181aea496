"""From what a camera gives to the JPEG that everything behind it works with.

Motion-JPEG is handed on as it came. Raw pictures are for cameras that have nothing else. They cost: a full-colour
picture of 640x480, 1280x720 or 1920x1080 takes about 2, 3 or 6 ms of a desktop's core to encode, and 0.6, 1.8 or
4.1 MB of the bus, of which USB 2 carries some 40 MB a second for all its cameras together.
"""

from typing import Protocol

import cv2
import numpy as np

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.sources import V4l2Source

JPEG_QUALITY = 90
"""As a good webcam's own encoder; the noise that it adds is below a sensor's."""

FOURCC = {"mjpg": "MJPG", "yuyv": "YUYV", "grey": "GREY"}
"""V4L2_PIX_FMT_… by the configuration's word."""


class Packer(Protocol):
    """Turns what OpenCV hands out into JPEG."""

    def least_bytes(self) -> int:
        """A picture of fewer bytes is not whole."""
        ...

    def pack(self, picture: cv2.typing.MatLike) -> bytes:
        """The picture as JPEG."""
        ...


class PassOn:
    """Motion-JPEG: how large a picture is, is the camera's affair; whether it is whole is judged from its bytes."""

    def least_bytes(self) -> int:
        return 1

    def pack(self, picture: cv2.typing.MatLike) -> bytes:
        return picture.tobytes()


class Encode:
    """A raw picture, (height, width, 2) YUYV or (height, width) grey, uint8.

    A shorter one than that still comes in a whole buffer, whose rest shows an older picture.
    """

    def __init__(self, source: V4l2Source) -> None:
        self._is_yuyv = source.pixel_format == "yuyv"
        self._shape = (source.height, source.width, *((2,) if self._is_yuyv else ()))

    def least_bytes(self) -> int:
        return int(np.prod(self._shape))

    def pack(self, picture: cv2.typing.MatLike) -> bytes:
        if picture.shape[: len(self._shape)] != self._shape:
            raise SourceFault(
                f"a raw picture of shape {picture.shape}, expected {self._shape}", CameraFault.NOT_AS_ASKED
            )
        image = cv2.cvtColor(picture, cv2.COLOR_YUV2BGR_YUYV) if self._is_yuyv else picture
        done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        if not done:
            raise SourceFault(f"a picture of shape {picture.shape} cannot be encoded as JPEG")
        return encoded.tobytes()


def packer_for(source: V4l2Source) -> Packer:
    """The one of the configured format."""
    return PassOn() if source.pixel_format == "mjpg" else Encode(source)
