"""The report's page: everything inside one HTML file, nothing fetched."""

import base64
from dataclasses import dataclass

import jinja2
import numpy as np

from calibration.acceptance import Acceptance
from calibration.pictures import RESIDUAL_MAGNIFIED
from calibration.report.tables import NOT_MEASURED, Row, Table, mm, number_tables, place, signed
from calibration.store.chain import WHAT_HAPPENED, named, parts_of
from calibration.store.diff import CORNERS, CalibrationDiff, MapDiff
from calibration.store.entries import BoardKey, Stamp, StoredCalibration


@dataclass(frozen=True)
class Figure:
    """A figure in both colour schemes."""

    name: str
    title: str
    light_svg: bytes
    dark_svg: bytes


@dataclass(frozen=True)
class Verdict:
    """word: large. style: names its colour. reason: a sentence, with the failing number where there is one."""

    word: str
    style: str
    reason: str


@dataclass(frozen=True)
class Gauge:
    """A measured figure against its limit; percent: of a bar that ends 25 % beyond the larger of both."""

    name: str
    value: str
    limit: str
    percent: float
    limit_percent: float
    within: bool


def page(
    stored: StoredCalibration, figures: list[Figure], camera_png: bytes | None, change: CalibrationDiff | None
) -> str:
    """The page as text. camera_png: the camera picture with its arrows. change: against the entry before."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("calibration.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    calibration = stored.calibration
    return environment.get_template("page.html").render(
        stored=stored,
        verdict=verdict_of(calibration.acceptance),
        gauges=_gauges(calibration.acceptance),
        warnings=_warnings(stored),
        figures={figure.name: figure for figure in figures},
        camera_png=camera_png,
        magnified=f"{RESIDUAL_MAGNIFIED:.0f}",
        tables=number_tables(calibration),
        change=change,
        change_rows=[] if change is None else _change_rows(change),
        touches=_touch_rows(stored),
        provenance=_provenance(stored),
    )


def verdict_of(acceptance: Acceptance | None) -> Verdict:
    """One word and why."""
    if acceptance is None:
        return Verdict(
            "not judged",
            "neutral",
            "Nothing of this device touches the screen: only the camera is calibrated.",
        )
    if acceptance.passed:
        x_mm, y_mm = acceptance.worst.target_mm
        return Verdict(
            "accepted",
            "good",
            f"All {len(acceptance.touches)} held-out touches lie within the limits; the worst is "
            f"{acceptance.max_mm:.3f} mm off at x {x_mm:.1f}, y {y_mm:.1f} mm.",
        )
    reason = f"{acceptance.failing}." if acceptance.failing else ""
    cause = f" Likely cause: {acceptance.cause}." if acceptance.cause else ""
    return Verdict("refused", "bad", reason + cause)


def _gauges(acceptance: Acceptance | None) -> list[Gauge]:
    if acceptance is None:
        return []
    return [
        _gauge("p95", acceptance.p95_mm, acceptance.p95_limit_mm),
        _gauge("max", acceptance.max_mm, acceptance.max_limit_mm),
    ]


def _gauge(name: str, value_mm: float, limit_mm: float) -> Gauge:
    end_mm = 1.25 * max(limit_mm, value_mm)
    return Gauge(
        name=name,
        value=mm(value_mm),
        limit=f"{limit_mm:.2f}",
        percent=round(100.0 * value_mm / end_mm, 2),
        limit_percent=round(100.0 * limit_mm / end_mm, 2),
        within=value_mm <= limit_mm,
    )


def _warnings(stored: StoredCalibration) -> list[str]:
    """What was known to be untrue of it when it was made."""
    parts = parts_of(stored.calibration)
    return [
        f"Its {named(event.lost & parts)} was already untrue when this was made: {WHAT_HAPPENED[event.by]}."
        for event in stored.already_lost
    ]


def _change_rows(change: CalibrationDiff) -> list[tuple[str, str, str, str]]:
    """Name, before, after, unit: measured figures, then how far the maps moved, which have no before."""
    rows = [
        (figure.name, _figure(figure.before), _figure(figure.after), figure.unit) for figure in change.figures
    ]
    if change.camera is not None:
        rows += _moved_rows("screen's picture", change.camera.picture)
        rows.append(("screen's picture moved on the screen, max", "", f"{change.camera.max_mm:.3f}", "mm"))
        bed = change.camera.bed_max_px
        rows.append(("bed markers moved, max", "", _figure(bed), "" if bed is None else "px"))
    if change.touch is not None:
        rows += _moved_rows("touch map", change.touch)
    if change.contact is not None:
        rows += [
            (f"glass height, {name}", "", signed(height, 3), "mm")
            for name, height in zip(CORNERS, change.contact.corners_mm, strict=True)
        ]
    return rows


def _moved_rows(what: str, moved: MapDiff) -> list[tuple[str, str, str, str]]:
    return [
        (f"{what} moved, mean", "", f"{moved.mean:.3f}", moved.unit),
        (f"{what} moved, max", "", f"{moved.max:.3f}", moved.unit),
        (f"{what} turned", "", signed(moved.rotation_deg, 4), "°"),
        (f"{what} grew", "", signed(100 * (moved.scale - 1), 4), "%"),
    ]


def _touch_rows(stored: StoredCalibration) -> list[tuple[str, ...]]:
    """One row per touch: number, step, sent, press, sides, target, seen, error, remark."""
    rows: list[tuple[str, ...]] = []
    for number, touch in enumerate(stored.calibration.touches, start=1):
        error = ""
        if touch.seen_mm is not None and touch.target_mm is not None:
            error = mm(float(np.hypot(*np.subtract(touch.seen_mm, touch.target_mm))))
        remark = "dropped as an outlier" if touch.outlier else ""
        if touch.seen_mm is None:
            remark = "left no dot"
        elif not touch.whole:
            remark = "dot not whole"
        elif touch.replaced:
            remark = "touched again"
        rows.append(
            (
                str(number),
                touch.step,
                f"{touch.sent[0]:.3f}, {touch.sent[1]:.3f}",
                "–" if touch.press_z_mm is None else mm(touch.press_z_mm),
                " ".join(touch.approach),
                place(touch.target_mm),
                "–" if touch.seen_mm is None else f"{touch.seen_mm[0]:.3f}, {touch.seen_mm[1]:.3f}",
                error or "–",
                remark,
            )
        )
    return rows


def _provenance(stored: StoredCalibration) -> Table:
    camera, screen = stored.camera, stored.calibration.screen
    model = stored.calibration.camera.model
    expires = "never" if stored.expires_after_days is None else f"after {stored.expires_after_days:g} days"
    return Table(
        "Provenance",
        (
            Row("device", stored.device_id),
            Row("entry", stored.label),
            Row("made from", stored.parent_id or "no other entry"),
            Row("origin", stored.origin),
            Row("note", stored.note or "–"),
            Row("created", _moment(stored.created)),
            Row("oldest measurement", _moment(stored.measured)),
            Row("expires", expires),
            Row("hand board", _board(stored.boards.hand)),
            Row("HID board", _board(stored.boards.hid)),
            Row("camera", "not known" if camera is None else f"{camera.name}, {camera.source}"),
            Row("camera mode", f"{model.image_width} × {model.image_height} px"),
            Row(
                "screen",
                f"{screen.width_px} × {screen.height_px} px, {screen.width_mm:g} × {screen.height_mm:g} mm",
            ),
            Row("schema", str(stored.schema)),
        ),
    )


def _board(board: BoardKey | None) -> str:
    return "–" if board is None else f"uid {board.uid}, firmware {board.firmware or 'not known'}"


def _moment(stamp: Stamp | None) -> str:
    if stamp is None:
        return "not known"
    return stamp.wall_utc if stamp.clock_synced else f"{stamp.wall_utc}, by a clock that was not set"


def _figure(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3f}"


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
