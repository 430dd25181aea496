"""From a board's configuration to its arm: every value is checked, nothing is guessed."""

from firmware.hand.kinematics import Cartesian, Joint, Kinematics, KinematicsError


def arm_from_config(config: "dict[str, object]") -> Kinematics:
    """The arm that a board's configuration describes. Raises KinematicsError, which says what is wrong.

    {"kind": "cartesian"}
    {"kind": "scara", "base_um": [x, y], "upper_um", "fore_um", "elbow": "left"|"right", "joints": [...]}
    {"kind": "linear_delta", "base_um": [x, y], "rod_um", "radius_um", "joints": [...]}
    {"kind": "rotary_delta", "base_um": [x, y, z], "arm_um", "forearm_um", "base_radius_um",
     "effector_radius_um", "joints": [...]}

    joints: three [lowest, highest, top speed], in µm and mm/s where the joint slides, rad and rad/s where it
    turns. Both deltas take "turn_rad": by how much the first arm is turned from the x axis.
    """
    given = dict(config)
    kind = given.pop("kind", None)
    arm: Kinematics
    if kind == "cartesian":
        arm = Cartesian()
    elif kind == "scara":
        # A board carries the code of its own arm only.
        from firmware.hand.scara import Scara

        x, y = _numbers(given, "base_um", 2)
        upper, fore = _number(given, "upper_um"), _number(given, "fore_um")
        arm = Scara(x, y, upper, fore, str(given.pop("elbow", "")), _joints(given))
    elif kind == "linear_delta":
        from firmware.hand.delta import LinearDelta

        x, y = _numbers(given, "base_um", 2)
        rod, radius = _number(given, "rod_um"), _number(given, "radius_um")
        arm = LinearDelta(x, y, rod, radius, _joints(given), _number(given, "turn_rad", 0.0))
    elif kind == "rotary_delta":
        from firmware.hand.delta import RotaryDelta

        x, y, z = _numbers(given, "base_um", 3)
        arm = RotaryDelta(
            x,
            y,
            z,
            _number(given, "arm_um"),
            _number(given, "forearm_um"),
            _number(given, "base_radius_um"),
            _number(given, "effector_radius_um"),
            _joints(given),
            _number(given, "turn_rad", 0.0),
        )
    else:
        raise KinematicsError(
            "kinematics kind %r is none of cartesian, scara, linear_delta, rotary_delta" % (kind,)
        )
    for name in given:
        raise KinematicsError("kinematics %s: unknown key %r" % (kind, name))
    return arm


def _number(given: "dict[str, object]", name: str, default: "float | None" = None) -> float:
    value = given.pop(name, default)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise KinematicsError("kinematics %s: %r is not a number" % (name, value))
    return float(value)


def _numbers(given: "dict[str, object]", name: str, count: int) -> "list[float]":
    values = given.pop(name, None)
    if not isinstance(values, (list, tuple)) or len(values) != count:
        raise KinematicsError("kinematics %s: %r is not a list of %d numbers" % (name, values, count))
    return [_number({name: value}, name) for value in values]


def _joints(given: "dict[str, object]") -> "list[Joint]":
    rows = given.pop("joints", None)
    if not isinstance(rows, (list, tuple)) or len(rows) != 3:
        raise KinematicsError(
            "kinematics joints: %r is not a list of three [lowest, highest, speed]" % (rows,)
        )
    return [Joint(*_numbers({"joints": row}, "joints", 3)) for row in rows]
