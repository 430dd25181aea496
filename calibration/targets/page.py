"""The page that a technician opens on the phone: one HTML file that needs nothing else.

Its parts are page.html, page.css and the scripts beside this file; this module puts them and the numbers of
one screen together.
"""

import base64
import html
import json
from importlib import resources
from typing import TYPE_CHECKING

import cv2

from calibration.targets.board import charuco_target
from calibration.targets.dots import (
    DOT_DIAMETER_MM,
    DOTS_BACKGROUND_LEVEL,
    DOUBLE_TAP_ASIDE_MM,
    DOUBLE_TAP_MS,
    control_marks_mm,
    page_marks_mm,
)
from calibration.targets.turns import Image, Turn

if TYPE_CHECKING:
    from calibration.screen import ScreenGeometry

_SCRIPTS = ("glass.js", "dots.js", "rig.js", "page.js")


def page_html(screen: "ScreenGeometry") -> str:
    """The whole page for one screen, as HTML text. It loads nothing, from no network and no file.

    The board is embedded as a PNG of exactly the screen's px, in both orientations, so that the browser draws
    what draw_charuco draws. Opened from the rig's page server it takes orders and reports touches.

    Raises TargetImpossible for a screen on which the board or the dots page cannot be laid out.
    """
    parts = {
        "css": _part("page.css"),
        "script": "\n".join(_part(name) for name in _SCRIPTS),
        "settings": _for_script(_settings(screen)),
        "width_px": str(screen.width_px),
        "height_px": str(screen.height_px),
        "width_mm": html.escape(f"{screen.width_mm:g}"),
        "height_mm": html.escape(f"{screen.height_mm:g}"),
    }
    page = _part("page.html")
    for name, text in parts.items():
        page = page.replace("{{" + name + "}}", text)
    return page


def _settings(screen: "ScreenGeometry") -> dict[str, object]:
    control_marks_mm(screen.width_mm, screen.height_mm)  # refuses a screen without room for them
    size_mm = (screen.width_mm, screen.height_mm)
    return {
        "screen": {
            "widthPx": screen.width_px,
            "heightPx": screen.height_px,
            "widthMm": screen.width_mm,
            "heightMm": screen.height_mm,
        },
        "board": {
            "portrait": _board_url(screen, "portrait"),
            "landscape": _board_url(screen, "landscape_left"),
        },
        "dots": {
            "backgroundLevel": DOTS_BACKGROUND_LEVEL,
            "diameterMm": DOT_DIAMETER_MM,
            "doubleTapMs": DOUBLE_TAP_MS,
            "doubleTapAsideMm": DOUBLE_TAP_ASIDE_MM,
            "portraitMarksMm": page_marks_mm(*size_mm, landscape=False).tolist(),
            "landscapeMarksMm": page_marks_mm(*size_mm, landscape=True).tolist(),
        },
    }


def _board_url(screen: "ScreenGeometry", turn: Turn) -> str:
    png = bilevel_png(charuco_target(screen.width_px, screen.height_px, turn).page())
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def bilevel_png(grey: Image) -> bytes:
    """A black and white picture as a PNG of one bit a pixel."""
    done, png = cv2.imencode(".png", grey, [cv2.IMWRITE_PNG_BILEVEL, 1, cv2.IMWRITE_PNG_COMPRESSION, 9])
    assert done, "OpenCV always writes PNG to memory"
    return png.tobytes()


def _for_script(value: object) -> str:
    # "</script" inside of JSON would end the element that holds it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")


def _part(name: str) -> str:
    return resources.files("calibration.targets").joinpath(name).read_text(encoding="utf-8").rstrip("\n")
