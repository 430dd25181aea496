"""The report's numbers as rows of text: value, unit, limit. What was not measured says so."""

from dataclasses import dataclass

import msgspec
import numpy as np

from calibration.acceptance import Acceptance
from calibration.result import (
    AreaBehaviour,
    CameraPart,
    DeviceCalibration,
    DigitizerPart,
    HandPart,
    PointerPart,
)
from calibration.screen import Pair, ScreenGeometry

NOT_MEASURED = "not measured"
_AREA: dict[AreaBehaviour, str] = {"keeps": "keeps its place on the glass", "turns": "turns with the page"}
# By the ends of names, the longest first.
_UNITS = {"_px": "px", "_mm": "mm", "_deg": "°", "_grid": "grid", "_share": "%", "_level": "of 255"}


@dataclass(frozen=True)
class Row:
    """One line of a table. value is aligned by its decimal point, so rows of one unit have equal decimals."""

    name: str
    value: str
    unit: str = ""
    limit: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a title."""

    title: str
    rows: tuple[Row, ...]


def number_tables(calibration: DeviceCalibration) -> list[Table]:
    """Acceptance, camera, and whatever touches the device."""
    tables = []
    if calibration.acceptance is not None:
        tables.append(_acceptance(calibration.acceptance, calibration.screen))
    tables.append(_camera(calibration.camera))
    if calibration.camera.checks is not None:
        tables.append(Table("Picture checks", tuple(_struct_rows(calibration.camera.checks))))
    if calibration.hand is not None:
        tables.append(_hand(calibration.hand))
    if calibration.digitizer is not None:
        tables.append(_digitizer(calibration.digitizer))
    if calibration.pointer is not None:
        tables.append(_pointer(calibration.pointer))
    return tables


def mm(value: float | None) -> str:
    """Millimetres to the micrometre."""
    return NOT_MEASURED if value is None else f"{value:.3f}"


def signed(value: float, decimals: int) -> str:
    """With its sign, a true minus."""
    return f"{value:+.{decimals}f}".replace("-", "−")


def place(pair: Pair | None) -> str:
    """A place in mm to the hundredth."""
    return "–" if pair is None else f"{pair[0]:.2f}, {pair[1]:.2f}"


def _acceptance(acceptance: Acceptance, screen: ScreenGeometry) -> Table:
    worst = acceptance.worst
    x_grid, y_grid = screen.mm_to_grid(np.array([worst.target_mm]))[0]
    errors = np.array([np.subtract(touch.landed_mm, touch.target_mm) for touch in acceptance.touches])
    bias = errors.mean(axis=0)
    return Table(
        "Acceptance by held-out touches",
        (
            Row("touches", str(len(acceptance.touches))),
            Row("p50", mm(acceptance.p50_mm), "mm"),
            Row("p95", mm(acceptance.p95_mm), "mm", f"≤ {acceptance.p95_limit_mm:.3f}"),
            Row("max", mm(acceptance.max_mm), "mm", f"≤ {acceptance.max_limit_mm:.3f}"),
            Row("mean error in x", signed(bias[0], 3), "mm"),
            Row("mean error in y", signed(bias[1], 3), "mm"),
            Row("p95 in x", f"{acceptance.p95_x_grid:.2f}", "grid"),
            Row("p95 in y", f"{acceptance.p95_y_grid:.2f}", "grid"),
            Row("max in x", f"{acceptance.max_x_grid:.2f}", "grid"),
            Row("max in y", f"{acceptance.max_y_grid:.2f}", "grid"),
            Row("worst place", place(worst.target_mm), "mm"),
            Row("worst place", f"{x_grid:.0f}, {y_grid:.0f}", "grid"),
        ),
    )


def _hand(hand: HandPart) -> Table:
    quality, contact, play = hand.quality, hand.contact, hand.backlash
    tried = [
        Row(
            f"leave-one-out, {kind.replace('_', ' ')}{' (chosen)' if kind == hand.model.kind else ''}",
            mm(rms),
            "mm",
        )
        for kind, rms in quality.leave_one_out_rms_mm.items()
    ]
    tilt = float(np.degrees(np.arctan(np.hypot(contact.a, contact.b))))
    return Table(
        "Hand",
        (
            Row("model", hand.model.kind.replace("_", " ")),
            *tried,
            Row("places fitted", str(quality.places)),
            Row("places dropped", _listed([i + 1 for i in quality.outliers])),
            _inverse_row(quality.inverse_error_mm),
            *_play_rows("x", None if play is None else (play.x_mm, play.x_sigma_mm)),
            *_play_rows("y", None if play is None else (play.y_mm, play.y_sigma_mm)),
            Row("one-sided approach", mm(hand.approach_mm), "mm" if hand.approach_mm is not None else ""),
            Row("glass tilt", f"{tilt:.3f}", "°"),
            Row("glass slope in x", signed(contact.a * 1000, 2), "mm/m"),
            Row("glass slope in y", signed(contact.b * 1000, 2), "mm/m"),
            Row("glass height at hand 0, 0", mm(contact.c), "mm"),
            Row(
                "glass off the plane, max",
                mm(hand.contact_residual_mm),
                "mm" if hand.contact_residual_mm is not None else "",
            ),
            Row("overtravel", mm(hand.overtravel_mm), "mm", f"≤ {hand.overtravel_limit_mm:.3f}"),
        ),
    )


def _inverse_row(error_mm: float | None) -> Row:
    if error_mm is None:
        return Row("inverse error", NOT_MEASURED)
    # Far below what anything here measures; three decimals would say zero.
    return Row("inverse error", f"{error_mm:.0e}" if error_mm < 0.0005 else mm(error_mm), "mm")


def _play_rows(axis: str, play: tuple[float, float] | None) -> list[Row]:
    if play is None:
        return [Row(f"backlash {axis}", NOT_MEASURED)]
    return [Row(f"backlash {axis}", f"{play[0]:.3f} ± {play[1]:.3f}", "mm")]


def _digitizer(part: DigitizerPart) -> Table:
    short = part.model.unreachable_grid()
    return Table(
        "HID touch screen",
        (
            *(
                Row(
                    f"fraction {axis}",
                    f"{signed(terms[0], 5)} {signed(terms[1], 5)} u {signed(terms[2], 5)} v",
                )
                for axis, terms in (("x", part.model.x), ("y", part.model.y))
            ),
            Row("leave-one-out", mm(part.quality.leave_one_out_rms_mm), "mm"),
            Row("places fitted", str(part.quality.places)),
            Row("places dropped", _listed([i + 1 for i in part.quality.outliers])),
            Row(
                "out of reach",
                ", ".join(f"{edge} {margin:.1f}" for edge, margin in short.items()) or "nothing",
            ),
        ),
    )


def _pointer(part: PointerPart) -> Table:
    model = part.model
    return Table(
        "Relative pointer",
        (
            Row("gain x", f"{model.mm_per_count_x:.5f}", "mm/count"),
            Row("gain y", f"{model.mm_per_count_y:.5f}", "mm/count"),
            Row("home corner", place((model.home_x_mm, model.home_y_mm)), "mm"),
            Row("counts a report", str(model.step_counts)),
            Row("counts to be home", str(model.home_counts)),
            Row("leave-one-out", mm(part.quality.leave_one_out_rms_mm), "mm"),
            Row("places fitted", str(part.quality.places)),
            Row("places dropped", _listed([i + 1 for i in part.quality.outliers])),
        ),
    )


def _camera(camera: CameraPart) -> Table:
    quality = camera.quality
    lens = {0: "none", 1: "k1", 2: "k1, k2", 4: "k1, k2, p1, p2"}
    measured = camera.marks_mean_mm is not None
    return Table(
        "Camera",
        (
            Row("board corners used", f"{quality.corners_used} of {quality.corners_on_board}"),
            Row("board corners dropped", _listed(quality.outlier_ids)),
            Row("board's page", camera.turn.replace("_", " ")),
            Row("lens terms", lens.get(quality.lens_terms, str(quality.lens_terms))),
            Row("held-out corners, r.m.s.", f"{quality.held_out_rms_px:.3f}", "px"),
            Row("held-out corners, max", f"{quality.held_out_max_px:.3f}", "px"),
            Row("control marks", str(len(camera.marks)) if camera.marks else NOT_MEASURED),
            *(
                [
                    Row("control marks, mean shift", mm(camera.marks_mean_mm), "mm"),
                    Row("control marks, max", mm(camera.marks_max_mm), "mm"),
                ]
                if measured
                else []
            ),
            Row(
                "picture noise, σ",
                NOT_MEASURED if camera.noise_sigma is None else f"{camera.noise_sigma:.2f}",
                "" if camera.noise_sigma is None else "of 255",
            ),
            Row(
                "bed markers", NOT_MEASURED if camera.reference is None else str(len(camera.reference.bed_px))
            ),
        ),
    )


def _struct_rows(struct: msgspec.Struct) -> list[Row]:
    """One row per field, its name and unit from the field's name."""
    rows = []
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        unit = next((unit for end, unit in _UNITS.items() if field.endswith(end)), "")
        name = field.removesuffix("_px").removesuffix("_mm").replace("_", " ")
        if isinstance(value, float):
            rows.append(Row(name, f"{100 * value:.2f}" if unit == "%" else f"{value:.3f}", unit))
        elif value is None:
            rows.append(Row(name, NOT_MEASURED))
        else:
            rows.append(Row(name, str(value), unit))
    return rows


def _listed(numbers: list[int] | tuple[int, ...]) -> str:
    return ", ".join(str(number) for number in numbers) or "none"
