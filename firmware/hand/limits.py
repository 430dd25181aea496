"""Where a hand may go and how fast."""

from firmware import wire


class HandLimits:
    """The envelope in µm, top speed in mm/s, acceleration in mm/s². Home is (x_min, y_min, z_max)."""

    def __init__(
        self,
        x_min: int,
        x_max: int,
        y_min: int,
        y_max: int,
        z_min: int,
        z_max: int,
        v_max_mm_s: int,
        a_max_mm_s2: int,
    ) -> None:
        self.x_min = x_min
        self.x_max = x_max
        self.y_min = y_min
        self.y_max = y_max
        self.z_min = z_min
        self.z_max = z_max
        self.v_max_mm_s = v_max_mm_s
        self.a_max_mm_s2 = a_max_mm_s2
        if x_min >= x_max or y_min >= y_max or z_min >= z_max or v_max_mm_s <= 0 or a_max_mm_s2 <= 0:
            raise ValueError("hand limits %r: minima must be below maxima, speeds above 0" % (self.fields(),))

    def fields(self) -> "tuple[int, int, int, int, int, int, int, int]":
        """In the order of HELLO's hand tail."""
        return (
            self.x_min,
            self.x_max,
            self.y_min,
            self.y_max,
            self.z_min,
            self.z_max,
            self.v_max_mm_s,
            self.a_max_mm_s2,
        )

    def fault(self, x_um: int, y_um: int, z_um: int) -> int:
        """0 for a place the hand may go to, else FAULT_ENVELOPE, or FAULT_DEPTH below z_min."""
        if not self.x_min <= x_um <= self.x_max or not self.y_min <= y_um <= self.y_max or z_um > self.z_max:
            return wire.FAULT_ENVELOPE
        if z_um < self.z_min:
            return wire.FAULT_DEPTH
        return 0
