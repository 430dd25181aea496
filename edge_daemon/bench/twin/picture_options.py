"""What a picture may have wrong with it, and how carefully it is rendered."""

from dataclasses import dataclass
from typing import Literal

from edge_daemon.bench.twin.scenery import StrayBoard

PictureQuality = Literal["realtime", "full"]
"""Both have the same geometry. "realtime" is cheap enough for 15 pictures a second beside a daemon on two cores: one
sample a px from a half-size screen. "full" takes 2 x 2 samples a px from the whole screen, blurs and averages them,
and keeps fractions of a grey level until the noise is added."""


@dataclass(frozen=True)
class Glare:
    """A lamp's reflection on the glass: its middle in screen mm, its reach (sigma) in mm, its height in grey levels."""

    x_mm: float = 20.0
    y_mm: float = 50.0
    reach_mm: float = 12.0
    levels: float = 200.0


@dataclass(frozen=True)
class PictureOptions:
    """Nothing is wrong by default.

    blur_px: out of focus by a Gaussian of this sigma, on top of the lens' own. moire: contrast of the fringes between
    the display's pixels and the sensor's, 0 to 1; None takes what lens and sensor let through, which is nothing for
    the lenses drawn here. pwm_depth: how deep the display's light dips, None takes the phone's own. exposure: factor
    on all light. jpeg_quality: 0 to 100, OpenCV's scale.
    """

    blur_px: float = 0.0
    moire: float | None = None
    pwm_depth: float | None = None
    exposure: float = 1.0
    glare: Glare | None = None
    stray_board: StrayBoard | None = None
    jpeg_quality: int = 90


PLAIN = PictureOptions()
