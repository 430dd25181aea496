"""A phone that is a Linux kernel: the board's descriptor and reports go in by /dev/uhid, events come out.

Structs and event numbers: linux/uhid.h.
"""

import os
import select
import struct
import subprocess
import time
from pathlib import Path

from input_nodes import InputNode, nodes_below

from firmware.hid import descriptor
from firmware.hid.core import Usb

_DESTROY, _START, _STOP, _OUTPUT, _GET_REPORT, _GET_REPORT_REPLY, _CREATE2, _INPUT2, _SET_REPORT, _SET_REPLY = (
    1, 2, 3, 6, 9, 10, 11, 12, 13, 14,
)  # fmt: skip
_BUS_USB = 3
_VENDOR = 0x1209
_EVENT_SIZE = 4380
_EIO = 5
ENUMERATION_S = 30


class KernelPhone:
    """The kernel's side of the cable to one board, from enumeration (a second or two here) to close()."""

    def __init__(self, name: str, product_id: int, report_descriptor: bytes) -> None:
        subprocess.run(["modprobe", "uhid"], check=True)
        self._fd = os.open("/dev/uhid", os.O_RDWR | os.O_NONBLOCK)
        self.name = name
        self.leds = 0
        self.started = False
        self.reports_taken = 0
        # struct uhid_create2_req
        os.write(
            self._fd,
            struct.pack(
                "<I128s64s64sHHIIII4096s",
                _CREATE2,
                name.encode(),
                b"test/uhid",
                b"0001",
                len(report_descriptor),
                _BUS_USB,
                _VENDOR,
                product_id,
                1,
                0,
                report_descriptor,
            ),
        )
        self.device = self._enumerated(product_id)
        found = nodes_below(self.device)
        # By what the kernel puts behind the device's name; "" is the touch screen.
        self.nodes = {
            full_name.removeprefix(name).strip(): InputNode(path) for full_name, path in found.items()
        }

    def _enumerated(self, product_id: int) -> Path:
        """Answer the kernel's questions until a driver has the device and udev has its nodes."""
        end = time.monotonic() + ENUMERATION_S
        while time.monotonic() < end:
            if select.select([self._fd], [], [], 0.05)[0]:
                self.serve()
            for device in Path("/sys/bus/hid/devices").glob(f"*:{_VENDOR:04X}:{product_id:04X}.*"):
                if self.started and (device / "driver").exists():
                    subprocess.run(["udevadm", "settle"], check=True)
                    return device
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
        raise AssertionError(
            f"no driver took the device within {ENUMERATION_S} s; dmesg ends:\n{log[-2000:]}"
        )

    @property
    def driver(self) -> str:
        return (self.device / "driver").resolve().name

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()
        os.write(self._fd, struct.pack("<I", _DESTROY))
        os.close(self._fd)

    def serve(self) -> None:
        """Take what the kernel has to say to the device."""
        while True:
            try:
                event = os.read(self._fd, _EVENT_SIZE)
            except BlockingIOError:
                return
            kind = struct.unpack_from("<I", event)[0]
            if kind in (_START, _STOP):
                self.started = kind == _START
            elif kind == _OUTPUT:
                self._output(event[4:])
            elif kind == _GET_REPORT:
                self._get_report(event[4:])
            elif kind == _SET_REPORT:
                os.write(self._fd, struct.pack("<IIH", _SET_REPLY, struct.unpack_from("<I", event, 4)[0], 0))

    def _output(self, body: bytes) -> None:
        size = struct.unpack_from("<H", body, 4096)[0]
        report = body[:size]
        if report[0] == descriptor.REPORT_KEYBOARD:
            self.leds = report[1]

    def _get_report(self, body: bytes) -> None:
        request, report_id = struct.unpack_from("<IB", body)
        is_touch = report_id == descriptor.REPORT_TOUCH
        answer = descriptor.TOUCH_FEATURE if is_touch else b""
        reply = struct.pack("<IIHH", _GET_REPORT_REPLY, request, 0 if is_touch else _EIO, len(answer))
        os.write(self._fd, reply + answer)

    def wait_for_output(self, timeout_s: float = 10.0) -> None:
        """Until the kernel's LED worker has sent its report. Fails when none comes."""
        assert select.select([self._fd], [], [], timeout_s)[0], "the kernel sent no output report"
        self.serve()

    def input(self, report: bytes) -> None:
        """One input report. Its events are in the nodes' queues when this returns."""
        os.write(self._fd, struct.pack("<IH", _INPUT2, len(report)) + report)
        self.reports_taken += 1

    def keys_down(self) -> dict[str, set[int]]:
        """By node, what the kernel believes to be pressed; nodes with nothing down are left out."""
        return {name: down for name, node in self.nodes.items() if (down := node.keys_down())}


class KernelUsb(Usb):
    """The board's USB port: one endpoint, whose report the phone takes when the test's clock says so."""

    def __init__(self, phone: KernelPhone) -> None:
        self._phone = phone
        self._waiting: bytes | None = None
        self.asleep = False

    def ready(self) -> bool:
        return self._phone.started

    def send(self, report: "bytes | memoryview") -> bool:
        if self._waiting is not None:
            return False
        self._waiting = bytes(report)
        return True

    def pending(self) -> int:
        return 0 if self._waiting is None else 1

    def leds(self) -> int:
        return self._phone.leds

    def poll(self) -> None:
        """The phone asks for a report, unless it has stopped asking."""
        report = self._waiting
        if report is not None and not self.asleep:
            self._waiting = None
            self._phone.input(report)
