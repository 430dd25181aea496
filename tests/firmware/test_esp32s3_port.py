"""What of the ESP32-S3 port can be shown without the chip: its side of machine's and esp32's interfaces.

The stand-ins below follow MicroPython's documentation of machine.USBDevice, PWM, RTC and esp32.NVS. They say
nothing about real hardware, on which this port has never run.
"""

import importlib
import struct
import sys
from types import ModuleType
from typing import ClassVar

import pytest

from firmware import wire
from firmware.hid import descriptor

PORT = "firmware.ports.esp32s3."


class USBDevice:
    """The one USB device: keeps its configuration and the transfer that is under way."""

    BUILTIN_NONE = object()
    last: "USBDevice"

    def __init__(self):
        USBDevice.last = self
        self.submitted = []

    def active(self, *value):
        pass

    def config(self, device, configuration, strings, on_open, on_reset, on_control, on_transfer):
        self.device, self.configuration, self.strings = device, configuration, strings
        self.open, self.reset, self.control, self.transfer_done = on_open, on_reset, on_control, on_transfer

    def submit_xfer(self, endpoint, data):
        self.submitted.append((endpoint, bytes(data)))
        return True

    def request(self, kind, number, value, length, data=b""):
        """One control transfer, SETUP to ACK; returns what the device sends, None if it stalls."""
        request = struct.pack("<BBHHH", kind, number, value, 0, length)
        answer = self.control(1, request)
        if answer is False:
            return None
        if data:
            answer[: len(data)] = data
        assert self.control(2, request) is True
        assert self.control(3, request) is True
        return answer if answer is True else bytes(answer[:length])


class PWM:
    """Pulse widths in the order they were set, by pin."""

    log: ClassVar[list[tuple[int, int | None]]] = []

    def __init__(self, pin, freq, duty_ns):
        self._pin = pin
        self.duty_ns(duty_ns)

    def duty_ns(self, ns):
        PWM.log.append((self._pin, ns))

    def deinit(self):
        PWM.log.append((self._pin, None))


class RTC:
    kept = b""

    def memory(self, data=None):
        if data is None:
            return RTC.kept
        RTC.kept = bytes(data)
        return None


class NVS:
    stored: ClassVar[dict[str, int]] = {}

    def __init__(self, namespace):
        self._namespace = namespace
        self._pending = {}

    def get_i32(self, key):
        if key not in NVS.stored:
            raise OSError(-0x1102)
        return NVS.stored[key]

    def set_i32(self, key, value):
        self._pending[key] = value

    def commit(self):
        NVS.stored.update(self._pending)


@pytest.fixture
def chip(monkeypatch):
    """MicroPython's machine and esp32 modules, fresh; returns a loader for the port's modules."""
    machine, esp32 = ModuleType("machine"), ModuleType("esp32")
    machine.USBDevice, machine.PWM, machine.RTC = USBDevice, PWM, RTC
    machine.Pin = lambda number: number
    machine.SOFT_RESET, machine.reset_cause = 5, lambda: 1
    machine.unique_id = lambda: b"\x01\x02\x03\x04\x05\x06"
    machine.mem32 = {0x60008038: 1}
    esp32.NVS = NVS
    PWM.log, RTC.kept, NVS.stored = [], b"", {}
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.setitem(sys.modules, "esp32", esp32)

    def load(name):
        monkeypatch.delitem(sys.modules, PORT + name, raising=False)
        return importlib.import_module(PORT + name)

    load.machine = machine
    load("start")
    yield load
    for name in ("start", "usb_hid", "drives"):
        sys.modules.pop(PORT + name, None)


@pytest.fixture
def plug(chip):
    return chip("usb_hid").plug_in()


