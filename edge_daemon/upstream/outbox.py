"""Receipts on their way to the plane: pushed until acknowledged. And devices that change under its eyes."""

from typing import Final

import trio

from edge_daemon.contract import DeviceDescription, Refused
from edge_daemon.upstream.connection import Connection
from edge_daemon.upstream.service import Service

ACKS_WAITING: Final = 256


class Outbox:
    """For one connection of a plane, once it is open.

    The ledger is the outbox; nothing is kept here but what is under way on this connection. A receipt that is
    not acknowledged before the connection ends goes out again on the next.
    """

    def __init__(self, connection: Connection, service: Service, window: int) -> None:
        self._connection = connection
        self._service = service
        self._window = window
        self._wake = trio.Event()
        self._acks_in, self._acks_out = trio.open_memory_channel[tuple[str, str, bool]](ACKS_WAITING)

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._push)
            nursery.start_soon(self._acknowledge)
            await self._watch()

    def acknowledge(self, device_id: str, key: str, resolved: bool) -> None:
        """The plane has this receipt; `resolved`: with its resolution.

        An acknowledgement too many is refused: the receipt goes out again.
        """
        try:
            self._acks_in.send_nowait((device_id, key, resolved))
        except trio.WouldBlock:
            self._notice(
                Refused("rate_limited", f"{ACKS_WAITING} acknowledgements wait; {key!r} will be sent again")
            )

    async def _push(self) -> None:
        while True:
            self._wake = trio.Event()
            try:
                # The oldest `window` receipts include all that are under way: the rest of them is to be sent.
                receipts = await self._service.unacknowledged(self._window)
            except Refused as e:
                self._notice(e)
            else:
                self._connection.session.push_receipts(receipts)
                self._connection.pump()
            await self._wake.wait()

    async def _acknowledge(self) -> None:
        async for device_id, key, resolved in self._acks_out:
            try:
                await self._service.acknowledge(device_id, key, resolved)
            except Refused as e:
                self._notice(e)
            else:
                self._connection.session.acknowledged(device_id, key)
                self._wake.set()

    async def _watch(self) -> None:
        while True:
            with self._service.subscribe() as changes:
                # What changed before we listened, or while an overflowing channel had ended.
                self._wake.set()
                for device in self._service.devices():
                    self._connection.session.device_changed(device)
                self._connection.pump()
                async for change in changes:
                    if isinstance(change, DeviceDescription):
                        self._connection.session.device_changed(change)
                        self._connection.pump()
                    else:
                        self._wake.set()

    def _notice(self, e: Refused) -> None:
        self._connection.session.notice(e.info)
        self._connection.pump()
