"""Writes the report's files. The plotting library is only loaded when a report is written: it costs a second."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import cv2

from calibration.acceptance import Acceptance
from calibration.errors import StoreError
from calibration.pictures import Arrow, residual_overlay
from calibration.report.palette import DARK, LIGHT, Palette
from calibration.report.touch_errors import TouchError, touch_errors
from calibration.result import DeviceCalibration
from calibration.store.diff import diff
from calibration.store.entries import StoredCalibration
from calibration.targets import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

PAGE = "report.html"
CAMERA = "camera.png"
# Brighter than in the figures on paper: they are seen on black dots. Dropped touches are part of the fit's story.
_HELD_OUT_BGR = (20, 120, 255)
_FIT_BGR = (240, 180, 60)


def write_report(
    folder: Path,
    stored: StoredCalibration,
    *,
    camera_picture: Image | None,
    before: StoredCalibration | None,
) -> list[Path]:
    """Write report.html and its figures as PNGs into the folder, which is made; returns the files, the page first.

    camera_picture: a raw BGR picture through the same camera, best of the dots page, or None for no picture of
    the rig. before: the entry to compare with, or None. Raises CameraMismatch for a picture of another size, and
    StoreError when the folder cannot be written.
    """
    from calibration.report.page import Figure, page

    errors = touch_errors(stored.calibration)
    camera_png = None
    if camera_picture is not None:
        arrows = _arrows(errors, stored.calibration.acceptance)
        overlay = residual_overlay(camera_picture, stored.calibration, arrows)
        camera_png = bytes(cv2.imencode(".png", overlay)[1])
    _make(folder)
    figures, files = [], {}
    for name, (title, light, dark, png) in _figures(stored.calibration, errors).items():
        files[f"{name}.png"] = png
        figures.append(Figure(name=name, title=title, light_svg=light, dark_svg=dark))
    if camera_png is not None:
        files[CAMERA] = camera_png
    change = None if before is None else diff(before, stored)
    files = {PAGE: page(stored, figures, camera_png, change).encode(), **files}
    return _written(folder, files)


def _figures(
    calibration: DeviceCalibration, errors: list[TouchError]
) -> dict[str, tuple[str, bytes, bytes, bytes]]:
    """By file name: alternative text, the SVG for paper, the SVG for a dark screen, and the PNG."""
    from calibration.report.figures import distribution, error_map, rendered, scatter

    acceptance = calibration.acceptance
    if acceptance is None:
        return {}
    drawn: dict[str, tuple[str, Callable[[Palette], Plot]]] = {
        "error-map": (
            "Held-out error over the screen",
            lambda palette: error_map(calibration.screen, errors, acceptance, palette),
        ),
        "scatter": ("Errors of single touches", lambda palette: scatter(errors, acceptance, palette)),
        "distribution": (
            "Share of touches within a distance",
            lambda palette: distribution(errors, acceptance, palette),
        ),
    }
    figures = {}
    for name, (title, draw) in drawn.items():
        light, dark = draw(LIGHT), draw(DARK)
        figures[name] = (title, rendered(light, "svg"), rendered(dark, "svg"), rendered(light, "png"))
    return figures


def _arrows(errors: list[TouchError], acceptance: Acceptance | None) -> list[Arrow]:
    """Held-out touches last, so that nothing covers them."""
    fitted = [Arrow(error.place_mm, error.error_mm, _FIT_BGR) for error in errors if error.kind != "held out"]
    held_out = [
        Arrow(error.place_mm, error.error_mm, _HELD_OUT_BGR, acceptance.p95_limit_mm)
        for error in errors
        if acceptance is not None and error.kind == "held out"
    ]
    return fitted + held_out


def _make(folder: Path) -> None:
    """Before anything is drawn: drawing takes seconds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _written(folder: Path, files: dict[str, bytes]) -> list[Path]:
    try:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return [folder / name for name in files]


def _cannot_write(folder: Path, error: OSError) -> StoreError:
    return StoreError(f"{folder}: the report cannot be written: {error.strerror}; give a folder that can be")
