"""The display's own pixels behind the camera's: red, green and blue stripes in a black matrix, sampled each px.

The stripes have less than half a camera px; what is left of them after the lens' blur and a sensor px' own area
shows as fringes, at the places where the sampling puts them.
"""

import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.view import Field, screen_px

LENS_BLUR_SIGMA = 0.55
# Light of a stripe of a third of a px, less the black matrix: contrast of its first harmonic across and along.
ACROSS, ALONG = 1.7, 0.2
# Blue, green and red stripes lie side by side.
STRIPE_PHASE = np.array([1.0 / 3.0, 0.0, -1.0 / 3.0])


def fringes(display_mm: Field, moire: float | None, blur_px: float) -> npt.NDArray[np.float32]:
    """Gain of each px and channel, (rows, columns, 3), for the display points at the px' centres.

    moire: contrast to show instead of what lens and sensor let through.
    """
    x_px, y_px = screen_px(display_mm)
    if moire is None:
        across = ACROSS * _let_through(x_px, blur_px)
        along = ALONG * _let_through(y_px, blur_px)
    else:
        across, along = moire, moire * ALONG / ACROSS
    if max(across, along) < 1e-4:
        return np.ones((*x_px.shape, 3), dtype=np.float32)
    stripes = across * np.cos(2.0 * np.pi * (x_px[:, :, None] - STRIPE_PHASE))
    lines = along * np.cos(2.0 * np.pi * y_px)[:, :, None]
    return np.asarray((1.0 + stripes) * (1.0 + lines), dtype=np.float32)


def _let_through(place_px: npt.NDArray[np.float32], blur_px: float) -> float:
    """Share of the stripes' contrast that survives a Gaussian blur and the mean over a square sensor px."""
    row, column = place_px.shape[0] // 2, place_px.shape[1] // 2
    slope = np.gradient(place_px[row - 1 : row + 2, column - 1 : column + 2].astype(np.float64))
    per_px = float(np.hypot(slope[0][1, 1], slope[1][1, 1]))
    sigma = np.hypot(LENS_BLUR_SIGMA, blur_px)
    return float(np.exp(-2.0 * (np.pi * sigma * per_px) ** 2) * abs(np.sinc(per_px)))
