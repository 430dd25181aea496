"""A SCARA arm (Craig, "Introduction to Robotics", section 4.4). See kinematics.py for units and floats."""

import math

from firmware.hand.kinematics import Joint, Kinematics, KinematicsError


class Scara(Kinematics):
    """Two arms that turn in the plane about the base, and a slide for z.

    joints: shoulder (rad, counter-clockwise from the x axis), elbow (rad, counter-clockwise from the upper
    arm's direction), z. elbow: "left" or "right", where it stands as seen from the base towards the tip.
    """

    slides = (False, False, True)

    def __init__(
        self,
        base_x_um: float,
        base_y_um: float,
        upper_um: float,
        fore_um: float,
        elbow: str,
        joints: "list[Joint]",
    ) -> None:
        super().__init__(joints)
        if not upper_um > 0 or not fore_um > 0:
            raise KinematicsError(
                "scara arms of %r and %r um: both must be longer than 0" % (upper_um, fore_um)
            )
        if elbow not in ("left", "right"):
            raise KinematicsError("scara elbow %r is neither left nor right" % (elbow,))
        self._base_x = float(base_x_um)
        self._base_y = float(base_y_um)
        self._upper = float(upper_um)
        self._fore = float(fore_um)
        # An elbow on the left bends the forearm to the right, which is clockwise.
        self._side = -1.0 if elbow == "left" else 1.0

    def inverse(self, x_um: float, y_um: float, z_um: float, joints: "list[float]") -> bool:
        a, b = self._upper, self._fore
        x = x_um - self._base_x
        y = y_um - self._base_y
        r = math.sqrt(x * x + y * y)
        short = (a + b - r) * (a + b + r)
        folded = (r - (a - b)) * (r + (a - b))
        if short < 0.0 or folded <= 0.0:
            return False
        elbow = self._side * 2.0 * math.atan2(math.sqrt(short), math.sqrt(folded))
        joints[1] = elbow
        shoulder = math.atan2(y, x) - math.atan2(b * math.sin(elbow), a + b * math.cos(elbow))
        # Counted from the joint's lower end, so that no full turn lies between two places of its range.
        low = self.joints[0].low
        while shoulder < low:
            shoulder += 2.0 * math.pi
        while shoulder >= low + 2.0 * math.pi:
            shoulder -= 2.0 * math.pi
        joints[0] = shoulder
        joints[2] = z_um
        return True

    def forward(self, joints: "list[float]", place: "list[float]") -> bool:
        shoulder = joints[0]
        both = shoulder + joints[1]
        place[0] = self._base_x + self._upper * math.cos(shoulder) + self._fore * math.cos(both)
        place[1] = self._base_y + self._upper * math.sin(shoulder) + self._fore * math.sin(both)
        place[2] = joints[2]
        return True
