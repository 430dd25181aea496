"""Copied to /main.py of the board: the loop that drives link and core. Never run on hardware so far."""

import gc
import time

import board_config
import machine
import micropython

from firmware import wire
from firmware.link import BoardLink
from firmware.ports.esp32s3 import start

# Longer than any garbage collection or flash write, shorter than a person's patience with a stuck stylus.
WATCHDOG_MS = 2000
RX_BYTES = 1024
TX_BYTES = 2048
COLLECT_MS = 1000


class Clock:
    """Microseconds since the start that never go back; ticks_us() wraps every 18 minutes."""

    def __init__(self) -> None:
        self._ticks = time.ticks_us()
        self._now_us = 0

    def now_us(self) -> int:
        ticks = time.ticks_us()
        self._now_us += time.ticks_diff(ticks, self._ticks)
        self._ticks = ticks
        return self._now_us


def make_hid() -> tuple:
    """(core, nothing to do at the end: the phone releases every key when the device goes away)."""
    from firmware.hid.core import HidCore
    from firmware.hid.profiles import PROFILES
    from firmware.ports.esp32s3 import usb_hid

    profile = start.profile(board_config.PROFILE)
    layout = {"us": wire.LAYOUT_US, "uk": wire.LAYOUT_UK, "de": wire.LAYOUT_DE, "fr": wire.LAYOUT_FR}
    usb = usb_hid.plug_in(PROFILES[profile].report_descriptor)
    return HidCore(usb, profile, layout[board_config.LAYOUT]), None


def run() -> None:
    """For ever: bytes in, link and core, bytes out; the watchdog is fed at the end of each bounded round."""
    is_hand = board_config.KIND == "hand"
    if is_hand:
        from firmware.ports.esp32s3.hand import make_hand

        core, make_safe = make_hand(board_config)
    else:
        core, make_safe = make_hid()
    kind = wire.KIND_HAND if is_hand else wire.KIND_HID
    link = BoardLink(core, start.board_uid(), kind, start.next_boot_id(), start.reset_cause())
    uart = machine.UART(
        1,
        baudrate=board_config.UART_BAUD,
        tx=board_config.UART_TX_PIN,
        rx=board_config.UART_RX_PIN,
        rxbuf=RX_BYTES,
        txbuf=TX_BYTES,
        timeout=0,
    )
    received = bytearray(RX_BYTES)
    clock = Clock()
    collected_ms = time.ticks_ms()
    watchdog = machine.WDT(timeout=WATCHDOG_MS)
    try:
        while True:
            now_us = clock.now_us()
            if uart.any():
                n = uart.readinto(received)
                if n:
                    link.receive(bytes(memoryview(received)[:n]), now_us)
            link.poll(now_us)
            output = link.take_output()
            if output:
                uart.write(output)
            if core.due_us(now_us) < 0 and time.ticks_diff(time.ticks_ms(), collected_ms) >= COLLECT_MS:
                # Up to 100 ms with PSRAM: only while nothing moves and nothing is typed.
                gc.collect()
                collected_ms = time.ticks_ms()
            watchdog.feed()
            time.sleep_ms(1)
    finally:
        if make_safe is not None:
            make_safe()
        machine.reset()


if not start.is_maintenance(board_config.MAINTENANCE_PIN):
    # A byte 0x03 on the REPL's line must not stop the hand.
    micropython.kbd_intr(-1)
    run()
