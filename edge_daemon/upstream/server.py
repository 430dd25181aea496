"""The upstream server: listeners, one plane at a time, any number of staff, and the outbox of receipts."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from edge_daemon.clock import MonotonicNs, PlaneClock
from edge_daemon.contract import Refused, error_info
from edge_daemon.upstream.connection import Connection
from edge_daemon.upstream.handshake import Role
from edge_daemon.upstream.limits import DEFAULT_LIMITS, SessionLimits
from edge_daemon.upstream.listeners import Endpoints, open_tcp, unix_listener
from edge_daemon.upstream.messages import ErrorAnswer, Hello, Request, StaffHello
from edge_daemon.upstream.outbox import Outbox
from edge_daemon.upstream.requests import READS, fulfil
from edge_daemon.upstream.service import Service
from edge_daemon.upstream.session import (
    HelloReceived,
    PlaneClockRead,
    ReceiptAcknowledged,
    RequestReceived,
    SessionEvent,
)

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 32
MAX_CHANGES: Final = 256
"""Requests in work over all connections, those included whose connection is gone."""
RETURN_HOLDS_S: Final = 20.0
"""A hand must be able to park within it."""


@dataclass(frozen=True, slots=True)
class EdgeIdentity:
    """Who we are to the plane."""

    edge_id: str
    boot_id: str
    """The machine's boot (`clock.machine_boot_id`)."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the server can be reached, once it can."""

    tcp_ports: tuple[int, ...]


