"""A USB serial port of a real kernel: modem lines, exclusiveness, and the plug being pulled."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest
import trio
from usb_ports import by_id, holders_name

from edge_daemon.boards import PortGone
from edge_daemon.boards.port import SerialPort

PATIENCE_S = 60.0

OPEN_IN_A_PROCESS = """
import sys, trio
from edge_daemon.boards.errors import PortBusy
from edge_daemon.boards.port import SerialPort
try:
    trio.run(SerialPort.open, sys.argv[1])
except PortBusy as busy:
    print(busy)
"""
AS_DIALOUT = ("setpriv", "--reuid=nobody", "--regid=dialout", "--clear-groups")
OPEN_PLAINLY = "import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)"


async def test_an_open_port_is_raw_keeps_its_modem_lines_down_and_does_not_hang_up_on_close(usb):
    port = await SerialPort.open(by_id("ALPHA"))
    try:
        fd = port._fd
        lines = struct.unpack("<I", fcntl.ioctl(fd, termios.TIOCMGET, bytes(4)))[0]
        assert not lines & (termios.TIOCM_DTR | termios.TIOCM_RTS)
        settings = termios.tcgetattr(fd)
        assert not settings[2] & termios.HUPCL
        assert not settings[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        assert settings[6][termios.VMIN] == 1
    finally:
        await port.aclose()


class ModemLines:
    """The FTDI requests that set DTR and RTS, as they go over USB (usbmon, Documentation/usb/usbmon.rst)."""

    _SET_MODEM_CTRL = "01"
    DTR, RTS = 1, 2

    def __init__(self) -> None:
        subprocess.run(["modprobe", "usbmon"], check=True)
        self._fd = os.open("/sys/kernel/debug/usb/usbmon/0u", os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> list[int]:
        """The levels of both lines after each request."""
        levels, states = 0, []
        text = b""
        try:
            while part := os.read(self._fd, 65536):
                text += part
        except BlockingIOError:
            pass
        for words in map(str.split, text.decode().splitlines()):
            # urb, time, "S"ubmission, Control out:bus:device:endpoint, "s", bmRequestType, bRequest, wValue …
            if (
                words[2] == "S"
                and words[3].startswith("Co:")
                and words[4:7] == ["s", "40", self._SET_MODEM_CTRL]
            ):
                value = int(words[7], 16)
                levels = levels & ~(value >> 8) | value & value >> 8
                states.append(levels)
        return states

    def close(self) -> None:
        os.close(self._fd)


async def test_opening_and_closing_never_drives_an_esp32s_reset_line(usb, figures):
    """The usual auto-reset circuit pulls EN where RTS is asserted and DTR is not."""
    lines = ModemLines()
    try:
        port = await SerialPort.open(by_id("ALPHA"))
        opened = lines.read()
        await port.aclose()
        closed = lines.read()
    finally:
        lines.close()
    figures.values["modem_lines_at_open"] = opened
    assert opened[-1] == 0
    assert ModemLines.RTS not in opened
    assert closed == []


async def test_a_second_opener_is_refused_with_this_process_named(usb):
    port = await SerialPort.open(by_id("ALPHA"))
    try:
        again = await trio.run_process(
            [sys.executable, "-c", OPEN_IN_A_PROCESS, by_id("ALPHA")], capture_stdout=True
        )
        assert f"pid {os.getpid()} ({holders_name()})" in again.stdout.decode()
        # Without our lock's manners, and without root's privilege: the kernel itself says no.
        foreign = await trio.run_process(
            [*AS_DIALOUT, "python3", "-c", OPEN_PLAINLY, by_id("ALPHA")],
            check=False,
            capture_stderr=True,
        )
        assert "Device or resource busy" in foreign.stderr.decode()
    finally:
        await port.aclose()


async def test_pulling_the_plug_wakes_a_reader_with_port_gone(usb):
    port = await SerialPort.open(by_id("BETA"))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(usb.unplug, "BETA")
            with trio.fail_after(PATIENCE_S), pytest.raises(PortGone, match="unplugged"):
                while True:
                    await port.read()
        with pytest.raises(PortGone):
            await port.write(b"x")
    finally:
        await port.aclose()
