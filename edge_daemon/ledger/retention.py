"""Which receipts are kept, and the task that lets the others go."""

import logging

import trio

from edge_daemon.contract import Refused
from edge_daemon.ledger.ledger import Ledger

_log = logging.getLogger("edge_daemon.ledger")

MS_PER_DAY = 86_400_000
FIRST_ROUND_S = 60.0
"""After a start there is more urgent work; but a rig that is switched off every evening must come to it."""
ROUND_S = 3600.0
PAUSE_S = 0.2
"""Between two transactions, so that whoever waits for the writer is served in between: never more than one is waited
for."""


class Retention:
    """Prunes by age, with a floor on the count. What a plane has not acknowledged or a person not reviewed stays."""

    def __init__(self, ledger: Ledger, keep_days: float, keep_newest: int) -> None:
        """keep_days: of a machine that runs. keep_newest: so many stay, however old."""
        self._ledger = ledger
        self._keep_ms = round(keep_days * MS_PER_DAY)
        self._keep_newest = keep_newest

    async def run(self) -> None:
        """Until cancelled. A disk that refuses is tried again in the next round."""
        await trio.sleep(FIRST_ROUND_S)
        while True:
            try:
                removed = await self.round()
            except Refused as refusal:
                _log.warning("old receipts were not removed: %s", refusal)
            else:
                if removed:
                    _log.info("%d receipts older than the configured age were removed", removed)
            await trio.sleep(ROUND_S)

    async def round(self) -> int:
        """How many were removed. Raises StorageUnavailable, LedgerClosed."""
        removed = 0
        after: int | None = 0
        while after is not None:
            pruned = await self._ledger.prune(self._keep_ms, self._keep_newest, after)
            removed, after = removed + pruned.removed, pruned.after
            await trio.sleep(PAUSE_S)
        return removed
