"""What a calibration means for pictures: where the screen is in them, and how they are shown."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import cv2
import numpy as np

from calibration.errors import CalibrationError
from calibration.result import DeviceCalibration
from calibration.targets import draw_charuco, draw_dots
from edge_daemon.cameras.imaging import Grey
from edge_daemon.cameras.orientation import TURNS, OrientationFinder, OrientationFound
from edge_daemon.cameras.rectify import RectifiedPicture, Rectifier
from edge_daemon.cameras.settle import MAX_GIVEN_SIGMA, Polygon
from edge_daemon.contract import Orientation
from edge_daemon.contract.actions import GRID_MAX
from edge_daemon.contract.frames import ImageFormat
from edge_daemon.devices.orientation import to_portrait

LONG_SIDE_PX = 1000
"""Of the rectified picture: about what a 1280-pixel camera resolves along the long side of a phone."""
STATUS_BAR_SHARE = 0.035
"""Of the screen's long side: the strip at the top whose clock and icons change without the page changing."""
_ORIENTATIONS: tuple[Orientation, ...] = get_args(Orientation)


@dataclass
class Sight:
    """Made once per calibration, it costs some 100 ms.

    screen: its outline, raw camera px. status_bars: by the orientation of the screen, raw camera px.
    """

    calibration: DeviceCalibration
    rectifier: Rectifier
    finder: OrientationFinder
    screen: Polygon
    status_bars: Mapping[Orientation, Polygon] = field(default_factory=dict)
    _earlier: threading.local = field(default_factory=threading.local)
    """By orientation, each thread's last picture: it is a file already, so the next may be written over it."""

    @classmethod
    def of(cls, calibration: DeviceCalibration) -> "Sight":
        """Raises ValueError for a calibration that no picture can be shown by."""
        camera, screen = calibration.camera.model, calibration.screen
        noise = calibration.camera.noise_sigma
        if noise is not None and not 0.0 <= noise <= MAX_GIVEN_SIGMA:
            raise ValueError(
                f"its camera's noise was measured as {noise:.2f} grey levels, more than {MAX_GIVEN_SIGMA:g}: a still "
                "screen could not be told; look at light and exposure, then calibrate again"
            )
        width = round(LONG_SIDE_PX * screen.width_mm / screen.height_mm)
        map_x, map_y = camera.rectify_maps(screen, width, LONG_SIDE_PX)
        return cls(
            calibration=calibration,
            rectifier=Rectifier(map_x, map_y, source_size=(camera.image_width, camera.image_height)),
            finder=OrientationFinder(_pages(calibration)),
            screen=outline_px(calibration),
            status_bars={
                orientation: _status_bar_px(calibration, orientation) for orientation in _ORIENTATIONS
            },
        )

    def show(
        self, jpeg: bytes, image_format: ImageFormat, orientation: Orientation
    ) -> tuple[RectifiedPicture, OrientationFound]:
        """The screen as it is read in this orientation, and the orientation that the picture itself shows.

        Blocks for tens of milliseconds. Raises BadPicture.
        """
        earlier = self._earlier.__dict__
        image = self.rectifier.rectify(jpeg, turns=TURNS[orientation], into=earlier.get(orientation))
        earlier[orientation] = image
        found = self.finder.find(image, orientation)
        return self.rectifier.encoded(image, image_format), found


def outline_px(calibration: DeviceCalibration) -> Polygon:
    """The screen's outline in raw camera px, clockwise from the top left of the portrait screen."""
    seen = calibration.camera.model.project(calibration.screen.outline_mm())
    return [(float(x), float(y)) for x, y in seen]


def _status_bar_px(calibration: DeviceCalibration, orientation: Orientation) -> Polygon:
    screen = calibration.screen
    lying = orientation in ("landscape_left", "landscape_right")
    tall_mm = STATUS_BAR_SHARE * screen.height_mm
    tall = tall_mm / (screen.width_mm if lying else screen.height_mm) * GRID_MAX
    corners = [(0.0, 0.0), (GRID_MAX, 0.0), (GRID_MAX, tall), (0.0, tall)]
    portrait = np.array([to_portrait(x, y, orientation) for x, y in corners])
    seen = calibration.camera.model.project(screen.grid_to_mm(portrait))
    return [(float(x), float(y)) for x, y in seen]


def _pages(calibration: DeviceCalibration) -> dict[Orientation, Sequence[Grey]]:
    """The calibration's pages as this screen shows them in each turn; none for a screen they do not fit."""
    screen = calibration.screen
    try:
        return {
            turn: [
                _grey(draw_charuco(screen.width_px, screen.height_px, turn)),
                _grey(
                    draw_dots(screen.width_px, screen.height_px, screen.width_mm, screen.height_mm, turn=turn)
                ),
            ]
            for turn in _ORIENTATIONS
        }
    except CalibrationError:
        # Such a screen was calibrated by other pages; its system bars may still tell.
        return {}


def _grey(page: Grey) -> Grey:
    return np.asarray(cv2.cvtColor(page, cv2.COLOR_BGR2GRAY), np.uint8)
