"""Feetech's bus: packets as the manual shows them, whatever the line carries, one talker at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.hand import sts
from firmware.hand.bus_motors import EVERY_MOTOR, BusMotors
from firmware.hand.servo_axis import AxisError, ServoAxis, require_ranges


def decoded(data):
    """(servo, status, parameter words) of each packet in the bytes."""
    decoder = sts.Decoder()
    return [
        (decoder.servo, decoder.status, [decoder.word(at) for at in range(0, decoder.size - 1, 2)])
        for byte in data
        if decoder.feed(byte)
    ]


# Examples of the manual (doc.feetech.cn, FT-SCS-Protocol): ping, read, sync write of position, time and speed.
def test_packets_are_the_manuals():
    assert sts.packet(1, 0x01, b"") == bytes.fromhex("ff ff 01 02 01 fb")
    assert sts.packet(1, sts.READ, b"\x38\x02") == bytes.fromhex("ff ff 01 04 02 38 02 be")
    assert sts.packet(0xFE, 0x82, bytes.fromhex("38 08 01 02")) == bytes.fromhex(
        "ff ff fe 06 82 38 08 01 02 36"
    )


def test_answers_are_read_as_the_manual_shows_them():
    assert decoded(bytes.fromhex("ff ff 01 0a 00 00 08 00 00 00 00 79 1e 55")) == [
        (1, 0, [2048, 0, 0, 0x1E79])
    ]
    assert decoded(bytes.fromhex("ff ff 02 0a 00 ff 07 00 00 00 00 77 23 53")) == [
        (2, 0, [2047, 0, 0, 0x2377])
    ]


def test_a_sync_write_has_one_row_for_each_servo():
    data = sts.sync_write(sts.GOAL_POSITION, 2, (1, 2, 3), [0x800, 1, 4095])
    assert data[:7] == bytes.fromhex("ff ff fe 0d 83 2a 02")
    assert data[7:-1] == bytes.fromhex("01 00 08 02 01 00 03 ff 0f")
    assert sum(data[2:]) & 0xFF == 0xFF
    assert sts.sync_write(sts.TORQUE_ENABLE, 1, (1, 2), [1, 0])[5:-1] == bytes.fromhex("28 01 01 01 02 00")


@pytest.mark.parametrize(
    ("raw", "bit", "value"), [(5, 15, 5), (0x8005, 15, -5), (0x400 | 250, 10, -250), (250, 10, 250)]
)
def test_signs_are_a_bit_of_their_own(raw, bit, value):
    assert sts.signed(raw, bit) == value
    assert sts.sign_magnitude(value, bit) == raw


ANSWER = bytes.fromhex("ff ff 01 08 00 00 08 00 00 2c 01 c1")


@pytest.mark.parametrize("at", [at for at in range(len(ANSWER)) if at != 3])
def test_an_answer_with_one_wrong_byte_is_never_taken(at):
    for flip in range(1, 256):
        broken = bytearray(ANSWER)
        broken[at] ^= flip
        assert decoded(bytes(broken) + bytes(40)) == []


@given(before=st.binary(max_size=40))
@settings(max_examples=100)
def test_after_anything_the_next_whole_answer_is_found(before):
    assert decoded(before + bytes(40) + ANSWER)[-1] == (1, 0, [0x800, 0, 300])


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_anything_on_the_line_is_survived(noise):
    decoded(noise)


class Host:
    """A bus with simulated servos and a clock that a test turns."""

    def __init__(self, line, z_motor=2):
        self.line = line
        axes = [ServoAxis(True, 0, 100, 0, 4095) for _ in range(3)]
        self.motors = BusMotors(line, (1, 2, 3), axes, z_motor)
        self.now_us = 0

    def run(self, ms):
        for _ in range(ms):
            self.now_us += 1_000
            self.motors.poll(self.now_us)

    def joints(self):
        joints = [0.0] * 3
        self.motors.present(joints)
        return [round(um) for um in joints]


@pytest.fixture(params=[False, True], ids=["two wires", "one wire"])
def host(request, simulated_servos):
    return Host(simulated_servos({1: 1_000, 2: 2_000, 3: 3_000}, echo=request.param))


def test_positions_are_read_in_turn_and_nothing_moves(host):
    host.run(20)
    assert host.motors.readings() >= 3
    assert host.joints() == [10_000, 20_000, 30_000]
    assert host.motors.ready()
    assert set(host.line.torque.values()) == {0}


def test_goals_are_on_the_bus_before_the_torque(host):
    host.run(10)
    host.motors.go([10_000.0, 20_000.0, 30_020.0])
    host.run(10)
    kinds = [(data[5], data[7:-1]) for data in host.line.writes if data[4] == sts.SYNC_WRITE]
    assert [address for address, _ in kinds] == [sts.GOAL_POSITION, sts.TORQUE_ENABLE]
    assert host.line.snap_steps == 2
    assert host.line.position == {1: 1_000, 2: 2_000, 3: 3_002}


def test_setpoints_go_out_while_positions_are_read(host):
    host.run(10)
    before = host.motors.readings()
    for n in range(50):
        host.motors.go([10_000.0 + 10 * n, 20_000.0, 30_000.0])
        host.run(4)
    assert host.line.position[1] == 1_049
    assert host.motors.readings() > before + 20
    assert host.joints()[0] == 10_490


def test_a_loop_as_slow_as_the_setpoints_hears_of_the_servos_all_the_same(host):
    host.run(10)
    for n in range(100):
        host.motors.go([10_000.0 + 10 * n, 20_000.0, 30_000.0])
        host.now_us += 4_000
        host.motors.poll(host.now_us)
    assert host.motors.ready()
    assert host.line.position[1] >= 1_094


def test_loads_have_signs_and_a_delta_takes_the_largest(simulated_servos):
    for z_motor, expected in ((2, 300), (EVERY_MOTOR, 500)):
        line = simulated_servos({1: 1_000, 2: 2_000, 3: 3_000})
        host = Host(line, z_motor)
        host.run(10)
        line.held = {2: (2_000, 2_000), 3: (3_000, 4_095)}
        host.motors.go([10_000.0, 20_500.0, 29_700.0])
        host.run(20)
        assert host.motors.load() == expected


def test_a_servo_that_falls_silent_makes_the_hand_unready_until_it_is_back(host):
    host.run(20)
    host.line.mute = {2}
    host.run(sts.SILENCE_US // 1_000 + 20)
    assert not host.motors.ready()
    host.line.mute = set()
    host.run(30)
    assert host.motors.ready()


def test_a_servo_that_reports_an_error_makes_the_hand_unready(host):
    host.run(20)
    host.line.error[3] = 0x20
    host.run(20)
    assert not host.motors.ready()


# -- calibration of an axis -----------------------------------------------------------------------------------


def test_an_axis_counts_per_millimetre_or_per_radian():
    assert ServoAxis(True, 600, 11.25, 500, 2500).count(80_000) == 1_500
    turning = ServoAxis(False, 2_048, -651.9, 0, 4_095)
    assert turning.count(1.0) == pytest.approx(2_048 - 651.9)
    assert turning.value(turning.count(0.7)) == pytest.approx(0.7)


def test_a_joint_range_beyond_the_servo_is_refused():
    axis = ServoAxis(False, 2_048, 651.9, 100, 4_000)
    require_ranges([axis], [(-2.9, 2.9)])
    with pytest.raises(AxisError, match="joint 3"):
        require_ranges([axis], [(0.0, 3.0)])
    with pytest.raises(AxisError, match="per"):
        ServoAxis(True, 0, 0, 0, 1)
