"""The part of a picture that does not change: the bench under the lamp, the phone's body, what shines on its glass."""

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin import scenery
from edge_daemon.bench.twin.bed import bed_markers
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, Lens
from edge_daemon.bench.twin.picture_options import PictureOptions
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.view import Field, View, averaged

AMBIENT = 0.62
VIGNETTE = 0.16
# Reflections on the glass, in grey levels: a soft patch of the ceiling lamp.
VEIL_BASE, VEIL_LAMP = 7.0, 9.0
# The lens' own softness, as sigma in px of the sheets that the bench is drawn on.
SHEET_BLUR_PX = 0.8

Shade = npt.NDArray[np.float32]


def light(lens: Lens) -> Shade:
    """Vignetting, (720, 1280): 1 in the middle, falling with the square of the distance."""
    x = (np.arange(PICTURE_WIDTH_PX) - lens.cx_px) / (PICTURE_WIDTH_PX / 2)
    y = (np.arange(PICTURE_HEIGHT_PX) - lens.cy_px) / (PICTURE_WIDTH_PX / 2)
    return np.asarray(1.0 - VIGNETTE * (x[None, :] ** 2 + y[:, None] ** 2) / 1.32, dtype=np.float32)


def backdrop(
    truth: Truth, view: View, samples: int, shade: Shade, lit: Shade, options: PictureOptions
) -> Shade:
    """Grey levels without the display's light, (720, 1280, 3). lit: the share of each px that is display."""
    bench = _bench(truth, view, samples, options) * (AMBIENT * 1.35 * options.exposure * shade)[:, :, None]
    picture = bench * (1.0 - lit)[:, :, None] + (lit * _reflections(view, samples, options))[:, :, None]
    if options.blur_px > 0.0:
        picture = cv2.GaussianBlur(picture, (0, 0), options.blur_px)
    return np.asarray(picture, dtype=np.float32)


def lit_share(display_mm: Field, samples: int) -> Shade:
    """How much of each picture px is lit display: 1 inside, 0 outside, round corners, a smooth outline."""
    reach_x, reach_y = SCREEN_HEIGHT_MM / 2, SCREEN_WIDTH_MM / 2
    radius = scenery.SCREEN_RADIUS_MM
    dx = np.abs(display_mm[..., 0]) - (reach_x - radius)
    dy = np.abs(display_mm[..., 1]) - (reach_y - radius)
    outside = (
        np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0)) + np.minimum(np.maximum(dx, dy), 0.0) - radius
    )
    row, column = display_mm.shape[0] // 2, display_mm.shape[1] // 2
    sample_mm = float(np.hypot(*(display_mm[row, column + 1] - display_mm[row, column])))
    return averaged(np.clip(0.5 - outside / sample_mm, 0.0, 1.0).astype(np.float32), samples)


def _bench(truth: Truth, view: View, samples: int, options: PictureOptions) -> Shade:
    """Bed and phone's body as the lamp, behind on the right, shows them."""
    bed = _sampled(scenery.bed_sheet(bed_markers(truth), options.stray_board), view.bed_mm(), samples)
    shadow = _sampled(scenery.phone_shadow(), view.bed_of_phone_mm(), samples)
    body, cover = scenery.phone_sheet()
    surface = view.surface_mm()
    over = _sampled(cover, surface, samples)[:, :, None] / 255.0
    bench = bed * (shadow[:, :, None] / 255.0) * (1.0 - over) + _sampled(body, surface, samples) * over
    at = averaged(surface, samples)
    lamp = 1.0 + 0.0022 * at[..., 0] + 0.003 * at[..., 1]
    return np.asarray(bench * lamp[:, :, None], dtype=np.float32)


def _sampled(sheet: npt.NDArray[np.uint8], places_mm: Field, samples: int) -> Shade:
    scale = scenery.PX_PER_MM
    map_x = (places_mm[..., 0] + scenery.HALF_LENGTH_MM) * scale - 0.5
    map_y = (places_mm[..., 1] + scenery.HALF_WIDTH_MM) * scale - 0.5
    smooth = cv2.GaussianBlur(sheet, (0, 0), SHEET_BLUR_PX)
    seen = cv2.remap(smooth, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return averaged(seen.astype(np.float32), samples)


def _reflections(view: View, samples: int, options: PictureOptions) -> Shade:
    """What shines on the glass, in grey levels."""
    at = averaged(view.surface_mm(), samples)
    lamp = np.exp(-((at[..., 0] - 42.0) ** 2 / 900.0 + (at[..., 1] - 14.0) ** 2 / 420.0))
    shine = (VEIL_BASE + VEIL_LAMP * lamp) * options.exposure
    if options.glare is not None:
        glare = options.glare
        off_x = at[..., 0] - (glare.y_mm - SCREEN_HEIGHT_MM / 2)
        off_y = at[..., 1] - (glare.x_mm - SCREEN_WIDTH_MM / 2)
        shine = shine + glare.levels * np.exp(-(off_x**2 + off_y**2) / (2.0 * glare.reach_mm**2))
    return np.asarray(shine, dtype=np.float32)
