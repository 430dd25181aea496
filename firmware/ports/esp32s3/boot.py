"""Copied to /boot.py of the board. Runs before USB comes up, so that the phone sees the HID device at once."""

import board_config

from firmware.ports.esp32s3 import start

if board_config.KIND == "hid" and not start.is_maintenance(board_config.MAINTENANCE_PIN):
    from firmware.hid.profiles import PROFILES
    from firmware.ports.esp32s3 import usb_hid

    usb_hid.plug_in(PROFILES[start.profile(board_config.PROFILE)].report_descriptor)
