"""What changed between two calibrations of a device, in mm over the screen."""

import msgspec
import numpy as np

from calibration.result import CameraPart, DeviceCalibration, HandPart
from calibration.screen import GRID, Pair, ScreenGeometry
from calibration.store.entries import StoredCalibration
from calibration.store.landing import landing_mm
from calibration.targets import Points

CORNERS = ("top left", "top right", "bottom right", "bottom left")
_CORNERS_GRID = np.array([[0.0, 0.0], [GRID, 0.0], [GRID, GRID], [0.0, GRID]])
_PER_SIDE = 21


class MapDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a map of the screen changed: the distance between both images of the same place, over the whole screen.

    mean, max, shift (at the screen's middle) and rest (r.m.s. after shift, rotation and scale are taken out) are in
    `unit`; rotation turns from x to y.
    """

    unit: str
    mean: float
    max: float
    shift: Pair
    rotation_deg: float
    scale: float
    rest: float


class CameraDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the screen's picture moved. bed_max_px: how far a corner of a bed marker moved at most, None: not known.

    The screen's picture alone does not tell whether the phone or the camera moved; the bed markers do.
    """

    picture: MapDiff
    mean_mm: float
    max_mm: float
    bed_max_px: float | None


class ContactDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much higher the glass is now at the screen's corners, hand mm, in the order of CORNERS."""

    corners_mm: tuple[float, float, float, float]


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A measured figure before and after; None where it was not measured."""

    name: str
    unit: str
    before: float | None
    after: float | None


class CalibrationDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two entries compared. A part is None where only one of them has it, or nothing can be compared.

    touch: where the hand is sent for a place, hand mm; for a HID board how far the reports for a place would land
    apart, screen mm.
    """

    before: str
    after: str
    camera: CameraDiff | None
    touch: MapDiff | None
    contact: ContactDiff | None
    figures: tuple[Change, ...]

    def lines(self) -> list[str]:
        """The comparison for a person, a few lines."""
        said = [f"{self.before} → {self.after}"]
        if self.camera is None:
            said.append("camera: cannot be compared, the picture's size changed")
        else:
            said.append(_camera_line(self.camera))
        if self.touch is not None:
            said.append(f"touch: {_map_line(self.touch)}")
        if self.contact is not None:
            each = ", ".join(
                f"{name} {mm:+.2f}" for name, mm in zip(CORNERS, self.contact.corners_mm, strict=True)
            )
            said.append(f"glass: higher by mm: {each}")
        said += [
            f"{change.name}: {_figure(change.before)} → {_figure(change.after)} {change.unit}".rstrip()
            for change in self.figures
        ]
        return said


def diff(before: StoredCalibration, after: StoredCalibration) -> CalibrationDiff:
    """What changed from one entry to another, over the area of the later one's screen."""
    a, b = before.calibration, after.calibration
    return CalibrationDiff(
        before=before.label,
        after=after.label,
        camera=_camera(a.camera, b.camera, b.screen),
        touch=_touch(a, b),
        contact=None if a.hand is None or b.hand is None else _contact(a.hand, b.hand),
        figures=_figures(a, b),
    )


def _camera(a: CameraPart, b: CameraPart, screen: ScreenGeometry) -> CameraDiff | None:
    if (a.model.image_width, a.model.image_height) != (b.model.image_width, b.model.image_height):
        return None
    places_mm = screen.grid_to_mm(_grid())
    first, second = a.model.project(places_mm), b.model.project(places_mm)
    moved_mm = np.linalg.norm(second - first, axis=1) / a.model.px_per_mm(places_mm)
    return CameraDiff(
        picture=_map("px", first, second),
        mean_mm=float(moved_mm.mean()),
        max_mm=float(moved_mm.max()),
        bed_max_px=_bed_max_px(a, b),
    )


def _bed_max_px(a: CameraPart, b: CameraPart) -> float | None:
    if a.reference is None or b.reference is None:
        return None
    both = sorted(a.reference.bed_px.keys() & b.reference.bed_px.keys())
    if not both:
        return None
    moved = [np.subtract(b.reference.bed_px[i], a.reference.bed_px[i]) for i in both]
    return float(np.linalg.norm(np.concatenate(moved), axis=1).max())


def _touch(a: DeviceCalibration, b: DeviceCalibration) -> MapDiff | None:
    grid = _grid()
    if a.hand is not None and b.hand is not None:
        return _map("mm", a.hand.model.map_grid(grid), b.hand.model.map_grid(grid))
    places_mm = b.screen.grid_to_mm(grid)
    if a.digitizer is not None and b.digitizer is not None:
        area = b.digitizer.model
        sent = grid / GRID @ np.array([area.x[1:], area.y[1:]]).T + [area.x[0], area.y[0]]
    elif a.pointer is not None and b.pointer is not None:
        gain = b.pointer.model
        # Not rounded to whole counts: that belongs to both.
        sent = (places_mm - [gain.home_x_mm, gain.home_y_mm]) / [gain.mm_per_count_x, gain.mm_per_count_y]
    else:
        return None
    return _map("mm", places_mm, landing_mm(a, sent))


def _contact(a: HandPart, b: HandPart) -> ContactDiff:
    first, second = (
        [part.contact_z(float(x), float(y)) for x, y in part.model.map_grid(_CORNERS_GRID)] for part in (a, b)
    )
    top_left, top_right, bottom_right, bottom_left = (
        now - was for was, now in zip(first, second, strict=True)
    )
    return ContactDiff(corners_mm=(top_left, top_right, bottom_right, bottom_left))


def _map(unit: str, first: Points, second: Points) -> MapDiff:
    """Compare two images of the same places; the similarity is the least-squares one, in complex numbers."""
    distance = np.linalg.norm(second - first, axis=1)
    z, w = first @ [1.0, 1.0j], second @ [1.0, 1.0j]
    z0, w0 = z - z.mean(), w - w.mean()
    turn = np.vdot(z0, w0) / np.vdot(z0, z0)
    shift = (second - first).mean(axis=0)
    return MapDiff(
        unit=unit,
        mean=float(distance.mean()),
        max=float(distance.max()),
        shift=(float(shift[0]), float(shift[1])),
        rotation_deg=float(np.degrees(np.angle(turn))),
        scale=float(np.abs(turn)),
        rest=float(np.sqrt((np.abs(w0 - turn * z0) ** 2).mean())),
    )


def _figures(a: DeviceCalibration, b: DeviceCalibration) -> tuple[Change, ...]:
    was, now = _measured(a), _measured(b)
    changes = [
        Change(name=name, unit=unit, before=was[name], after=now[name]) for name, unit in _UNITS.items()
    ]
    return tuple(change for change in changes if (change.before, change.after) != (None, None))


_UNITS = {
    "accuracy p50": "mm",
    "accuracy p95": "mm",
    "accuracy max": "mm",
    "backlash x": "mm",
    "backlash y": "mm",
    "control marks max": "mm",
    "camera residual": "px",
    "picture noise": "levels",
}


def _measured(calibration: DeviceCalibration) -> dict[str, float | None]:
    camera, acceptance = calibration.camera, calibration.acceptance
    backlash = calibration.hand.backlash if calibration.hand is not None else None
    return {
        "accuracy p50": acceptance.p50_mm if acceptance else None,
        "accuracy p95": acceptance.p95_mm if acceptance else None,
        "accuracy max": acceptance.max_mm if acceptance else None,
        "backlash x": backlash.x_mm if backlash else None,
        "backlash y": backlash.y_mm if backlash else None,
        "control marks max": camera.marks_max_mm,
        "camera residual": camera.quality.held_out_rms_px,
        "picture noise": camera.noise_sigma,
    }


def _grid() -> Points:
    along = np.linspace(0.0, GRID, _PER_SIDE)
    x, y = np.meshgrid(along, along)
    return np.column_stack([x.ravel(), y.ravel()])


def _camera_line(camera: CameraDiff) -> str:
    bed = "not known" if camera.bed_max_px is None else f"{camera.bed_max_px:.2f} px at most"
    return (
        f"camera: the screen's picture {_map_line(camera.picture)}, on the screen mean {camera.mean_mm:.2f} and max "
        f"{camera.max_mm:.2f} mm; bed markers: {bed}"
    )


def _map_line(change: MapDiff) -> str:
    return (
        f"moved by mean {change.mean:.2f} and max {change.max:.2f} {change.unit} (shift {change.shift[0]:+.2f}, "
        f"{change.shift[1]:+.2f} {change.unit}, rotation {change.rotation_deg:+.3f}°, scale {change.scale:.5f}, rest "
        f"{change.rest:.2f} {change.unit})"
    )


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
