"""A camera on this machine through OpenCV's Video4Linux backend.

The order of the settings is the whole art: the format first (YUYV is the default and starves the bus), then size,
then rate; everything is read back because drivers answer "done" to what they do not do, and so does OpenCV.

What OpenCV hides is asked of the driver beside it, on OpenCV's own descriptor: the frame numbers, the marks of damaged
pictures, the clock of the timestamps, the reason why there is no picture (`v4l2_buffers`, `v4l2_ioctl`).
"""

import errno
import math
import os
import select
import time

# OpenCV reads this once, when the library is loaded: its waits last 10 s otherwise.
os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", "2")

import cv2

from edge_daemon.cameras import v4l2_ioctl
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Grabbed, StampCheck
from edge_daemon.cameras.sources import V4l2Source
from edge_daemon.cameras.v4l2_buffers import (
    BufferWatch,
    Coming,
    clock_notes,
    marks_start_of_exposure,
    refuse_foreign_clock,
    refuse_lost_buffers,
)
from edge_daemon.cameras.v4l2_controls import set_controls
from edge_daemon.cameras.v4l2_ioctl import Buffer
from edge_daemon.cameras.v4l2_node import descriptor_of, unplugged
from edge_daemon.cameras.v4l2_pixels import FOURCC, packer_for
from edge_daemon.holders import find_holders

READ_TIMEOUT_S = 2.0
"""Shorter than the daemon's patience with a silent process, so that the reason comes from the one who knows it."""
_START_FRAMES = 4
"""As many as OpenCV's buffers; they are looked at for their stamps only."""
_SAME_FPS = 0.5
_NO_STAMP = 0
"""What a buffer has until the driver stamps it. Some hand it over a moment before they do."""


