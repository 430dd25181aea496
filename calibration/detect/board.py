"""The calibration board in a picture."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect.corners import refine
from calibration.detect.markers import Markers, on_board
from calibration.errors import (
    Blurred,
    BoardNotFound,
    HalfOutOfView,
    PictureRefused,
    SecondBoard,
    TooDark,
    UpsideDown,
)
from calibration.fitting import apply_homography, fit_homography
from calibration.targets import DICTIONARY, CharucoTarget, Image, Points, Turn, charuco_target

# Grey levels, of 255. Below this a lit white page drowns in sensor noise.
DARK_LEVEL = 40.0
# Steepest edge of the picture, as a share of its contrast per px. A sharp edge has about 0.5, one blurred
# by a Gaussian of sigma s px has 0.4 / s: below this limit the blur is wider than a marker's cell.
SHARP_EDGE_MIN = 0.13
# Edges along one axis that are so much steeper than along the other: the picture is smeared, not unfocused.
SMEAR_RATIO = 1.6
# Bright parts closer than this belong together, and its rim of this width is left out. A smaller part than
# LIT_SHARE_MIN of the picture is no screen.
LIT_GAP_PX, LIT_SHARE_MIN = 31, 0.05
# Of the picture's brightest: a lamp-lit desk is darker than a white page, and the blurred page is not.
LIT_LEVEL_SHARE = 0.6
# The homography of a handful of corners says already where the rest of the screen should be.
CORNERS_FOR_OUTLINE = 8
# One or two stray markers are misreadings of a pattern on the desk; three are another board.
SECOND_BOARD_MARKERS = 3

_Grey = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class BoardView:
    """Board corners in one picture: ids (N,), and px (N, 2) in raw camera px."""

    ids: npt.NDArray[np.int64]
    px: Points


def turn_in_picture(view: BoardView) -> float:
    """How far the page is turned in the picture: -180 to 180 degrees, clockwise, 0 where it reads upright.

    The direction of the page's own right; neighbours in a row of corners have consecutive ids. A board and a
    camera that are both upside down look as if both were upright: only the picture of an earlier calibration,
    or a person, tells them apart.
    """
    neighbours = np.flatnonzero(np.diff(view.ids) == 1)
    if len(neighbours) < CORNERS_FOR_OUTLINE // 2:
        raise BoardNotFound("too few neighbouring board corners to tell how the page is turned")
    right = np.median(view.px[neighbours + 1] - view.px[neighbours], axis=0)
    return float(np.degrees(np.arctan2(right[1], right[0])))


class BoardFinder:
    """Finds the ChArUco board of one screen in pictures."""

    def __init__(self, target: CharucoTarget, turn: Turn | None = None) -> None:
        """target: the board that was asked for. turn: another turn of the same page; None keeps the target's."""
        if turn is not None and turn != target.turn:
            target = charuco_target(target.width_px, target.height_px, turn)
        self._target = target
        other: Turn = "landscape_left" if target.squares_x <= target.squares_y else "portrait"
        self._turned = charuco_target(target.width_px, target.height_px, other)
        self._corners_px = target.corners_px()
        self._markers = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(DICTIONARY))
        self._detector = cv2.aruco.CharucoDetector(target.board())

    def find(self, picture: Image) -> BoardView:
        """Find the board's corners in a BGR picture, ids ascending.

        Raises TooDark, Blurred, BoardNotFound, HalfOutOfView, UpsideDown (the page is a quarter turn off) or
        SecondBoard.
        """
        grey = np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
        corners, ids, _ = self._markers.detectMarkers(grey)
        markers = Markers.found(corners, ids)
        ours = self._ours(markers)
        view = self._corners(grey, markers.only(ours))
        if len(view.ids) < CORNERS_FOR_OUTLINE:
            raise why_nothing_was_found(grey)
        self._require_whole(view, picture.shape[1], picture.shape[0])
        return BoardView(ids=view.ids, px=refine(grey, view.px, self._square_px(view)))

    def _ours(self, markers: Markers) -> npt.NDArray[np.bool_]:
        """Which markers are the asked board's. Raises UpsideDown and SecondBoard."""
        ours, turned = on_board(markers, self._target), on_board(markers, self._turned)
        if int(turned.sum()) > int(ours.sum()):
            raise UpsideDown(
                f"the board was asked for in {self._target.turn}, and its page is turned a quarter from that "
                f"({int(turned.sum())} of {len(turned)} markers fit it); turn the page, lock the phone's "
                "rotation, and check the turn that was asked for"
            )
        strays = int((~ours).sum())
        if ours.any() and strays >= SECOND_BOARD_MARKERS:
            middle = markers.corners[~ours].mean(axis=(0, 1))
            raise SecondBoard(
                f"{strays} markers around ({middle[0]:.0f}, {middle[1]:.0f}) px of the picture belong to another "
                "calibration board than the phone's; cover it, or take it out of the camera's view"
            )
        return ours

    def _corners(self, grey: _Grey, markers: Markers) -> BoardView:
        if len(markers.ids) == 0:
            return BoardView(ids=np.empty(0, np.int64), px=np.empty((0, 2)))
        given = [corner[None] for corner in markers.corners]
        corners, ids, _, _ = self._detector.detectBoard(
            grey, markerCorners=given, markerIds=markers.ids.reshape(-1, 1)
        )
        # OpenCV 4 and 5 differ in these shapes, and nothing found is None in both.
        found = np.empty(0, np.int64) if ids is None else np.asarray(ids, dtype=np.int64).ravel()
        px = np.empty((0, 2)) if len(found) == 0 else np.asarray(corners, dtype=np.float64).reshape(-1, 2)
        order = np.argsort(found)
        return BoardView(ids=found[order], px=px[order])

    def _require_whole(self, view: BoardView, width: int, height: int) -> None:
        # The board's corners are in portrait screen px whatever the turn, and so are the sides' names.
        across, down = float(self._target.width_px), float(self._target.height_px)
        outline = np.array([[0.0, 0.0], [across, 0.0], [across, down], [0.0, down]])
        seen = apply_homography(fit_homography(self._corners_px[view.ids], view.px), outline)
        names = ("top left", "top right", "bottom right", "bottom left")
        outside = [
            name
            for name, (x, y) in zip(names, seen, strict=True)
            if not (0.0 <= x <= width - 1 and 0.0 <= y <= height - 1)
        ]
        if outside:
            raise HalfOutOfView(
                f"the screen's {', '.join(outside)} corner lies outside the {width} x {height} picture; "
                "move the camera or the phone until the whole screen is in view"
            )

    def _square_px(self, view: BoardView) -> float:
        """The smallest square's edge in the picture: the homography's scale at the corners seen."""
        homography = fit_homography(self._corners_px[view.ids], view.px)
        middle = self._corners_px[view.ids]
        step = self._target.square_px / 2.0
        edges = [
            np.linalg.norm(
                apply_homography(homography, middle + away) - apply_homography(homography, middle - away),
                axis=1,
            )
            for away in (np.array([step, 0.0]), np.array([0.0, step]))
        ]
        return float(np.min(edges))


