"""Arms: forward and inverse agree, in 64-bit floats and in the chip's 32-bit ones; what is out of reach is said.

The chip's floats are emulated by numpy's float32: every operation rounds to 24 bits, and sin, cos and atan2 are
moved by one more unit in the last place at random, since no library promises better. sqrt is exact in IEEE 754.
No number here was measured on a chip.
"""

import math
import random
from itertools import product

import numpy as np
import pytest

from firmware.hand import delta, kinematics, scara
from firmware.hand.arm_config import arm_from_config
from firmware.hand.kinematics import KinematicsError, require_reach

BOX = (0, 160_000, 0, 90_000, -2_000, 20_000)
SCARA = {
    "kind": "scara",
    "base_um": [80_000, -60_000],
    "upper_um": 110_000,
    "fore_um": 110_000,
    "elbow": "left",
    "joints": [[0.0, 4.0, 6.0], [-2.8, -0.2, 6.0], [-5_000, 40_000, 300]],
}
LINEAR = {
    "kind": "linear_delta",
    "base_um": [80_000, 45_000],
    "rod_um": 260_000,
    "radius_um": 130_000,
    "joints": [[0, 400_000, 500]] * 3,
}
ROTARY = {
    "kind": "rotary_delta",
    "base_um": [80_000, 45_000, 210_000],
    "arm_um": 100_000,
    "forearm_um": 230_000,
    "base_radius_um": 70_000,
    "effector_radius_um": 30_000,
    "joints": [[-1.6, 1.2, 8.0]] * 3,
    "turn_rad": 0.3,
}
ARMS = {
    "cartesian": {"kind": "cartesian"},
    "scara_left": SCARA,
    "scara_right": SCARA
    | {"elbow": "right", "joints": [[-1.0, 3.2, 6.0], [0.2, 2.8, 6.0], [-5_000, 40_000, 300]]},
    "linear_delta": LINEAR,
    "rotary_delta": ROTARY,
}
every_arm = pytest.mark.parametrize("config", ARMS.values(), ids=ARMS)


def places(count=400, seed=3):
    """The envelope's corners, then places in it at random."""
    corners = product(BOX[0:2], BOX[2:4], BOX[4:6])
    rng = random.Random(seed)
    within = ([rng.randint(BOX[i], BOX[i + 1]) for i in (0, 2, 4)] for _ in range(count))
    return [*(list(corner) for corner in corners), *within]


class ChipMath:
    """math as a chip with 32-bit floats has it, at its worst."""

    pi = np.float32(math.pi)
    rng = random.Random(1)

    @classmethod
    def blurred(cls, value):
        value = np.float32(value)
        return np.nextafter(value, np.float32(cls.rng.choice((-np.inf, np.inf))))

    @staticmethod
    def sqrt(x):
        return np.sqrt(np.float32(x))

    @staticmethod
    def sin(x):
        return ChipMath.blurred(math.sin(x))

    @staticmethod
    def cos(x):
        return ChipMath.blurred(math.cos(x))

    @staticmethod
    def atan2(y, x):
        return ChipMath.blurred(math.atan2(y, x))


def on_chip(arm):
    """The same arm with every number it holds as a 32-bit float."""

    def narrowed(value):
        if isinstance(value, list):
            return [narrowed(entry) for entry in value]
        return np.float32(value) if isinstance(value, float) else value

    for name, value in vars(arm).items():
        setattr(arm, name, narrowed(value))
    for joint in arm.joints:
        joint.low, joint.high = np.float32(joint.low), np.float32(joint.high)
    return arm


def worst_disagreement_um(arm, number):
    worst = 0.0
    joints, place = [0.0] * 3, [0.0] * 3
    for wanted in places():
        assert arm.inverse(*(number(um) for um in wanted), joints), wanted
        assert arm.forward(joints, place)
        if number is np.float32:
            assert all(type(value) is np.float32 for value in joints + place), (
                "something was computed in 64 bits"
            )
        worst = max(worst, math.dist(wanted, [float(um) for um in place]))
    return worst


