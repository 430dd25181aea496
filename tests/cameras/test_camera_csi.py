"""CSI cameras, against a stand-in for picamera2 that behaves as its documentation and sources say. No such camera was
ever tried with this."""

import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from edge_daemon.cameras import csi
from edge_daemon.cameras.backend import backend_for
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Intake
from edge_daemon.cameras.sources import CameraSource, CsiSource

MS = 1_000_000
S = 1_000 * MS
IMX708 = "/base/axi/pcie@120000/rp1/i2c@88000/imx708@1a"
IMX219 = "/base/axi/pcie@120000/rp1/i2c@80000/imx219@10"


class Pi:
    """What is connected, and the camera that was opened last."""

    def __init__(self) -> None:
        self.cameras = [{"Id": IMX708, "Num": 0}, {"Id": "/base/usb@1/1-1:1.0-046d:0825", "Num": 1}]
        self.given: dict[str, Any] = {}
        self.size: tuple[int, int] | None = None
        self.opened: list[int] = []
        self.closed = 0
        self.busy = False
        self.encoder: Any = None
        self.output: Any = None
        self.camera: Any = None

    def shoot(self, jpeg: bytes, sensor_ns: int, exposure_us: int) -> None:
        """One picture, as picamera2's threads deliver it."""
        metadata = {"SensorTimestamp": sensor_ns, "ExposureTime": exposure_us}
        self.camera.post_callback(SimpleNamespace(get_metadata=lambda: metadata))
        if self.encoder.firsttimestamp is None:
            self.encoder.firsttimestamp = int(sensor_ns / 1000)
        self.output.outputframe(jpeg, True, int(sensor_ns / 1000) - self.encoder.firsttimestamp, None, False)


