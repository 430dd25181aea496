"""One servo's calibration: from a joint's µm or rad to what the servo counts in, and back."""


class AxisError(ValueError):
    """A calibration that describes no servo, or a joint beyond what it may turn to; the message says which."""


def require_ranges(axes: "list[ServoAxis]", ranges: "list[tuple[float, float]]") -> None:
    """Raise AxisError unless each servo may turn to both ends of its joint's range."""
    for axis, (low, high) in zip(axes, ranges):
        axis.require(low)
        axis.require(high)


class ServoAxis:
    """counts = zero + value * per, within low..high. A count is a µs of pulse (PWM) or a step (bus servo).

    per: counts per mm where the joint slides, per rad where it turns; negative for a servo that turns the other
    way. zero: the count at the joint's 0.
    """

    def __init__(self, slides: bool, zero: float, per: float, low: int, high: int) -> None:
        if per == 0 or not low < high:
            raise AxisError(
                "servo axis per %r, %r to %r: per must not be 0, low below high" % (per, low, high)
            )
        self._zero = float(zero)
        self._per = per / 1000.0 if slides else float(per)
        self.low = low
        self.high = high

    def count(self, value: float) -> float:
        """The servo's count for a joint in µm or rad."""
        return self._zero + value * self._per

    def value(self, count: float) -> float:
        """The joint in µm or rad at this count."""
        return (count - self._zero) / self._per

    def require(self, value: float) -> None:
        """Raise AxisError when the servo may not turn to this joint."""
        count = self.count(value)
        if not self.low <= count <= self.high:
            raise AxisError(
                "joint %r needs count %r, allowed are %d to %d" % (value, count, self.low, self.high)
            )
