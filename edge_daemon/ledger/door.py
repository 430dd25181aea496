"""The way of the writer's results from its thread back to trio."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

import trio

B = TypeVar("B")

KEPT_S = 0.0005
"""For how long the loop is kept at most, see `Door`: no longer than a picture is decoded. A board's deadman and a
plane's heartbeat last hundreds of times that."""

TOGETHER_S = 0.002
"""Tasks with no more than this between them are taken to act at the same moment."""


class Door(Generic[B]):
    """Batches of results come in here on the thread, and are taken in the same order on trio's.

    Where a disk syncs in a tenth of a millisecond, the way through trio's loop takes as long again: the loop is woken,
    finds its callback, wakes who waits. So who waits alone, while the disk has been quick, keeps the loop and waits
    right here, for `KEPT_S` at most. On a card, which takes milliseconds, nobody ever does.
    """

    def __init__(self, take: Callable[[B], None]) -> None:
        self._take = take
        self._trio = trio.lowlevel.current_trio_token()
        self._batches: queue.SimpleQueue[B] = queue.SimpleQueue()
        self._attended = False
        self._leaving = threading.Lock()
        self._took_s = inf
        self._last_task, self._last_s = 0, -inf

    # -- on the writer's thread --------------------------------------------------------------------------------

    def hand_over(self, batch: B, took_s: float) -> None:
        """took_s: how long it was worked on."""
        self._took_s = took_s
        self._batches.put(batch)
        with self._leaving:
            attended = self._attended
        if not attended:  # otherwise whoever leaves the door takes along what is there
            self.post(self.take_all)

    def post(self, call: Callable[[], None]) -> None:
        """Has it called on the trio thread."""
        # Nobody is left to be woken when trio has ended without closing the ledger: that was a crash.
        with contextlib.suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(call)

    # -- on the trio thread ------------------------------------------------------------------------------------

    def is_worth_waiting(self) -> bool:
        """Asked by each task that is about to have something done.

        Those who act at the same moment share a commit, which they cannot while one of them keeps the loop.
        """
        task, now_s = id(trio.lowlevel.current_task()), time.monotonic()
        alone = task == self._last_task or now_s - self._last_s > TOGETHER_S
        self._last_task, self._last_s = task, now_s
        return alone and self._took_s < KEPT_S

    def attend(self) -> None:
        """Before something is given to the thread, whose result is waited for with `wait`."""
        self._attended = True

    def wait(self) -> None:
        """For one batch. Whatever is there then is taken."""
        try:
            self._take(self._batches.get(timeout=KEPT_S))
        except queue.Empty:
            pass
        finally:
            with self._leaving:
                self._attended = False
        self.take_all()

    def take_all(self) -> None:
        while not self._batches.empty():
            self._take(self._batches.get())
