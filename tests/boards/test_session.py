"""One link on one open port: what a dropped session leaves behind."""

import os
import termios
import time

import pytest
import trio

from edge_daemon.boards.errors import PortGone
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import Lost
from edge_daemon.boards.port import SerialPort
from edge_daemon.boards.session import Session
from firmware import wire


@pytest.fixture
async def port(pty_board):
    port = await SerialPort.open(str(pty_board.path))
    yield port
    await port.aclose()


async def test_a_dropped_session_ends_at_once_tells_why_and_lets_no_byte_out(port, nursery):
    events = []
    session = Session(port, HostLink(1, time.monotonic_ns()), events.append, time.monotonic_ns)
    with trio.fail_after(5):
        async with trio.open_nursery() as running:
            running.start_soon(session.run)
            await trio.testing.wait_all_tasks_blocked()
            session.drop("the test is over")
            assert events == [Lost("the test is over")]
            with pytest.raises(PortGone, match="stopped"):
                await port.write(b"x")
    session.drop("again")
    assert len(events) == 1
    assert not session.has_left(0)


async def test_a_hang_up_ends_the_session_as_port_gone(port, pty_board):
    events = []
    session = Session(port, HostLink(1, time.monotonic_ns()), events.append, time.monotonic_ns)
    pty_board.unplug()
    with trio.fail_after(5):
        await session.run()
    assert session.port_gone
    assert "unplugged" in events[0].reason


async def test_a_second_session_on_the_same_port_counts_its_own_bytes(port, pty_board):
    first = Session(port, HostLink(1, time.monotonic_ns()), lambda event: None, time.monotonic_ns)
    await port.write(b"12345")
    assert first.has_left(4)
    assert not first.has_left(5)
    first.drop("over")
    port.resume_writing()
    second = Session(port, HostLink(2, time.monotonic_ns()), lambda event: None, time.monotonic_ns)
    await port.write(b"6")
    assert not first.has_left(5), "what the next session writes is not the first one's"
    assert second.has_left(0)
    assert not second.has_left(1)


async def test_bytes_that_the_line_does_not_take_at_once_leave_when_it_does(port, pty_board, nursery):
    tail = wire.pack_hand_tail(0, 1, 0, 1, 0, 1, 1, 1)
    body = wire.Hello(bytes(8), wire.KIND_HAND, 1, 0, 1, 15, 1, 0, tail).pack()
    (hello,) = wire.Decoder().feed(wire.encode_frame(wire.HELLO, 7, 0, 0, body))
    link = HostLink(1, 0, hello=hello)
    # On a clock that stands nothing is sent a second time.
    session = Session(port, link, lambda event: None, lambda: 0)
    pty_board.stick()
    nursery.start_soon(session.run)
    await trio.testing.wait_all_tasks_blocked()
    assert not session.has_left(0)
    termios.tcflow(pty_board._slave, termios.TCOON)
    with trio.fail_after(5):
        await trio.lowlevel.wait_readable(pty_board._master)
    (frame,) = wire.Decoder().feed(os.read(pty_board._master, 4096))
    assert (frame.type, frame.boot_id) == (wire.OPEN, 7)
    assert session.has_left(0)
    session.drop("the test is over")
