"""What this one board is: edit before copying it to the board. Pins are ESP32-S3 GPIO numbers."""

# "hand" or "hid"
KIND = "hand"

# The link to the Raspberry Pi: UART1 on pins, since native USB goes to the phone and UART0 is the REPL's.
UART_TX_PIN = 17
UART_RX_PIN = 18
UART_BAUD = 460800

# Wired to ground this pin keeps the firmware from starting, so that the REPL on native USB is there.
MAINTENANCE_PIN = 4

# -- hid ----------------------------------------------------------------------------------------------
# "android" or "ios"; "us", "uk", "de" or "fr". The layout must be the phone's physical-keyboard layout.
PROFILE = "android"
LAYOUT = "us"

# -- hand ---------------------------------------------------------------------------------------------
# x_min, x_max, y_min, y_max, z_min, z_max in um, top speed in mm/s, acceleration in mm/s2. z_min is the
# depth limit: how far the sprung tip may ever be driven. Hobby servos do not keep up with more than this.
LIMITS = (0, 160000, 0, 90000, -2000, 20000, 120, 1500)

# The arm, as firmware/hand/arm_config.py reads it. It has to reach all of LIMITS, or the board does not start.
# {"kind": "scara", "base_um": (80000, -60000), "upper_um": 110000, "fore_um": 110000, "elbow": "left",
#  "joints": ((0.0, 3.2, 5.0), (-2.6, -0.3, 5.0), (-2000, 20000, 120))}
KINEMATICS = {"kind": "cartesian"}

# "pwm": three hobby servos. "sts": three Feetech STS bus servos, which also feel where they are: only they can
# tell that somebody pushed the hand, and only they can probe.
DRIVE = "pwm"

# For each joint in order: pin, pulse in us at the joint's 0, us per mm (or per rad where the joint turns, negative
# if it turns the other way), shortest and longest pulse. Measure two places with a ruler; calibration does the rest.
PWM_SERVOS = (
    (5, 600.0, 11.25, 500, 2500),
    (6, 600.0, 20.0, 500, 2500),
    (7, 1009.0, 54.5, 500, 2500),
)
# 50 Hz for analogue servos; digital ones take up to 333.
PWM_HZ = 50

# For each joint in order: servo id, step at the joint's 0, steps per mm (or per rad: 651.9 without a gear),
# lowest and highest step.
STS_SERVOS = (
    (1, 200.0, 23.0, 0, 4095),
    (2, 200.0, 41.0, 0, 4095),
    (3, 900.0, 100.0, 0, 4095),
)
# UART2. One data wire for all servos: TX through a buffer or diode, RX straight to the wire (see README).
STS_TX_PIN = 15
STS_RX_PIN = 16
STS_BAUD = 1000000

# What counts as contact when probing: so much more load (0.1 %) or lag (um) than in free air.
PROBE_LOAD_PERMILLE = 30
PROBE_LAG_UM = 150
