"""Keeps a hand safe to use: homes it when its board appears, parks it, and remembers every move."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from edge_daemon.boards import (
    Board,
    BoardError,
    BoardOnline,
    FlagsReported,
    HandClient,
    HandMoved,
    NotSent,
    OutcomeUnknown,
    StatusChanged,
    StopReported,
)
from edge_daemon.clock import MonotonicNs
from edge_daemon.config import MotionSection
from edge_daemon.devices.history import HandHistory

logger = logging.getLogger(__name__)

PARK_ON_EXIT_S = 4.0
"""A park from the far corner takes about a second; past this the board's deadman lifts the stylus anyway."""


class HandKeeper:
    """Owner of the hand between actions. Whoever moves the hand holds `self.lock`."""

    def __init__(
        self, board: Board, hand: HandClient, motion: MotionSection, monotonic_ns: MonotonicNs
    ) -> None:
        self.board = board
        self.hand = hand
        self.history = HandHistory()
        self.lock = trio.Lock()
        self._motion = motion
        self._now_ns = monotonic_ns
        self._parked = trio.Condition()
        self._park_wanted = trio.Event()
        self._ready = False
        self._pushed = False
        self._not_ready_reason = "its hand has not been homed yet"

    @property
    def not_ready_reason(self) -> str | None:
        """Why the hand cannot act although its board is online; None when it can."""
        return None if self._ready else self._not_ready_reason

    async def run(self, on_change: Callable[[], None]) -> None:
        """Follows the board for ever: homes and parks on each new connection, notes what moved the hand."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_moves)
            nursery.start_soon(self._park_on_demand)
            while True:
                await self.board.wait_online()
                await self._make_ready(on_change)
                on_change()
                status = self.board.status
                if isinstance(status, BoardOnline):
                    # Any other status: offline, or online already as another boot, which is not homed either.
                    await self.board.status_other_than(status)
                self._ready = False
                self._not_ready_reason = "its hand has not been homed yet"
                # Nobody saw what the hand did while the link was down: the deadman lifted it, or it restarted.
                self.history.moved_at_edge(self._now_ns())
                on_change()

    async def _make_ready(self, on_change: Callable[[], None]) -> None:
        while isinstance(self.board.status, BoardOnline):
            connections = self.board.connections
            try:
                async with self.lock:
                    await self._home_if_needed()
                    await self._park()
                self._ready = True
                return
            except BoardError as error:
                self._not_ready_reason = f"its hand cannot be homed and parked: {error}"
                logger.warning("%s: %s", self.board.name, self._not_ready_reason)
                on_change()
                # A board that came back meanwhile has said all it has to say: nothing more would wake us.
                if self.board.connections == connections:
                    await self._next_flags_or_status()

    async def _next_flags_or_status(self) -> None:
        """Until the board says something new about itself: an e-stop was cleared, it came back, …"""
        with self.board.events() as events:
            async for event in events:
                if isinstance(event, FlagsReported | StatusChanged | StopReported):
                    return

    async def _home_if_needed(self) -> None:
        flags = self.board.flags
        if flags is None or not flags.homed:
            await self.hand.home()
            self._pushed = False
        self.history.moved_at_edge(self._now_ns())

    async def _home_after_push(self) -> None:
        """A drive that was pushed round may have lost its place; the calibration holds for a homed hand only.

        Not at once: the fingers that pushed it are still there. Raises `BoardError`; nothing was touched then.
        """
        if not self._pushed:
            return
        try:
            await self.hand.home()
        except OutcomeUnknown as error:
            raise NotSent(f"the link failed while the hand was homed after a push: {error.reason}") from error
        self._pushed = False
        self.history.moved_at_edge(self._now_ns())

    async def _follow_moves(self) -> None:
        while True:
            with self.board.events() as events:
                async for event in events:
                    if isinstance(event, HandMoved):
                        self._pushed = self._pushed or event.cause == "pushed"
                        self.history.moved_at_edge(event.moved_ns)
            # The subscription was closed because we fell behind: a push may have been among what we missed.
            self._pushed = True
            self.history.moved_at_edge(self._now_ns())

    async def _park(self, *, at_edge: bool = False) -> None:
        motion = self._motion
        await self._home_after_push()
        await self.hand.park(motion.park_x_mm, motion.park_y_mm, motion.park_z_mm)
        async with self._parked:
            self.history.came_to_park(self._now_ns(), at_edge=at_edge)
            self._parked.notify_all()

    async def park(self, *, at_edge: bool = False) -> None:
        """Takes the hand out of the picture. Raises `BoardError` when the board cannot or will not.

        at_edge: staff ask for it, so it is a move of the edge's.
        """
        async with self.lock:
            if not self.history.parked:
                await self._park(at_edge=at_edge)

    async def rest(self) -> None:
        """Parks the hand if it can be: between actions nobody waits for it, so a failure is only told."""
        if self._ready:
            try:
                await self.park()
            except BoardError as error:
                logger.warning("%s: not parked: %s", self.board.name, error)

    async def _park_on_demand(self) -> None:
        while True:
            await self._park_wanted.wait()
            self._park_wanted = trio.Event()
            await self.rest()

    async def out_of_picture(self, timeout_s: float) -> bool:
        """Has the hand parked between two actions and waits for it; False when it did not come about in time.

        The move belongs to the keeper's own task: whoever waits may be cancelled without breaking it off.
        """
        self._park_wanted.set()
        with trio.move_on_after(timeout_s):
            await self.wait_parked()
            return True
        return False

    async def wait_parked(self) -> None:
        """Until the hand stands parked, for whatever reason; moves nothing. Cancelling loses nothing."""
        async with self._parked:
            while not self.history.parked:
                await self._parked.wait()

    @asynccontextmanager
    async def moving_for_plane(self) -> AsyncIterator[None]:
        """Around an action's moves; they do not count as `edgeMovedSince`. Raises `BoardError` before they begin."""
        async with self.lock:
            await self._home_after_push()
            self.history.leaves_park(self._now_ns())
            try:
                yield
            finally:
                self.history.moved_for_plane(self._now_ns())

    @asynccontextmanager
    async def moving_at_edge(self) -> AsyncIterator[HandClient]:
        """The hand, for a move that does not come from the plane; such moves are what `edgeMovedSince` tells.

        Raises `BoardError` before anything moved.
        """
        async with self.lock:
            await self._home_after_push()
            self.history.moved_at_edge(self._now_ns())
            try:
                yield self.hand
            finally:
                self.history.moved_at_edge(self._now_ns())

    async def leave_safe(self) -> None:
        """For shutdown: parks the hand within a bound, even while the caller is being cancelled."""
        with trio.move_on_after(PARK_ON_EXIT_S, shield=True) as scope:
            try:
                await self.park()
            except BoardError as error:
                logger.warning("%s: not parked on exit: %s", self.board.name, error)
        if scope.cancelled_caught:
            logger.warning("%s: not parked on exit within %.0f s", self.board.name, PARK_ON_EXIT_S)
