"""Delta arms (Clavel, US patent 4 976 582). See kinematics.py for units and floats.

Forward is the intersection of three equal spheres: from the circumcentre of their centres straight down.
"""

import math

from firmware.hand.kinematics import Joint, Kinematics, KinematicsError

# The three arms of a delta stand at these angles, counter-clockwise from the hand's x axis plus `turn`.
_ARM_ANGLES = (0.0, 2.0 * math.pi / 3.0, -2.0 * math.pi / 3.0)


class _Delta(Kinematics):
    """What both deltas share: three arms around (base_x, base_y), the tip below the intersection of spheres."""

    z_joint = -1

    def __init__(self, base_x_um: float, base_y_um: float, turn_rad: float, joints: "list[Joint]") -> None:
        super().__init__(joints)
        self._base_x = float(base_x_um)
        self._base_y = float(base_y_um)
        self._cos = [math.cos(angle + turn_rad) for angle in _ARM_ANGLES]
        self._sin = [math.sin(angle + turn_rad) for angle in _ARM_ANGLES]

    def _below(self, p: "list[list[float]]", radius: float, place: "list[float]") -> bool:
        """The lower of the two points at `radius` from all three centres p, relative to the base."""
        p0, p1, p2 = p
        ax, ay, az = p1[0] - p0[0], p1[1] - p0[1], p1[2] - p0[2]
        bx, by, bz = p2[0] - p0[0], p2[1] - p0[1], p2[2] - p0[2]
        # n = a × b points up, for the arms stand counter-clockwise.
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        nn = nx * nx + ny * ny + nz * nz
        aa = ax * ax + ay * ay + az * az
        bb = bx * bx + by * by + bz * bz
        # Circumcentre from p0: (aa·b - bb·a) × (a × b) / (2·|a × b|²), scaled to keep within 32-bit floats.
        s, t = aa / nn * 0.5, bb / nn * 0.5
        ux, uy, uz = s * bx - t * ax, s * by - t * ay, s * bz - t * az
        cx, cy, cz = uy * nz - uz * ny, uz * nx - ux * nz, ux * ny - uy * nx
        c = math.sqrt(cx * cx + cy * cy + cz * cz)
        drop_square = (radius - c) * (radius + c)
        if nz <= 0.0 or drop_square < 0.0:
            return False
        drop = math.sqrt(drop_square) / math.sqrt(nn)
        place[0] = self._base_x + p0[0] + cx - drop * nx
        place[1] = self._base_y + p0[1] + cy - drop * ny
        place[2] = p0[2] + cz - drop * nz
        return True


class LinearDelta(_Delta):
    """Three carriages on upright rails, each with a rod of the same length down to the effector.

    joints: the carriages' heights in the hand's z. radius_um: from the middle to the rails less the
    effector's own radius.
    """

    def __init__(
        self,
        base_x_um: float,
        base_y_um: float,
        rod_um: float,
        radius_um: float,
        joints: "list[Joint]",
        turn_rad: float = 0.0,
    ) -> None:
        super().__init__(base_x_um, base_y_um, turn_rad, joints)
        if not rod_um > radius_um > 0:
            raise KinematicsError(
                "delta rod of %r um and radius %r um: rod > radius > 0" % (rod_um, radius_um)
            )
        self._rod = float(rod_um)
        self._centres = [[radius_um * c, radius_um * s, 0.0] for c, s in zip(self._cos, self._sin)]

    def inverse(self, x_um: float, y_um: float, z_um: float, joints: "list[float]") -> bool:
        x = x_um - self._base_x
        y = y_um - self._base_y
        for i in range(3):
            centre = self._centres[i]
            dx = x - centre[0]
            dy = y - centre[1]
            way = math.sqrt(dx * dx + dy * dy)
            rise_square = (self._rod - way) * (self._rod + way)
            if rise_square < 0.0:
                return False
            joints[i] = z_um + math.sqrt(rise_square)
        return True

    def forward(self, joints: "list[float]", place: "list[float]") -> bool:
        for i in range(3):
            self._centres[i][2] = joints[i]
        return self._below(self._centres, self._rod, place)


class RotaryDelta(_Delta):
    """Three upper arms that turn about level axes at base_z, each with a forearm down to the effector.

    joints: the upper arms' angles in rad, 0 level and outwards, positive up. base_radius_um: from the middle to
    the axes; effector_radius_um: from the tip's axis to where the forearms hold the effector.
    """

    slides = (False, False, False)

    def __init__(
        self,
        base_x_um: float,
        base_y_um: float,
        base_z_um: float,
        arm_um: float,
        forearm_um: float,
        base_radius_um: float,
        effector_radius_um: float,
        joints: "list[Joint]",
        turn_rad: float = 0.0,
    ) -> None:
        super().__init__(base_x_um, base_y_um, turn_rad, joints)
        if not arm_um > 0 or not forearm_um > arm_um:
            raise KinematicsError(
                "delta arm of %r and forearm of %r um: forearm > arm > 0" % (arm_um, forearm_um)
            )
        if not base_radius_um > 0 or not effector_radius_um > 0:
            raise KinematicsError("delta radii %r and %r um: > 0" % (base_radius_um, effector_radius_um))
        self._base_z = float(base_z_um)
        self._arm = float(arm_um)
        self._forearm = float(forearm_um)
        self._offset = float(base_radius_um) - float(effector_radius_um)
        self._elbows = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]

    def inverse(self, x_um: float, y_um: float, z_um: float, joints: "list[float]") -> bool:
        x = x_um - self._base_x
        y = y_um - self._base_y
        w = z_um - self._base_z
        if w >= 0.0:
            return False
        a = self._arm
        for i in range(3):
            # Along the arm's own plane and across it, from the arm's axis.
            u = x * self._cos[i] + y * self._sin[i] - self._offset
            v = y * self._cos[i] - x * self._sin[i]
            flat_square = (self._forearm - v) * (self._forearm + v)
            if flat_square <= 0.0:
                return False
            f = math.sqrt(flat_square)
            r = math.sqrt(u * u + w * w)
            opposite = (f - a + r) * (f + a - r)
            adjacent = (a + r - f) * (a + r + f)
            if opposite < 0.0 or adjacent < 0.0:
                return False
            joints[i] = math.atan2(w, u) + 2.0 * math.atan2(math.sqrt(opposite), math.sqrt(adjacent))
        return True

    def forward(self, joints: "list[float]", place: "list[float]") -> bool:
        for i in range(3):
            out = self._offset + self._arm * math.cos(joints[i])
            elbow = self._elbows[i]
            elbow[0] = out * self._cos[i]
            elbow[1] = out * self._sin[i]
            elbow[2] = self._base_z + self._arm * math.sin(joints[i])
        return self._below(self._elbows, self._forearm, place)
