"""Where a camera's pictures come from, as configuration."""

import re
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Exposure:
    """By how much a source's stamp follows the start of the exposure, ns: at most `longest`, most likely `likely`; and
    its end, most likely `since_over`."""

    longest_ns: int
    likely_ns: int
    since_over_ns: int = 0


class _Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """In every source of live pictures:

    stamp_lag_ms: the longest time by which the source's stamp may follow the START of the exposure. It is
        subtracted, so that "exposed after t" is never said of a picture that began before t.
    exposure_ms: how long the camera exposes, where that is known and locked; None where it is not. It makes the
        estimate of the exposure's start better, from which ages are told; the guarantee above stays as it is.
    """


class HttpMjpegSource(_Source, frozen=True, kw_only=True, tag="http_mjpeg"):
    """multipart/x-mixed-replace over HTTP, as µStreamer and most network cameras serve it.

    timestamp: "header" reads µStreamer's `X-UStreamer-Grab-Time` (CLOCK_MONOTONIC seconds of the machine
    that runs
        µStreamer, so only a server on this machine will do; its URL needs `?extra_headers=1`).
        "arrival" takes the time at which the part was complete.
    stamp_lag_ms: None means 40 for "header" and 500 for "arrival". Measure it on the rig.
    fps: pictures a second that the server is set to; None judges the rate by the best it has given.
    """

    url: str
    timestamp: Literal["header", "arrival"] = "header"
    stamp_lag_ms: float | None = None
    exposure_ms: float | None = None
    fps: float | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"camera url {self.url!r}: give http://host[:port]/path")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                f"camera url for {parts.hostname}: a user or password in the URL is not supported"
            )
        if self.fps is not None:
            _check_fps("camera", self.fps)
        _check_lag(self.stamp_lag_ms)
        _check_exposure(self.exposure_ms, self.stamp_lag_ns)

    @property
    def stamp_lag_ns(self) -> int:
        default = HEADER_STAMP_LAG_MS if self.timestamp == "header" else ARRIVAL_STAMP_LAG_MS
        return _lag_ns(self.stamp_lag_ms, default)

    @property
    def exposure(self) -> Exposure:
        return _exposure(self.stamp_lag_ns, self.exposure_ms, ends_exposure=self.timestamp == "header")


class V4l2Source(_Source, frozen=True, kw_only=True, tag="v4l2"):
    """A camera on this machine through Video4Linux.

    path: under /dev/v4l/by-id or /dev/v4l/by-path; /dev/videoN changes its number and is refused.
    exposure_100us, gain, focus: None leaves the camera's automatic; a number switches the automatic off.
    Units are
        the driver's (exposure: V4L2_CID_EXPOSURE_ABSOLUTE, 100 µs).
    pixel_format: "mjpg", the camera's own JPEG; "yuyv" or "grey", raw, for one that gives no other. Raw fills the bus
        and costs a processor: at 1920x1080 4 MB and 6 ms of a desktop's core a picture, see v4l2_pixels.
    timestamp: "driver" (checked to be CLOCK_MONOTONIC) or "arrival" (before which the driver had not completed it).
    stamp_lag_ms: None means one frame interval, the longest exposure at that rate.
    exposure_ms: None means what exposure_100us says.
    """

    path: str
    width: int
    height: int
    fps: int
    pixel_format: Literal["mjpg", "yuyv", "grey"] = "mjpg"
    timestamp: Literal["driver", "arrival"] = "driver"
    exposure_100us: int | None = None
    gain: int | None = None
    focus: int | None = None
    stamp_lag_ms: float | None = None
    exposure_ms: float | None = None

    def __post_init__(self) -> None:
        if not _STABLE_V4L2_PATH.match(self.path):
            raise ValueError(
                f"camera path {self.path!r}: give a link in /dev/v4l/by-id or /dev/v4l/by-path "
                "(`ls -l /dev/v4l/by-*`); /dev/videoN names another camera after the next boot"
            )
        _check_size(self.width, self.height)
        if not 1 <= self.fps <= 240:
            raise ValueError(f"camera fps {self.fps}: must be 1..240")
        _check_lag(self.stamp_lag_ms)
        _check_exposure(self.exposure_ms, self.stamp_lag_ns)

    @property
    def stamp_lag_ns(self) -> int:
        return _lag_ns(self.stamp_lag_ms, 1000.0 / self.fps)

    @property
    def exposure(self) -> Exposure:
        exposure_ms = self.exposure_ms
        if exposure_ms is None and self.exposure_100us is not None:
            # A locked exposure longer than the lag was refused by nobody: the driver shortens it to its frame.
            exposure_ms = min(self.exposure_100us / 10, self.stamp_lag_ns / 1e6)
        return _exposure(self.stamp_lag_ns, exposure_ms, ends_exposure=self.timestamp == "driver")


