"""The markers on the rig's bed: their corners by id, averaged over pictures."""

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect.markers import Markers
from calibration.targets import BED_DICTIONARY, BED_MARKER_IDS, Image, Points

# Profiles across a side begin and end this share of the side from its corners ...
ALONG = (0.12, 0.88)
# ... and reach this share of it to both sides, two px at least: 0.56 mm of a marker of 8 mm. The white paper may
# reach under the phone or out of the picture beyond that.
REACH_SHARE = 0.07
REACH_MIN_PX = 2.0
STEP_PX = 0.25
# So short a profile must have its edge in the middle, or the blur's tail is cut off on one side.
ROUNDS = 3
# White paper around black print differs by this many levels at least.
RISE_MIN = 25.0

_Plane = npt.NDArray[np.float32]


def bed_corners(pictures: Sequence[Image]) -> dict[int, Points]:
    """Corners (4, 2) in camera px of each bed marker seen in most of the pictures."""
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(BED_DICTIONARY))
    seen: dict[int, list[Points]] = {}
    for picture in pictures:
        grey = np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
        corners, ids, _ = detector.detectMarkers(grey)
        markers = Markers.found(corners, ids)
        chosen = markers.only(np.isin(markers.ids, BED_MARKER_IDS))
        light = grey.astype(np.float32)
        for marker, quad in zip(chosen.ids, chosen.corners, strict=True):
            # The same id twice in one picture is a sheet left in view: neither is the bed's for sure.
            corners_px = _refined(light, quad.astype(np.float64)) if _count(chosen, marker) == 1 else None
            if corners_px is not None:
                seen.setdefault(int(marker), []).append(corners_px)
    return {
        marker: np.asarray(np.mean(quads, axis=0), dtype=np.float64)
        for marker, quads in sorted(seen.items())
        if 2 * len(quads) > len(pictures)
    }


def _count(markers: Markers, marker: int) -> int:
    return int((markers.ids == marker).sum())


def _refined(light: _Plane, quad: Points) -> Points | None:
    """Where the lines through a marker's four sides meet, (4, 2); None where a side has no contrast.

    A line is the mean of a whole side's samples; of a corner itself there are a few px only.
    """
    for _ in range(ROUNDS):
        lines = [_side(light, quad[i], quad[(i + 1) % 4]) for i in range(4)]
        sides = [line for line in lines if line is not None]
        if len(sides) < 4:
            return None
        # A line is (nx, ny, -c); two of them meet at their cross product. Corner i lies between sides i - 1 and i.
        meets = np.array([np.cross(sides[i - 1], sides[i]) for i in range(4)])
        quad = meets[:, :2] / meets[:, 2:]
    return quad


def _side(light: _Plane, start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> Points | None:
    """The line (nx, ny, -c) along the edge between black print and white paper."""
    length = float(np.linalg.norm(end - start))
    tangent = (end - start) / length
    normal = np.array([tangent[1], -tangent[0]])  # out of a quad whose corners run clockwise
    half = max(REACH_MIN_PX, REACH_SHARE * length)
    reach = np.arange(-half + STEP_PX / 2.0, half, STEP_PX)
    along = np.linspace(*ALONG, max(8, int((ALONG[1] - ALONG[0]) * length)))
    on_edge = start + along[:, None] * (end - start)
    px = (on_edge[:, None] + reach[None, :, None] * normal).astype(np.float32)
    profiles = cv2.remap(light, px[..., 0], px[..., 1], cv2.INTER_LINEAR).astype(np.float64)
    ends = max(2, int(1.0 / STEP_PX))
    low, high = float(np.median(profiles[:, :ends])), float(np.median(profiles[:, -ends:]))
    if high - low < RISE_MIN:
        return None
    # The area under a profile says where its rise is, whatever the blur, and is linear in the noise.
    offset = len(reach) * STEP_PX / 2.0 - STEP_PX * ((profiles - low) / (high - low)).sum(axis=1)
    slope, middle = np.polyfit(along - 0.5, offset, 1)
    place = (start + end) / 2.0 + middle * normal
    turned = normal - slope / length * tangent
    turned /= np.linalg.norm(turned)
    return np.array([turned[0], turned[1], -float(turned @ place)])
