"""Recorded pictures played as a camera, for benches."""

import time
from collections.abc import Iterator
from pathlib import Path

import cv2

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.intake import Grabbed
from edge_daemon.cameras.sources import FilesSource

JPEG_QUALITY = 95
_PICTURES = {".jpg", ".jpeg", ".png"}


class FilesBackend:
    """A folder of pictures, or a video file. Each picture counts as exposed at the moment it is played."""

    lag_ns = 0

    def __init__(self, source: FilesSource) -> None:
        self._source = source
        self._path = Path(source.path)
        self._pictures: Iterator[bytes] = iter(())
        self._next_at = 0.0

    def open(self) -> tuple[str, ...]:
        cv2.setNumThreads(1)
        if not self._path.exists():
            raise SourceFault(f"{self._path} does not exist: give a folder of pictures or a video file")
        self._pictures = self._play()
        self._next_at = time.monotonic()
        return ()

    def grab(self) -> Grabbed:
        jpeg = next(self._pictures, None)
        if jpeg is None:
            raise SourceFault(f"the recorded pictures of {self._path} are at their end")
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
                yield _jpeg(image)
            else:
                yield path.read_bytes()

    def _video(self) -> Iterator[bytes]:
        video = cv2.VideoCapture(str(self._path))
        try:
            while True:
                there, image = video.read()
                if not there:
                    return
                yield _jpeg(image)
        finally:
            video.release()


def _jpeg(image: cv2.typing.MatLike) -> bytes:
    done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise SourceFault(f"a picture of shape {image.shape} cannot be encoded as JPEG")
    return encoded.tobytes()
