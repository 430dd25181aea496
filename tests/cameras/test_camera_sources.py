import msgspec
import pytest

from edge_daemon.cameras.http_mjpeg import on_one_machine
from edge_daemon.cameras.sources import CameraSource, FilesSource, HttpMjpegSource, V4l2Source

BY_ID = "/dev/v4l/by-id/usb-Camera_1-video-index0"


def read(**fields: object) -> CameraSource:
    return msgspec.convert(fields, CameraSource)


def test_each_type_is_told_by_its_name() -> None:
    assert read(type="http_mjpeg", url="http://127.0.0.1:8080/stream") == HttpMjpegSource(
        url="http://127.0.0.1:8080/stream"
    )
    assert read(type="v4l2", path=BY_ID, width=1280, height=720, fps=15) == V4l2Source(
        path=BY_ID, width=1280, height=720, fps=15
    )
    assert read(type="files", path="pictures") == FilesSource(path="pictures")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"type": "webcam"}, "Invalid value 'webcam'"),
        ({"type": "files", "path": "x", "speed": 2}, "unknown field `speed`"),
        ({"type": "files", "path": "x", "fps": 0}, "0.1..240"),
        ({"type": "http_mjpeg", "url": "rtsp://camera/1"}, "http://host"),
        ({"type": "http_mjpeg", "url": "http://"}, "http://host"),
        ({"type": "http_mjpeg", "url": "http://u:p@camera/"}, "user or password"),
        ({"type": "http_mjpeg", "url": "http://camera/", "timestamp": "wall"}, "Invalid enum value 'wall'"),
        ({"type": "http_mjpeg", "url": "http://camera/", "stamp_lag_ms": -1}, "0..5000"),
        (
            {"type": "v4l2", "path": "/dev/video0", "width": 640, "height": 480, "fps": 30},
            "names another camera",
        ),
        ({"type": "v4l2", "path": BY_ID, "width": 0, "height": 480, "fps": 30}, "16..16384"),
        ({"type": "v4l2", "path": BY_ID, "width": 640, "height": 480, "fps": 0}, "1..240"),
    ],
)
def test_a_source_that_cannot_work_is_refused_with_the_reason(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        read(**fields)


def test_the_stamps_lag_is_cautious_unless_measured() -> None:
    url = "http://127.0.0.1/stream"
    assert HttpMjpegSource(url=url).stamp_lag_ns == 40_000_000
    assert HttpMjpegSource(url=url, timestamp="arrival").stamp_lag_ns == 500_000_000
    assert HttpMjpegSource(url=url, stamp_lag_ms=0).stamp_lag_ns == 0
    assert V4l2Source(path=BY_ID, width=640, height=480, fps=25).stamp_lag_ns == 40_000_000


@pytest.mark.parametrize(
    ("here", "there", "one"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", True),
        ("::1", "::1", True),
        ("192.168.1.5", "192.168.1.5", True),
        ("192.168.1.5", "192.168.1.9", False),
        ("fe80::1%eth0", "fe80::2%eth0", False),
    ],
)
def test_a_server_elsewhere_is_told_by_the_addresses_of_the_connection(
    here: str, there: str, one: bool
) -> None:
    """Its monotonic clock counts from another boot."""
    assert on_one_machine(here, there) is one