@every_arm
def test_forward_and_inverse_agree_over_the_envelope(config):
    assert worst_disagreement_um(arm_from_config(config), float) < 1e-6


@every_arm
def test_forward_and_inverse_agree_to_a_micrometre_in_the_chips_floats(config, monkeypatch):
    arm = arm_from_config(config)
    for module in (kinematics, scara, delta):
        monkeypatch.setattr(module, "math", ChipMath)
    # Measured over 20 000 places: scara 0.10, linear delta 0.07, rotary delta 0.17 um.
    assert worst_disagreement_um(on_chip(arm), np.float32) < 0.3


@every_arm
def test_the_envelope_is_within_reach(config):
    require_reach(arm_from_config(config), BOX)


# -- against geometry that shares no code with the arms ------------------------------------------------------


def test_a_scaras_elbow_is_one_arm_from_the_base_and_one_from_the_tip_and_on_its_side():
    for name, side in (("scara_left", 1), ("scara_right", -1)):
        arm = arm_from_config(ARMS[name])
        base = complex(80_000, -60_000)
        joints = [0.0] * 3
        for x, y, z in places(100):
            assert arm.inverse(x, y, z, joints)
            elbow = base + 110_000 * complex(math.cos(joints[0]), math.sin(joints[0]))
            tip = complex(x, y)
            assert abs(tip - elbow) == pytest.approx(110_000, abs=1e-3)
            across = ((elbow - base) * (tip - base).conjugate()).imag
            assert across * side > 0
            bend = math.remainder(
                math.atan2((tip - elbow).imag, (tip - elbow).real) - joints[0] - joints[1], math.tau
            )
            assert bend == pytest.approx(0, abs=1e-9)
            assert joints[2] == z


def test_a_linear_deltas_rods_have_their_length():
    arm = arm_from_config(LINEAR)
    joints = [0.0] * 3
    for place in places(100):
        assert arm.inverse(*place, joints)
        for i, height in enumerate(joints):
            angle = math.tau * i / 3
            rail = (80_000 + 130_000 * math.cos(angle), 45_000 + 130_000 * math.sin(angle), height)
            assert math.dist(rail, place) == pytest.approx(260_000, abs=1e-3)
            assert height > place[2]


def test_a_rotary_deltas_forearms_have_their_length_and_its_knees_point_outwards():
    arm = arm_from_config(ROTARY)
    joints = [0.0] * 3
    for x, y, z in places(100):
        assert arm.inverse(x, y, z, joints)
        for i, angle in enumerate(joints):
            out = (math.cos(math.tau * i / 3 + 0.3), math.sin(math.tau * i / 3 + 0.3))
            reach = 70_000 + 100_000 * math.cos(angle)
            knee = (80_000 + reach * out[0], 45_000 + reach * out[1], 210_000 + 100_000 * math.sin(angle))
            held = (x + 30_000 * out[0], y + 30_000 * out[1], z)
            assert math.dist(knee, held) == pytest.approx(230_000, abs=1e-3)
            # Of the two knees that the lengths allow, the outer one.
            along = [(p[0] - 80_000) * out[0] + (p[1] - 45_000) * out[1] - 70_000 for p in (knee, held)]
            assert along[0] * (z - 210_000) - along[1] * (knee[2] - 210_000) < 0


def test_a_rotary_delta_in_the_middle_stands_symmetrically():
    joints = [0.0] * 3
    assert arm_from_config(ROTARY).inverse(80_000, 45_000, 0, joints)
    assert joints[0] == pytest.approx(joints[1]) == pytest.approx(joints[2])


