"""A camera on the Pi's own connector, through picamera2 (Debian package python3-picamera2), as Motion-JPEG.

picamera2's MJPEGEncoder is the hardware's where there is one (Pi 4 and before) and libav's elsewhere (Pi 5). It tells
its output, with each picture, the picture's SensorTimestamp in microseconds since the first one's, which it keeps as
`firsttimestamp`. The exposure of each picture comes with the request's metadata, by the same SensorTimestamp.

SensorTimestamp is when the first row arrived from the sensor (raspberrypi/picamera2#821): the end of that row's
exposure, so the exposure began `ExposureTime` before. libcamera documents CLOCK_BOOTTIME; the Pi's kernel stamps with
CLOCK_MONOTONIC. They differ by the time the machine was suspended; which of them it is, is found from the pictures.
"""

import queue
import time
from collections import OrderedDict
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import FUTURE_TOLERANCE_NS, PLAUSIBLE_AGE_NS, Grabbed
from edge_daemon.cameras.sources import CsiSource

READ_TIMEOUT_S = 2.0
QUEUED = 8
"""Pictures between the encoder's thread and ours, which does nothing but take them: more means that we hang."""
REMEMBERED = 64
"""Exposures of pictures that are still in the encoder."""
SAME_CLOCK_NS = 1_000_000
"""The two clocks are read one after the other; less than this apart they are one."""


