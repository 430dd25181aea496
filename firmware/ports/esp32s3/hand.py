"""From board_config to a hand. Whatever does not fit together is refused here, before a motor has power."""

import time

from firmware.hand.arm_config import arm_from_config
from firmware.hand.core import HandCore, HandLimits
from firmware.hand.joints import JointDrives
from firmware.hand.kinematics import require_reach
from firmware.hand.probe import Probe
from firmware.hand.servo_axis import ServoAxis, require_ranges
from firmware.hand.sts import REPLY_US
from firmware.ports.esp32s3 import drives


def make_hand(config) -> tuple:
    """(core, how to let go of the motors). Raises ValueError (KinematicsError, AxisError) for a wrong config."""
    arm = arm_from_config(config.KINEMATICS)
    box = config.LIMITS[:6]
    require_reach(arm, box)
    servos = {"pwm": config.PWM_SERVOS, "sts": config.STS_SERVOS}[config.DRIVE]
    axes = [ServoAxis(arm.slides[i], *servos[i][1:]) for i in range(3)]
    require_ranges(axes, arm.ranges(box))
    numbers = tuple([servo[0] for servo in servos])
    if config.DRIVE == "pwm":
        motors = drives.PwmMotors(numbers, axes, config.PWM_HZ, arm.z_joint)
        answer_ms = 0
    else:
        motors = drives.bus_motors(
            2, config.STS_TX_PIN, config.STS_RX_PIN, config.STS_BAUD, numbers, axes, arm.z_joint
        )
        answer_ms = REPLY_US // 1000 + 1

    def let_go() -> None:
        if answer_ms:
            time.sleep_ms(answer_ms)
        motors.relax()

    hand_drives = JointDrives(arm, motors, drives.RtcMemory())
    finder = Probe(config.PROBE_LOAD_PERMILLE, config.PROBE_LAG_UM)
    return HandCore(hand_drives, HandLimits(*config.LIMITS), arm, finder), let_go
