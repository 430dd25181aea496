import cv2
import numpy as np
import pytest

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.jpeg import jpeg_size, whole_jpeg
from edge_daemon.cameras.sources import V4l2Source
from edge_daemon.cameras.v4l2_pixels import packer_for

WIDTH, HEIGHT = 64, 48
# BT.601, limited range: what a webcam's YUYV is.
RED_Y, RED_U, RED_V = 81, 90, 240


def source(pixel_format: str) -> V4l2Source:
    return V4l2Source(
        path="/dev/v4l/by-id/usb-camera",
        width=WIDTH,
        height=HEIGHT,
        fps=25,
        pixel_format=pixel_format,  # type: ignore[arg-type]
    )


def test_motion_jpeg_is_handed_on_byte_for_byte() -> None:
    packer = packer_for(source("mjpg"))
    data = np.frombuffer(b"\xff\xd8 whatever \xff\xd9", np.uint8)
    assert packer.pack(data) == data.tobytes()


def test_a_yuyv_picture_keeps_its_size_and_its_colours() -> None:
    packer = packer_for(source("yuyv"))
    picture = np.empty((HEIGHT, WIDTH, 2), np.uint8)
    picture[:, :, 0] = RED_Y
    picture[:, 0::2, 1], picture[:, 1::2, 1] = RED_U, RED_V
    jpeg = whole_jpeg(packer.pack(picture))
    assert jpeg_size(jpeg) == (WIDTH, HEIGHT)
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    blue, green, red = image.reshape(-1, 3).mean(axis=0)
    assert red > 240
    assert max(blue, green) < 15


def test_a_grey_picture_keeps_its_levels() -> None:
    packer = packer_for(source("grey"))
    picture = np.tile(np.linspace(10, 240, WIDTH).astype(np.uint8), (HEIGHT, 1))
    image = cv2.imdecode(np.frombuffer(packer.pack(picture), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert image is not None
    assert np.abs(image.astype(int) - picture).mean() < 1.5


@pytest.mark.parametrize(("pixel_format", "size"), [("mjpg", 1), ("yuyv", 6144), ("grey", 3072)])
def test_how_many_bytes_a_whole_picture_has_at_least(pixel_format: str, size: int) -> None:
    assert packer_for(source(pixel_format)).least_bytes() == size


def test_a_raw_picture_of_another_size_is_refused() -> None:
    with pytest.raises(SourceFault, match="expected"):
        packer_for(source("grey")).pack(np.zeros((HEIGHT, WIDTH + 2), np.uint8))
