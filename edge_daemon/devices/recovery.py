"""Settles what was pending when the process died: the boards are asked, and only they decide.

A device dispatches strictly in the order of acceptance and makes each outcome durable before it dispatches the
next. So of the receipts found pending only the first may have reached a board; those behind it never left the
line. An older copy of the ledger tells nothing of that kind: what waited in line when it was taken may have been done
since, so there the boards are asked about every one.
"""

import logging
from collections.abc import Callable, Sequence

import trio

from edge_daemon.boards import Board, BoardAnswer, CommandFault, Done, NotExecuted, OutcomeUnknown
from edge_daemon.clock import MonotonicNs
from edge_daemon.contract import Receipt, error_info
from edge_daemon.devices.receipts import ReceiptWriter, verdict_of
from edge_daemon.ledger import CommandRef, Ledger, LedgerCorrupt, PendingEntry

logger = logging.getLogger(__name__)

BOARD_WAIT_S = 30.0
"""How long the start waits for a board to appear before its pending receipt is called unknown: a USB hub and an
ESP32 come up within 10 s of power."""


class Recovery:
    """The pending receipts of one device from the last run of this daemon, oldest first.

    boards: those that may be asked; a command names its board by uid.
    """

    def __init__(
        self,
        entries: Sequence[PendingEntry],
        boards: Sequence[Board],
        ledger: Ledger,
        writer: ReceiptWriter,
        monotonic_ns: MonotonicNs,
        on_receipt: Callable[[Receipt], None],
    ) -> None:
        self._entries = list(entries)
        self._boards = list(boards)
        self._ledger = ledger
        self._writer = writer
        self._now_ns = monotonic_ns
        self._on_receipt = on_receipt
        self._settled = {entry.receipt.idempotency_key: trio.Event() for entry in self._entries}

    async def run(self) -> None:
        """Returns when every one of them is final."""
        for position, entry in enumerate(self._entries):
            in_line = position > 0 and self._ledger.renewed is None
            receipt = self._never_begun(entry) if in_line else await self._asked(entry)
            try:
                await self._ledger.settle(receipt)
            except LedgerCorrupt as error:
                # Damaged since the start. Nothing new is accepted for the device; whoever asks for it is told.
                logger.error(
                    "%s: key %s cannot be settled: %s", receipt.device_id, receipt.idempotency_key, error
                )
                self._settled[receipt.idempotency_key].set()
                continue
            self._settled[receipt.idempotency_key].set()
            self._on_receipt(receipt)
            logger.info(
                "%s: key %s, pending at the last stop, is now %s%s",
                receipt.device_id,
                receipt.idempotency_key,
                receipt.status,
                f" ({receipt.reason})" if receipt.reason else "",
            )

    async def final(self, receipt: Receipt) -> Receipt:
        """The final receipt of the same key; waits while it is still being settled here."""
        event = self._settled.get(receipt.idempotency_key)
        if receipt.status != "pending" or event is None:
            return receipt
        await event.wait()
        answer = await self._ledger.lookup(receipt.device_id, receipt.idempotency_key, None)
        return answer.receipt or receipt

    def _never_begun(self, entry: PendingEntry) -> Receipt:
        return self._writer.failed(
            entry.receipt,
            self._now_ns(),
            error_info(
                "interrupted_by_restart",
                "the edge daemon stopped while it waited in line; nothing was executed",
            ),
            reason="interrupted_by_restart",
        )

    async def _asked(self, entry: PendingEntry) -> Receipt:
        answer = await self.ask(entry.command)
        now_ns = self._now_ns()
        match answer:
            case Done():
                return self._writer.committed(entry.receipt, now_ns, None, None)
            case NotExecuted():
                return self._writer.failed(
                    entry.receipt,
                    now_ns,
                    error_info(
                        "interrupted_by_restart", f"the edge daemon stopped before it began: {answer}"
                    ),
                    reason="interrupted_by_restart",
                )
            case CommandFault():
                info, reason = verdict_of(answer)
                return self._writer.failed(
                    entry.receipt, now_ns, info, reason=reason or "interrupted_by_restart"
                )
            case _:
                why = f"its board did not appear within {BOARD_WAIT_S:g} s" if answer is None else str(answer)
                return self._writer.failed(
                    entry.receipt,
                    now_ns,
                    error_info(
                        "outcome_unknown",
                        f"the edge daemon stopped during the action and the board cannot tell: {why}. "
                        "A person must look",
                    ),
                    reason="outcome_unknown",
                )

    async def ask(self, command: CommandRef) -> BoardAnswer | None:
        """The board's word on a command, or None when the board did not appear within `BOARD_WAIT_S`.

        So long it is asked again when its line was lost while it was asked: a cable with a bad contact goes more than
        once. `OutcomeUnknown(final=False)` when it could not tell in all that time.
        """
        answer: BoardAnswer | None = None
        if not self._boards:
            return None
        with trio.move_on_after(BOARD_WAIT_S):
            while answer is None or (isinstance(answer, OutcomeUnknown) and not answer.final):
                board = await self._board_with_uid(command.board_uid)
                answer = await board.ask(command.cmd_id, command.board_boot_id)
        return answer

    async def _board_with_uid(self, uid: str) -> Board:
        """Waits until the device's board of that uid is online; a board's uid is known once it has been."""
        found: list[Board] = []

        async def watch(board: Board, scope: trio.CancelScope) -> None:
            while (await board.wait_online()).uid != uid:
                await board.status_other_than(board.status)
            found.append(board)
            scope.cancel()

        async with trio.open_nursery() as nursery:
            for board in self._boards:
                nursery.start_soon(watch, board, nursery.cancel_scope)
        return found[0]