# -- limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "place"),
    [
        (SCARA, (80_000, 161_000, 0)),  # beyond both arms
        (SCARA, (80_000, -60_000, 0)),  # on the base
        (SCARA, (80_000, 159_900, 0)),  # straighter than the elbow may be
        (SCARA, (80_000, 45_000, 41_000)),  # above the slide's end
        (LINEAR, (80_000, 45_000, 200_000)),  # carriages above their rails
        (LINEAR, (340_000, 45_000, 0)),  # further than a rod
        (ROTARY, (80_000, 45_000, -125_000)),  # deeper than both arms
        (ROTARY, (80_000, 45_000, 215_000)),  # above the base
        (ROTARY, (80_000, 330_000, 0)),
    ],
)
def test_what_is_out_of_reach_is_not_reached(config, place):
    assert not arm_from_config(config).reaches(*place)


def test_an_envelope_beyond_reach_is_refused_with_the_place():
    with pytest.raises(KinematicsError, match=r"does not reach \(0, 90000, -2000\)"):
        require_reach(arm_from_config(SCARA | {"fore_um": 60_000}), BOX)


@every_arm
@pytest.mark.parametrize("seed", range(8))
def test_on_a_line_no_joint_goes_faster_than_it_may(config, seed):
    rng = random.Random(seed)
    arm = arm_from_config(config)
    start, end = ([rng.randint(BOX[i], BOX[i + 1]) for i in (0, 2, 4)] for _ in range(2))
    v = arm.speed_on_line(start, end, 0.3)
    assert 0 < v <= 0.3
    pieces = 1_000
    step_us = math.dist(start, end) / pieces / v
    before, after = [0.0] * 3, [0.0] * 3
    arm.inverse(*start, before)
    for n in range(1, pieces + 1):
        arm.inverse(*(a + (b - a) * n / pieces for a, b in zip(start, end, strict=True)), after)
        for i, joint in enumerate(arm.joints):
            top = joint.speed * (1e-3 if arm.slides[i] else 1e-6)
            assert abs(after[i] - before[i]) / step_us <= top
        before, after = after, before


def test_joint_limits_slow_a_line_down_and_a_lame_joint_slows_it_more():
    lame = SCARA | {"joints": [[0.0, 4.0, 0.5], [-2.8, -0.2, 6.0], [-5_000, 40_000, 300]]}
    line = ([0, 0, 10_000], [160_000, 90_000, 10_000])
    assert arm_from_config({"kind": "cartesian"}).speed_on_line(*line, 0.3) == 0.3
    assert (
        arm_from_config(lame).speed_on_line(*line, 0.3) < arm_from_config(SCARA).speed_on_line(*line, 0.3) / 2
    )


def test_a_line_through_a_place_out_of_reach_has_no_speed():
    ranges = [[-3.1, 3.1, 6.0], [-3.1, -0.2, 6.0], [-5_000, 40_000, 300]]
    arm = arm_from_config(SCARA | {"fore_um": 90_000, "joints": ranges})
    start, end = [80_000, 0, 0], [80_000, -120_000, 0]
    assert arm.reaches(*start)
    assert arm.reaches(*end)
    assert arm.speed_on_line(start, end, 0.3) == 0.0


def test_a_line_from_a_step_outside_a_joints_range_has_a_speed():
    arm = arm_from_config(SCARA)
    assert not arm.reaches(0, 0, 40_010)
    assert arm.speed_on_line([0, 0, 40_010], [0, 0, 40_000], 0.3) > 0.2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "polar"}, "polar"),
        ({"elbow": "up"}, "elbow"),
        ({"upper_um": "long"}, "upper_um"),
        ({"base_um": [1]}, "base_um"),
        ({"joints": [[0, 1, 1]]}, "joints"),
        ({"joints": [[1, 0, 1]] * 3}, "low < high"),
        ({"fore_um": -1}, "longer"),
        ({"forearm_um": 1}, "forearm_um"),
    ],
)
def test_a_configuration_that_describes_no_arm_is_refused_with_the_reason(change, complaint):
    with pytest.raises(KinematicsError, match=complaint):
        arm_from_config(SCARA | change)
