"""Where a camera's pictures come from, as configuration."""

import re
from typing import Literal
from urllib.parse import urlsplit

import msgspec

_STABLE_V4L2_PATH = re.compile(r"^/dev/v4l/by-(id|path)/[^/]+\Z")

HEADER_STAMP_LAG_MS = 40.0
"""One exposure at 25 fps. USB cameras are stamped by the host when the first bytes of the picture arrive,
which is after the exposure began; see `stamp_lag_ms`."""
ARRIVAL_STAMP_LAG_MS = 500.0
"""Exposure to arrival over HTTP: exposure, readout, encoding, a server's queue, the network. Generous on
purpose: too long makes a look wait, too short shows the screen of before the action."""


class _Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """`stamp_lag_ms` in every source: the longest time by which the source's stamp may follow the START of
    the exposure. It is subtracted, so that "exposed after t" is never said of a picture that began before
    t."""


class HttpMjpegSource(_Source, frozen=True, kw_only=True, tag="http_mjpeg"):
    """multipart/x-mixed-replace over HTTP, as µStreamer and most network cameras serve it.

    timestamp: "header" reads µStreamer's `X-UStreamer-Grab-Time` (CLOCK_MONOTONIC seconds of the machine
    that runs
        µStreamer, so only a server on this machine will do; its URL needs `?extra_headers=1`).
        "arrival" takes the time at which the part was complete.
    stamp_lag_ms: None means 40 for "header" and 500 for "arrival". Measure it on the rig.
    """

    url: str
    timestamp: Literal["header", "arrival"] = "header"
    stamp_lag_ms: float | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"camera url {self.url!r}: give http://host[:port]/path")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                f"camera url for {parts.hostname}: a user or password in the URL is not supported"
            )
        _check_lag(self.stamp_lag_ms)

    @property
    def stamp_lag_ns(self) -> int:
        default = HEADER_STAMP_LAG_MS if self.timestamp == "header" else ARRIVAL_STAMP_LAG_MS
        return _lag_ns(self.stamp_lag_ms, default)


class V4l2Source(_Source, frozen=True, kw_only=True, tag="v4l2"):
    """A camera on this machine through Video4Linux, which must give Motion-JPEG.

    path: under /dev/v4l/by-id or /dev/v4l/by-path; /dev/videoN changes its number and is refused.
    exposure_100us, gain, focus: None leaves the camera's automatic; a number switches the automatic off.
    Units are
        the driver's (exposure: V4L2_CID_EXPOSURE_ABSOLUTE, 100 µs).
    timestamp: "driver" (checked to be CLOCK_MONOTONIC) or "arrival" (when the frame was dequeued).
    stamp_lag_ms: None means one frame interval, the longest exposure at that rate.
    """

    path: str
    width: int
    height: int
    fps: int
    timestamp: Literal["driver", "arrival"] = "driver"
    exposure_100us: int | None = None
    gain: int | None = None
    focus: int | None = None
    stamp_lag_ms: float | None = None

    def __post_init__(self) -> None:
        if not _STABLE_V4L2_PATH.match(self.path):
            raise ValueError(
                f"camera path {self.path!r}: give a link in /dev/v4l/by-id or /dev/v4l/by-path "
                "(`ls -l /dev/v4l/by-*`); /dev/videoN names another camera after the next boot"
            )
        if not (16 <= self.width <= 16384 and 16 <= self.height <= 16384):
            raise ValueError(f"camera size {self.width}x{self.height}: each side must be 16..16384 pixels")
        if not 1 <= self.fps <= 240:
            raise ValueError(f"camera fps {self.fps}: must be 1..240")
        _check_lag(self.stamp_lag_ms)

    @property
    def stamp_lag_ns(self) -> int:
        return _lag_ns(self.stamp_lag_ms, 1000.0 / self.fps)


class FilesSource(_Source, frozen=True, kw_only=True, tag="files"):
    """Recorded pictures for a bench: a folder of .jpg/.png in name order, or a video file, played at `fps`.

    loop: begin again at the end; otherwise the end of the files is the end of the camera.
    """

    path: str
    fps: float = 15.0
    loop: bool = True

    def __post_init__(self) -> None:
        if not 0.1 <= self.fps <= 240:
            raise ValueError(f"files fps {self.fps}: must be 0.1..240")


CameraSource = HttpMjpegSource | V4l2Source | FilesSource


def _check_lag(lag_ms: float | None) -> None:
    if lag_ms is not None and not 0 <= lag_ms <= 5000:
        raise ValueError(f"stamp_lag_ms {lag_ms}: must be 0..5000")


def _lag_ns(lag_ms: float | None, default_ms: float) -> int:
    return round((default_ms if lag_ms is None else lag_ms) * 1e6)
