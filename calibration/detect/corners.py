"""Sub-pixel places of chessboard corners.

OpenCV's own ChArUco corners scatter by 0.04 to 0.09 px on rendered boards. Smoothed first, and with a window that
ends where a marker begins, cornerSubPix scatters by 0.02 to 0.05 px on the same boards, without a common shift.
"""

import cv2
import numpy as np
import numpy.typing as npt

from calibration.targets import MARKER_SHARE, Points

# The edges of a sharp picture are one px wide: sampled there, the gradients lean to the nearest px. Smoothed by
# this much they do not, and noise falls by five. Wider, the marker's edges reach into the window.
SMOOTH_PX = 1.5
# The window of a small board is a few px wide; the smoothing must stay well inside it.
SMOOTH_PER_WINDOW = 0.4
# White between a corner and the nearest marker, as a share of the square: nothing else may lie in the window.
WINDOW_SHARE = (1.0 - MARKER_SHARE) / 2.0
WINDOW_MIN_PX = 2
# cornerSubPix stops at whichever comes first.
STEPS, STEP_PX = 50, 1e-3


def refine(grey: npt.NDArray[np.uint8], corners_px: Points, square_px: float) -> Points:
    """Corners (N, 2) found to about a px, to where they are; camera px. square_px: a square's edge in the picture."""
    window = max(WINDOW_MIN_PX, int(WINDOW_SHARE * square_px))
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), min(SMOOTH_PX, SMOOTH_PER_WINDOW * window))
    start = corners_px.astype(np.float32).reshape(-1, 1, 2)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, STEPS, STEP_PX)
    found = cv2.cornerSubPix(smooth, start.copy(), (window, window), (-1, -1), criteria)
    return np.asarray(found, dtype=np.float64).reshape(-1, 2)
