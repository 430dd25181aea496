"""Receipts for people: a page of them, and a person's word on one that nobody could tell of."""

import logging
from collections.abc import Callable

from edge_daemon.clock import MonotonicNs, PlaneClock
from edge_daemon.contract import (
    Actor,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Resolution,
    ResolvedAs,
)
from edge_daemon.ledger import Ledger

logger = logging.getLogger(__name__)


class Reviews:
    def __init__(
        self,
        ledger: Ledger,
        boot_id: str,
        clock: PlaneClock,
        monotonic_ns: MonotonicNs,
        on_receipt: Callable[[Receipt], None],
    ) -> None:
        self._ledger = ledger
        self._boot_id = boot_id
        self._clock = clock
        self._now_ns = monotonic_ns
        self._on_receipt = on_receipt

    async def page(self, query: ReceiptQuery) -> ReceiptPage:
        return await self._ledger.receipts(query)

    async def resolve(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        """Durable when it returns, and on its way to the plane. Raises `Refused`, also for a key it does not know.

        Devices that are no longer configured have receipts too.
        """
        now_ns = self._now_ns()
        resolution = Resolution(
            outcome=outcome,
            note=note,
            actor=actor,
            resolved_at=self._clock.iso(now_ns),
            clock_synced=self._clock.synced,
            boot_id=self._boot_id,
            resolved_ns=now_ns,
        )
        receipt = await self._ledger.resolve(device_id, key, resolution)
        if receipt.resolution is resolution:
            logger.warning("%s: key %s resolved as %s by %s", device_id, key, outcome, actor.id or actor.kind)
            self._on_receipt(receipt)
        return ReceiptAnswer(known=True, found=True, epoch=self._ledger.epoch, receipt=receipt)
