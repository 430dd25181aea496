"""One open port with one HostLink on it: the trio adapter that moves the bytes and keeps the deadlines."""

from collections.abc import Callable

import trio

from edge_daemon.boards.errors import PortGone
from edge_daemon.boards.hearing import Hearing
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import LinkEvent, Lost, Online
from edge_daemon.boards.port import Port


class _Kick:
    """Wakes the one task that waits for it; kicks before the wait are kept."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()


class Session:
    """Drives a HostLink over a port until the link is lost; owns neither for longer than run().

    Events go to ``on_event`` in order, called from the session's tasks and from one that listens; the last one is Lost.
    """

    def __init__(
        self,
        port: Port,
        link: HostLink,
        on_event: Callable[[LinkEvent], None],
        now_ns: Callable[[], int],
    ) -> None:
        self.link = link
        self._port = port
        self._on_event = on_event
        self._now_ns = now_ns
        self._output = _Kick()
        self._deadline = _Kick()
        self._scope = trio.CancelScope()
        self._own_reading = trio.CancelScope()
        self._listener: trio.CancelScope | None = None
        self._line_free = _Kick()
        self._bytes_taken = 0
        self._unwritten = b""
        self._wakes_ns: int | None = None
        # The port counts over all its sessions.
        self._first_byte = port.bytes_written
        self._last_byte: int | None = None
        self._over = False
        self.was_online = False
        # Whether it ended because the port went away, which USB does every few hours on healthy rigs.
        self.port_gone = False

    async def run(self) -> None:
        """Until the link is lost, the port is gone, or drop() is called."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                nursery.start_soon(self._keep_deadlines)
                nursery.start_soon(self._write)
                # A link that was begun with a HELLO has something to say at once.
                self.pump()

    def drop(self, reason: str) -> None:
        """End the session now and say nothing more to the board, whose deadman then makes it safe."""
        self._end(Lost(reason))

    def next_byte(self) -> int:
        """The number, counted over the session, of the next byte that is handed to the link."""
        return self._bytes_taken + self.link.output_size

    def has_left(self, byte_number: int) -> bool:
        """Whether this byte (see next_byte()) was given to the kernel."""
        last_byte = self._port.bytes_written if self._last_byte is None else self._last_byte
        return last_byte - self._first_byte > byte_number

    def pump(self) -> None:
        """Pass on what the link has produced: events now, and bytes too as far as the line takes them at once."""
        for event in self.link.take_events():
            if isinstance(event, Lost):
                self._end(event)
            elif not self._over:
                self.was_online = self.was_online or isinstance(event, Online)
                self._on_event(event)
        self._send()
        # Waking the keeper for a deadline that has moved away would cost more than it saves.
        deadline_ns = self.link.next_deadline()
        if deadline_ns is None or self._wakes_ns is None or deadline_ns < self._wakes_ns:
            self._deadline.set()

    def _end(self, lost: Lost) -> None:
        if not self._over:
            self._over = True
            # A task that is already scheduled would still write; has_left() must stay true to its word.
            self._port.stop_writing()
            self._last_byte = self._port.bytes_written
            self._scope.cancel()
            self._send_listener_back()
            self._on_event(lost)

    async def listen(self, heard: Hearing) -> LinkEvent:
        """What heard.receive() returns. Cancelling loses none.

        One task at a time reads the line itself while it waits: between an answer and the task that asked for it
        there is then no other task and no further turn of the event loop, which was a fifth of the round trip.
        """
        if heard.empty and self._listener is None and not self._over:
            self._own_reading.cancel()
            try:
                with trio.CancelScope() as self._listener:
                    while heard.empty:
                        await self._read_once()
            finally:
                self._listener = None
                self._line_free.set()
            if not heard.empty:
                return heard.take()
        return await heard.receive()

    async def _read(self) -> None:
        """Read the line, except while a task that listens does."""
        while not self._over:
            if self._listener is not None:
                await self._line_free.wait()
                continue
            with trio.CancelScope() as self._own_reading:
                while self._listener is None and not self._over:
                    await self._read_once()
            if not self._own_reading.cancelled_caught:
                # These bytes came just before somebody began to listen: what he waits for may be among them.
                self._send_listener_back()

    def _send_listener_back(self) -> None:
        """From reading the line to waiting for what others read."""
        if self._listener is not None:
            self._listener.cancel()

    async def _read_once(self) -> None:
        try:
            data = await self._port.read()
        except PortGone as gone:
            self._hung_up(gone)
            return
        self.link.receive(data, self._now_ns())
        self.pump()

    async def _keep_deadlines(self) -> None:
        while True:
            self._wakes_ns = deadline_ns = self.link.next_deadline()
            if deadline_ns is None:
                return
            with trio.move_on_after(max(0, deadline_ns - self._now_ns()) / 1e9):
                await self._deadline.wait()
                continue
            self.link.poll(self._now_ns())
            self.pump()

    def _send(self) -> None:
        if self._unwritten or self._over:
            return
        data = self.link.take_output()
        self._bytes_taken += len(data)
        if not data:
            return
        try:
            written = self._port.write_now(data)
        except PortGone as gone:
            self._hung_up(gone)
            return
        self._unwritten = data[written:]
        if self._unwritten:
            self._output.set()

    async def _write(self) -> None:
        """The rest, when the line takes it."""
        while True:
            await self._output.wait()
            while self._unwritten:
                try:
                    await self._port.write(self._unwritten)
                except PortGone as gone:
                    self._hung_up(gone)
                    return
                self._unwritten = b""
                self._send()

    def _hung_up(self, gone: PortGone) -> None:
        self.port_gone = True
        self._end(Lost(str(gone)))
