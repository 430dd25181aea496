"""A board behind a pluggable port and the book of its taps, each compared with what the drives outside did."""

import itertools
from collections.abc import Callable
from typing import Protocol

from usb_ports import Observer

from edge_daemon.boards import (
    Board,
    BoardOffline,
    CommandFault,
    HandClient,
    NotExecuted,
    NotSent,
    OutcomeUnknown,
)

HOVER_MM, PRESS_MM = 5.0, -1.0
# Taps alternate between the hand's ends, so that each has most of a second of travel before its contact.
ENDS_UM = (5_000, 190_000)
STEP_UM = 10

_numbers = itertools.count(1)


class Book(Protocol):
    """Where the taps are written down for the host; conftest's Figures."""

    taps: list[dict[str, object]]


class Rig:
    """A board behind a port, its hand, and the book of its taps."""

    def __init__(self, name: str, board: Board, observer: Observer, book: Book) -> None:
        self.name = name
        self.board = board
        self.hand = HandClient(board)
        self._observer = observer
        self._book = book
        self.last_id = 0
        self.last_place = (0, 0)

    async def tap(self, dwell_ms: int = 30, on_stage: Callable[[str], None] | None = None) -> str:
        """A tap at a place of its own; its outcome as a word. Checked against what the drives outside did."""
        self.last_id = next(_numbers)
        self.last_place = (ENDS_UM[self.last_id % 2] + STEP_UM * self.last_id, 30_000)
        x_mm, y_mm = (um / 1000 for um in self.last_place)
        stages: list[str] = []
        presses: int | None

        def stage(name: str, board_us: int, mono_ns: int) -> None:
            stages.append(name)
            if on_stage is not None:
                on_stage(name)

        try:
            await self.hand.tap(self.last_id, x_mm, y_mm, HOVER_MM, PRESS_MM, dwell_ms, stage)
            outcome, presses = "done", 1
        except CommandFault as fault:
            outcome = fault.name
            presses = 1 if "contact" in stages else None if fault.effect else 0
        except OutcomeUnknown as unknown:
            outcome, presses = ("unknown_for_good" if unknown.final else "unknown"), None
        except NotSent:
            outcome, presses = "not_sent", 0
        except NotExecuted:
            outcome, presses = "not_executed", 0
        self._book.taps.append(
            {
                "board": self.name,
                "x_um": self.last_place[0],
                "y_um": self.last_place[1],
                "outcome": outcome,
                "presses": presses,
            }
        )
        await self._compare(outcome, presses)
        return outcome

    async def _compare(self, outcome: str, presses: int | None) -> None:
        drives = await self._observer.report(self.name)
        counted = drives.count(self.last_place)
        assert counted <= 1, "the drives pressed twice"
        if presses is not None:
            assert counted == presses, outcome
        if not outcome.startswith("unknown"):
            assert drives.z_um is not None
            assert drives.z_um > 0, "the stylus is still down"

    async def presses(self) -> int:
        """How often the drives outside pressed at the place of the last tap."""
        return (await self._observer.report(self.name)).count(self.last_place)

    async def offline(self) -> str:
        """Wait until the board is offline; the reason."""
        while not isinstance(self.board.status, BoardOffline):
            await self.board.status_other_than(self.board.status)
        return self.board.status.reason

    async def offline_saying(self, words: str) -> None:
        """Wait until the board is offline for a reason with these words in it."""
        while words not in await self.offline():
            await self.board.status_other_than(self.board.status)
