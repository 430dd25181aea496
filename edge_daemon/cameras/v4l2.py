"""A camera on this machine through OpenCV's Video4Linux backend, raw Motion-JPEG only.

The order of the settings is the whole art: MJPG first (YUYV is the default and starves the bus), then size,
then rate; everything is read back because drivers answer "done" to what they do not do.
"""

import os
import time

# OpenCV reads this once, when the library is loaded: an unplugged camera blocks a read for 10 s otherwise.
os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", "2")

import cv2

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.intake import Grabbed, StampCheck
from edge_daemon.cameras.sources import V4l2Source

_MJPG = cv2.VideoWriter.fourcc(*"MJPG")
_MANUAL_EXPOSURE, _AUTO_EXPOSURE = 1, 3
"""V4L2_EXPOSURE_MANUAL and V4L2_EXPOSURE_APERTURE_PRIORITY, the two that USB cameras know."""
_START_FRAMES = 4
"""OpenCV's buffers: what the driver queued before the first read comes first and is looked at for its
stamps only."""
_FAILED_READS = 2


class V4l2Backend:
    """One /dev/v4l camera. A failed read after an unplug may still claim success once; two failures end
    it."""

    def __init__(self, source: V4l2Source) -> None:
        self._source = source
        self._capture: cv2.VideoCapture | None = None

    @property
    def lag_ns(self) -> int:
        return self._source.stamp_lag_ns

    def open(self) -> tuple[str, ...]:
        cv2.setNumThreads(1)
        capture = cv2.VideoCapture(self._source.path, cv2.CAP_V4L2)
        if not capture.isOpened():
            raise SourceFault(f"{self._source.path} is no camera that Video4Linux can open")
        self._capture = capture
        notes = (*self._set_format(capture), *self._set_controls(capture))
        self._check_start(capture)
        return notes

    def grab(self) -> Grabbed:
        assert self._capture is not None
        for _ in range(_FAILED_READS):
            there, data = self._capture.read()
            if there and data is not None and data.size:
                received_ns = time.monotonic_ns()
                stamp_ns = self._stamp_ns(self._capture, received_ns)
                return Grabbed(data.tobytes(), stamp_ns, received_ns)
        raise SourceFault(f"{self._source.path} gave no picture {_FAILED_READS} times: unplugged, or hung")

    def close(self) -> None:
        if self._capture is not None:
            self._capture.release()

    def _set_format(self, capture: cv2.VideoCapture) -> tuple[str, ...]:
        source = self._source
        capture.set(cv2.CAP_PROP_FOURCC, _MJPG)
        capture.set(cv2.CAP_PROP_FRAME_WIDTH, source.width)
        capture.set(cv2.CAP_PROP_FRAME_HEIGHT, source.height)
        capture.set(cv2.CAP_PROP_FPS, source.fps)
        capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)
        fourcc = int(capture.get(cv2.CAP_PROP_FOURCC)) & 0xFFFFFFFF
        if fourcc != _MJPG:
            name = fourcc.to_bytes(4, "little").decode("latin-1")
            raise SourceFault(
                f"{source.path} gives {name!r}, not MJPG: `v4l2-ctl --list-formats` shows what it can"
            )
        width, height = (int(capture.get(p)) for p in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        if (width, height) != (source.width, source.height):
            raise SourceFault(
                f"{source.path} gives {width}x{height}, asked for {source.width}x{source.height}: "
                "configure a size "
                "that it has; the calibration holds for one size only"
            )
        fps = capture.get(cv2.CAP_PROP_FPS)
        return () if abs(fps - source.fps) < 0.5 else (f"gives {fps:.1f} fps, asked for {source.fps}",)

    def _set_controls(self, capture: cv2.VideoCapture) -> tuple[str, ...]:
        source = self._source
        manual = source.exposure_100us is not None
        # A driver that still is in automatic mode accepts an exposure and ignores it.
        capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, _AUTO_EXPOSURE)
        if manual:
            capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, _MANUAL_EXPOSURE)
        if source.focus is not None:
            capture.set(cv2.CAP_PROP_AUTOFOCUS, 0)
        wanted = (
            ("exposure", cv2.CAP_PROP_EXPOSURE, source.exposure_100us),
            ("gain", cv2.CAP_PROP_GAIN, source.gain),
            ("focus", cv2.CAP_PROP_FOCUS, source.focus),
        )
        notes = []
        for name, prop, value in wanted:
            if value is None:
                continue
            capture.set(prop, value)
            got = capture.get(prop)
            if round(got) != value:
                notes.append(f"{name} is {got:g}, asked for {value}")
        return tuple(notes)

    def _check_start(self, capture: cv2.VideoCapture) -> None:
        """Several stamps, before the first picture is believed: monotonic, advancing, not in the future."""
        check = StampCheck()
        stamps = set()
        for _ in range(_START_FRAMES):
            there, _picture = capture.read()
            if not there:
                raise SourceFault(f"{self._source.path} opens but gives no picture")
            received_ns = time.monotonic_ns()
            stamp_ns = self._stamp_ns(capture, received_ns)
            check.check(stamp_ns, received_ns)
            stamps.add(stamp_ns)
        if len(stamps) == 1:
            raise SourceFault(
                f"{self._source.path} stamps every picture {stamps.pop() / 1e9:.3f} s: its driver gives no "
                "time; "
                'configure timestamp = "arrival"'
            )

    def _stamp_ns(self, capture: cv2.VideoCapture, received_ns: int) -> int:
        if self._source.timestamp == "arrival":
            return received_ns
        # Milliseconds with the microseconds as a fraction: the driver's v4l2_buffer.timestamp.
        return round(capture.get(cv2.CAP_PROP_POS_MSEC) * 1000) * 1000
