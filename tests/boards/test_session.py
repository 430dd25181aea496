"""One link on one open port: what a dropped session leaves behind."""

import time

import pytest
import trio

from edge_daemon.boards.errors import PortGone
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import Lost
from edge_daemon.boards.port import SerialPort
from edge_daemon.boards.session import Session


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
