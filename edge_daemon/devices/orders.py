"""From an action on the grid to one command for one board.

A performer plans (and refuses) without touching anything, then performs exactly one board command whose
`cmd_id` is known before, so that the board can be asked about it after any crash.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edge_daemon.boards import Board, Done, OnStage
from edge_daemon.contract import Action, Orientation, Swipe

LastCheck = Callable[[], int]
"""Called right before the first byte of the action goes to the board; raises `Refused` to stop it.

Returns the boot that was recorded as the one to be asked later: a board that has restarted since must not get
the action, because that boot could not tell of it.
"""


@dataclass(frozen=True)
class Order:
    """One physical execution of one action."""

    action: Action
    orientation: Orientation
    """What the action's coordinates mean."""
    cmd_id: int
    """By which the board can be asked about it."""
    last_check: LastCheck
    on_stage: OnStage


class Performer(Protocol):
    """The part of a device that carries out some kinds of action."""

    board: Board

    def refuse(self, action: Action, orientation: Orientation) -> None:
        """Raises `Refused` when `action` cannot be done; touches nothing."""

    async def perform(self, order: Order) -> Done:
        """Carries it out. Raises what `Board.execute` raises, and `Refused` before anything was sent."""


def is_hold(swipe: Swipe) -> bool:
    """A swipe with equal ends is not a swipe: the contact holds still for its duration."""
    return swipe.from_x == swipe.to_x and swipe.from_y == swipe.to_y
