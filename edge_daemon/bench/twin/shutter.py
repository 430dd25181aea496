"""Rows that open one after another over a display that flickers: how bright each row comes out."""

import numpy as np
import numpy.typing as npt

from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX
from edge_daemon.bench.twin.truth import Truth

# Less than this, of one, is not worth a multiplication.
FLAT = 0.002

Rows = npt.NDArray[np.float32]


class RollingShutter:
    """The row-wise exposure of one camera on one display's pulse-width modulation."""

    def __init__(self, truth: Truth, pwm_depth: float | None = None) -> None:
        """pwm_depth: None takes the phone's own."""
        display = truth.display
        self._hz = display.pwm_hz
        self._depth = display.pwm_depth if pwm_depth is None else pwm_depth
        self._duty = display.pwm_duty
        self._phase = display.pwm_phase
        self._open_s = truth.camera.exposure_ms / 1e3
        self._row_s = display.readout_ms / 1e3 / PICTURE_HEIGHT_PX
        self.flat = bool(np.ptp(self.rows(0.0)) < FLAT)
        """Whether the rows come out alike."""

    def phase(self, begin_ns: int) -> float:
        """Where in its period the display's light is when the first row opens, 0 to 1."""
        return (begin_ns / 1e9 * self._hz + self._phase) % 1.0

    def rows(self, phase: float) -> Rows:
        """The gain of each row, (720,), 1 on average: the light over its exposure against the light's mean."""
        rows = np.arange(PICTURE_HEIGHT_PX, dtype=np.float64)
        opened = np.asarray(phase + rows * self._row_s * self._hz, dtype=np.float64)
        periods = self._open_s * self._hz
        closed = np.asarray(opened + periods, dtype=np.float64)
        dimmed = self._dim_until(closed) - self._dim_until(opened)
        gain = (1.0 - self._depth * dimmed / periods) / (1.0 - self._depth * (1.0 - self._duty))
        return np.asarray(gain, dtype=np.float32)

    def _dim_until(self, periods: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """For how many periods the light was dim, from time 0 to `periods`."""
        whole = np.floor(periods)
        return np.asarray(
            whole * (1.0 - self._duty) + np.maximum(periods - whole - self._duty, 0.0), dtype=np.float64
        )