def why_nothing_was_found(grey: _Grey) -> PictureRefused:
    """The refusal that fits a picture in which there is no board."""
    bright = float(np.percentile(grey[::2, ::2], 99.0))
    if bright < DARK_LEVEL:
        return TooDark(
            f"the brightest part of the picture is {bright:.0f} of 255, at least {DARK_LEVEL:.0f} is needed; "
            "switch the screen on, raise its brightness or the camera's exposure"
        )
    inside = _largest_lit(grey, bright)
    dark, bright = (float(v) for v in np.percentile(grey[inside], [2.0, 99.0]))
    if bright - dark > DARK_LEVEL:
        rises = [_rises(grey, inside, way) / (bright - dark) for way in ((1, 0), (0, 1))]
        sharpness = [float(np.percentile(rise, 99.9)) for rise in rises]
        if min(sharpness) < SHARP_EDGE_MIN:
            cause = "focus the camera"
            # One sharp thing within the screen's outline says nothing of all the others.
            usual = [float(np.percentile(rise, 99.0)) for rise in rises]
            if max(usual) > SMEAR_RATIO * min(usual):
                way = "left-right" if usual[0] < usual[1] else "up-down"
                cause = f"the picture is smeared {way}: let the rig come to rest, shorten the exposure"
            return Blurred(
                f"the steepest edges rise by {min(sharpness):.0%} of the contrast per px, at least "
                f"{SHARP_EDGE_MIN:.0%} is needed; {cause}, and keep phone and camera still"
            )
    return BoardNotFound("no calibration board in the picture; show it on the phone and aim the camera at it")


def _largest_lit(grey: _Grey, bright: float) -> npt.NDArray[np.bool_]:
    """The inside of the largest bright part of the picture, which is the screen if there is one; else all of it.

    What lies around the screen can be sharp while the screen is not, and so can its outline.
    """
    window = np.ones((LIT_GAP_PX, LIT_GAP_PX), np.uint8)
    lit = (cv2.blur(grey, (5, 5)) > LIT_LEVEL_SHARE * bright).astype(np.uint8)
    contours, _ = cv2.findContours(
        cv2.morphologyEx(lit, cv2.MORPH_CLOSE, window), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    inside = np.zeros_like(grey)
    if contours:
        cv2.fillConvexPoly(inside, cv2.convexHull(max(contours, key=cv2.contourArea)), (1,))
    inside = np.asarray(cv2.erode(inside, window), dtype=np.uint8)
    return inside > 0 if float(inside.mean()) > LIT_SHARE_MIN else np.ones_like(grey, dtype=np.bool_)


def _rises(grey: _Grey, inside: npt.NDArray[np.bool_], way: tuple[int, int]) -> npt.NDArray[np.float64]:
    """How many levels each px inside rises, per px to the right or down."""
    rise = np.asarray(cv2.Sobel(grey, cv2.CV_32F, *way), dtype=np.float64) / 8.0
    return np.abs(rise[inside])
