"""Has the camera or the phone moved since the calibration? And what that makes untrue.

What invalidates what:

* The camera moved (the bed's markers moved, and the screen's outline with them): the camera part. The hand part
  stays true, for it maps screen to hand; a new look at the board is enough.
* The phone moved (the outline moved, the bed's markers did not): camera and hand. Digitizer and pointer stay.
* Both moved: camera and hand.
* Moved, and no bed marker to say which: as if both had.
* Not measurable: "unmeasured". It is said so, and never taken for still.
* Another hand board, or a firmware of another major version; an arm pushed and not homed again: the hand.
* Another HID board or profile; for a pointer, a phone that was started again: digitizer or pointer.
* Camera name, mode or picture size changed: the camera. Screen size changed in the configuration: everything.

A move is estimated as a shift, a turn and a change of scale, which is what a camera that sinks looks like, and
told as what it does to that corner of the screen which it displaces most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.detect.bed import bed_corners
from calibration.detect.outline import Outline
from calibration.errors import PictureRefused
from calibration.models import CameraModel
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import Image, Points

# At 7.4 px/mm 0.15 px is 0.02 mm: three times what noise makes of it, and far below what a touch must keep.
WARN_PX = 0.15
# 0.07 mm: a quarter of the 0.3 mm that touches may be off. Nothing is touched before it has been looked at.
HOLD_PX = 0.5
# A part whose shift is known no better than this (one standard deviation) has not been measured: a third of the
# warning, so that the warning is no noise.
UNCERTAINTY_MAX_PX = WARN_PX / 3.0
# Observations further off than this many robust deviations do not count: a marker that came loose, content that
# ends just inside the screen.
TUKEY_SIGMAS = 4.685
# The glass lies above the bed by a phone's thickness, a thirtieth of the camera's height: a shift of the camera
# shifts the screen in the picture so much more than the markers, and that is no move of the phone.
PARALLAX_SHARE = 0.05
# The weights stand when none of them changes by more than this.
WEIGHT_SETTLED = 1e-3
# Sub-pixel places are never better than this, whatever the residuals of a few say.
SIGMA_FLOOR_PX = 0.02
# A move needs this many observations, and most of them to agree.
OBSERVATIONS_MIN = 8
AGREE_MIN = 0.6

Verdict = Literal["still", "camera_moved", "phone_moved", "both_moved", "moved_not_told_apart", "unmeasured"]

_Vector = npt.NDArray[np.float64]
_Matrix = npt.NDArray[np.float64]


class DriftReference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stood where when the rig was calibrated, raw camera px.

    bed_px: the four corners of each bed marker by its id; empty without markers. edges_px: points on the outline
    of the lit screen by side (top, right, bottom, left), always at the same fractions of the side; None where no
    edge was found.
    """

    bed_px: dict[int, tuple[Pair, Pair, Pair, Pair]]
    edges_px: dict[str, tuple[Pair | None, ...]]


@dataclass(frozen=True)
class DriftReport:
    """What has moved, and whether to go on.

    bed_shift_px, outline_shift_px: the largest displacement of a screen corner that each of them says, None where
    it could not be measured. phone_shift_px: what is left of the outline's once the camera's move is taken off.
    uncertainty_px: one standard deviation of bed, outline and phone, None as above. warn, hold: whether
    somebody should look, and whether nothing may be touched before.
    """

    verdict: Verdict
    bed_shift_px: float | None
    outline_shift_px: float | None
    phone_shift_px: float | None
    uncertainty_px: tuple[float | None, float | None, float | None]
    warn: bool
    hold: bool
    message: str


@dataclass(frozen=True)
class _Move:
    """Shift, turn and scale about the screen's middle: parameters (4,), their covariance (4, 4)."""

    parameters: _Vector
    covariance: _Matrix

    def less(self, other: "_Move") -> "_Move":
        return _Move(self.parameters - other.parameters, self.covariance + other.covariance)


def make_reference(pictures: Sequence[Image], camera: CameraModel, screen: ScreenGeometry) -> DriftReference:
    """Remember where everything stands, from raw BGR pictures of a bright page, best the calibration board.

    What is not to be seen is left empty, and will be unmeasured. Raises PictureRefused for no picture, or one of
    another size than the camera model's.
    """
    _require_pictures(pictures, camera)
    return DriftReference(
        bed_px={marker: _quad(corners) for marker, corners in bed_corners(pictures).items()},
        edges_px=Outline(camera, screen).measure(pictures),
    )


