"""One link on one open port: what a dropped session leaves behind."""

import os
import termios
import time

import pytest
import trio

from edge_daemon.boards.errors import PortGone
from edge_daemon.boards.hearing import Hearing
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import Lost, StopCleared, StopLatched
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


# -- who reads the line: the session, or the task that waits for an answer -------------------------------------


class TellingLink:
    """A link that understands two bytes: S latches the stop, C clears it."""

    def __init__(self):
        self.events = []

    def receive(self, data, now_ns):
        self.events += [StopLatched(now_ns) if byte == ord("S") else StopCleared() for byte in data]

    def take_events(self):
        events, self.events = self.events, []
        return events

    def take_output(self):
        return b""

    def next_deadline(self):
        return 1 << 62


class HandPort:
    """A port whose reads the test ends by hand, each with its own bytes; a cancelled read may end as well."""

    bytes_written = 0

    def __init__(self, deaf=False):
        self.reads = []
        self.deaf = deaf
        self.reader = None

    async def read(self):
        self.reader = trio.lowlevel.current_task().name
        send, receive = trio.open_memory_channel(1)
        self.reads.append(send)
        with trio.CancelScope(shield=self.deaf):
            try:
                return await receive.receive()
            finally:
                self.reads.remove(send)

    async def give(self, data, index=-1):
        await trio.testing.wait_all_tasks_blocked()
        self.reads[index].send_nowait(data)

    def stop_writing(self):
        pass


class Ears:
    """A session on such a port, and what tasks that listen have heard."""

    def __init__(self, nursery, port):
        self.port = port
        self.hearings = []
        self.told = []
        self.session = Session(port, TellingLink(), self.on_event, lambda: 0)
        self.nursery = nursery
        nursery.start_soon(self.session.run)

    def on_event(self, event):
        for hearing in self.hearings:
            hearing.hear(event)

    async def listen(self, *kinds):
        with Hearing(self.hearings, *kinds) as heard:
            self.told.append(await self.session.listen(heard))

    async def told_types(self):
        await trio.testing.wait_all_tasks_blocked()
        return [type(event) for event in self.told]


async def test_one_task_at_a_time_reads_the_line_and_all_that_listen_hear_theirs(nursery):
    ears = Ears(nursery, port := HandPort())
    await trio.testing.wait_all_tasks_blocked()
    for kind in (StopLatched, StopCleared, StopCleared):
        nursery.start_soon(ears.listen, kind)
        await trio.testing.wait_all_tasks_blocked()
        assert len(port.reads) == 1
        assert "listen" in port.reader
    await port.give(b"S")
    assert await ears.told_types() == [StopLatched]
    assert len(port.reads) == 1, "the first one has left; the line must be read for the others"
    await port.give(b"C")
    assert await ears.told_types() == [StopLatched, StopCleared, StopCleared]
    assert len(port.reads) == 1
    ears.session.drop("the test is over")


async def test_what_the_session_read_just_before_somebody_listens_reaches_him(nursery):
    ears = Ears(nursery, port := HandPort(deaf=True))
    await trio.testing.wait_all_tasks_blocked()
    port.deaf = False
    nursery.start_soon(ears.listen, StopLatched)
    await trio.testing.wait_all_tasks_blocked()
    assert len(port.reads) == 2, "a read whose bytes have come can no longer be cancelled"
    await port.give(b"S", 0)
    assert await ears.told_types() == [StopLatched]
    ears.session.drop("the test is over")


async def test_who_listens_is_told_when_the_session_ends(nursery):
    ears = Ears(nursery, HandPort())
    nursery.start_soon(ears.listen, StopLatched)
    await trio.testing.wait_all_tasks_blocked()
    ears.session.drop("the test is over")
    assert await ears.told_types() == [Lost]


async def test_when_who_listens_is_cancelled_the_session_reads_on(nursery):
    ears = Ears(nursery, port := HandPort())
    await trio.testing.wait_all_tasks_blocked()
    with trio.move_on_after(0.01):
        await ears.listen(StopLatched)
    nursery.start_soon(ears.listen, StopCleared)
    nursery.start_soon(ears.listen, StopLatched)
    await port.give(b"SC")
    assert sorted(kind.__name__ for kind in await ears.told_types()) == ["StopCleared", "StopLatched"]
    assert len(port.reads) == 1
    ears.session.drop("the test is over")
