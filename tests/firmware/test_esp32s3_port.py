"""What of the ESP32-S3 port can be shown without the chip: its side of machine's and esp32's interfaces.

The stand-ins below follow MicroPython's documentation of machine.USBDevice, PWM, RTC and esp32.NVS. They say
nothing about real hardware, on which this port has never run.
"""

import importlib
import itertools
import struct
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

from edge_daemon.bench.twin import hid_descriptor
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
    now_ms = itertools.count()
    monkeypatch.setattr(time, "ticks_ms", lambda: next(now_ms), raising=False)
    monkeypatch.setattr(time, "ticks_diff", lambda a, b: a - b, raising=False)
    monkeypatch.setattr(time, "sleep_ms", lambda ms: None, raising=False)
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.setitem(sys.modules, "esp32", esp32)

    def load(name):
        monkeypatch.delitem(sys.modules, PORT + name, raising=False)
        return importlib.import_module(PORT + name)

    load.machine = machine
    load("start")
    yield load
    for name in ("start", "usb_hid", "drives", "hand"):
        sys.modules.pop(PORT + name, None)


@pytest.fixture
def plug(chip):
    return chip("usb_hid").plug_in(descriptor.ANDROID_DESCRIPTOR)


@pytest.fixture
def ios_plug(chip):
    return chip("usb_hid").plug_in(descriptor.IOS_DESCRIPTOR)


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
    assert struct.unpack_from("<H", parts[2], 7)[0] == len(descriptor.ANDROID_DESCRIPTOR)
    assert parts[3][2] == 0x81


GET_REPORT, SET_REPORT, GET_IDLE, SET_IDLE, GET_PROTOCOL, SET_PROTOCOL = 0x01, 0x09, 0x02, 0x0A, 0x03, 0x0B
INPUT, OUTPUT, FEATURE = 0x0100, 0x0200, 0x0300


def test_the_phone_reads_the_report_descriptor_of_the_profile_and_the_number_of_contacts(plug):
    device = USBDevice.last
    assert device.request(0x81, 0x06, 0x2200, 512) == descriptor.ANDROID_DESCRIPTOR
    class_descriptor = device.request(0x81, 0x06, 0x2100, 9)
    assert struct.unpack_from("<H", class_descriptor, 7)[0] == len(descriptor.ANDROID_DESCRIPTOR)
    assert device.request(0xA1, GET_REPORT, FEATURE | 4, 2) == descriptor.TOUCH_FEATURE


def test_an_iphone_gets_the_pointers_descriptor_and_no_touch_feature(ios_plug):
    device = USBDevice.last
    assert device.request(0x81, 0x06, 0x2200, 512) == descriptor.IOS_DESCRIPTOR
    assert device.request(0xA1, GET_REPORT, FEATURE | 4, 2) is None
    assert device.request(0xA1, GET_REPORT, INPUT | 4, 8) is None


@pytest.mark.parametrize("ident", [1, 2, 3, 4])
def test_get_report_answers_each_input_report_in_its_length_with_nothing_pressed(plug, ident):
    answer = USBDevice.last.request(0xA1, GET_REPORT, INPUT | ident, 64)
    report = next(
        report
        for report in hid_descriptor.parse(descriptor.ANDROID_DESCRIPTOR)
        if (report.kind, report.ident) == ("input", ident)
    )
    assert answer == bytes((ident,)) + bytes(report.size)


def test_get_report_answers_what_was_last_sent_but_no_way_of_the_pointer_twice(ios_plug):
    device = USBDevice.last
    device.open(memoryview(device.configuration))
    out = bytearray(16)
    for report in (
        bytes(descriptor.keyboard_report(out, 2, 4)),
        bytes(descriptor.pointer_report(out, True, 7, -7)),
    ):
        assert ios_plug.send(report)
        device.transfer_done(0x81, 0, len(report))
    assert device.request(0xA1, GET_REPORT, INPUT | 1, 9) == b"\x01\x02\x00\x04\x00\x00\x00\x00\x00"
    assert device.request(0xA1, GET_REPORT, INPUT | 5, 5) == b"\x05\x01\x00\x00\x00"