def measure(
    pictures: Sequence[Image], reference: DriftReference, camera: CameraModel, screen: ScreenGeometry
) -> DriftReport:
    """Compare raw BGR pictures, the hand out of view, with the reference. What the screen shows does not matter.

    Raises PictureRefused for no picture, or one of another size than the camera model's.
    """
    _require_pictures(pictures, camera)
    corners = camera.project(
        np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) * [screen.width_mm, screen.height_mm]
    )
    basis = _Basis(corners)
    edge_move = _outline_move(basis, Outline(camera, screen), pictures, reference)
    bed_move = _known(basis, basis.fit(*_bed_offsets(bed_corners(pictures), reference)))
    return _report(basis, bed_move, edge_move)


class _Basis:
    """Moves of the screen in the picture, told about its middle and in px at its corners."""

    def __init__(self, corners: Points) -> None:
        self._middle = corners.mean(axis=0)
        self._reach = float(np.linalg.norm(corners - self._middle, axis=1).max())
        self._corners = self._design(corners)

    def _design(self, points: Points) -> npt.NDArray[np.float64]:
        """What each parameter moves each point by, (N, 2, 4): right, down, turn and scale, in px at the reach."""
        x, y = ((points - self._middle) / self._reach).T
        one, zero = np.ones_like(x), np.zeros_like(x)
        across, down = np.column_stack([one, zero, -y, x]), np.column_stack([zero, one, x, y])
        return np.stack([across, down], axis=1)

    def fit(self, points: Points, normals: Points, moved: _Vector, scaled: bool = True) -> _Move | None:
        """The move that explains how far points moved along normals; None where they do not determine it.

        scaled: whether the scale may have changed.
        """
        if len(moved) < OBSERVATIONS_MIN:
            return None
        free = 4 if scaled else 3
        design = np.einsum("nij,ni->nj", self._design(points)[..., :free], normals)
        weight = np.ones(len(moved))
        for _ in range(20):
            root = np.sqrt(weight)
            parameters, _, rank, _ = np.linalg.lstsq(design * root[:, None], moved * root, rcond=1e-6)
            if int(rank) < free:
                return None
            rest = moved - design @ parameters
            sigma = max(1.4826 * float(np.median(np.abs(rest))), SIGMA_FLOOR_PX)
            before, weight = weight, np.maximum(1.0 - (rest / (TUKEY_SIGMAS * sigma)) ** 2, 0.0) ** 2
            if float(np.abs(weight - before).max()) < WEIGHT_SETTLED:
                break
        if float((weight > 0.0).mean()) < AGREE_MIN:
            return None
        information = design.T @ (design * weight[:, None])
        covariance = np.zeros((4, 4))
        covariance[:free, :free] = sigma**2 * np.linalg.inv(information)
        return _Move(np.pad(parameters, (0, 4 - free)), covariance)

    def shift_px(self, move: _Move) -> float:
        """The largest displacement of a screen corner."""
        return float(np.linalg.norm(self._corners @ move.parameters, axis=1).max())

    def beyond_hold(self, move: _Move) -> bool:
        """Whether the move is beyond the limit for holding by five of its standard deviations."""
        return self.shift_px(move) >= HOLD_PX + 5.0 * self.uncertainty_px(move)

    def uncertainty_px(self, move: _Move) -> float:
        """One standard deviation of the worst corner's displacement, in its worst direction."""
        spread = self._corners @ move.covariance @ np.swapaxes(self._corners, 1, 2)
        return float(np.sqrt(np.linalg.eigvalsh(spread).max()))


def _outline_move(
    basis: _Basis, outline: Outline, pictures: Sequence[Image], reference: DriftReference
) -> _Move | None:
    near = _known(basis, basis.fit(*outline.offsets(outline.measure(pictures), reference.edges_px)))
    if near is not None:
        return near
    # Not where it was: dark, or shoved by more than a profile's reach. An app with a black frame inside the
    # screen's own looks like a smaller screen; a shoved one keeps its size, and shines where there was no light.
    points, normals, moved = outline.offsets(outline.measure(pictures, wide=True), reference.edges_px)
    if int((moved > HOLD_PX).sum()) < OBSERVATIONS_MIN:
        return None
    far = basis.fit(points, normals, moved, scaled=False)
    return far if far is not None and basis.beyond_hold(far) else None


