"""One connection: drives an `EdgeSession` over a trio stream until either end has enough of it."""

import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from edge_daemon.clock import MonotonicNs
from edge_daemon.contract import DeviceDescription, ErrorInfo
from edge_daemon.upstream.handshake import Handshake, Role
from edge_daemon.upstream.limits import NS_PER_S, SessionLimits
from edge_daemon.upstream.messages import NONCE_BYTES, Answer
from edge_daemon.upstream.session import EdgeSession, SessionEvent

log = logging.getLogger(__name__)

READ_BYTES: Final = 64 * 1024
LINGER_S: Final = 1.0
"""How long a closing connection still tries to get its last words out."""


class Connection:
    """Reads, writes and keeps time for one session. What the events mean is the server's business."""

    def __init__(
        self,
        stream: trio.abc.HalfCloseableStream,
        role: Role,
        *,
        edge_id: str,
        secret: bytes | None,
        limits: SessionLimits,
        monotonic_ns: MonotonicNs,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        handshake = Handshake(role, edge_id, random_bytes(NONCE_BYTES), secret)
        self.session = EdgeSession(handshake, monotonic_ns(), limits)
        self.role: Role = role
        self.peer_id = "?"
        self.holds: set[str] = set()
        """Devices whose hold this connection took, or tried to."""
        self.last_turn = trio.Event()
        """Set once the last request that changes something has been handed to the service."""
        self.last_turn.set()
        self._unique = random_bytes(4).hex()
        self.nursery: trio.Nursery | None = None
        """Owns what ends with the connection; set while `run` runs."""
        self._stream = stream
        self._now_ns = monotonic_ns
        self._output = trio.Event()
        self._flushed = trio.Event()
        self._reading = trio.CancelScope()
        self._welcomed = trio.Event()

    @property
    def owner(self) -> str:
        """Under this name the connection holds devices: no two connections share one, not across restarts."""
        return f"{self.peer_id}#{self._unique}"

    async def run(self, on_event: Callable[[SessionEvent], Awaitable[None]]) -> None:
        """Until the peer hangs up or the session closes. Cancelled: hangs up at once."""
        async with self._stream, trio.open_nursery() as self.nursery:
            self.nursery.start_soon(self._write)
            self.nursery.start_soon(self._keep_time)
            with self._reading:
                await self._read(on_event)
            self.session.lost("the peer hung up")
            self.pump()
            with trio.move_on_after(LINGER_S):
                await self._linger()
            self.nursery.cancel_scope.cancel()
        log.info("%s %s: connection ended: %s", self.role, self.peer_id, self.session.close_reason)

    def answer(self, answer: Answer) -> None:
        self.session.answer(answer)
        self.pump()

    def welcome(
        self,
        *,
        boot_id: str,
        epoch: int,
        ledger_id: str,
        devices: tuple[DeviceDescription, ...],
        epoch_raised: str | None,
    ) -> None:
        self.session.welcome(
            boot_id=boot_id,
            epoch=epoch,
            ledger_id=ledger_id,
            devices=devices,
            epoch_raised=epoch_raised,
            now_ns=self._now_ns(),
        )
        self._welcomed.set()
        self.pump()

    def close(self, info: ErrorInfo) -> None:
        self.session.close(info)
        self.pump()

    def pump(self) -> None:
        """After anything was done to the session: see that its output is written and its end noticed."""
        if self.session.has_output:
            self._output.set()
        if self.session.closed:
            self._output.set()
            self._reading.cancel()

    async def _read(self, on_event: Callable[[SessionEvent], Awaitable[None]]) -> None:
        while True:
            try:
                data = await self._stream.receive_some(READ_BYTES)
            except trio.BrokenResourceError:
                return
            if not data:
                return
            self.session.receive(data, self._now_ns())
            while (event := self.session.next_event(self._now_ns())) is not None:
                await on_event(event)
            self.pump()

    async def _write(self) -> None:
        try:
            while True:
                self._output = trio.Event()
                while chunk := self.session.take_output(self._now_ns()):
                    await self._stream.send_all(chunk)
                if self.session.closed:
                    return
                await self._output.wait()
        except trio.BrokenResourceError:
            self.session.lost("the peer hung up")
            self.pump()
        finally:
            self._flushed.set()

    async def _keep_time(self) -> None:
        while not self.session.closed:
            now_ns = self._now_ns()
            self.session.poll(now_ns)
            self.pump()
            next_s = max(0.0, (self.session.next_poll_ns() - now_ns) / NS_PER_S)
            if self._welcomed.is_set():
                await trio.sleep(next_s)
            else:  # the welcome brings deadlines nearer
                with trio.move_on_after(next_s):
                    await self._welcomed.wait()

    async def _linger(self) -> None:
        """Get the last words out, then read away what still comes: closing a socket with unread bytes resets
        it, and the reset can overtake the words.
        """
        await self._flushed.wait()
        try:
            await self._stream.send_eof()
            while await self._stream.receive_some(READ_BYTES):
                pass
        except trio.BrokenResourceError:
            return
