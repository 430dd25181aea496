"""The serial line: bytes pass unchanged until something is made wrong with it, and a pulled plug is a hang-up."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edge_daemon.bench.twin.line import Direction, SerialLine


@pytest.fixture
def line(tmp_path: Path) -> Iterator[SerialLine]:
    line = SerialLine(tmp_path / "by-id" / "usb-Twin", np.random.default_rng(1))
    line.plug()
    yield line
    line.close()


def pump_all(line: SerialLine) -> None:
    poller = select.poll()
    for fd in line.fds():
        poller.register(fd, select.POLLIN)
    for fd, _ in poller.poll(1000):
        line.pump(fd)


def test_bytes_pass_both_ways_unchanged(line: SerialLine) -> None:
    everything = bytes(range(256))
    with line.attach_board() as board:
        host = os.open(line.port, os.O_RDWR | os.O_NOCTTY)
        os.write(host, everything)
        pump_all(line)
        assert board.recv(1024) == everything
        board.send(everything[::-1])
        pump_all(line)
        assert os.read(host, 1024) == everything[::-1]
        os.close(host)


def test_pulling_the_plug_hangs_up_and_plugging_in_makes_another_port_of_the_same_name(
    line: SerialLine,
) -> None:
    host = os.open(line.port, os.O_RDWR | os.O_NOCTTY)
    first = os.readlink(line.port)
    line.unplug()
    assert not line.port.exists()
    with pytest.raises(OSError, match="Input/output"):
        os.write(host, b"x")
    assert os.read(host, 10) == b""
    line.plug()
    # The first pty's number is still held by the open file, as ttyUSB0 is by a daemon that did not close it.
    assert os.readlink(line.port) != first
    os.close(host)


def test_a_board_that_stays_powered_over_a_replug_goes_on_talking(line: SerialLine) -> None:
    with line.attach_board() as board:
        line.unplug()
        board.send(b"lost")
        pump_all(line)
        line.plug()
        host = os.open(line.port, os.O_RDWR | os.O_NOCTTY)
        board.send(b"heard")
        pump_all(line)
        assert os.read(host, 100) == b"heard"
        os.close(host)
    assert line.to_host.lost == 4


def test_a_false_alarm_at_a_board_s_end_does_not_cut_it_off(line: SerialLine) -> None:
    with line.attach_board() as board:
        for fd in line.fds():
            line.pump(fd)
        host = os.open(line.port, os.O_RDWR | os.O_NOCTTY)
        board.send(b"still here")
        pump_all(line)
        assert os.read(host, 100) == b"still here"
        os.close(host)


def test_bytes_for_a_host_that_does_not_read_are_lost_and_counted(line: SerialLine) -> None:
    for _ in range(40):
        line.send_as_board(b"y" * 1000)
    assert line.to_host.lost > 0


def direction() -> Direction:
    return Direction(np.random.default_rng(3))


def test_a_cut_lets_exactly_so_many_bytes_through() -> None:
    way = direction()
    way.cut_after(5)
    assert way.carry(b"abc") + way.carry(b"defg") + way.carry(b"hi") == b"abcde"
    way.heal()
    assert way.carry(b"jk") == b"jk"


def test_dropped_bytes_are_gone_and_the_rest_is_whole() -> None:
    way = direction()
    way.drop_next(3)
    assert way.carry(b"ab") + way.carry(b"cdef") == b"def"
    assert way.lost == 3


def test_corruption_turns_one_bit_of_each_of_the_next_bytes() -> None:
    way = direction()
    way.corrupt_next(2)
    carried = way.carry(b"\x00\x00\x00\x00")
    assert [byte.bit_count() for byte in carried] == [1, 1, 0, 0]


def test_noise_damages_about_its_share_of_the_bytes() -> None:
    way = direction()
    way.set_noise(0.1)
    damaged = sum(byte != 0 for byte in way.carry(bytes(4000)))
    assert 300 < damaged < 500
