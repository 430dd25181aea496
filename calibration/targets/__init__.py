"""What is shown to the camera: the ChArUco board and the dots page on the phone, and the bed's markers.

Whoever draws these (the HTML page, an app, a simulator) and whoever looks for them share this one
definition. Coordinates: screen px have their origin at the screen's top-left EDGE, so the centre of the
first pixel is (0.5, 0.5); screen mm are the same axes, scaled. Both belong to the portrait screen, whichever
way the page on it is turned. Files for the technician: `calibration.targets.files`.
"""

from calibration.targets.bed import (
    BED_DICTIONARY,
    BED_MARKER_IDS,
    BED_MARKER_MM,
    BED_QUIET_MM,
    bed_marker_cells,
    bed_markers_png,
    bed_markers_svg,
    draw_bed_markers,
)
from calibration.targets.board import (
    BOARD_RIM,
    DICTIONARY,
    DICTIONARY_SIZE,
    MARKER_SHARE,
    SQUARES_ACROSS,
    CharucoTarget,
    charuco_target,
    draw_charuco,
)
from calibration.targets.dots import (
    DOT_BGR,
    DOT_CLEARANCE_MM,
    DOT_DIAMETER_MM,
    DOTS_BACKGROUND_BGR,
    DOTS_BACKGROUND_LEVEL,
    DOUBLE_TAP_ASIDE_MM,
    DOUBLE_TAP_MS,
    control_marks_mm,
    draw_dots,
)
from calibration.targets.page import page_html
from calibration.targets.turns import TURNS, Image, Points, Turn, turned_picture, turned_points

__all__ = [
    "BED_DICTIONARY",
    "BED_MARKER_IDS",
    "BED_MARKER_MM",
    "BED_QUIET_MM",
    "BOARD_RIM",
    "DICTIONARY",
    "DICTIONARY_SIZE",
    "DOTS_BACKGROUND_BGR",
    "DOTS_BACKGROUND_LEVEL",
    "DOT_BGR",
    "DOT_CLEARANCE_MM",
    "DOT_DIAMETER_MM",
    "DOUBLE_TAP_ASIDE_MM",
    "DOUBLE_TAP_MS",
    "MARKER_SHARE",
    "SQUARES_ACROSS",
    "TURNS",
    "CharucoTarget",
    "Image",
    "Points",
    "Turn",
    "bed_marker_cells",
    "bed_markers_png",
    "bed_markers_svg",
    "charuco_target",
    "control_marks_mm",
    "draw_bed_markers",
    "draw_charuco",
    "draw_dots",
    "page_html",
    "turned_picture",
    "turned_points",
]