class CsiBackend:
    """One CSI camera."""

    def __init__(self, source: CsiSource) -> None:
        self._source = source
        self._camera: Any = None
        self._encoder: Any = None
        self._pictures: queue.Queue[tuple[bytes, int | None, int]] = queue.Queue(QUEUED)
        self._exposures_us: OrderedDict[int, int] = OrderedDict()
        self._boottime_offset_ns = 0

    def open(self) -> tuple[str, ...]:
        picamera2, encoders, outputs = _modules()
        self._boottime_offset_ns = boottime_offset_ns()
        number = _number_of(picamera2.Picamera2.global_camera_info(), self._source.camera)
        try:
            self._camera = picamera2.Picamera2(number)
            self._camera.configure(self._configuration(self._camera))
            self._camera.post_callback = self._note_exposure
            self._encoder = encoders.MJPEGEncoder()
            quality = getattr(encoders.Quality, self._source.quality.upper())
            self._camera.start_recording(self._encoder, _output(outputs.Output, self._put), quality=quality)
        except (RuntimeError, OSError) as error:
            # What libcamera says when another program has the camera, or the cable is loose.
            raise SourceFault(f"the CSI camera cannot be started: {error}") from error
        return self._differences()

    def grab(self) -> Grabbed:
        try:
            jpeg, timestamp_us, received_ns = self._pictures.get(timeout=READ_TIMEOUT_S)
        except queue.Empty:
            raise SourceFault(
                f"the CSI camera gave no picture for {READ_TIMEOUT_S:.0f} s: its cable, or libcamera hangs",
                CameraFault.BLOCKED,
            ) from None
        first_us = getattr(self._encoder, "firsttimestamp", None)
        if timestamp_us is None or first_us is None:
            raise SourceFault("picamera2 gives pictures without timestamps", CameraFault.NO_CLOCK)
        sensor_us = first_us + timestamp_us
        exposure_us = self._exposure_us(sensor_us)
        return Grabbed(
            jpeg,
            to_monotonic_ns(sensor_us * 1000, received_ns, self._boottime_offset_ns),
            received_ns,
            None if exposure_us is None else exposure_us * 1000,
        )

    def _exposure_us(self, sensor_us: int) -> int | None:
        # picamera2 rounds the nanoseconds through a float.
        near = (self._exposures_us.get(at_us) for at_us in (sensor_us, sensor_us - 1, sensor_us + 1))
        return next((exposure_us for exposure_us in near if exposure_us is not None), None)

    def close(self) -> None:
        camera, self._camera = self._camera, None
        if camera is None:
            return
        try:
            camera.stop_recording()
        finally:
            camera.close()

    def _configuration(self, camera: Any) -> Any:
        source = self._source
        interval_us = round(1e6 / source.fps)
        controls: dict[str, object] = {"FrameDurationLimits": (interval_us, interval_us)}
        if source.exposure_us is not None or source.gain is not None:
            controls["AeEnable"] = False
        if source.exposure_us is not None:
            controls["ExposureTime"] = source.exposure_us
        if source.gain is not None:
            controls["AnalogueGain"] = source.gain
        if source.focus_dioptres is not None:
            # libcamera's AfModeManual; the enumeration itself lives in a module that only a Pi has.
            controls |= {"AfMode": 0, "LensPosition": source.focus_dioptres}
        return camera.create_video_configuration(
            main={"size": (source.width, source.height), "format": "YUV420"}, controls=controls
        )

    def _differences(self) -> tuple[str, ...]:
        """What it gives other than what was asked. Another size is no difference but a fault."""
        source = self._source
        size = tuple(self._camera.camera_configuration()["main"]["size"])
        if size != (source.width, source.height):
            raise SourceFault(
                f"the CSI camera gives {size[0]}x{size[1]}, asked for {source.width}x{source.height}: configure a "
                "size that it has; the calibration holds for one size only",
                CameraFault.SIZE_CHANGED,
            )
        said = self._camera.capture_metadata()
        wanted = (
            ("exposure", "ExposureTime", source.exposure_us),
            ("gain", "AnalogueGain", source.gain),
            ("focus", "LensPosition", source.focus_dioptres),
        )
        return tuple(
            f"{name} is {said.get(key)}, asked for {value:g}"
            for name, key, value in wanted
            # A sensor exposes whole rows and amplifies in steps.
            if value is not None and not (key in said and abs(said[key] - value) <= 0.02 * value + 0.01)
        )

    # -- in picamera2's own threads --

    def _note_exposure(self, request: Any) -> None:
        said = request.get_metadata()
        if "SensorTimestamp" in said and "ExposureTime" in said:
            self._exposures_us[said["SensorTimestamp"] // 1000] = said["ExposureTime"]
            while len(self._exposures_us) > REMEMBERED:
                self._exposures_us.popitem(last=False)

    def _put(self, jpeg: bytes, timestamp_us: int | None) -> None:
        picture = (bytes(jpeg), timestamp_us, time.monotonic_ns())
        try:
            self._pictures.put_nowait(picture)
        except queue.Full:
            # The camera must be drained always: the older one goes.
            with suppress(queue.Empty):
                self._pictures.get_nowait()
            self._pictures.put_nowait(picture)


def _modules() -> tuple[ModuleType, ModuleType, ModuleType]:
    try:
        # Only on a Pi, from its own Debian packages; it cannot be a dependency of ours.
        found = [import_module(name) for name in ("picamera2", "picamera2.encoders", "picamera2.outputs")]
    except ImportError as error:
        raise SourceFault(
            f"a CSI camera needs picamera2, which cannot be imported ({error}): sudo apt-get install "
            "python3-picamera2, and give the daemon an environment made with --system-site-packages"
        ) from error
    return found[0], found[1], found[2]


def _output(base: Any, put: Any) -> Any:
    """An output of picamera2's that hands each encoded picture to `put`. Versions differ in what else they give."""

    class Handover(base):  # type: ignore[misc]
        def outputframe(
            self,
            frame: bytes,
            keyframe: bool = True,
            timestamp: int | None = None,
            *_more: Any,
            **_named: Any,
        ) -> None:
            put(frame, timestamp)

    return Handover()


def _number_of(cameras: list[dict[str, Any]], wanted: str | None) -> int:
    """The camera's present number. Raises SourceFault when it is not there, or when several are and none is named."""
    csi = [camera for camera in cameras if "/usb" not in camera["Id"]]
    names = ", ".join(camera["Id"] for camera in csi) or "none"
    found = [camera for camera in csi if wanted in (None, camera["Id"])]
    if not found:
        raise SourceFault(
            f"no CSI camera {wanted or ''} is connected (there: {names}): its cable, or the overlay in config.txt",
            CameraFault.UNPLUGGED,
        )
    if len(found) > 1:
        raise SourceFault(f"several CSI cameras are connected: configure `camera` as one of {names}")
    return int(found[0]["Num"])


def boottime_offset_ns() -> int:
    """CLOCK_BOOTTIME less CLOCK_MONOTONIC: how long this machine has been suspended since its start; mostly 0."""
    before_ns = time.monotonic_ns()
    boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    offset_ns = boottime_ns - (before_ns + time.monotonic_ns()) // 2
    return 0 if abs(offset_ns) < SAME_CLOCK_NS else offset_ns


def to_monotonic_ns(sensor_ns: int, received_ns: int, offset_ns: int) -> int:
    """SensorTimestamp on CLOCK_MONOTONIC, whichever of the two clocks it was taken from.

    On CLOCK_BOOTTIME it would lie `offset_ns` late. It is taken for that only where it is plausible then and not
    as it stands; anything else stays as it is and is judged by the checks that every stamp goes through.
    """
    if not _plausible(sensor_ns, received_ns) and _plausible(sensor_ns - offset_ns, received_ns):
        return sensor_ns - offset_ns
    return sensor_ns


def _plausible(stamp_ns: int, received_ns: int) -> bool:
    return -FUTURE_TOLERANCE_NS <= received_ns - stamp_ns <= PLAUSIBLE_AGE_NS
