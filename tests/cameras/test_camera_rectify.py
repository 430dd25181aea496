from collections.abc import Callable

import cv2
import numpy as np
import pytest

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.rectify import QuarterTurns, Rectifier

RAW = (640, 480)
CORNERS = np.float32([[120, 60], [500, 80], [520, 400], [100, 420]])
"""Of the screen in the raw picture: top-left, top-right, bottom-right, bottom-left."""
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 255, 255))


class Perspective:
    """A camera model of a homography alone. Pixel centres: the picture's edges lie half a pixel outside
    them."""

    def rectify_maps(self, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
        edges = np.float32(
            [[-0.5, -0.5], [width - 0.5, -0.5], [width - 0.5, height - 0.5], [-0.5, height - 0.5]]
        )
        matrix = cv2.getPerspectiveTransform(edges, CORNERS)
        x, y = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
        raw = matrix @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
        return (raw[0] / raw[2]).reshape(height, width), (raw[1] / raw[2]).reshape(height, width)


@pytest.fixture(scope="module")
def raw() -> bytes:
    """A white screen with a coloured disc in each corner's tenth, seen in perspective."""
    screen = np.full((400, 200, 3), 255, np.uint8)
    for (x, y), colour in zip(((20, 40), (179, 40), (179, 359), (20, 359)), COLOURS, strict=True):
        cv2.circle(screen, (x, y), 15, colour, -1)
    edges = np.float32([[-0.5, -0.5], [199.5, -0.5], [199.5, 399.5], [-0.5, 399.5]])
    image = cv2.warpPerspective(screen, cv2.getPerspectiveTransform(edges, CORNERS), RAW)
    done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])
    assert done
    return encoded.tobytes()


@pytest.fixture(scope="module")
def rectifier() -> Rectifier:
    return Rectifier.from_model(Perspective(), 200, 400, source_size=RAW)


def centre(image: np.ndarray, colour: tuple[int, int, int]) -> tuple[float, float]:
    near = (np.abs(image.astype(int) - colour).sum(axis=2) < 120).astype(np.float64)
    ys, xs = np.nonzero(near)
    return float(xs.mean()), float(ys.mean())


def test_the_pictures_edges_are_the_screens_edges(rectifier: Rectifier, raw: bytes) -> None:
    image = rectifier.rectify(raw)
    assert image.shape == (400, 200, 3)
    for colour, at in zip(COLOURS, ((20, 40), (179, 40), (179, 359), (20, 359)), strict=True):
        assert centre(image, colour) == pytest.approx(at, abs=0.5)
    assert image[[0, 0, -1, -1], [0, -1, 0, -1]].min() > 100, "the dark table shows at a corner"


@pytest.mark.parametrize(
    ("turns", "size", "blue_at"),
    [
        (0, (200, 400), (20, 40)),
        (1, (400, 200), (359, 20)),
        (2, (200, 400), (179, 359)),
        (3, (400, 200), (40, 179)),
    ],
)
async def test_a_turned_picture_is_turned_clockwise(
    rectifier: Rectifier, raw: bytes, turns: QuarterTurns, size: tuple[int, int], blue_at: tuple[int, int]
) -> None:
    picture = await rectifier.picture(raw, "png", turns=turns)
    image = cv2.imdecode(np.frombuffer(picture.image, np.uint8), cv2.IMREAD_COLOR)
    assert (picture.width, picture.height) == size == (image.shape[1], image.shape[0])
    assert centre(image, COLOURS[0]) == pytest.approx(blue_at, abs=0.5)


@pytest.mark.parametrize(("image_format", "magic"), [("png", b"\x89PNG"), ("jpeg", b"\xff\xd8\xff")])
async def test_the_picture_is_encoded_as_asked(
    rectifier: Rectifier, raw: bytes, image_format: str, magic: bytes
) -> None:
    picture = await rectifier.picture(raw, image_format)
    assert picture.format == image_format
    assert picture.image.startswith(magic)


def test_a_picture_of_another_size_than_the_calibrations_is_refused(
    rectifier: Rectifier, jpeg: Callable[..., bytes]
) -> None:
    with pytest.raises(BadPicture, match="64x48, but the calibration was made with 640x480"):
        rectifier.rectify(jpeg(1))


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff\xd9", b"not a picture"])
def test_what_is_no_picture_is_refused(rectifier: Rectifier, data: bytes) -> None:
    with pytest.raises(BadPicture):
        rectifier.rectify(data)


def test_an_orientation_tag_does_not_turn_the_pixels(rectifier: Rectifier, raw: bytes) -> None:
    tiff = b"II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"
    body = b"Exif\x00\x00" + tiff
    tagged = raw[:2] + b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body + raw[2:]
    assert np.array_equal(rectifier.rectify(tagged), rectifier.rectify(raw))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), "both must be"),
        (np.zeros((0, 0)), np.zeros((0, 0)), "both must be"),
        (np.full((2, 2), np.nan), np.zeros((2, 2)), "not finite"),
        (np.array([[0.0, 700.0]]), np.zeros((1, 2)), "50.0% of the screen lies outside"),
    ],
)
def test_maps_that_cannot_be_right_are_refused(x: np.ndarray, y: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Rectifier(x, y, source_size=RAW)
