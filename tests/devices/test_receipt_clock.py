"""Whose clock a receipt's times are by."""

from collections.abc import Callable
from typing import cast

import pytest

from edge_daemon.clock import PlaneClock
from edge_daemon.contract import Receipt, error_info
from edge_daemon.devices.receipts import ReceiptWriter
from edge_daemon.ledger import Ledger


def clock(*, synced: bool) -> PlaneClock:
    made = PlaneClock(monotonic_ns=lambda: 10, wall_s=lambda: 0.0)
    if synced:
        made.measured(1, 1_750_000_000_000.0, 2)
    return made


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_a_receipt_is_said_to_be_by_the_planes_clock_only_when_all_its_times_are(
    asked: bool, ended: bool, pending_receipt: Callable[..., Receipt]
) -> None:
    # Nothing is asked of the ledger for an outcome.
    writer = ReceiptWriter("robot_hand", "boot", clock(synced=ended), cast(Ledger, None))
    pending = pending_receipt("key", clock_synced=asked)
    done = writer.committed(pending, 20, None, None)
    failed = writer.failed(pending, 20, error_info("canceled", "taken back"))
    assert done.clock_synced == failed.clock_synced == (asked and ended)
    assert done.requested_at == pending.requested_at