def test_the_phones_leds_arrive_by_set_report_and_can_be_read_back(plug):
    device = USBDevice.last
    assert device.request(0x21, SET_REPORT, OUTPUT | 1, 2, b"\x01\x02") is not None
    assert plug.leds() == descriptor.LED_CAPS_LOCK
    assert device.request(0xA1, GET_REPORT, OUTPUT | 1, 2) == b"\x01\x02"


@pytest.mark.parametrize(
    ("value", "data"),
    [(OUTPUT | 2, b"\x02\x02"), (FEATURE | 4, b"\x04\x05"), (OUTPUT | 1, b"\x01\x02\x00"), (OUTPUT | 1, b"")],
)
def test_set_report_of_anything_else_stalls_and_changes_nothing(plug, value, data):
    assert USBDevice.last.request(0x21, SET_REPORT, value, len(data), data) is None
    assert plug.leds() == 0


def test_idle_and_protocol_requests_are_answered_as_a_device_that_repeats_nothing(plug):
    device = USBDevice.last
    assert device.request(0x21, SET_IDLE, 0, 0) is True
    assert device.request(0x21, SET_IDLE, 0x0401, 0) is None
    assert device.request(0xA1, GET_IDLE, 0, 1) == b"\x00"
    assert device.request(0x21, SET_PROTOCOL, 1, 0) is True
    assert device.request(0x21, SET_PROTOCOL, 0, 0) is None
    assert device.request(0xA1, GET_PROTOCOL, 0, 1) == b"\x01"


@pytest.mark.parametrize("request_type", [0x81, 0xA1, 0x21, 0x80, 0xC1])
def test_unknown_requests_stall(plug, request_type):
    assert USBDevice.last.request(request_type, 0x55, 0, 0) is None


def test_a_port_that_raises_has_not_queued(plug):
    device = USBDevice.last
    device.open(memoryview(device.configuration))

    def refuse(endpoint, data):
        raise OSError(22)

    device.submit_xfer = refuse
    assert not plug.send(b"\x02\x23\x02")
    assert plug.pending() == 0
    assert device.request(0xA1, GET_REPORT, INPUT | 2, 3) == b"\x02\x00\x00"


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


@pytest.mark.parametrize(
    ("profile", "wanted"), [("android", descriptor.ANDROID_DESCRIPTOR), ("ios", descriptor.IOS_DESCRIPTOR)]
)
def test_boot_offers_the_phone_the_descriptor_of_the_configured_profile(chip, monkeypatch, profile, wanted):
    config = ModuleType("board_config")
    config.KIND, config.PROFILE, config.MAINTENANCE_PIN = "hid", profile, 4
    monkeypatch.setitem(sys.modules, "board_config", config)
    pin = type("Pin", (), {"IN": 0, "PULL_UP": 1, "__init__": lambda *_: None, "value": lambda _: 1})
    monkeypatch.setattr(chip.machine, "Pin", pin)
    chip("usb_hid")
    chip("boot")
    assert USBDevice.last.request(0x81, 0x06, 0x2200, 512) == wanted


def test_the_usb_device_is_brought_up_once(chip):
    usb_hid = chip("usb_hid")
    plug = usb_hid.plug_in(descriptor.IOS_DESCRIPTOR)
    assert usb_hid.plug_in(descriptor.IOS_DESCRIPTOR) is plug


@pytest.fixture
def config():
    """The board's configuration as it is shipped, to be changed at will."""
    shipped = importlib.import_module(PORT + "board_config")
    return SimpleNamespace(**{name: getattr(shipped, name) for name in dir(shipped) if name.isupper()})


def make_hand(chip, config):
    """What main.py makes of the configuration: the core and the way to let go."""
    chip("drives")
    return chip("hand").make_hand(config)


class NoLink:
    """The core's link, which nobody listens to."""

    def __init__(self):
        self.dones = 0
        self.faults = []

    def moved(self, cause, now_us):
        pass

    def contact(self, now_us):
        pass

    def done(self, now_us, data=b""):
        self.dones += 1

    def fault(self, code, flags, now_us):
        self.faults.append(code)


def home(core, link):
    """Let the hand home; returns the clock at its end."""
    core.link = link
    assert core.start(wire.OP_HOME, b"", 1_000) == 0
    now_us = 1_000
    while core.due_us(now_us) >= 0:
        now_us += 1_000
        core.poll(now_us)
    return now_us