async def serve(
    service: Service,
    endpoints: Endpoints,
    identity: EdgeIdentity,
    plane_clock: PlaneClock,
    *,
    limits: SessionLimits = DEFAULT_LIMITS,
    monotonic_ns: MonotonicNs = time.monotonic_ns,
    task_status: trio.TaskStatus[Listening] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled. Cancellation hangs up, gives back the holds of staff and removes the sockets.

    Raises:
        EndpointRefused: a listener cannot be opened; none is left open then.
    """
    server = Server(service, identity, plane_clock, limits, monotonic_ns)
    with ExitStack() as sockets:
        listening: list[tuple[list[trio.SocketListener], Role, bytes | None]] = []
        if endpoints.plane_socket is not None:
            listening.append(([sockets.enter_context(unix_listener(endpoints.plane_socket))], "plane", None))
        if endpoints.staff_socket is not None:
            listening.append(([sockets.enter_context(unix_listener(endpoints.staff_socket))], "staff", None))
        tcp: list[trio.SocketListener] = []
        if endpoints.plane_tcp is not None:
            secret = endpoints.plane_tcp.secret()
            tcp = await open_tcp(endpoints.plane_tcp)
            listening.append((tcp, "plane", secret))
        async with trio.open_nursery() as nursery:
            for listeners, role, secret_or_none in listening:
                handler = partial(server.serve_connection, role, secret_or_none)
                nursery.start_soon(partial(trio.serve_listeners, handler, listeners))
            task_status.started(Listening(tuple(one.socket.getsockname()[1] for one in tcp)))


class Server:
    """Who is connected, and what of theirs is in work. `serve` gives it its connections."""

    def __init__(
        self,
        service: Service,
        identity: EdgeIdentity,
        plane_clock: PlaneClock,
        limits: SessionLimits = DEFAULT_LIMITS,
        monotonic_ns: MonotonicNs = time.monotonic_ns,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._service = service
        self._identity = identity
        self._plane_clock = plane_clock
        self._limits = limits
        self._monotonic_ns = monotonic_ns
        self._random_bytes = random_bytes
        self._connections = 0
        self._changes = 0
        self._plane: Connection | None = None
        self._outbox: Outbox | None = None
        self._admission = trio.Lock()

    async def serve_connection(
        self, role: Role, secret: bytes | None, stream: trio.abc.HalfCloseableStream
    ) -> None:
        """One connection, and after its end whatever it left in work."""
        if self._connections >= MAX_CONNECTIONS:
            log.warning("%s: refused a connection, %d are open", role, self._connections)
            await stream.aclose()
            return
        connection = Connection(
            stream,
            role,
            edge_id=self._identity.edge_id,
            secret=secret,
            limits=self._limits,
            monotonic_ns=self._monotonic_ns,
            random_bytes=self._random_bytes,
        )
        try:
            async with trio.open_nursery() as changes:
                await self._run(connection, changes)
        finally:
            await self._return_holds(connection)

    async def _run(self, connection: Connection, changes: trio.Nursery) -> None:
        self._connections += 1
        try:
            await connection.run(partial(self._on_event, connection, changes))
        finally:
            self._connections -= 1
            if self._plane is connection:
                self._plane = self._outbox = None

    async def _on_event(self, connection: Connection, changes: trio.Nursery, event: SessionEvent) -> None:
        match event:
            case HelloReceived(hello):
                await self._admit(connection, hello)
            case RequestReceived(request):
                self._start(connection, changes, request)
            case ReceiptAcknowledged(device_id, key, resolved):
                assert self._outbox is not None
                self._outbox.acknowledge(device_id, key, resolved)
            case PlaneClockRead(sent_ns, plane_unix_ms, received_ns):
                self._plane_clock.measured(sent_ns, plane_unix_ms, received_ns)

    def _start(self, connection: Connection, changes: trio.Nursery, request: Request) -> None:
        assert connection.nursery is not None
        if isinstance(request, READS):
            connection.nursery.start_soon(self._read, connection, request, connection.last_turn)
        elif self._changes >= MAX_CHANGES:
            error = error_info("rate_limited", f"{MAX_CHANGES} actions are in work on this edge")
            connection.answer(ErrorAnswer(error=error, reply_to=request.id))
        else:
            self._changes += 1
            former, connection.last_turn = connection.last_turn, trio.Event()
            changes.start_soon(self._change, connection, request, former, connection.last_turn)

    async def _read(self, connection: Connection, request: Request, former: trio.Event) -> None:
        # A receipt asked for right behind its dispatch must not be looked up before the dispatch has begun.
        await former.wait()
        await fulfil(self._service, connection, request)

    async def _change(
        self, connection: Connection, request: Request, former: trio.Event, mine: trio.Event
    ) -> None:
        try:
            # Trio starts tasks in any order; requests are to reach the service in the order they were sent.
            # No checkpoint lies between `set` and the call: the next one begins after this one first waits.
            await former.wait()
            mine.set()
            await fulfil(self._service, connection, request)
        finally:
            self._changes -= 1

    async def _admit(self, connection: Connection, hello: Hello | StaffHello) -> None:
        try:
            if isinstance(hello, Hello):
                connection.peer_id = hello.plane_id
                await self._admit_plane(connection, hello)
            else:
                connection.peer_id = hello.staff_id
                self._welcome(connection)
        except Refused as e:
            connection.close(e.info)

    async def _admit_plane(self, connection: Connection, hello: Hello) -> None:
        # The lock: two planes must not both find the place free while an epoch is being raised.
        async with self._admission:
            former = self._plane
            if former is not None and not former.session.closed and former.peer_id != hello.plane_id:
                raise Refused(
                    "permission_denied",
                    f"planeId: plane {former.peer_id!r} is connected, and only one plane may be",
                    field="planeId",
                )
            if hello.epoch is not None and hello.epoch != self._service.epoch:
                await self._service.raise_epoch(hello.epoch)
            if connection.session.closed:
                return
            if former is not None:
                former.close(error_info("permission_denied", "the same plane has connected anew"))
            self._plane = connection
            self._outbox = Outbox(connection, self._service, self._limits.outbox_window)
            self._welcome(connection)
            assert connection.nursery is not None
            connection.nursery.start_soon(self._outbox.run)

    def _welcome(self, connection: Connection) -> None:
        log.info("%s %s: connected", connection.role, connection.peer_id)
        connection.welcome(
            boot_id=self._identity.boot_id,
            epoch=self._service.epoch,
            ledger_id=self._service.ledger_id,
            devices=tuple(self._service.devices()),
            epoch_raised=self._service.epoch_raised,
        )

    async def _return_holds(self, connection: Connection) -> None:
        """Staff that is gone holds nothing. Shielded: a shutdown must not leave devices held."""
        with trio.move_on_after(RETURN_HOLDS_S) as patience:
            patience.shield = True
            for device_id in sorted(connection.holds):
                try:
                    await self._service.release_hold(device_id, connection.owner)
                except Refused as e:
                    log.warning(
                        "hold of %s on %s could not be given back: %s", connection.owner, device_id, e
                    )
        if patience.cancelled_caught:
            log.warning("holds of %s were not given back within %.0f s", connection.owner, RETURN_HOLDS_S)