class CsiSource(_Source, frozen=True, kw_only=True, tag="csi"):
    """A camera on the Pi's own connector, through libcamera and picamera2; OpenCV cannot open these.

    camera: its Id as `rpicam-hello --list-cameras` shows it, the place in the device tree: it stays when another
        camera is added. None takes the only one and refuses to choose among several.
    exposure_us, gain: None leaves the camera's automatic. focus_dioptres: 1 / metres; None leaves the lens alone.
    quality: of the Motion-JPEG encoder.
    stamp_lag_ms: None means one frame interval, the longest exposure at that rate.
    """

    width: int
    height: int
    fps: float
    camera: str | None = None
    exposure_us: int | None = None
    gain: float | None = None
    focus_dioptres: float | None = None
    quality: Literal["low", "medium", "high", "very_high"] = "high"
    stamp_lag_ms: float | None = None

    def __post_init__(self) -> None:
        _check_size(self.width, self.height)
        _check_fps("camera", self.fps)
        if self.exposure_us is not None and not 1 <= self.exposure_us <= 1e6 / self.fps:
            raise ValueError(
                f"exposure_us {self.exposure_us}: must be 1..{1e6 / self.fps:.0f}, the frame interval at "
                f"{self.fps:g} fps"
            )
        if self.gain is not None and not 1 <= self.gain <= 64:
            raise ValueError(f"gain {self.gain:g}: must be 1..64")
        if self.focus_dioptres is not None and not 0 <= self.focus_dioptres <= 50:
            raise ValueError(
                f"focus_dioptres {self.focus_dioptres:g}: must be 0..50; 0 is infinity, 10 is 10 cm"
            )
        _check_lag(self.stamp_lag_ms)

    @property
    def stamp_lag_ns(self) -> int:
        return _lag_ns(self.stamp_lag_ms, 1000.0 / self.fps)

    @property
    def exposure(self) -> Exposure:
        exposure_ms = (
            None if self.exposure_us is None else min(self.exposure_us / 1000, self.stamp_lag_ns / 1e6)
        )
        return _exposure(self.stamp_lag_ns, exposure_ms, ends_exposure=True)


class FilesSource(_Source, frozen=True, kw_only=True, tag="files"):
    """Recorded pictures for a bench: a folder of .jpg/.png in name order, or a video file, played at `fps`.

    loop: begin again at the end; otherwise the end of the files is the end of the camera.
    """

    path: str
    fps: float = 15.0
    loop: bool = True

    def __post_init__(self) -> None:
        _check_fps("files", self.fps)

    @property
    def exposure(self) -> Exposure:
        return Exposure(0, 0)


CameraSource = HttpMjpegSource | V4l2Source | CsiSource | FilesSource


def _exposure(lag_ns: int, exposure_ms: float | None, *, ends_exposure: bool) -> Exposure:
    """The estimate with the least worst error.

    A stamp set when the exposure ends follows its start by the exposure itself. Of one set at some moment between
    there and the lag only the bounds are known, and the middle of them errs least.
    """
    shortest_ns = 0 if exposure_ms is None else round(exposure_ms * 1e6)
    if ends_exposure and exposure_ms is not None:
        return Exposure(lag_ns, shortest_ns)
    likely_ns = (shortest_ns + lag_ns) // 2
    return Exposure(lag_ns, likely_ns, 0 if ends_exposure else likely_ns - shortest_ns)


def _check_size(width: int, height: int) -> None:
    if not (16 <= width <= 16384 and 16 <= height <= 16384):
        raise ValueError(f"camera size {width}x{height}: each side must be 16..16384 pixels")


def _check_fps(what: str, fps: float) -> None:
    if not 0.1 <= fps <= 240:
        raise ValueError(f"{what} fps {fps}: must be 0.1..240")


def _check_exposure(exposure_ms: float | None, lag_ns: int) -> None:
    if exposure_ms is None:
        return
    if not 0 < exposure_ms <= 5000:
        raise ValueError(f"exposure_ms {exposure_ms:g}: must be more than 0 and at most 5000")
    if exposure_ms * 1e6 > lag_ns:
        raise ValueError(
            f"exposure_ms {exposure_ms:g} is longer than stamp_lag_ms {lag_ns / 1e6:g}: a picture could have begun "
            "before the moment that is promised; set stamp_lag_ms to at least the exposure"
        )


def _check_lag(lag_ms: float | None) -> None:
    if lag_ms is not None and not 0 <= lag_ms <= 5000:
        raise ValueError(f"stamp_lag_ms {lag_ms}: must be 0..5000")


def _lag_ns(lag_ms: float | None, default_ms: float) -> int:
    return round((default_ms if lag_ms is None else lag_ms) * 1e6)
