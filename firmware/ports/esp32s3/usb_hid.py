"""The native USB port as one HID interface, on machine.USBDevice (MicroPython >= 1.27 on ESP32-S3).

1.26 sends zeros on boards with PSRAM (micropython pull request 18332). micropython-lib's HID classes are not
used: they have an interface for each kind of report and print on GET_REPORT. Never run on hardware so far.
USB 2.0 chapter 9 and HID 1.11 chapters 6 and 7 give the layouts.

USBDevice tells of configuration and bus reset, not of suspend. A sleeping phone shows as a report that is not
taken; the core then says that the phone is not ready, and what lies in the endpoint is delivered at its waking.
"""

import struct

import machine

from firmware.hid import descriptor
from firmware.hid.core import Usb
from firmware.ports.esp32s3.start import board_uid

# pid.codes' number for private testing: get one of your own before giving boards away.
_VENDOR_ID = 0x1209
_PRODUCT_ID = 0x0001
_RELEASE = 0x0001

_ENDPOINT_IN = 0x81
_PACKET_SIZE = 16
_POLL_MS = 4

_STAGE_SETUP = 1
_STAGE_ACK = 3

_DESCRIPTOR_HID = 0x21
_DESCRIPTOR_REPORT = 0x22
# bmRequestType without its direction bit
_STANDARD_TO_INTERFACE = 0x01
_CLASS_TO_INTERFACE = 0x21
_GET_DESCRIPTOR = 0x06
_GET_REPORT = 0x01
_GET_IDLE = 0x02
_GET_PROTOCOL = 0x03
_SET_REPORT = 0x09
_SET_IDLE = 0x0A
_SET_PROTOCOL = 0x0B
_REPORT_TYPE_INPUT = 1
_REPORT_TYPE_OUTPUT = 2
_REPORT_TYPE_FEATURE = 3

# Bytes of each input report with its id.
_INPUT_SIZES = {
    descriptor.REPORT_KEYBOARD: 9,
    descriptor.REPORT_CONSUMER: 3,
    descriptor.REPORT_SYSTEM: 2,
    descriptor.REPORT_TOUCH: 8,
    descriptor.REPORT_POINTER: 5,
}


def _hid_descriptor(report_descriptor: bytes) -> bytes:
    size = len(report_descriptor)
    return struct.pack("<BBHBBBH", 9, _DESCRIPTOR_HID, 0x0111, 0, 1, _DESCRIPTOR_REPORT, size)


def _device_descriptor() -> bytes:
    # Class 0: the interface says what it is. Strings 1, 2 and 3 are maker, product and serial number.
    return struct.pack(
        "<BBHBBBBHHHBBBB", 18, 1, 0x0200, 0, 0, 0, 64, _VENDOR_ID, _PRODUCT_ID, _RELEASE, 1, 2, 3, 1
    )


def _configuration_descriptor(hid_descriptor: bytes) -> bytes:
    interface = struct.pack("<BBBBBBBBB", 9, 4, 0, 0, 1, 3, 0, 0, 0)
    endpoint = struct.pack("<BBBBHB", 7, 5, _ENDPOINT_IN, 3, _PACKET_SIZE, _POLL_MS)
    body = interface + hid_descriptor + endpoint
    # Bus powered, 100 mA: a phone gives little.
    return struct.pack("<BBHBBBBB", 9, 2, 9 + len(body), 1, 1, 0, 0x80, 50) + body


_plugged: "list[UsbHid]" = []


def plug_in(report_descriptor: bytes) -> "UsbHid":
    """The one USB device of this board, brought up at the first call (boot.py) and kept for main.py."""
    if not _plugged:
        _plugged.append(UsbHid(report_descriptor, board_uid().hex()))
    return _plugged[0]


