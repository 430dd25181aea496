"""What lies on the rig's bed around the phone: the printed markers that a technician stuck where the camera sees them.

The places are part of the hidden truth: a calibration remembers the markers in camera px and never needs to know
where on the bed they are.
"""

from dataclasses import dataclass
from math import hypot, radians

import numpy as np
import numpy.typing as npt

from calibration.targets import BED_MARKER_IDS, BED_MARKER_MM
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Points, project, unproject
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

# The bed lies below the glass by a phone's thickness.
BED_Z_MM = -8.5
# Screen to the outside of the body: this is a phone with thin, even bezels.
BEZEL_MM = 2.6
FRAME_MM = 1.0
# The white paper that a marker is printed on.
PAPER_MM = BED_MARKER_MM + 4.0
# The camera must see this much white around the black square; the rest of the paper may reach under the phone or out
# of the picture. And so much lies between two papers.
WHITE_MM, PAPER_GAP_MM = 0.6, 1.0
# That white keeps this far from the picture's edge, px: a paper that ends just inside the edge is one that the common
# marker detector (OpenCV's minDistanceToBorder) drops together with the marker on it; a technician who sees that on
# his monitor sticks it elsewhere.
CUT_PX, WHOLE_PX = (2.0, 4.5), 16.0
# The corner posts of the cradle (centre beyond the body's corner, radius).
POST_INSET_MM, POST_RADIUS_MM = 0.4, 3.5


@dataclass(frozen=True)
class BedMarker:
    """One marker: its middle in world mm on the bed, and how it is turned."""

    ident: int
    x_mm: float
    y_mm: float
    turn_rad: float


def posts_mm() -> list[tuple[float, float]]:
    """Where the cradle's four corner posts stand, world mm."""
    half_length = SCREEN_HEIGHT_MM / 2 + BEZEL_MM + FRAME_MM - POST_INSET_MM
    half_width = SCREEN_WIDTH_MM / 2 + BEZEL_MM + FRAME_MM - POST_INSET_MM
    return [(sx * half_length, sy * half_width) for sx in (-1, 1) for sy in (-1, 1)]


def bed_markers(truth: Truth) -> tuple[BedMarker, ...]:
    """The rig's four markers, far apart where the camera's view allows it. Raises LookupError without room for four."""
    rng = truth.stream(9)
    turns = [radians(float(turn)) for turn in rng.uniform(-2.0, 2.0, len(BED_MARKER_IDS))]
    chosen = _far_apart(_seen_places(truth, rng))
    if len(chosen) < len(BED_MARKER_IDS):
        raise LookupError(f"seed {truth.seed}: the camera sees no room for {len(BED_MARKER_IDS)} bed markers")
    return tuple(
        BedMarker(ident, float(place[0]), float(place[1]), turn)
        for ident, place, turn in zip(BED_MARKER_IDS, chosen, turns, strict=True)
    )


def _far_apart(places: Points) -> list[npt.NDArray[np.float64]]:
    """Up to four of the places: the first in a far corner of the view, each next one far from those before."""
    chosen: list[npt.NDArray[np.float64]] = []
    for _ in BED_MARKER_IDS:
        free = [place for place in places if all(_apart(place, other) for other in chosen)]
        if free:
            anchors = chosen or [np.zeros(2)]
            chosen.append(max(free, key=lambda place: min(hypot(*(place - other)) for other in anchors)))
    return chosen


def _apart(place: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    return bool(np.abs(place - other).max() >= PAPER_MM + PAPER_GAP_MM)


def _seen_places(truth: Truth, rng: np.random.Generator) -> Points:
    """Middles of markers that the camera sees whole, shape (N, 2), a little irregular."""
    x, y = np.meshgrid(np.arange(-92.0, 93.0, 1.0), np.arange(-56.0, 57.0, 1.0))
    places = np.column_stack([x.ravel(), y.ravel()]) + rng.uniform(-0.4, 0.4, (x.size, 2))
    half = BED_MARKER_MM / 2 + WHITE_MM + 0.1
    margin_px = np.full(len(places), np.inf)
    for corner in ((-half, -half), (half, -half), (half, half), (-half, half)):
        on_bed = np.column_stack([places + corner, np.full(len(places), BED_Z_MM)])
        seen = project(truth.camera.lens, truth.camera.pose, on_bed)
        room = np.minimum(seen, (PICTURE_WIDTH_PX - 1, PICTURE_HEIGHT_PX - 1) - seen).min(axis=1)
        margin_px = np.minimum(margin_px, room)
    # The phone hides what lies behind its edge: look at where the line of sight passes the glass's height.
    middles = project(
        truth.camera.lens, truth.camera.pose, np.column_stack([places, np.full(len(places), BED_Z_MM)])
    )
    passing = np.abs(unproject(truth.camera.lens, truth.camera.pose, middles))
    beyond = half + BEZEL_MM + FRAME_MM
    free = (passing[:, 0] > SCREEN_HEIGHT_MM / 2 + beyond) | (passing[:, 1] > SCREEN_WIDTH_MM / 2 + beyond)
    for post in posts_mm():
        nearest = np.maximum(np.abs(places - post) - half, 0.0)
        free &= np.hypot(nearest[:, 0], nearest[:, 1]) > POST_RADIUS_MM
    cut = (margin_px >= CUT_PX[0]) & (margin_px <= CUT_PX[1])
    return np.asarray(places[free & (cut | (margin_px >= WHOLE_PX))], dtype=np.float64)