def _bed_offsets(now: dict[int, Points], reference: DriftReference) -> tuple[Points, Points, _Vector]:
    """Each corner twice: how far it moved right, and how far down."""
    both = [marker for marker in reference.bed_px if marker in now]
    then = np.array([reference.bed_px[m] for m in both], dtype=np.float64).reshape(-1, 2)
    seen = np.array([now[m] for m in both], dtype=np.float64).reshape(-1, 2)
    normals = np.repeat(np.eye(2), len(then), axis=0)
    return np.vstack([then, then]), normals, (seen - then).T.ravel()


def _report(basis: _Basis, bed: _Move | None, outline: _Move | None) -> DriftReport:
    phone = _known(basis, outline.less(bed)) if bed is not None and outline is not None else None
    shifts = [None if move is None else basis.shift_px(move) for move in (bed, outline, phone)]
    spreads = [None if move is None else basis.uncertainty_px(move) for move in (bed, outline, phone)]
    verdict = _verdict(shifts[0], shifts[1], shifts[2])
    largest = max((shift for shift in shifts if shift is not None), default=0.0)
    return DriftReport(
        verdict=verdict,
        bed_shift_px=shifts[0],
        outline_shift_px=shifts[1],
        phone_shift_px=shifts[2],
        uncertainty_px=(spreads[0], spreads[1], spreads[2]),
        warn=largest >= WARN_PX,
        hold=largest >= HOLD_PX,
        message=_message(verdict, shifts[0], shifts[1], shifts[2]),
    )


def _known(basis: _Basis, move: _Move | None) -> _Move | None:
    """The move, if it is known well enough: a large one need not be known to a fraction of a px."""
    if move is None or basis.uncertainty_px(move) <= UNCERTAINTY_MAX_PX or basis.beyond_hold(move):
        return move
    return None


def _verdict(bed: float | None, outline: float | None, phone: float | None) -> Verdict:
    if bed is not None and bed >= WARN_PX:
        apart = max(WARN_PX, PARALLAX_SHARE * bed)
        return "both_moved" if phone is not None and phone >= apart else "camera_moved"
    if phone is not None and phone >= WARN_PX:
        return "phone_moved"
    if outline is None:
        return "unmeasured"
    if outline >= WARN_PX:
        # Between the two limits of a bed that is all but still, most of it is the phone's.
        return "moved_not_told_apart"
    return "still"


_ADVICE: dict[Verdict, str] = {
    "still": "Nothing moved since the calibration",
    "camera_moved": "The camera moved: look at the board again (the hand's part stays true)",
    "phone_moved": "The phone moved in its place: calibrate camera and hand again",
    "both_moved": "Camera and phone moved: calibrate camera and hand again",
    "moved_not_told_apart": "Camera or phone moved, which of them is not told: calibrate camera and hand again, "
    "and see that the bed's markers are in view",
    "unmeasured": "Whether anything moved is not known: bring a bright page to the front, take the hand out of "
    "view, and see that the screen's sides and the bed's markers are not covered",
}


def _message(verdict: Verdict, bed: float | None, outline: float | None, phone: float | None) -> str:
    def told(name: str, shift: float | None) -> str:
        return f"{name} unmeasured" if shift is None else f"{name} {shift:.2f} px"

    parts = [told("bed markers", bed), told("screen outline", outline)]
    if phone is not None:
        parts.append(told("phone against the bed", phone))
    elif verdict == "camera_moved":
        parts.append("whether the phone moved as well is not known")
    return f"{_ADVICE[verdict]} ({', '.join(parts)}; warned from {WARN_PX} px, held from {HOLD_PX} px)."


def _quad(corners: Points) -> tuple[Pair, Pair, Pair, Pair]:
    a, b, c, d = ((float(x), float(y)) for x, y in corners)
    return a, b, c, d


def _require_pictures(pictures: Sequence[Image], camera: CameraModel) -> None:
    if not pictures:
        raise PictureRefused("no picture to look for moves in; take at least one")
    expected = (camera.image_height, camera.image_width, 3)
    for picture in pictures:
        if picture.shape != expected:
            raise PictureRefused(
                f"a picture to look for moves in is {picture.shape}, the camera model is for {expected}; "
                "set the camera back to the resolution of the calibration, or calibrate again"
            )
