"""One open port with one HostLink on it: the trio adapter that moves the bytes and keeps the deadlines."""

from collections.abc import Callable

import trio

from edge_daemon.boards.errors import PortGone
from edge_daemon.boards.link import HostLink
from edge_daemon.boards.link_events import LinkEvent, Lost, Online
from edge_daemon.boards.port import SerialPort


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

    Events go to ``on_event`` in order, called from the session's tasks; the last one is Lost.
    """

    def __init__(
        self,
        port: SerialPort,
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
        self._bytes_taken = 0
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

    def drop(self, reason: str) -> None:
        """End the session now and say nothing more to the board, whose deadman then makes it safe."""
        self._end(Lost(reason))

    def next_byte(self) -> int:
        """The number, counted over the session, of the next byte that is handed to the link."""
        return self._bytes_taken + self.link.output_size

    def has_left(self, byte_number: int) -> bool:
        """Whether this byte (see next_byte()) was given to the kernel."""
        return self._port.bytes_written > byte_number

    def pump(self) -> None:
        """Pass on what the link has produced: events now, bytes and deadlines through their tasks."""
        for event in self.link.take_events():
            if isinstance(event, Lost):
                self._end(event)
            elif not self._over:
                self.was_online = self.was_online or isinstance(event, Online)
                self._on_event(event)
        self._output.set()
        self._deadline.set()

    def _end(self, lost: Lost) -> None:
        if not self._over:
            self._over = True
            # A task that is already scheduled would still write; has_left() must stay true to its word.
            self._port.stop_writing()
            self._scope.cancel()
            self._on_event(lost)

    async def _read(self) -> None:
        while True:
            try:
                data = await self._port.read()
            except PortGone as gone:
                self._hung_up(gone)
                return
            self.link.receive(data, self._now_ns())
            self.pump()

    async def _keep_deadlines(self) -> None:
        while True:
            deadline_ns = self.link.next_deadline()
            if deadline_ns is None:
                return
            with trio.move_on_after(max(0, deadline_ns - self._now_ns()) / 1e9):
                await self._deadline.wait()
                continue
            self.link.poll(self._now_ns())
            self.pump()

    async def _write(self) -> None:
        while True:
            data = self.link.take_output()
            self._bytes_taken += len(data)
            if not data:
                await self._output.wait()
                continue
            try:
                await self._port.write(data)
            except PortGone as gone:
                self._hung_up(gone)
                return

    def _hung_up(self, gone: PortGone) -> None:
        self.port_gone = True
        self._end(Lost(str(gone)))
