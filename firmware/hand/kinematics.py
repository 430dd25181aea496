"""How three joints carry the tip: what every arm can tell, and the plainest one, cartesian.

A place is (x, y, z) in the hand's own µm, z up. A joint is in µm where it slides and in radians where it turns.
Joint lists are given in and filled in place, so that a setpoint leaves nothing behind but its floats.

The chip's floats have 24 bits. So lengths stay below 2**24 µm, angles come from atan2 of two lengths and never
from acos, whose error explodes where an arm is stretched, and each later angle is computed from the rounded
earlier one, so that its rounding does not add up. Angles of triangles: tan²(A/2) = (s-b)(s-c) / (s(s-a)).
"""

import math

# A line is looked at in pieces of this length, at most so many; within one a joint's speed may vary by the margin.
PIECE_UM = 3000.0
MAX_PIECES = 64
LINE_MARGIN = 0.95


class KinematicsError(ValueError):
    """A configuration that describes no arm; the message says which value and why."""


class Joint:
    """What one joint may do: its range in its unit (µm or rad) and its top speed in mm/s or rad/s."""

    def __init__(self, low: float, high: float, speed: float) -> None:
        if not low < high or not speed > 0:
            raise KinematicsError("joint from %r to %r at %r: low < high and speed > 0" % (low, high, speed))
        self.low = low
        self.high = high
        self.speed = speed


class Kinematics:
    """One arm. `slides[i]` says whether joint i slides (µm) or turns (rad); z_joint is which carries z alone."""

    slides = (True, True, True)
    z_joint = 2

    def __init__(self, joints: "list[Joint]") -> None:
        if len(joints) != 3:
            raise KinematicsError("an arm has 3 joints, not %d" % len(joints))
        self.joints = joints
        self._joints_a = [0.0, 0.0, 0.0]
        self._joints_b = [0.0, 0.0, 0.0]

    def inverse(self, x_um: float, y_um: float, z_um: float, joints: "list[float]") -> bool:
        """Fill in the joints that bring the tip there; False where no position of the arm does."""
        raise NotImplementedError

    def forward(self, joints: "list[float]", place: "list[float]") -> bool:
        """Fill in where the tip is with these joints; False where the arm cannot be closed like that."""
        raise NotImplementedError

    def reaches(self, x_um: float, y_um: float, z_um: float) -> bool:
        """Whether the tip can be there with every joint in its range."""
        joints = self._joints_a
        if not self.inverse(x_um, y_um, z_um, joints):
            return False
        for i in range(3):
            if not self.joints[i].low <= joints[i] <= self.joints[i].high:
                return False
        return True

    def ranges(self, box: "tuple[int, ...]") -> "list[tuple[float, float]]":
        """From where to where each joint goes in the envelope (x_min, x_max, y_min, y_max, z_min, z_max)."""
        return [(joint.low, joint.high) for joint in self.joints]

    def speed_on_line(self, start: "list[int]", end: "list[int]", v_max: float) -> float:
        """The top speed (µm/µs, at most v_max) at which no joint exceeds its own on the straight line.

        0.0 where no position of the arm brings the tip to a place of the line. Joint ranges are not looked at:
        a hand that is to come home may stand an encoder's step outside of them.
        """
        length = 0.0
        for axis in range(3):
            d = float(end[axis] - start[axis])
            length += d * d
        length = math.sqrt(length)
        pieces = min(MAX_PIECES, int(length / PIECE_UM) + 2)
        before, after = self._joints_a, self._joints_b
        if not self.inverse(float(start[0]), float(start[1]), float(start[2]), before):
            return 0.0
        v = v_max
        for piece in range(1, pieces + 1):
            share = piece / pieces
            if not self.inverse(
                start[0] + (end[0] - start[0]) * share,
                start[1] + (end[1] - start[1]) * share,
                start[2] + (end[2] - start[2]) * share,
                after,
            ):
                return 0.0
            for i in range(3):
                # Sliding joints: mm/s is 1e-3 µm/µs. Turning ones: rad/s is 1e-6 rad/µs.
                top = self.joints[i].speed * (1e-3 if self.slides[i] else 1e-6)
                turned = abs(after[i] - before[i])
                if turned * v * pieces > top * length * LINE_MARGIN:
                    v = top * length * LINE_MARGIN / (turned * pieces)
            before, after = after, before
        return v


class Cartesian(Kinematics):
    """Three slides along x, y and z: a joint is its coordinate. Its limits are the envelope and the top speed."""

    def __init__(self) -> None:
        anything = Joint(-16777216.0, 16777216.0, 1e6)
        super().__init__([anything, anything, anything])

    def inverse(self, x_um: float, y_um: float, z_um: float, joints: "list[float]") -> bool:
        joints[0] = x_um
        joints[1] = y_um
        joints[2] = z_um
        return True

    def forward(self, joints: "list[float]", place: "list[float]") -> bool:
        place[0] = joints[0]
        place[1] = joints[1]
        place[2] = joints[2]
        return True

    def ranges(self, box: "tuple[int, ...]") -> "list[tuple[float, float]]":
        return [
            (float(box[0]), float(box[1])),
            (float(box[2]), float(box[3])),
            (float(box[4]), float(box[5])),
        ]

    def reaches(self, x_um: float, y_um: float, z_um: float) -> bool:
        return True

    def speed_on_line(self, start: "list[int]", end: "list[int]", v_max: float) -> float:
        return v_max


def require_reach(arm: Kinematics, box: "tuple[int, ...]") -> None:
    """Raise KinematicsError unless the arm reaches all of (x_min, x_max, y_min, y_max, z_min, z_max) in µm.

    The box is what the board announces as its envelope, so straight lines in it must be possible. A grid of
    9 by 9 by 3 places is looked at: reach is a smooth surface, not a sieve.
    """
    for k in range(3):
        z = box[4] + (box[5] - box[4]) * k // 2
        for j in range(9):
            y = box[2] + (box[3] - box[2]) * j // 8
            for i in range(9):
                x = box[0] + (box[1] - box[0]) * i // 8
                if not arm.reaches(float(x), float(y), float(z)):
                    raise KinematicsError(
                        "the arm does not reach (%d, %d, %d) um of its envelope" % (x, y, z)
                    )
