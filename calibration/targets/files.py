"""All that a technician takes to the phone and the printer, as files in one folder."""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import segno

from calibration.errors import TargetsNotWritten
from calibration.targets.bed import bed_markers_png, bed_markers_svg
from calibration.targets.board import draw_charuco
from calibration.targets.dots import draw_dots
from calibration.targets.page import bilevel_png, page_html
from calibration.targets.turns import TURNS, Image, Turn

if TYPE_CHECKING:
    from calibration.screen import ScreenGeometry

_QR_QUIET_MODULES = 4
_QR_MODULE_PX = 12


@dataclass(frozen=True)
class TargetFiles:
    """What write_targets wrote."""

    page: Path
    """The self-contained HTML page."""
    boards: dict[Turn, Path]
    """PNGs of the portrait screen's px: to be shown with the phone's rotation locked upright."""
    dots: dict[Turn, Path]
    """Likewise, the dots page with its control marks and no touch. A picture keeps no touches."""
    bed_png: Path
    bed_svg: Path
    qr: Path | None
    """The code that opens the page, where its URL was known."""


def write_targets(folder: Path, screen: "ScreenGeometry", url: str | None = None) -> TargetFiles:
    """Write the page, the PNGs in all turns, the bed's marker sheet, and a QR code of `url` if there is one.

    The folder is made if it is missing; each file is replaced as a whole. Raises TargetImpossible where the
    targets do not fit the screen (nothing is written then), TargetsNotWritten where the disk refuses.
    """
    size_px, size_mm = (screen.width_px, screen.height_px), (screen.width_mm, screen.height_mm)
    page = page_html(screen).encode("utf-8")
    boards = {turn: bilevel_png(draw_charuco(*size_px, turn)[:, :, 0]) for turn in TURNS}
    dots = {turn: _png(draw_dots(*size_px, *size_mm, turn=turn)[:, :, 0]) for turn in TURNS}
    return TargetFiles(
        page=_write(folder / "page.html", page),
        boards={turn: _write(folder / f"charuco_{turn}.png", png) for turn, png in boards.items()},
        dots={turn: _write(folder / f"dots_{turn}.png", png) for turn, png in dots.items()},
        bed_png=_write(folder / "bed_markers.png", bed_markers_png()),
        bed_svg=_write(folder / "bed_markers.svg", bed_markers_svg().encode("utf-8")),
        qr=None if url is None else _write(folder / "open_page_qr.png", qr_png(url)),
    )


def qr_png(url: str) -> bytes:
    """A QR code that opens `url`, as a PNG with its quiet zone."""
    code = segno.make_qr(url, error="m")
    modules = list(code.matrix_iter(scale=_QR_MODULE_PX, border=_QR_QUIET_MODULES))
    return bilevel_png(np.where(np.array(modules, dtype=bool), 0, 255).astype(np.uint8))


def qr_terminal(url: str) -> str:
    """The same code for a terminal that knows ANSI colours."""
    text = io.StringIO()
    segno.make_qr(url, error="m").terminal(text, border=_QR_QUIET_MODULES, compact=True)
    return text.getvalue()


def _png(grey: Image) -> bytes:
    done, png = cv2.imencode(".png", grey)
    assert done, "OpenCV always writes PNG to memory"
    return png.tobytes()


def _write(path: Path, content: bytes) -> Path:
    beside = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        raise TargetsNotWritten(
            f"{path} cannot be written: {error.strerror or error}; choose a folder that can be written to"
        ) from error
    return path
