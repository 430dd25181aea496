"""Where the hand's own millimetres really lie in the world: an affine map, bowed rails and eccentric pulleys."""

from math import cos, pi, sin, tan

from edge_daemon.bench.twin.truth import NOMINAL_CENTRE_X_MM, NOMINAL_CENTRE_Y_MM, Truth

# The part of each axis' travel that lies over a screen, halved: where a rail's bow is stated.
HALF_TRAVEL_X_MM = 75.0
HALF_TRAVEL_Y_MM = 36.0
# The deviations change by less than 1 % of the way: six rounds leave nothing of 1e-9 mm.
INVERSE_ROUNDS = 8


class Arm:
    """Hand mm to world mm and back, without play and scatter."""

    def __init__(self, truth: Truth) -> None:
        hand, arm = truth.hand, truth.arm
        self._origin = (NOMINAL_CENTRE_X_MM, NOMINAL_CENTRE_Y_MM)
        self._offset = (hand.offset_x_mm, hand.offset_y_mm)
        self._scale = (hand.scale_x, hand.scale_y)
        self._skew = tan(hand.skew_rad)
        self._cos, self._sin = cos(hand.rotation_rad), sin(hand.rotation_rad)
        self._bow_x, self._bow_y = arm.bow_of_x_mm, arm.bow_of_y_mm
        self._amplitude = arm.pulley_amplitude_mm
        self._turns = (2.0 * pi / arm.pulley_period_mm[0], 2.0 * pi / arm.pulley_period_mm[1])
        self._phase = arm.pulley_phase_rad
        self._straight = not any((*arm.bow_of_x_mm, *arm.bow_of_y_mm, *arm.pulley_amplitude_mm))

    def deviation_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """How far the tip is from where straight rails and round pulleys would have it, along the hand's axes."""
        if self._straight:
            return 0.0, 0.0
        u = (x_mm - NOMINAL_CENTRE_X_MM) / HALF_TRAVEL_X_MM
        v = (y_mm - NOMINAL_CENTRE_Y_MM) / HALF_TRAVEL_Y_MM
        uu, vv = u * u, v * v
        sideways_y = self._bow_x[0] * (uu - 1.0 / 3.0) + self._bow_x[1] * u * (uu - 0.6)
        sideways_x = self._bow_y[0] * (vv - 1.0 / 3.0) + self._bow_y[1] * v * (vv - 0.6)
        along_x = self._amplitude[0] * sin(x_mm * self._turns[0] + self._phase[0])
        along_y = self._amplitude[1] * sin(y_mm * self._turns[1] + self._phase[1])
        return along_x + sideways_x, along_y + sideways_y

    def to_world_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """Hand mm to world mm: rotation * skew * scale about the nominal centre, of the deviated place."""
        off_x, off_y = self.deviation_mm(x_mm, y_mm)
        dx = (x_mm - self._origin[0] - self._offset[0] + off_x) * self._scale[0]
        dy = (y_mm - self._origin[1] - self._offset[1] + off_y) * self._scale[1]
        dx += self._skew * dy
        return self._cos * dx - self._sin * dy, self._sin * dx + self._cos * dy

    def to_hand_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """World mm to hand mm: the inverse, by fixed-point iteration on the deviation."""
        dx, dy = self._cos * x_mm + self._sin * y_mm, -self._sin * x_mm + self._cos * y_mm
        dx -= self._skew * dy
        straight_x = dx / self._scale[0] + self._origin[0] + self._offset[0]
        straight_y = dy / self._scale[1] + self._origin[1] + self._offset[1]
        hand_x, hand_y = straight_x, straight_y
        for _ in range(INVERSE_ROUNDS):
            off_x, off_y = self.deviation_mm(hand_x, hand_y)
            hand_x, hand_y = straight_x - off_x, straight_y - off_y
        return hand_x, hand_y
