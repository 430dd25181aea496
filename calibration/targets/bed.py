"""The four markers stuck to the rig's bed around the phone: the reference by which a moved camera shows.

Nobody needs to know where they stick, only that they stay there.
"""

import struct
import zlib

import cv2
import numpy as np
import numpy.typing as npt

from calibration.targets.turns import Image

# Another dictionary range than the board's (ids 0..99): neither can be taken for the other.
BED_DICTIONARY = cv2.aruco.DICT_4X4_250
BED_MARKER_IDS = (200, 201, 202, 203)
BED_MARKER_MM = 8.0
"""Edge of a marker's black square."""
BED_QUIET_MM = 3.0
"""White around it: two cells and a little for the scissors."""
SHEET_DPI = 600
RULER_MM = 50.0

# 4 x 4 bits and a border of one cell around them.
_CELLS = 6
# A4, so that a printer has no reason to scale; everything is at the top, so that it fits on Letter as well.
_SHEET_MM = (210.0, 297.0)
_MARGIN_MM = 20.0
_PITCH_MM = 24.0
_MARKERS_TOP_MM = 50.0
_RULER_MM = 36.0
_INSTRUCTION = "Print at 100 %, not fitted to the page. The line must measure 50.0 mm."
_CUT = "Cut along the thin lines, and stick one marker to the bed beside each corner of the phone."

_Box = tuple[float, float, float, float]


def bed_marker_cells(marker_id: int) -> npt.NDArray[np.bool_]:
    """One marker as cells, shape (6, 6), True where it is black. No quiet zone."""
    dictionary = cv2.aruco.getPredefinedDictionary(BED_DICTIONARY)
    return np.asarray(dictionary.generateImageMarker(marker_id, _CELLS, borderBits=1) < 128)


def bed_markers_svg() -> str:
    """The sheet to print, at true size: an SVG in mm."""
    width, height = _SHEET_MM
    rectangles = "\n".join(
        f'<rect x="{x:.4f}" y="{y:.4f}" width="{w:.4f}" height="{h:.4f}"/>' for x, y, w, h in _black_mm()
    )
    texts = "\n".join(
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" font-family="sans-serif">{text}</text>'
        for x, y, size, text in _texts_mm()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}mm" height="{height:g}mm" '
        f'viewBox="0 0 {width:g} {height:g}" shape-rendering="crispEdges">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{rectangles}\n{texts}\n</svg>\n'
    )


def draw_bed_markers(dpi: int = SHEET_DPI) -> Image:
    """The sheet to print as a grey picture at that many px per inch; every edge within half a px."""
    scale = dpi / 25.4
    sheet = np.full((round(_SHEET_MM[1] * scale), round(_SHEET_MM[0] * scale)), 255, dtype=np.uint8)
    for x, y, w, h in _black_mm():
        left, right = round(x * scale), max(round((x + w) * scale), round(x * scale) + 1)
        top, bottom = round(y * scale), max(round((y + h) * scale), round(y * scale) + 1)
        sheet[top:bottom, left:right] = 0
    for x, y, size, text in _texts_mm():
        # Hershey's capitals are 21 units high, and capitals are 0.7 of a font's size.
        letters = 0.7 * size * scale / 21.0
        place = (round(x * scale), round(y * scale))
        cv2.putText(sheet, text, place, cv2.FONT_HERSHEY_SIMPLEX, letters, 0, max(1, round(1.5 * letters)))
    return sheet


def bed_markers_png(dpi: int = SHEET_DPI) -> bytes:
    """The sheet as a black and white PNG that carries its dpi, so that it prints at true size."""
    done, png = cv2.imencode(".png", draw_bed_markers(dpi), [cv2.IMWRITE_PNG_BILEVEL, 1])
    assert done, "OpenCV always writes PNG to memory"
    return _with_dpi(png.tobytes(), dpi)


def _black_mm() -> list[_Box]:
    """Everything black but the letters: left, top, width, height in mm."""
    boxes: list[_Box] = [(_MARGIN_MM, _RULER_MM, RULER_MM, 0.2)]
    boxes += [(x, _RULER_MM - 2.0, 0.2, 4.2) for x in (_MARGIN_MM, _MARGIN_MM + RULER_MM - 0.2)]
    cell = BED_MARKER_MM / _CELLS
    for place, marker_id in enumerate(BED_MARKER_IDS):
        left, top = _marker_mm(place)
        boxes += _frame(left - BED_QUIET_MM, top - BED_QUIET_MM, BED_MARKER_MM + 2 * BED_QUIET_MM)
        boxes += [
            (left + column * cell, top + row * cell, cell, cell)
            for row, column in np.argwhere(bed_marker_cells(marker_id)).tolist()
        ]
    return boxes


def _frame(left: float, top: float, edge: float) -> list[_Box]:
    line = 0.1
    return [
        (left, top, edge, line),
        (left, top + edge - line, edge, line),
        (left, top, line, edge),
        (left + edge - line, top, line, edge),
    ]


def _marker_mm(place: int) -> tuple[float, float]:
    return _MARGIN_MM + BED_QUIET_MM + place * _PITCH_MM, _MARKERS_TOP_MM


def _texts_mm() -> list[tuple[float, float, float, str]]:
    """Left, base line and font size in mm, and the text."""
    names = [(*_marker_mm(place), marker_id) for place, marker_id in enumerate(BED_MARKER_IDS)]
    below = BED_MARKER_MM + BED_QUIET_MM + 4.0
    return [
        (_MARGIN_MM, 24.0, 4.0, _INSTRUCTION),
        (_MARGIN_MM, 30.0, 4.0, _CUT),
        *((left, top + below, 3.0, str(marker_id)) for left, top, marker_id in names),
    ]


def _with_dpi(png: bytes, dpi: int) -> bytes:
    """The PNG with a pHYs chunk (PNG specification 11.3.4.3), which OpenCV does not write, after its header."""
    per_metre = round(dpi / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    header_end = 8 + 12 + 13
    added = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:header_end] + added + png[header_end:]
