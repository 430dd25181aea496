"""Reading through OpenCV's VideoCapture: a video file, or whatever else it can open by name."""

from typing import cast

import cv2

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.imaging import Bgr, encode

JPEG_QUALITY = 95
FAILED_READS = 2
"""A failed read may still claim success once, and a good stream may fail once."""
PATIENCE_MS = 2000
"""OpenCV waits 30 s for a stream that has gone quiet unless told otherwise."""


class OpenCvReader:
    """One thing that OpenCV can open, its pictures as JPEG. Raises SourceFault when it cannot."""

    def __init__(self, name: str) -> None:
        cv2.setNumThreads(1)
        self._name = name
        self._capture = cv2.VideoCapture(
            name,
            cv2.CAP_FFMPEG,
            [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, PATIENCE_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, PATIENCE_MS],
        )
        if not self._capture.isOpened():
            raise SourceFault(f"{name} cannot be opened as a video", CameraFault.NOT_MJPEG)

    def read(self) -> bytes | None:
        """The next picture, None when there is none any more."""
        for _ in range(FAILED_READS):
            there, picture = self._capture.read()
            if there and picture is not None and picture.size:
                return encode(cast(Bgr, picture), "jpeg", jpeg_quality=JPEG_QUALITY)
        return None

    def close(self) -> None:
        self._capture.release()
