"""Whether a picture of the board is good enough to measure in, and if not, why not and what to do."""

from dataclasses import dataclass

import cv2
import msgspec
import numpy as np

from calibration.detect import patterns
from calibration.detect.board import BoardView
from calibration.detect.board_light import BoardLight, Samples, Vector
from calibration.errors import BadExposure, Banding, Blurred, Glare, Moire, PictureRefused
from calibration.targets import MARKER_SHARE, CharucoTarget, Image

# Above this the sensor, or its JPEG, has clipped.
CLIPPED_LEVEL = 253.5
# Two edge directions, or two parts of the board, that differ by this much are not equally unfocused.
UNEQUAL_BLUR = 1.4
# Crossings are interpolated between samples; a fifth of a px is finer than any edge.
PROFILE_STEP_PX = 0.2


@dataclass(frozen=True)
class CheckLimits:
    """Beyond these a picture is refused."""

    edge_width_max_px: float = 5.0
    """10-90 % rise, 2.56 sigma of a Gaussian blur: at 5 px board corners still scatter by 0.04 px only."""
    edge_width_max_squares: float = 0.095
    """The same over a square's edge: the white around a marker is 0.13 of it, and with it goes the detection of
    markers: at 0.10 every third corner is lost."""
    white_min: float = 100.0
    """Half of what a well-exposed picture has: noise, and the JPEG's steps, count double."""
    contrast_min: float = 70.0
    """White less black, levels: a veil over everything."""
    saturated_share_max: float = 0.02
    """Of the white. Clipped white hides bands, glare and moiré, and swells over the black."""
    banding_max: float = 0.05
    """Amplitude over the level. Two pictures then differ by up to 0.10, less than the faintest dot (0.12)."""
    moire_max: float = 0.03
    """Amplitude over the level; sound pictures measure up to 0.007. Waves of three px, and long ones on a small
    board, are measured up to a third too low."""
    glare_lift: float = 0.15
    """Black squares brighter than the median black by this share of the contrast lie under a reflection."""
    glare_share_max: float = 0.01
    """Of the board's area: a reflection the size of one square; corners under it are lost or pulled."""


LIMITS = CheckLimits()


