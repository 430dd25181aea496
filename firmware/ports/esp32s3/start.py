"""What a board knows at its start: who it is, why it started, which start this is. ESP32-S3 only."""

import os

import esp32
import machine

from firmware import wire
from firmware.boot_id import boot_id

# RTC_CNTL_RESET_STATE_REG, bits 0..5: cause of the last reset of CPU 0 (ESP32-S3 technical reference manual,
# chapters "Low-power management" and "Reset and clock"). machine.reset_cause() knows no brownout.
_RESET_STATE = 0x60008038
_CAUSES = {
    0x01: wire.RESET_POWER_ON,
    0x03: wire.RESET_SOFT,
    0x07: wire.RESET_WATCHDOG,
    0x08: wire.RESET_WATCHDOG,
    0x09: wire.RESET_WATCHDOG,
    0x0B: wire.RESET_WATCHDOG,
    0x0C: wire.RESET_SOFT,
    0x0D: wire.RESET_WATCHDOG,
    0x0F: wire.RESET_BROWNOUT,
    0x10: wire.RESET_WATCHDOG,
    0x11: wire.RESET_WATCHDOG,
    0x12: wire.RESET_WATCHDOG,
    0x17: wire.RESET_BROWNOUT,
}


def reset_cause() -> int:
    """wire.RESET_* of this start."""
    if machine.reset_cause() == machine.SOFT_RESET:
        return wire.RESET_SOFT
    return _CAUSES.get(machine.mem32[_RESET_STATE] & 0x3F, wire.RESET_UNKNOWN)


def next_boot_id() -> int:
    """This start's number (firmware/boot_id.py), counted in NVS. Raises OSError when the flash does not take it."""
    store = esp32.NVS("edge")
    try:
        count = store.get_i32("boots")
    except OSError:
        count = 0
    count = (count + 1) & 0x7FFFFFFF
    store.set_i32("boots", count)
    store.commit()
    return boot_id(count, os.urandom(3))


def is_maintenance(pin: int) -> bool:
    """Whether the maintenance pin is wired to ground: then the firmware leaves the board to the REPL."""
    return machine.Pin(pin, machine.Pin.IN, machine.Pin.PULL_UP).value() == 0


def board_uid() -> bytes:
    """The chip's MAC address, padded to wire.UID_SIZE."""
    mac = machine.unique_id()
    return mac + bytes(wire.UID_SIZE - len(mac))


def profile(name: str) -> int:
    """wire.PROFILE_* of board_config.PROFILE. Raises KeyError for a phone that is neither."""
    return {"android": wire.PROFILE_ANDROID, "ios": wire.PROFILE_IOS}[name]
