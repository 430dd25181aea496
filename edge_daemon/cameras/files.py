"""Recorded pictures played as a camera, for benches."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import cv2

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.imaging import Bgr, encode
from edge_daemon.cameras.intake import Grabbed
from edge_daemon.cameras.opencv_reader import JPEG_QUALITY, OpenCvReader
from edge_daemon.cameras.sources import FilesSource

_PICTURES = {".jpg", ".jpeg", ".png"}


class FilesBackend:
    """A folder of pictures, or a video file. Each picture counts as exposed at the moment it is played."""

    def __init__(self, source: FilesSource) -> None:
        self._source = source
        self._path = Path(source.path)
        self._pictures: Iterator[bytes] = iter(())
        self._next_at = 0.0

    def open(self) -> tuple[str, ...]:
        if not self._path.exists():
            raise SourceFault(
                f"{self._path} does not exist: give a folder of pictures or a video file",
                CameraFault.UNPLUGGED,
            )
        self._pictures = self._play()
        self._next_at = time.monotonic()
        return ()

    def grab(self) -> Grabbed:
        jpeg = next(self._pictures, None)
        if jpeg is None:
            raise SourceFault(f"the recorded pictures of {self._path} are at their end", CameraFault.ENDED)
        time.sleep(max(0.0, self._next_at - time.monotonic()))
        self._next_at += 1.0 / self._source.fps
        now_ns = time.monotonic_ns()
        return Grabbed(jpeg, now_ns, now_ns)

    def close(self) -> None:
        self._pictures = iter(())

    def _play(self) -> Iterator[bytes]:
        while True:
            played = 0
            for jpeg in self._folder() if self._path.is_dir() else self._video():
                played += 1
                yield jpeg
            if not played:
                raise SourceFault(f"{self._path} holds no picture that can be read (.jpg, .png or a video)")
            if not self._source.loop:
                return

    def _folder(self) -> Iterator[bytes]:
        for path in sorted(self._path.iterdir()):
            suffix = path.suffix.lower()
            if suffix not in _PICTURES:
                continue
            if suffix == ".png":
                image = cv2.imread(str(path), cv2.IMREAD_COLOR)
                if image is None:
                    raise SourceFault(f"{path} cannot be read as a picture")
                yield encode(cast(Bgr, image), "jpeg", jpeg_quality=JPEG_QUALITY)
            else:
                yield path.read_bytes()

    def _video(self) -> Iterator[bytes]:
        reader = OpenCvReader(str(self._path))
        try:
            while (jpeg := reader.read()) is not None:
                yield jpeg
        finally:
            reader.close()