class UsbHid(Usb):
    """The plug to the phone: one interface, one interrupt endpoint, the report descriptor of the profile."""

    def __init__(self, report_descriptor: bytes, serial_number: str) -> None:
        self._report_descriptor = report_descriptor
        self._hid_descriptor = _hid_descriptor(report_descriptor)
        self._is_open = False
        self._pending = 0
        self._leds = 0
        self._report = bytearray(_PACKET_SIZE)
        # What GET_REPORT gives: the last report of each kind, nothing pressed before there was one.
        self._last: dict[int, bytearray] = {}
        for ident, size in _INPUT_SIZES.items():
            if bytes((0x85, ident)) in report_descriptor:
                self._last[ident] = bytearray(size)
                self._last[ident][0] = ident
        # Report id and LED byte of SET_REPORT.
        self._set_report = bytearray(8)
        self._device = machine.USBDevice()
        self._device.active(False)
        self._device.builtin_driver = self._device.BUILTIN_NONE
        self._device.config(
            _device_descriptor(),
            _configuration_descriptor(self._hid_descriptor),
            [None, "edge-daemon", "phone input", serial_number],
            self._on_open,
            self._on_reset,
            self._on_control,
            self._on_transfer,
        )
        self._device.active(True)

    # -- what the core asks ---------------------------------------------------------------------------

    def ready(self) -> bool:
        return self._is_open

    def send(self, report: "bytes | memoryview") -> bool:
        if self._pending or not self._is_open:
            return False
        size = len(report)
        self._report[:size] = report
        # Before the call: the completion may come before it returns.
        self._pending = 1
        try:
            queued = self._device.submit_xfer(_ENDPOINT_IN, memoryview(self._report)[:size])
        except OSError:
            queued = False
        if not queued:
            self._pending = 0
            return False
        self._keep(size)
        return True

    def _keep(self, size: int) -> None:
        last = self._last.get(self._report[0])
        if last is None:
            return
        last[:size] = memoryview(self._report)[:size]
        if last[0] == descriptor.REPORT_POINTER:
            # A way already gone is not to be gone again by somebody who asks for the state.
            last[2] = last[3] = last[4] = 0

    def pending(self) -> int:
        return self._pending

    def leds(self) -> int:
        return self._leds

    # -- what the phone does -----------------------------------------------------------------------------

    def _on_open(self, descriptor: memoryview) -> None:
        self._pending = 0
        self._is_open = True

    def _on_reset(self) -> None:
        self._is_open = False
        self._pending = 0
        self._leds = 0

    def _on_transfer(self, endpoint: int, result: int, size: int) -> None:
        self._pending = 0

    def _on_control(self, stage: int, request: memoryview) -> "bool | bytes | bytearray":
        """True or data to go on, False to stall: machine.USBDevice's contract of control_xfer_cb."""
        kind, number, value, _, length = struct.unpack("<BBHHH", request)
        kind &= 0x7F
        if stage == _STAGE_SETUP:
            if kind == _STANDARD_TO_INTERFACE and number == _GET_DESCRIPTOR:
                return self._descriptor(value >> 8)
            if kind == _CLASS_TO_INTERFACE:
                return self._class_request(number, value, length)
            return False
        if stage == _STAGE_ACK and kind == _CLASS_TO_INTERFACE and number == _SET_REPORT:
            self._leds = self._set_report[1]
        return True

    def _descriptor(self, kind: int) -> "bool | bytes":
        if kind == _DESCRIPTOR_HID:
            return self._hid_descriptor
        if kind == _DESCRIPTOR_REPORT:
            return self._report_descriptor
        return False

    def _class_request(self, number: int, value: int, length: int) -> "bool | bytes | bytearray":
        if number == _SET_REPORT:
            # The LEDs are the one thing a phone can set.
            is_leds = value == _REPORT_TYPE_OUTPUT << 8 | descriptor.REPORT_KEYBOARD and length == 2
            return self._set_report if is_leds else False
        if number == _SET_IDLE:
            # 0: a report only when something changes. A rate would ask for repeats, which nobody needs.
            return value >> 8 == 0
        if number == _GET_REPORT:
            return self._get_report(value >> 8, value & 0xFF)
        if number == _GET_IDLE:
            return b"\x00"
        if number == _GET_PROTOCOL:
            return b"\x01"
        # There is one protocol, the report protocol: the interface is no boot device.
        return number == _SET_PROTOCOL and value == 1

    def _get_report(self, kind: int, ident: int) -> "bool | bytes | bytearray":
        if kind == _REPORT_TYPE_INPUT:
            return self._last.get(ident, False)
        if kind == _REPORT_TYPE_OUTPUT and ident == descriptor.REPORT_KEYBOARD:
            return bytes((ident, self._leds))
        if kind == _REPORT_TYPE_FEATURE and ident == descriptor.REPORT_TOUCH and ident in self._last:
            return descriptor.TOUCH_FEATURE
        return False
