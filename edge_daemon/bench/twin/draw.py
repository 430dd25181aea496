"""Drawing on the phone's screen: antialiased shapes and text, colours written as a designer writes them."""

import threading
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]

_SHIFT = 4
_ONE = 1 << _SHIFT
# One font object for all phones of the process: setting its weight is not safe from two threads at once.
_FONT_LOCK = threading.Lock()
_FONT = cv2.FontFace("sans")
# OpenCV's own alignment flags wrap at the picture's edge; shifting by the measured width does not.
_ALIGN_SHIFT = {"left": 0.0, "center": 0.5, "right": 1.0}


def colour(code: str) -> Colour:
    """'#rrggbb' as OpenCV's (blue, green, red)."""
    return int(code[5:7], 16), int(code[3:5], 16), int(code[1:3], 16)


WHITE = colour("#ffffff")
BLACK = colour("#000000")


def canvas(width_px: int, height_px: int, fill: Colour) -> Image:
    """A plain picture of one colour."""
    picture = np.empty((height_px, width_px, 3), dtype=np.uint8)
    picture[:] = fill
    return picture


def gradient(width_px: int, height_px: int, top: Colour, bottom: Colour) -> Image:
    """A picture that fades from `top` to `bottom`."""
    share = np.linspace(0.0, 1.0, height_px)[:, None]
    column = np.array(top) * (1.0 - share) + np.array(bottom) * share
    return np.repeat(column.round().astype(np.uint8)[:, None, :], width_px, axis=1)


def rounded(picture: Image, x: float, y: float, w: float, h: float, radius: float, fill: Colour) -> None:
    """A filled rectangle with round corners; x, y is its top-left corner."""
    radius = min(radius, w / 2, h / 2)
    quarter = np.linspace(0.0, np.pi / 2, 12)
    corners = [
        (x + w - radius, y + h - radius, 0.0),
        (x + radius, y + h - radius, np.pi / 2),
        (x + radius, y + radius, np.pi),
        (x + w - radius, y + radius, 3 * np.pi / 2),
    ]
    outline = np.concatenate(
        [
            np.column_stack(
                [cx + radius * np.cos(quarter + turn), cy + radius * np.sin(quarter + turn)],
            )
            for cx, cy, turn in corners
        ]
    )
    polygon(picture, outline, fill)


def polygon(picture: Image, points: npt.NDArray[np.float64], fill: Colour) -> None:
    """A filled convex polygon, points (N, 2) in px."""
    fixed = np.round((points - 0.5) * _ONE).astype(np.int32)
    cv2.fillConvexPoly(picture, fixed, fill, lineType=cv2.LINE_AA, shift=_SHIFT)


def disc(picture: Image, x: float, y: float, radius: float, fill: Colour) -> None:
    """A filled circle around (x, y)."""
    centre = (round((x - 0.5) * _ONE), round((y - 0.5) * _ONE))
    cv2.circle(picture, centre, round(radius * _ONE), fill, -1, cv2.LINE_AA, _SHIFT)


def ring(picture: Image, x: float, y: float, radius: float, width: int, stroke: Colour) -> None:
    """A circle's outline."""
    centre = (round((x - 0.5) * _ONE), round((y - 0.5) * _ONE))
    cv2.circle(picture, centre, round(radius * _ONE), stroke, width, cv2.LINE_AA, _SHIFT)


def stroke(picture: Image, points: list[tuple[float, float]], width: int, ink: Colour) -> None:
    """A polyline with round joints."""
    fixed = np.round((np.array(points) - 0.5) * _ONE).astype(np.int32)
    cv2.polylines(picture, [fixed], False, ink, width, cv2.LINE_AA, _SHIFT)


def text(
    picture: Image,
    words: str,
    x: float,
    y: float,
    size: int,
    ink: Colour,
    weight: int = 400,
    align: Literal["left", "center", "right"] = "left",
) -> None:
    """One line of text; y is its baseline, x its left end, middle or right end as `align` says."""
    left = x - _ALIGN_SHIFT[align] * text_width(words, size, weight)
    with _FONT_LOCK:
        cv2.putText(picture, words, (round(left), round(y)), ink, _FONT, size, weight)


def text_width(words: str, size: int, weight: int = 400) -> int:
    """Width in px of one line of text."""
    if not words:
        return 0
    with _FONT_LOCK:
        box = cv2.getTextSize((4000, 4000), words, (0, 0), _FONT, size, weight)
    return int(box[2])


def blend(under: Image, over: Image, share: float) -> Image:
    """`over` at `share` of opacity on `under`, as a new picture."""
    return np.asarray(cv2.addWeighted(over, share, under, 1.0 - share, 0.0), dtype=np.uint8)