class V4l2Backend:
    """One /dev/v4l camera."""

    def __init__(self, source: V4l2Source) -> None:
        self._source = source
        self._packer = packer_for(source)
        self._capture: cv2.VideoCapture | None = None
        self._fd = -1
        self._poll = select.poll()
        self._watch = BufferWatch(0)
        self._fps = float(source.fps)
        self._more_lag_ns = 0

    def open(self) -> tuple[str, ...]:
        cv2.setNumThreads(1)
        path = self._source.path
        self._capture = capture = cv2.VideoCapture(path, cv2.CAP_V4L2)
        if not capture.isOpened():
            raise SourceFault(f"{path} cannot be opened for pictures: {_holders_in_words(path)}")
        try:
            self._fd = descriptor_of(path)
            self._poll.register(self._fd, select.POLLIN)
            notes = [*self._set_format(capture), *set_controls(self._fd, self._source)]
            notes += self._check_start(capture)
        except OSError as error:
            raise self._fault_of(error) from error
        return tuple(notes)

    def grab(self) -> Grabbed:
        assert self._capture is not None
        coming = self._wait()
        if not self._capture.grab():
            raise self._why_no_picture()
        received_ns = time.monotonic_ns()
        self._watch.taken(coming.buffer, received_ns)
        stamp_ns = self._stamp_of(coming.buffer)
        jpeg = self._packed(coming.buffer)
        if self._source.timestamp == "arrival":
            stamp_ns = coming.not_before_ns
        elif stamp_ns == _NO_STAMP:
            # Nobody can say when it was taken: as good as not received.
            jpeg = b""
        return Grabbed(jpeg, stamp_ns, received_ns, missed=coming.missed, more_lag_ns=self._more_lag_ns)

    def close(self) -> None:
        if self._capture is not None:
            self._capture.release()

    # -- setting up --

    def _set_format(self, capture: cv2.VideoCapture) -> tuple[str, ...]:
        source = self._source
        wanted = FOURCC[source.pixel_format]
        self._refuse_other_format(v4l2_ioctl.pixel_formats(self._fd), wanted)
        capture.set(cv2.CAP_PROP_FOURCC, v4l2_ioctl.fourcc(wanted))
        capture.set(cv2.CAP_PROP_FRAME_WIDTH, source.width)
        capture.set(cv2.CAP_PROP_FRAME_HEIGHT, source.height)
        capture.set(cv2.CAP_PROP_FPS, source.fps)
        capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)
        got = int(capture.get(cv2.CAP_PROP_FOURCC)) & 0xFFFFFFFF
        if got != v4l2_ioctl.fourcc(wanted):
            name = got.to_bytes(4, "little").decode("latin-1")
            raise SourceFault(f"{source.path} lists {wanted} and gives {name!r}", CameraFault.NOT_AS_ASKED)
        size = (int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)))
        if size != (source.width, source.height):
            raise self._other_size(size, v4l2_ioctl.frame_sizes(self._fd, wanted))
        return self._read_rate(capture)

    def _refuse_other_format(self, offered: list[str], wanted: str) -> None:
        if wanted in offered:
            return
        way_out = next((word for word in ("yuyv", "grey") if FOURCC[word] in offered), None)
        advice = (
            ""
            if way_out is None
            else f'; pixel_format = "{way_out}" would do, at the cost of bus and processor'
        )
        raise SourceFault(
            f"{self._source.path} gives no {wanted}, only {', '.join(offered) or 'nothing that it names'}{advice}",
            CameraFault.NOT_MJPEG if wanted == FOURCC["mjpg"] else CameraFault.NOT_AS_ASKED,
        )

    def _other_size(self, size: tuple[int, int], offered: list[tuple[int, int]]) -> SourceFault:
        source = self._source
        has = ", ".join(f"{width}x{height}" for width, height in offered)
        return SourceFault(
            f"{source.path} gives {size[0]}x{size[1]}, asked for {source.width}x{source.height}: configure a size that "
            f"it has{f' ({has})' if has else ''}; the calibration holds for one size only",
            CameraFault.NOT_AS_ASKED,
        )

    def _read_rate(self, capture: cv2.VideoCapture) -> tuple[str, ...]:
        fps = float(capture.get(cv2.CAP_PROP_FPS))
        if not math.isfinite(fps) or fps <= 0:
            return (f"does not say its rate, asked for {self._source.fps} fps",)
        self._fps = fps
        if abs(fps - self._source.fps) < _SAME_FPS:
            return ()
        return (f"gives {fps:.1f} fps, asked for {self._source.fps}",)

    # -- the self-test at the start --

    def _check_start(self, capture: cv2.VideoCapture) -> tuple[str, ...]:
        """Several stamps, before the first picture is believed: monotonic, advancing, not in the future."""
        begun_ns = time.monotonic_ns()
        if not capture.grab():
            raise self._why_no_stream()
        received_ns = time.monotonic_ns()
        first = self._in_hand()
        self._watch = BufferWatch(begun_ns)
        self._watch.taken(first, received_ns)
        by_driver = self._source.timestamp == "driver"
        if by_driver:
            refuse_foreign_clock(first)
        self._more_lag_ns = self._reckon_more_lag_ns(first)
        check = StampCheck()
        stamps = set()
        grabbed = Grabbed(b"", first.stamp_ns if by_driver else begun_ns, received_ns)
        for left in reversed(range(_START_FRAMES)):
            if by_driver and grabbed.stamp_ns != _NO_STAMP:
                check.check(grabbed.stamp_ns, grabbed.received_ns)
            stamps.add(grabbed.stamp_ns)
            if left:
                grabbed = self.grab()
        if by_driver and len(stamps) == 1:
            raise SourceFault(
                f"{self._source.path} stamps every picture {stamps.pop() / 1e9:.3f} s: its driver gives no time; "
                'configure timestamp = "arrival"',
                CameraFault.NO_CLOCK,
            )
        return clock_notes(first) if by_driver else ()

    def _reckon_more_lag_ns(self, first: Buffer) -> int:
        """What the source could not know when it reckoned one interval of the rate that was asked for: the rate that
        it got, and that an end of a frame, or a completed buffer, follows the exposure by the time of the readout."""
        source = self._source
        if source.stamp_lag_ms is not None:
            return 0
        interval_ns = 1e9 / min(self._fps, float(source.fps))
        at_the_end = source.timestamp == "arrival" or not marks_start_of_exposure(first)
        return round(interval_ns * (2 if at_the_end else 1)) - round(1e9 / source.fps)

    def _in_hand(self) -> Buffer:
        """The buffer that OpenCV has just taken: the driver has it neither empty nor full."""
        mine = [b for b in v4l2_ioctl.buffers(self._fd) if not b.is_queued and not b.is_done]
        if len(mine) != 1:
            raise SourceFault(
                f"{self._source.path}: the driver does not tell about its buffers", CameraFault.DRIVER_ERROR
            )
        return mine[0]

    # -- one picture --

    def _wait(self) -> Coming:
        """Until a picture is complete. Looks before it waits, so as to know when it was not complete yet."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        while True:
            looked_ns = time.monotonic_ns()
            try:
                found = v4l2_ioctl.buffers(self._fd)
            except OSError as error:
                raise self._fault_of(error) from error
            self._watch.look(found, looked_ns)
            coming = self._watch.coming(found)
            if coming is not None:
                return coming
            refuse_lost_buffers(found)
            left_ms = (deadline - time.monotonic()) * 1000
            if left_ms <= 0:
                raise SourceFault(
                    f"{self._source.path} gave no picture for {READ_TIMEOUT_S:g} s", CameraFault.BLOCKED
                )
            events = self._poll.poll(left_ms)
            if events and not events[0][1] & select.POLLIN:
                raise self._why_no_picture()

    def _packed(self, buffer: Buffer) -> bytes:
        """As JPEG; nothing, which counts as a broken picture, where the driver itself says that it is not whole."""
        assert self._capture is not None
        there, picture = self._capture.retrieve()
        if not there or picture is None or not buffer.is_whole(self._packer.least_bytes()):
            return b""
        return self._packer.pack(picture)

    def _stamp_of(self, announced: Buffer) -> int:
        """The time of the picture that OpenCV has just taken, once it is certain to be the one announced."""
        assert self._capture is not None
        try:
            taken = v4l2_ioctl.buffer(self._fd, announced.number)
        except OSError as error:
            raise self._fault_of(error) from error
        # The driver's v4l2_buffer.timestamp, which has microseconds, as OpenCV's milliseconds with a fraction.
        stamp_ns = round(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1000) * 1000 or taken.stamp_ns
        if (
            taken.is_queued
            or taken.is_done
            or taken.sequence != announced.sequence
            or stamp_ns != taken.stamp_ns
        ):
            raise SourceFault(
                f"{self._source.path}: the driver announced picture {announced.sequence} and handed over another",
                CameraFault.DRIVER_ERROR,
            )
        return stamp_ns

    # -- reasons --

    def _why_no_picture(self) -> SourceFault:
        try:
            v4l2_ioctl.buffers(self._fd)
        except OSError as error:
            return self._fault_of(error)
        return SourceFault(
            f"{self._source.path}: the driver ended the stream with an error", CameraFault.DRIVER_ERROR
        )

    def _why_no_stream(self) -> SourceFault:
        """OpenCV asked the driver to start, in vain, and does not say what it answered: ask again and see."""
        if not self._poll.poll(0):
            return SourceFault(
                f"{self._source.path} streams but gave no picture for {READ_TIMEOUT_S:g} s",
                CameraFault.BLOCKED,
            )
        try:
            v4l2_ioctl.start_stream(self._fd)
        except OSError as error:
            return self._fault_of(error)
        return SourceFault(
            f"{self._source.path}: the driver refused to start the stream at first", CameraFault.DRIVER_ERROR
        )

    def _fault_of(self, error: OSError) -> SourceFault:
        path = self._source.path
        if error.errno in (errno.ENODEV, errno.ENXIO, errno.ENOENT):
            return unplugged(path)
        if error.errno == errno.ENOSPC:
            return SourceFault(
                f"{path}: the bus has no room for this stream; one camera a bus, or a smaller size or rate",
                CameraFault.STARVED,
            )
        return SourceFault(f"{path}: the driver answers {error.strerror}", CameraFault.DRIVER_ERROR)


def _holders_in_words(path: str) -> str:
    holders = ", ".join(map(str, find_holders(path)))
    return f"{holders} has it open" if holders else "Video4Linux cannot use it as a camera"
