"""From raw camera pictures to board corners, fresh touch dots and control marks, or a refusal that says why not."""

from calibration.detect.board import BoardFinder, BoardView, turn_in_picture
from calibration.detect.dots import Dot, DotFinder
from calibration.detect.marks import MarkFinder, MarkShift

__all__ = [
    "BoardFinder",
    "BoardView",
    "Dot",
    "DotFinder",
    "MarkFinder",
    "MarkShift",
    "turn_in_picture",
]
