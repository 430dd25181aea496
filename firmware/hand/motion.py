"""Time-optimal straight-line moves under a speed and an acceleration limit.

Units: µm and µs, so a speed is µm/µs (1 µm/µs = 1 m/s) and an acceleration µm/µs² (1 mm/s² = 1e-9 µm/µs²).
A move starts and ends at rest. Its speed is a trapezoid, or a triangle where the way is too short to
reach the top speed: the time-optimal (bang-bang) solution of a double integrator with bounded speed, see
Biagiotti & Melchiorri, "Trajectory Planning for Automatic Machines and Robots", 2008, section 3.2.

The microcontroller's floats have 24 bits: times count from the start of the move, and the formulas avoid
differences of large numbers.
"""

import math


def speed_from_mm_s(v_mm_s: float) -> float:
    """mm/s as µm/µs."""
    return v_mm_s * 1e-3


def acceleration_from_mm_s2(a_mm_s2: float) -> float:
    """mm/s² as µm/µs²."""
    return a_mm_s2 * 1e-9


def shortest_us(length_um: float, v_max: float, a_max: float) -> float:
    """Least time in µs from rest to rest: L/v + v/a, or 2·sqrt(L/a) where v is not reached."""
    if length_um * a_max <= v_max * v_max:
        return 2.0 * math.sqrt(length_um / a_max)
    return length_um / v_max + v_max / a_max


def speed_for(length_um: float, duration_us: float, a_max: float) -> float:
    """The constant speed that covers the way in exactly this time with ramps at a_max.

    The smaller root of L = v·(T - v/a), written so that it does not cancel. The time must not be shorter
    than shortest_us(): ask that first.
    """
    rest = duration_us * duration_us - 4.0 * length_um / a_max
    # Rounding may leave a hair below zero where the profile is exactly a triangle.
    return 2.0 * length_um / (duration_us + math.sqrt(rest if rest > 0.0 else 0.0))


def distance_um(start: "list[int]", end: "list[int]") -> float:
    """Straight distance of two points [x, y, z] in µm."""
    dx = float(end[0] - start[0])
    dy = float(end[1] - start[1])
    dz = float(end[2] - start[2])
    return math.sqrt(dx * dx + dy * dy + dz * dz)


class Move:
    """One straight move from rest to rest. One object is planned again and again: nothing is allocated."""

    def __init__(self) -> None:
        self._start = [0, 0, 0]
        self._end = [0, 0, 0]
        self._length = 0.0
        self._stop_at = 0.0
        self._ramp_us = 0.0
        self._a = 0.0
        self._v = 0.0
        self.duration_us = 0.0

    def plan(self, start: "list[int]", end: "list[int]", v_max: float, a_max: float) -> None:
        """Go from start to end in the least time under v_max (µm/µs) and a_max (µm/µs²)."""
        length = self._set_way(start, end)
        self._a = a_max
        self._v = v_max if length * a_max > v_max * v_max else math.sqrt(length * a_max)
        self._ramp_us = self._v / a_max
        self.duration_us = shortest_us(length, v_max, a_max)

    def plan_timed(self, start: "list[int]", end: "list[int]", duration_us: int, a_max: float) -> None:
        """Go from start to end in exactly duration_us at constant speed, with ramps at a_max at both ends."""
        length = self._set_way(start, end)
        self._a = a_max
        self._v = speed_for(length, float(duration_us), a_max)
        self._ramp_us = self._v / a_max
        self.duration_us = float(duration_us)

    def _set_way(self, start: "list[int]", end: "list[int]") -> float:
        for axis in range(3):
            self._start[axis] = start[axis]
            self._end[axis] = end[axis]
        self._length = self._stop_at = distance_um(start, end)
        return self._length

    def way_um(self, t_us: float) -> float:
        """How far along the line the move is at t_us after its start."""
        if t_us <= 0.0:
            return 0.0
        left_us = self.duration_us - t_us
        if left_us <= 0.0:
            return self._stop_at
        if left_us < self._ramp_us:
            return self._stop_at - 0.5 * self._a * left_us * left_us
        if t_us < self._ramp_us:
            return 0.5 * self._a * t_us * t_us
        return self._v * (t_us - 0.5 * self._ramp_us)

    def position(self, t_us: float, out: "list[int]") -> None:
        """Write the setpoint [x, y, z] in µm at t_us after the start into out; exact at the end."""
        if t_us >= self.duration_us and self._stop_at == self._length:
            for axis in range(3):
                out[axis] = self._end[axis]
            return
        share = self.way_um(t_us) / self._length
        for axis in range(3):
            begin = self._start[axis]
            out[axis] = begin + round((self._end[axis] - begin) * share)

    def stop_early(self, t_us: float) -> None:
        """From t_us on, brake at the acceleration limit and stay on the line; shortens duration_us."""
        if t_us >= self.duration_us - self._ramp_us:
            return
        if t_us < self._ramp_us:
            self._ramp_us = t_us
            self._v = self._a * t_us
        self._stop_at = self._v * t_us
        self.duration_us = t_us + self._ramp_us
