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

# Each axis is a servo that moves a carriage along a straight line (rack or belt): its pin, then two places in
# um with the pulse in ns that brings it there. Measure the places with a ruler; the calibration finds the rest.
SERVO_X = (5, 0, 600000, 160000, 2400000)
SERVO_Y = (6, 0, 600000, 90000, 2400000)
SERVO_Z = (7, -2000, 900000, 20000, 2100000)
# 50 Hz for analogue servos; digital ones take up to 333.
SERVO_HZ = 50
