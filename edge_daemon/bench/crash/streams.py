"""A connection in memory between a plane and a daemon, which may break, and whose daemon may die in the middle."""

import trio

from edge_daemon.bench.crash.points import Points


class Hands:
    """The hands of one daemon process: tied once it is dead, whatever its tasks still try."""

    def __init__(self) -> None:
        self.tied = False


class _Way:
    """One direction: what was sent and not yet read."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self.broken = False
        self._stir = trio.Event()

    def put(self, data: bytes) -> None:
        self.data += data
        self._stir.set()

    def end(self) -> None:
        """The reader gets what is there, then the end of the stream."""
        self.ended = True
        self._stir.set()

    def break_off(self) -> None:
        """Whoever sends is told so."""
        self.broken = True
        self.end()

    async def take(self, max_bytes: int | None) -> bytes:
        while not self.data and not self.ended:
            await self._stir.wait()
            self._stir = trio.Event()
        taken = bytes(self.data if max_bytes is None else self.data[:max_bytes])
        del self.data[: len(taken)]
        return taken


class _End(trio.abc.HalfCloseableStream):
    """The plane's or the staff's end."""

    def __init__(self, inbox: _Way, outbox: _Way) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self._refuse_closed()
        if self._outbox.broken or self._outbox.ended:
            raise trio.BrokenResourceError("the other end is gone")
        self._outbox.put(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        self._refuse_closed()
        return await self._inbox.take(max_bytes)

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        self._refuse_closed()
        self._outbox.end()

    async def aclose(self) -> None:
        self._closed = True
        self._inbox.break_off()
        self._outbox.end()
        await trio.lowlevel.checkpoint()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("closed here")


class _EdgeEnd(_End):
    """The daemon's end: each write is a point at which something may happen to the daemon."""

    def __init__(self, inbox: _Way, outbox: _Way, hands: Hands, points: Points) -> None:
        super().__init__(inbox, outbox)
        self._hands = hands
        self._points = points

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self._refuse_closed()
        if not self._hands.tied:
            self._points.before("socket write")
        if self._hands.tied or self._outbox.broken:
            raise trio.BrokenResourceError("the other end is gone")
        self._outbox.put(bytes(data))
        self._points.behind("socket write")

    async def send_eof(self) -> None:
        if not self._hands.tied:
            await super().send_eof()

    async def aclose(self) -> None:
        if self._hands.tied:
            await trio.lowlevel.checkpoint()
        else:
            await super().aclose()


class Wire:
    """Both ends of one connection."""

    def __init__(self, hands: Hands, points: Points) -> None:
        self._to_edge, self._to_peer = _Way(), _Way()
        self.peer_end = _End(self._to_peer, self._to_edge)
        self.edge_end = _EdgeEnd(self._to_edge, self._to_peer, hands, points)

    @property
    def over(self) -> bool:
        return self._to_edge.ended and self._to_peer.ended

    def edge_died(self) -> None:
        """The daemon's process is gone: what it had written still arrives, what it had not read is lost."""
        self._to_edge.data.clear()
        self._to_edge.break_off()
        self._to_peer.end()

    def lose_power(self) -> None:
        """The edge's machine is gone with all that was under way."""
        self._to_peer.data.clear()
        self.edge_died()

    def peer_died(self, *, loses_what_it_sent: bool) -> None:
        """The plane's process is gone, or the line to it: the edge may or may not still get what it had sent."""
        if loses_what_it_sent:
            self._to_edge.data.clear()
        self._to_edge.end()
        self._to_peer.data.clear()
        self._to_peer.break_off()
        self._to_edge.broken = True
