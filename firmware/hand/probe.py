"""Finding the glass: the tip goes down step by step until its drive feels something.

Contact is a load, or a lag of the drive behind its setpoint, above what it was in free air at hover. One reading
proves nothing: a second one at the same place has to agree.
"""

from firmware import wire

# Readings in free air that make the baseline.
BASELINE_READINGS = 4
# How much above the baseline is contact, unless the board's configuration says otherwise. A sprung tip of
# 1 N/mm gives a small servo some 3 % of load in 0.1 mm.
LOAD_RISE_PERMILLE = 30
LAG_RISE_UM = 150
# From the end of a step to the reading: the drive has come to rest, the spring has stopped swinging.
SETTLE_US = 30000
# A drive that has not answered for so long never will.
READING_LATE_US = 250000
# The tip goes down at this share of the top speed.
SPEED_SHARE = 0.1


class Probe:
    """One search. next_z() and take() are called in turn; it moves nothing itself."""

    def __init__(self, load_rise: int = LOAD_RISE_PERMILLE, lag_rise_um: int = LAG_RISE_UM) -> None:
        self._load_rise = load_rise
        self._lag_rise_um = lag_rise_um
        self._lowest_z = 0
        self._step_um = 0
        self._readings = 0
        self._free_load = 0
        self._free_lag = 0
        self._is_suspected = False
        self.z_um = 0
        self.touched = False
        self.finished = False

    def begin(self, hover_z: int, lowest_z: int, step_um: int) -> None:
        """Search from hover_z down to lowest_z."""
        self._lowest_z = lowest_z
        self._step_um = step_um
        self._readings = 0
        self._free_load = self._free_lag = 0
        self._is_suspected = False
        self.z_um = hover_z
        self.touched = False
        self.finished = False

    def take(self, z_um: int, sensed_z_um: int, load: int) -> bool:
        """A reading with the setpoint at z_um. True: go on to next_z(); False: read once more, or finished."""
        lag = sensed_z_um - z_um
        if self._readings < BASELINE_READINGS:
            self._readings += 1
            self._free_load += load
            self._free_lag += lag
            return self._readings == BASELINE_READINGS
        # Sums of BASELINE_READINGS readings are compared: no rounding, no division.
        load_rise = abs(load * BASELINE_READINGS - self._free_load)
        lag_rise = lag * BASELINE_READINGS - self._free_lag
        feels = (
            load_rise >= self._load_rise * BASELINE_READINGS
            or lag_rise >= self._lag_rise_um * BASELINE_READINGS
        )
        if feels and not self._is_suspected:
            self._is_suspected = True
            return False
        self._is_suspected = False
        if feels:
            self.touched = self.finished = True
            self.z_um = sensed_z_um
        elif z_um <= self._lowest_z:
            self.finished = True
            self.z_um = z_um
        return not self.finished

    def next_z(self, z_um: int) -> int:
        """The setpoint below z_um; the last one is lowest_z itself."""
        return max(self._lowest_z, z_um - self._step_um)

    def data(self) -> bytes:
        """DONE's data."""
        return wire.pack_probe_data(self.touched, self.z_um)