def test_the_first_setpoint_powers_the_lifting_servo_alone(chip, config):
    core, relax = make_hand(chip, config)
    assert PWM.log == []
    home(core, NoLink())
    assert PWM.log[0][0] == 7
    first_xy = next(n for n, (pin, _) in enumerate(PWM.log) if pin != 7)
    lifted_ns = round((1009.0 + 54.5 * 20) * 1000)
    assert PWM.log[first_xy - 1][1] == pytest.approx(lifted_ns, abs=1_000)
    relax()
    assert sorted(PWM.log[-3:]) == [(5, None), (6, None), (7, None)]


def test_pulses_follow_the_calibration_of_each_axis(chip, config):
    core, _ = make_hand(chip, config)
    now_us = home(core, NoLink())
    assert core.start(wire.OP_MOVE, wire.pack_args(wire.OP_MOVE, 80_000, 45_000, 10_000), now_us) == 0
    while core.due_us(now_us) >= 0:
        now_us += 1_000
        core.poll(now_us)
    assert dict(PWM.log) == {5: 1_500_000, 6: 1_500_000, 7: 1_554_000}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        # 160 mm at 15 us/mm end beyond the longest pulse.
        (
            {
                "PWM_SERVOS": (
                    (5, 600.0, 15.0, 500, 2500),
                    (6, 600.0, 20.0, 500, 2500),
                    (7, 1009.0, 54.5, 500, 2500),
                )
            },
            "3000",
        ),
        ({"KINEMATICS": {"kind": "cartesan"}}, "cartesan"),
        (
            {
                "KINEMATICS": {
                    "kind": "scara",
                    "base_um": (80_000, -60_000),
                    "upper_um": 80_000,
                    "fore_um": 80_000,
                    "elbow": "left",
                    "joints": ((-3.2, 3.2, 5.0), (-3.0, 3.0, 5.0), (-2_000, 20_000, 120)),
                }
            },
            "does not reach",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_together_is_refused_before_a_servo_has_power(
    chip, config, change, complaint
):
    vars(config).update(change)
    with pytest.raises(ValueError, match=complaint):
        make_hand(chip, config)
    assert PWM.log == []


def test_the_last_setpoint_is_kept_in_rtc_memory(chip):
    module = chip("drives")
    assert module.RtcMemory().recall() is None
    module.RtcMemory().keep(1, -2, 3)
    assert module.RtcMemory().recall() == (1, -2, 3)


def test_bus_servos_are_asked_where_they_are_before_the_hand_moves(chip, config, simulated_servos):
    servos = simulated_servos({1: 1_000, 2: 1_000, 3: 2_000})
    chip.machine.UART = lambda number, **settings: servos
    config.DRIVE = "sts"
    core, relax = make_hand(chip, config)
    assert core.caps() & wire.CAP_HAND_PROBE
    assert servos.torque == {1: 0, 2: 0, 3: 0}
    link = NoLink()
    home(core, link)
    assert (link.dones, link.faults) == (1, [])
    assert servos.torque == {1: 1, 2: 1, 3: 1}
    assert servos.snap_steps <= 2
    assert servos.position == {1: 200, 2: 200, 3: 2_900}
    relax()
    servos.settle()
    assert servos.torque == {1: 0, 2: 0, 3: 0}


def test_a_hand_whose_bus_servos_do_not_answer_says_so_and_moves_nothing(chip, config, simulated_servos):
    servos = simulated_servos({1: 1_000, 2: 1_000})
    chip.machine.UART = lambda number, **settings: servos
    config.DRIVE = "sts"
    core, _ = make_hand(chip, config)
    assert core.start(wire.OP_HOME, b"", 1_000) == wire.FAULT_DRIVE
    assert not core.caps() & wire.CAP_HAND_PROBE
    assert servos.torque == {1: 0, 2: 0}


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


def test_boot_ids_differ_while_the_store_counts_and_after_it_was_lost(chip, monkeypatch):
    start = chip("start")
    monkeypatch.setattr(start.os, "urandom", lambda n: b"\x11\x22\x33"[:n])
    assert [start.next_boot_id() for _ in range(3)] == [0x11223301, 0x11223302, 0x11223303]
    NVS.stored = {}
    monkeypatch.setattr(start.os, "urandom", lambda n: b"\x44\x55\x66"[:n])
    assert start.next_boot_id() == 0x44556601


def test_the_uid_has_its_length(chip):
    start = chip("start")
    assert start.board_uid() == b"\x01\x02\x03\x04\x05\x06\x00\x00"


# -- the main loop ---------------------------------------------------------------------------------------------


class Pin(int):
    IN, PULL_UP = 0, 1
    level = 1

    def __new__(cls, number, *mode):
        return int.__new__(cls, number)

    def value(self):
        return Pin.level


class LoopEnds(Exception):
    """What a test throws into the loop after some rounds."""


class Board:
    """The chip around main.py: its UART to the host, its watchdog, its clock, and what happened in which order."""

    def __init__(self, rounds):
        self.log = []
        self.sent = bytearray()
        self.to_board = bytearray()
        self.now_ms = 0
        self._rounds = rounds

    # UART
    def any(self):
        return len(self.to_board)

    def readinto(self, buffer):
        n = min(len(buffer), len(self.to_board))
        buffer[:n] = self.to_board[:n]
        del self.to_board[:n]
        return n

    def write(self, data):
        self.sent += data
        self.log.append("write")

    # watchdog, time, reset
    def feed(self):
        self.log.append("feed")

    def sleep_ms(self, ms):
        self.log.append("sleep")
        self.now_ms += ms
        self._rounds -= 1
        if not self._rounds:
            raise LoopEnds


@pytest.fixture
def run_main(chip, monkeypatch):
    """Runs main.py as the chip does, for so many rounds of its loop; returns the Board."""

    def run(rounds, kind="hand"):
        board = Board(rounds)
        machine = chip.machine
        machine.Pin = Pin
        machine.UART = lambda number, **settings: board
        machine.WDT = lambda timeout: board
        machine.reset = lambda: board.log.append("reset")
        monkeypatch.setattr(time, "ticks_ms", lambda: board.now_ms, raising=False)
        monkeypatch.setattr(time, "ticks_us", lambda: board.now_ms * 1_000, raising=False)
        monkeypatch.setattr(time, "sleep_ms", board.sleep_ms, raising=False)
        micropython = ModuleType("micropython")
        micropython.kbd_intr = lambda char: board.log.append(f"kbd_intr {char}")
        monkeypatch.setitem(sys.modules, "micropython", micropython)
        shipped = importlib.import_module(PORT + "board_config")
        monkeypatch.setattr(shipped, "KIND", kind)
        monkeypatch.setitem(sys.modules, "board_config", shipped)
        chip("drives")
        chip("hand")
        try:
            chip("main")
        except LoopEnds:
            board.log.append("ended")
        finally:
            sys.modules.pop(PORT + "main", None)
        return board

    return run


def test_the_loop_feeds_the_watchdog_once_at_the_end_of_each_round(run_main):
    board = run_main(50)
    assert board.log[0] == "kbd_intr -1"
    rounds = [entry for entry in board.log if entry in ("feed", "sleep")]
    assert rounds == ["feed", "sleep"] * 50
    assert board.log.index("write") < board.log.index("feed"), "fed after the work, not before"


def test_a_loop_that_fails_starts_the_board_again(run_main):
    board = run_main(3)
    assert board.log[-2:] == ["reset", "ended"]


def test_a_board_on_the_chip_says_hello_on_its_uart(run_main):
    board = run_main(5)
    (hello,) = wire.Decoder().feed(bytes(board.sent))
    assert hello.type == wire.HELLO
    assert hello.boot_id & 0xFF == 1
    body = wire.unpack_hello(hello.body)
    assert (body.kind, body.uid) == (wire.KIND_HAND, b"\x01\x02\x03\x04\x05\x06\x00\x00")
    assert wire.unpack_hand_tail(body.tail) == (0, 160_000, 0, 90_000, -2_000, 20_000, 120, 1_500)


def test_the_maintenance_pin_leaves_the_board_to_the_repl(run_main, monkeypatch):
    monkeypatch.setattr(Pin, "level", 0)
    assert run_main(5).log == []
