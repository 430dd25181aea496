"""Which of the markers in a picture belong to the phone's board."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.fitting import apply_homography
from calibration.targets import CharucoTarget, Points

# A marker this share of its own edge from where the board has it is not the board's. Lens distortion over a
# whole screen moves markers by less.
OFF_BOARD_SHARE = 0.5
# Four places make a homography; one more says whether it is true.
MARKERS_MIN = 5


@dataclass(frozen=True)
class Markers:
    """Markers of the board's dictionary in one picture: corners (N, 4, 2) camera px, ids (N,)."""

    corners: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int32]

    @classmethod
    def found(cls, corners: Sequence[cv2.typing.MatLike], ids: cv2.typing.MatLike | None) -> "Markers":
        """From what OpenCV's detector returns, whose ids are None where there is no marker."""
        if ids is None or len(ids) == 0:
            return cls(np.empty((0, 4, 2), np.float32), np.empty(0, np.int32))
        stacked = np.array([np.reshape(c, (4, 2)) for c in corners], dtype=np.float32)
        return cls(stacked, np.asarray(ids, dtype=np.int32).ravel())

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Markers":
        """The chosen ones."""
        return Markers(self.corners[chosen], self.ids[chosen])


def on_board(markers: Markers, target: CharucoTarget) -> npt.NDArray[np.bool_]:
    """Which markers lie where one view of this board has them, (N,); all False for another board."""
    nothing = np.zeros(len(markers.ids), dtype=np.bool_)
    known = {int(i): place for i, place in zip(*_layout(target), strict=True)}
    listed = np.array([int(i) in known for i in markers.ids], dtype=np.bool_)
    if int(listed.sum()) < MARKERS_MIN:
        return nothing
    seen = markers.corners[listed].mean(axis=1).astype(np.float64)
    place = np.array([known[int(i)] for i in markers.ids[listed]])
    edge_px = np.median(np.linalg.norm(np.diff(markers.corners[listed], axis=1), axis=2))
    reach = OFF_BOARD_SHARE * float(edge_px)
    homography, _ = cv2.findHomography(place, seen, cv2.RANSAC, reach)
    if homography is None:
        return nothing
    off = np.linalg.norm(apply_homography(np.asarray(homography, np.float64), place) - seen, axis=1)
    fits = nothing.copy()
    fits[np.flatnonzero(listed)] = off < reach
    return fits if int(fits.sum()) >= MARKERS_MIN else nothing


def _layout(target: CharucoTarget) -> tuple[npt.NDArray[np.int32], Points]:
    """Ids and middles of the board's markers, in px of the board as it is read."""
    board = target.board()
    middles = np.array([np.asarray(p).mean(axis=0)[:2] for p in board.getObjPoints()], dtype=np.float64)
    return np.asarray(board.getIds(), dtype=np.int32).ravel(), middles
