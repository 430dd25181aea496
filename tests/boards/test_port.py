"""The serial port on real pseudo terminals: configuration, hang-up, exclusiveness, and never a blocked loop."""

import os
import subprocess
import sys
import termios
import tty

import pytest
import trio

from edge_daemon.boards.errors import PortBusy, PortDenied, PortGone, PortMissing, PortUnusable
from edge_daemon.boards.port import SerialPort
from edge_daemon.holders import find_holders

LOCK_AND_WAIT = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(1, b"locked")
sys.stdin.read()
"""


class Pty:
    """Both ends of a pseudo terminal; the far end is the board's."""

    def __init__(self):
        self.far, self.near = os.openpty()
        tty.setraw(self.near)
        settings = termios.tcgetattr(self.near)
        settings[2] |= termios.HUPCL
        termios.tcsetattr(self.near, termios.TCSANOW, settings)
        self.path = os.ttyname(self.near)

    def hang_up(self):
        if self.far >= 0:
            os.close(self.far)
            os.close(self.near)
            self.far = self.near = -1


async def drain(pty):
    """Take what arrives at the far end until cancelled."""
    while True:
        await trio.lowlevel.wait_readable(pty.far)
        os.read(pty.far, 65536)


@pytest.fixture
def pty():
    pty = Pty()
    yield pty
    pty.hang_up()


@pytest.fixture
async def port(pty):
    port = await SerialPort.open(pty.path)
    yield port
    await port.aclose()


async def test_bytes_pass_both_ways_unchanged(pty, port):
    every_byte = bytes(range(256))
    await port.write(every_byte)
    assert os.read(pty.far, 1000) == every_byte
    os.write(pty.far, every_byte)
    received = b""
    while len(received) < 256:
        received += await port.read()
    assert received == every_byte
    assert (port.bytes_written, port.bytes_read) == (256, 256)


async def test_it_does_not_hang_up_on_close_and_an_idle_read_is_no_hang_up(pty, port):
    settings = termios.tcgetattr(pty.near)
    assert not settings[2] & termios.HUPCL
    assert settings[6][termios.VMIN] == 1
    with trio.move_on_after(0.02) as scope:
        await port.read()
    assert scope.cancelled_caught


async def test_a_hang_up_is_port_gone_for_the_reader_and_the_writer(pty, port):
    pty.hang_up()
    with pytest.raises(PortGone, match="unplugged"):
        await port.read()
    with pytest.raises(PortGone, match=port.path):
        await port.write(b"x")


async def test_a_hang_up_wakes_a_waiting_reader(pty, port, nursery):
    async def hang_up():
        await trio.testing.wait_all_tasks_blocked()
        pty.hang_up()

    nursery.start_soon(hang_up)
    with trio.fail_after(5), pytest.raises(PortGone):
        await port.read()


async def test_a_cancelled_read_whose_bytes_another_took_leaves_the_line_to_that_one(
    pty, port, nursery, monkeypatch
):
    waiting = []
    wait_readable = trio.lowlevel.wait_readable

    async def only_one(fd):
        waiting.append(fd)
        await wait_readable(fd)

    def taken_by_another(fd, size):
        scope.cancel()
        raise BlockingIOError

    monkeypatch.setattr(trio.lowlevel, "wait_readable", only_one)
    monkeypatch.setattr("edge_daemon.boards.port.os.read", taken_by_another)
    os.write(pty.far, b"x")
    with trio.fail_after(5), trio.CancelScope() as scope:
        await port.read()
    assert scope.cancelled_caught
    assert len(waiting) == 1, "it went for the line once more"


async def test_closing_wakes_reader_and_writer(pty, port):
    async def read():
        with pytest.raises(PortGone):
            await port.read()

    async def write():
        with pytest.raises(PortGone):
            await port.write(bytes(1_000_000))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(write)
            await trio.testing.wait_all_tasks_blocked()
            await port.aclose()


async def test_a_line_that_does_not_drain_blocks_neither_the_loop_nor_the_close(pty, port):
    with trio.move_on_after(0.05) as scope:
        await port.write(bytes(1_000_000))
    assert scope.cancelled_caught
    assert 0 < port.bytes_written < 1_000_000
    with trio.fail_after(5):
        await port.aclose()


async def test_no_byte_leaves_after_writing_was_stopped_even_from_a_write_under_way(pty, port, nursery):
    async def write():
        with pytest.raises(PortGone):
            await port.write(bytes(1_000_000))

    with trio.fail_after(5):
        async with trio.open_nursery() as writers:
            writers.start_soon(write)
            await trio.testing.wait_all_tasks_blocked()
            port.stop_writing()
            written = port.bytes_written
            nursery.start_soon(drain, pty)
    assert port.bytes_written == written


async def test_a_second_opener_is_refused_with_the_first_ones_pid_and_program(pty):
    holder = await trio.lowlevel.open_process(
        [sys.executable, "-c", LOCK_AND_WAIT, pty.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    async with holder.stdin, holder.stdout:
        assert await holder.stdout.receive_some() == b"locked"
        with pytest.raises(PortBusy, match=rf"pid {holder.pid} \(python") as busy:
            await SerialPort.open(pty.path)
        assert pty.path in str(busy.value)
    await holder.wait()
    port = await SerialPort.open(pty.path)
    await port.aclose()


async def test_a_program_that_holds_the_port_without_a_lock_is_found_too(pty):
    program = LOCK_AND_WAIT.replace("fcntl.flock(fd, fcntl.LOCK_EX)\n", "")
    holder = await trio.lowlevel.open_process(
        [sys.executable, "-c", program, pty.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    async with holder.stdin, holder.stdout:
        await holder.stdout.receive_some()
        assert holder.pid in [found.pid for found in find_holders(pty.path)]
    await holder.wait()
    assert holder.pid not in [found.pid for found in find_holders(pty.path)]


async def test_this_process_cannot_open_a_port_twice(pty, port):
    with pytest.raises(PortBusy, match="this process itself"):
        await SerialPort.open(pty.path)


async def test_a_closed_port_can_be_opened_again(pty, port):
    await port.aclose()
    again = await SerialPort.open(pty.path)
    await again.write(b"hello")
    assert os.read(pty.far, 100) == b"hello"
    await again.aclose()


async def test_a_port_that_is_not_there_is_named(tmp_path):
    missing = tmp_path / "usb-Silicon_Labs_CP2102-if00"
    with pytest.raises(PortMissing, match="CP2102"):
        await SerialPort.open(str(missing))


async def test_a_link_whose_board_has_left_is_a_missing_port(tmp_path):
    link = tmp_path / "by-id"
    link.symlink_to(tmp_path / "ttyUSB7")
    with pytest.raises(PortMissing):
        await SerialPort.open(str(link))


async def test_a_file_that_is_no_serial_port_is_unusable(tmp_path):
    plain = tmp_path / "file"
    plain.write_bytes(b"")
    with pytest.raises(PortUnusable, match="file"):
        await SerialPort.open(str(plain))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
async def test_a_port_of_another_group_says_which_group_is_missing(tmp_path):
    plain = tmp_path / "file"
    plain.write_bytes(b"")
    plain.chmod(0)
    with pytest.raises(PortDenied, match="dialout"):
        await SerialPort.open(str(plain))
