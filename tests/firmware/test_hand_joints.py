"""Arm and motors as a hand's drives: safe starts, pushes by hand, what z feels."""

import json

import pytest

from firmware.hand.arm_config import arm_from_config
from firmware.hand.joints import PUSHED_UM, REST_US, JointDrives, Memory, Motors, UnreachableSetpoint
from firmware.ports.unix.drives import make_arm
from firmware.ports.unix.options import UsageError

SCARA = {
    "kind": "scara",
    "base_um": [80_000, -60_000],
    "upper_um": 110_000,
    "fore_um": 110_000,
    "elbow": "left",
    "joints": [[0.0, 4.0, 6.0], [-2.8, -0.2, 6.0], [-5_000, 40_000, 300]],
}


class FakeMotors(Motors):
    """Motors that stand where they were told, or where a test puts them."""

    def __init__(self):
        self.joints = [0.0, 0.0, 0.0]
        self.count = 0
        self.loaded = 0

    def go(self, joints):
        self.joints = list(joints)

    def readings(self):
        return self.count

    def present(self, joints):
        joints[:] = self.joints

    def load(self):
        return self.loaded


class OneSetpoint(Memory):
    kept = None

    def keep(self, x_um, y_um, z_um):
        self.kept = (x_um, y_um, z_um)

    def recall(self):
        return self.kept


class Rig:
    def __init__(self, config):
        self.arm = arm_from_config(config)
        self.motors = FakeMotors()
        self.memory = OneSetpoint()
        self.drives = JointDrives(self.arm, self.motors, self.memory)
        self.now_us = 0

    def stand_at(self, x, y, z):
        assert self.arm.inverse(x, y, z, self.motors.joints)

    def pass_time(self, us):
        self.now_us += us
        self.drives.poll(self.now_us)

    def reading(self):
        """One more measurement of all motors; what the core's poll hears of it."""
        self.motors.count += 1
        self.pass_time(5_000)
        return self.drives.read()


@pytest.fixture(params=[{"kind": "cartesian"}, SCARA], ids=["cartesian", "scara"])
def rig(request):
    return Rig(request.param)


def test_motors_that_measure_say_where_the_hand_stands_before_it_moves(rig):
    rig.memory.keep(1, 2, 3)
    rig.stand_at(50_000, 40_000, 7_000)
    assert rig.drives.retained() == (1, 2, 3), "nothing measured yet: what memory holds"
    rig.motors.count = 1
    assert rig.drives.retained() == (50_000, 40_000, 7_000)


def test_a_setpoint_reaches_the_motors_as_joints_and_is_remembered(rig):
    rig.drives.write(60_000, 30_000, 5_000)
    place = [0.0] * 3
    rig.arm.forward(rig.motors.joints, place)
    assert [round(um) for um in place] == [60_000, 30_000, 5_000]
    assert rig.memory.kept == (60_000, 30_000, 5_000)


def test_a_setpoint_out_of_reach_is_an_error_not_a_guess():
    with pytest.raises(UnreachableSetpoint, match="500000"):
        Rig(SCARA).drives.write(500_000, 0, 0)


def test_a_push_by_hand_is_told_once_with_its_way(rig):
    rig.drives.write(60_000, 30_000, 5_000)
    rig.pass_time(REST_US)
    assert rig.reading() is None
    rig.stand_at(63_000, 30_000, 5_000)
    assert rig.reading() is None, "one reading proves nothing"
    assert rig.reading() == (3_000, 0, 0)
    assert [rig.reading() for _ in range(5)] == [None] * 5


def test_a_tip_pushed_before_the_first_move_is_told_too(rig):
    rig.stand_at(50_000, 40_000, 7_000)
    assert rig.reading() is None
    rig.stand_at(50_000, 43_000, 7_000)
    rig.reading()
    assert rig.reading() == (0, 3_000, 0)


def test_moving_swinging_and_sagging_are_no_push(rig):
    for n in range(20):
        rig.drives.write(60_000 + 2_000 * n, 30_000, 5_000)
        assert rig.reading() is None
    rig.stand_at(95_000, 30_000, 3_500)  # pressed on the glass, it stands higher than its setpoint
    rig.pass_time(REST_US)
    assert [rig.reading() for _ in range(3)] == [None] * 3
    rig.stand_at(95_000 + PUSHED_UM - 10, 30_000, 3_500)
    assert [rig.reading() for _ in range(5)] == [None] * 5


def test_what_z_feels_is_measured_after_the_question(rig):
    assert not rig.drives.senses()
    rig.motors.count = 1
    assert rig.drives.senses()
    rig.stand_at(50_000, 40_000, 1_000)
    rig.drives.sense()
    assert rig.drives.sensed() is None
    rig.reading()
    assert rig.drives.sensed() is None, "this reading may have begun before the question"
    rig.motors.loaded = 42
    rig.reading()
    assert rig.drives.sensed() == (1_000, 42)
    assert rig.drives.sensed() is None, "each question has one answer"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        (json.dumps({"kind": "scara"}), "base_um"),
        (json.dumps(SCARA | {"fore_um": 60_000}), "does not reach"),
    ],
)
def test_a_simulated_hand_with_an_arm_that_cannot_be_does_not_start(text, complaint):
    with pytest.raises(UsageError, match=complaint):
        make_arm(text, [0, 160_000, 0, 90_000, -2_000, 20_000, 300, 4_000])