class PictureChecks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the checks of the calibration's board pictures measured.

    edge_width_px: 10-90 % rise of the board's edges, the median over its parts; edge_width_worst_px: of the worst
    part and direction. white_level, black_level: of 255. saturated_share: of the white squares' px. banding:
    amplitude of bands of rows over the white level. moire: the same of other periodic patterns. glare_share: of
    the board's area.
    """

    edge_width_px: float
    edge_width_worst_px: float
    white_level: float
    black_level: float
    saturated_share: float
    banding: float
    moire: float
    glare_share: float


def check_board_picture(
    picture: Image, view: BoardView, target: CharucoTarget, limits: CheckLimits = LIMITS
) -> PictureChecks:
    """Measure a raw BGR picture in which `view` was found.

    Raises BadExposure, Glare, Blurred, Banding or Moire, the first of them that applies, with the number and what
    to do; and FitRefused for a view of fewer than four corners.
    """
    light = BoardLight(np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), dtype=np.uint8), view, target)
    black, white = light.black(), light.white()
    white_level, black_level = float(np.median(white.value)), float(np.median(black.value))
    saturated = float((white.value > CLIPPED_LEVEL).mean())
    glare, place = _glare(black, black_level, limits.glare_lift * (white_level - black_level))
    # A reflection clips white as well; in the dark, noise alone lifts black.
    refusal = (
        _underexposed(white_level, black_level, limits)
        or _glare_refusal(glare, place, target, limits)
        or _overexposed(saturated, limits)
    )
    if refusal is not None:
        raise refusal
    widths = _EdgeWidths.measured(light, white_level, black_level)
    rest = patterns.unevenness(white)
    banding, rows = patterns.row_bands(white, rest)
    moire, period = patterns.moire(white, patterns.without_rows(white, rest))
    refusal = _blur_refusal(widths, light.square_px, limits) or _pattern_refusal(
        banding, rows, moire, period, limits
    )
    if refusal is not None:
        raise refusal
    return PictureChecks(
        edge_width_px=widths.median_px,
        edge_width_worst_px=widths.worst_px,
        white_level=white_level,
        black_level=black_level,
        saturated_share=saturated,
        banding=banding,
        moire=moire,
        glare_share=glare,
    )


def _overexposed(saturated: float, limits: CheckLimits) -> PictureRefused | None:
    if saturated <= limits.saturated_share_max:
        return None
    return BadExposure(
        f"{saturated:.0%} of the white squares are clipped, the limit is {limits.saturated_share_max:.0%}; "
        "shorten the exposure, lower the gain, or dim the screen until white is at 200 to 240 of 255"
    )


def _underexposed(white: float, black: float, limits: CheckLimits) -> PictureRefused | None:
    if white < limits.white_min:
        return BadExposure(
            f"white squares are at level {white:.0f} of 255, at least {limits.white_min:.0f} is needed; "
            "raise the screen's brightness or lengthen the exposure"
        )
    if white - black < limits.contrast_min:
        return BadExposure(
            f"white squares are at level {white:.0f} and black ones at {black:.0f}, at least "
            f"{limits.contrast_min:.0f} levels between them are needed; shade the screen from room light, raise "
            "its brightness, and clean lens and glass"
        )
    return None


def _glare(black: Samples, level: float, lift: float) -> tuple[float, Vector]:
    """The share of black places that are lifted, and their middle on the board in squares."""
    lifted = black.value > level + lift
    place = black.squares[lifted].mean(axis=0) if lifted.any() else np.zeros(2)
    return float(lifted.mean()), np.asarray(place, dtype=np.float64)


def _glare_refusal(
    share: float, place: Vector, target: CharucoTarget, limits: CheckLimits
) -> PictureRefused | None:
    if share <= limits.glare_share_max:
        return None
    across, down = place / [target.squares_x, target.squares_y]
    return Glare(
        f"a reflection covers {share:.1%} of the board, the limit is {limits.glare_share_max:.1%}, around "
        f"{across:.0%} of the page's width and {down:.0%} of its height; move or shade the lamp it comes from"
    )


@dataclass(frozen=True)
class _EdgeWidths:
    """10-90 % widths in px by part of the board (3 x 3, row by row) and by the way the edges run (2,)."""

    px: Vector
    parts: tuple[tuple[int, int], ...] = tuple((i, j) for i in range(3) for j in range(3))

    @classmethod
    def measured(cls, light: BoardLight, white: float, black: float) -> "_EdgeWidths":
        margin = (1.0 - MARKER_SHARE) / 2.0 * light.square_px
        reach = np.arange(-0.22 * light.square_px, 0.8 * margin, PROFILE_STEP_PX)
        values, runs_x, middles = light.edge_profiles(reach)
        profiles = np.median(values, axis=1)
        third = np.minimum((middles - middles.min(axis=0)) / np.ptp(middles, axis=0) * 3.0, 2.0).astype(int)
        widths = np.full((9, 2), np.nan)
        for number, (row, column) in enumerate(cls.parts):
            here = (third[:, 1] == row) & (third[:, 0] == column)
            for way, along_x in enumerate((True, False)):
                chosen = here & (runs_x == along_x)
                if chosen.any():
                    widths[number, way] = _rise_px(reach, np.median(profiles[chosen], axis=0))
        return cls(widths)

    @property
    def median_px(self) -> float:
        return float(np.nanmedian(self.px))

    @property
    def worst_px(self) -> float:
        return float(np.nanmax(self.px))


def _rise_px(reach: Vector, profile: Vector) -> float:
    """From 10 to 90 % of the rise. What blur leaves of the white plateau counts as its height."""
    low, high = float(np.median(profile[: len(profile) // 3])), float(profile.max())
    unit = (profile - low) / max(high - low, 1e-6)
    top = int(np.argmax(unit >= 0.9))
    # The last crossing before the top: noise in the black must not count.
    under = np.flatnonzero(unit[:top] <= 0.1)
    bottom = int(under[-1]) if len(under) else 0

    def crossing(index: int, level: float) -> float:
        below, above = unit[index], unit[index + 1]
        return float(reach[index] + (level - below) / max(above - below, 1e-6) * (reach[1] - reach[0]))

    return crossing(max(top - 1, 0), 0.9) - crossing(bottom, 0.1)


def _blur_refusal(widths: _EdgeWidths, square_px: float, limits: CheckLimits) -> PictureRefused | None:
    limit = min(limits.edge_width_max_px, limits.edge_width_max_squares * square_px)
    if widths.worst_px <= limit:
        return None
    by_way = np.nanmedian(widths.px, axis=0)
    by_part = np.nanmax(widths.px, axis=1)
    if float(by_way.max()) > UNEQUAL_BLUR * float(by_way.min()):
        # Edges along the page's width are blurred by what moves along its height.
        way = "height" if by_way[0] > by_way[1] else "width"
        cause = (
            f"smeared along the page's {way}: let the rig come to rest, fix the camera, shorten the exposure"
        )
    elif float(np.nanmax(by_part)) > UNEQUAL_BLUR * float(np.nanmin(by_part)):
        row, column = widths.parts[int(np.nanargmax(by_part))]
        where = f"{('upper', 'middle', 'lower')[row]} {('left', 'middle', 'right')[column]}"
        cause = f"sharp elsewhere, worst in the page's {where}: turn the camera square to the screen, or close its iris"
    else:
        cause = "equally everywhere: turn the focus ring until the squares are sharp, and wipe the lens"
    return Blurred(
        f"the board's edges rise over {widths.worst_px:.1f} px, the limit is {limit:.1f} px; the picture is {cause}"
    )


def _pattern_refusal(
    banding: float, rows: float, moire: float, period: float, limits: CheckLimits
) -> PictureRefused | None:
    if banding > limits.banding_max:
        return Banding(
            f"bands of {rows:.0f} rows change the brightness by {banding:.1%} either way, the limit is "
            f"{limits.banding_max:.0%}; set the exposure to a multiple of the period at which the display or the "
            "lamp flickers (240 Hz: 4.17 ms), or raise the screen's brightness to full. Bands that stand still from "
            "picture to picture are moiré: change the camera's distance a little"
        )
    if moire > limits.moire_max:
        return Moire(
            f"a pattern of {period:.0f} px changes the brightness by {moire:.1%} either way, the limit is "
            f"{limits.moire_max:.0%}: the display's px beat with the camera's; change the camera's distance or turn "
            "it by a few degrees"
        )
    return None