@pytest.fixture
def pi(monkeypatch: pytest.MonkeyPatch) -> Pi:
    found = Pi()

    class Picamera2:
        global_camera_info = staticmethod(lambda: found.cameras)

        def __init__(self, number: int) -> None:
            if found.busy:
                raise RuntimeError("Camera __init__ sequence did not complete.")
            found.opened.append(number)
            found.camera = self

        def create_video_configuration(self, *, main: dict[str, Any], controls: dict[str, Any]) -> Any:
            return {"main": main, "controls": controls}

        def configure(self, configuration: Any) -> None:
            self.configuration = configuration
            if found.size is not None:
                configuration["main"]["size"] = found.size

        def camera_configuration(self) -> Any:
            return self.configuration

        def capture_metadata(self) -> Any:
            return self.configuration["controls"] | found.given

        def start_recording(self, encoder: Any, output: Any, *, quality: str) -> None:
            found.encoder, found.output, found.quality = encoder, output, quality

        def stop_recording(self) -> None:
            found.closed += 1

        def close(self) -> None:
            found.closed += 1

    class MJPEGEncoder:
        firsttimestamp = None

    modules = {
        "picamera2": {"Picamera2": Picamera2},
        "picamera2.encoders": {"MJPEGEncoder": MJPEGEncoder, "Quality": SimpleNamespace(HIGH="high")},
        "picamera2.outputs": {"Output": object},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return found


def source(**fields: Any) -> CsiSource:
    read = msgspec.convert({"type": "csi", "width": 640, "height": 480, "fps": 20} | fields, CameraSource)
    assert isinstance(read, CsiSource)
    return read


def test_a_picture_began_its_own_exposure_before_its_stamp(pi: Pi, jpegs: list[bytes]) -> None:
    backend = backend_for(source())
    assert backend.open() == ()
    intake = Intake(source().exposure, frozen_after_ns=2 * S)
    sensor_ns = (time.monotonic_ns() - 80 * MS) // 1000 * 1000
    for number, exposure_us in enumerate((8_000, 12_000)):
        pi.shoot(jpegs[number], sensor_ns + number * 50 * MS, exposure_us)
        frame = intake.take(backend.grab())
        assert frame is not None
        assert frame.stamp_ns - frame.exposed_about_ns == exposure_us * 1000
        assert frame.stamp_ns - frame.exposed_ns == 50 * MS, "the guarantee stays one frame interval"
    assert (pi.opened, pi.quality) == ([0], "high")
    backend.close()
    assert pi.closed == 2


def test_what_was_asked_is_set_and_what_is_not_kept_is_reported(pi: Pi) -> None:
    pi.given = {"AnalogueGain": 1.12}
    notes = backend_for(source(exposure_us=10_000, gain=2.0, focus_dioptres=4.0)).open()
    assert notes == ("gain is 1.12, asked for 2",)
    controls = pi.camera.configuration["controls"]
    assert controls["FrameDurationLimits"] == (50_000, 50_000)
    assert (controls["AeEnable"], controls["ExposureTime"], controls["AfMode"]) == (False, 10_000, 0)


@pytest.mark.parametrize(
    ("prepare", "fields", "fault", "words"),
    [
        (lambda pi: pi.cameras.clear(), {}, CameraFault.UNPLUGGED, "there: none"),
        (lambda pi: None, {"camera": IMX219}, CameraFault.UNPLUGGED, IMX219),
        (
            lambda pi: pi.cameras.append({"Id": IMX219, "Num": 2}),
            {},
            CameraFault.UNUSABLE,
            "several CSI cameras are connected",
        ),
        (lambda pi: setattr(pi, "busy", True), {}, CameraFault.UNUSABLE, "did not complete"),
        (lambda pi: setattr(pi, "size", (648, 480)), {}, CameraFault.SIZE_CHANGED, "gives 648x480"),
    ],
    ids=["none", "another", "several", "busy", "other size"],
)
def test_a_camera_that_cannot_be_used_is_refused_with_the_reason(
    pi: Pi, prepare: Callable[[Pi], None], fields: dict[str, Any], fault: CameraFault, words: str
) -> None:
    prepare(pi)
    with pytest.raises(SourceFault, match=words) as refused:
        backend_for(source(**fields)).open()
    assert refused.value.fault is fault


def test_without_picamera2_the_package_to_install_is_named() -> None:
    with pytest.raises(SourceFault, match="sudo apt-get install python3-picamera2"):
        backend_for(source()).open()


def test_a_camera_that_gives_nothing_is_blocked(pi: Pi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csi, "READ_TIMEOUT_S", 0.01)
    backend = backend_for(source())
    backend.open()
    with pytest.raises(SourceFault, match="gave no picture") as blocked:
        backend.grab()
    assert blocked.value.fault is CameraFault.BLOCKED


def test_pictures_that_nobody_takes_make_room_for_newer_ones(pi: Pi, jpegs: list[bytes]) -> None:
    backend = backend_for(source())
    backend.open()
    now_ns = time.monotonic_ns()
    for number in range(20):
        pi.shoot(jpegs[number % 8], now_ns + number * MS, 5000)
    kept = [backend.grab() for _ in range(csi.QUEUED)]
    assert kept[-1].jpeg == jpegs[19 % 8]


@pytest.mark.parametrize(
    ("sensor_ns", "offset_ns", "expected_ns"),
    [
        (100 * S, 0, 100 * S),
        (100 * S, 3600 * S, 100 * S),
        (3700 * S, 3600 * S, 100 * S),
        (50_000 * S, 3600 * S, 50_000 * S),
    ],
    ids=["one clock", "monotonic after a suspend", "boottime after a suspend", "neither: left to be refused"],
)
def test_a_stamp_of_either_clock_comes_out_monotonic(
    sensor_ns: int, offset_ns: int, expected_ns: int
) -> None:
    assert csi.to_monotonic_ns(sensor_ns, 100 * S + 20 * MS, offset_ns) == expected_ns


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exposure_us": 60_000}, "1..50000, the frame interval at 20 fps"),
        ({"gain": 0.5}, "must be 1..64"),
        ({"focus_dioptres": -1}, "0 is infinity"),
        ({"width": 8}, "16..16384"),
        ({"fps": 0}, "0.1..240"),
    ],
)
def test_settings_that_no_camera_can_have_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        source(**fields)