def test_the_usb_device_is_one_hid_interface_with_one_interrupt_endpoint(plug):
    device = USBDevice.last
    assert len(device.device) == device.device[0] == 18
    configuration = device.configuration
    assert struct.unpack_from("<H", configuration, 2)[0] == len(configuration)
    parts = []
    at = 0
    while at < len(configuration):
        parts.append(configuration[at : at + configuration[at]])
        at += configuration[at]
    assert [part[1] for part in parts] == [2, 4, 0x21, 5]
    assert struct.unpack_from("<H", parts[2], 7)[0] == len(descriptor.REPORT_DESCRIPTOR)
    assert parts[3][2] == 0x81


def test_the_phone_reads_the_report_descriptor_and_the_number_of_contacts(plug):
    device = USBDevice.last
    assert device.request(0x81, 0x06, 0x2200, 512) == descriptor.REPORT_DESCRIPTOR
    assert device.request(0xA1, 0x01, 0x0304, 2) == descriptor.TOUCH_FEATURE
    assert device.request(0xA1, 0x01, 0x0101, 9) is None
    assert device.request(0x21, 0x0A, 0, 0) is True


def test_the_phones_leds_arrive_by_set_report(plug):
    USBDevice.last.request(0x21, 0x09, 0x0201, 2, b"\x01\x02")
    assert plug.leds() == descriptor.LED_CAPS_LOCK


def test_a_report_is_pending_until_the_phone_has_taken_it(plug):
    device = USBDevice.last
    assert not plug.ready()
    assert not plug.send(b"\x02\x23\x02")
    device.open(memoryview(device.configuration))
    assert plug.ready()
    assert plug.send(b"\x02\x23\x02")
    assert device.submitted == [(0x81, b"\x02\x23\x02")]
    assert plug.pending() == 1
    assert not plug.send(b"\x02\x00\x00")
    device.transfer_done(0x81, 0, 3)
    assert plug.pending() == 0
    plug.send(b"\x02\x00\x00")
    device.reset()
    assert (plug.ready(), plug.pending()) == (False, 0)


def test_the_usb_device_is_brought_up_once(chip):
    usb_hid = chip("usb_hid")
    assert usb_hid.plug_in() is usb_hid.plug_in()


AXES = (
    (5, 0, 600_000, 160_000, 2_400_000),
    (6, 0, 600_000, 90_000, 2_400_000),
    (7, 0, 900_000, 20_000, 2_100_000),
)


def test_the_first_setpoint_powers_the_lifting_servo_alone(chip):
    drives = chip("drives").ServoDrives(*AXES, 50)
    drives.write(0, 0, 20_000)
    assert PWM.log == [(7, 2_100_000)]
    drives.write(80_000, 45_000, 10_000)
    assert PWM.log[1:] == [(7, 1_500_000), (5, 1_500_000), (6, 1_500_000)]
    drives.relax()
    assert [pulse for _, pulse in PWM.log[-3:]] == [None, None, None]


def test_the_last_setpoint_is_kept_in_rtc_memory(chip):
    module = chip("drives")
    assert module.ServoDrives(*AXES, 50).retained() is None
    module.ServoDrives(*AXES, 50).write(1, -2, 3)
    assert module.ServoDrives(*AXES, 50).retained() == (1, -2, 3)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (0x01, wire.RESET_POWER_ON),
        (0x0F, wire.RESET_BROWNOUT),
        (0x09, wire.RESET_WATCHDOG),
        (0x0C, wire.RESET_SOFT),
        (0x15, wire.RESET_UNKNOWN),
    ],
)
def test_the_reset_cause_tells_a_brownout_from_a_power_on(chip, code, cause):
    # The upper bits are the other CPU's.
    chip.machine.mem32[0x60008038] = 0xFC0 | code
    assert chip("start").reset_cause() == cause


def test_a_soft_reset_is_told_by_micropython(chip):
    chip.machine.reset_cause = lambda: chip.machine.SOFT_RESET
    assert chip("start").reset_cause() == wire.RESET_SOFT


def test_the_boot_counter_grows_and_the_uid_has_its_length(chip):
    start = chip("start")
    assert [start.next_boot_id() for _ in range(3)] == [1, 2, 3]
    assert start.board_uid() == b"\x01\x02\x03\x04\x05\x06\x00\x00"
