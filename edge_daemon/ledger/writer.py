"""The one thread that owns the connection, and the way to it from trio."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import outcome
import trio

from edge_daemon.ledger.commit import GroupCommit, Job, Jobs
from edge_daemon.ledger.door import Door
from edge_daemon.ledger.errors import LedgerClosed, StorageFault
from edge_daemon.ledger.opening import OpenLedger

T = TypeVar("T")

_log = logging.getLogger("edge_daemon.ledger")

MAX_WAITING = 256
"""Jobs queued at once; whoever comes then waits for room. A rig has a handful of phones with one action each."""


class LedgerWriter(Protocol):
    """The way from trio to the open ledger, and its only user."""

    fault: StorageFault | None
    """Why the last transaction failed; None when it did not."""

    async def start(self, open_files: Callable[[], OpenLedger]) -> OpenLedger:
        """Raises what `open_files` raises; nothing is open then."""

    async def submit(self, job: Job[T]) -> T:
        """The job's value, once durable. Raises LedgerClosed, or what the job or its transaction raised.

        Cancelled before there was room for it, the job was not queued. Cancelled later, it is done all the same and
        only its result is lost.
        """

    async def close(self) -> None:
        """Finishes what was queued and closes the books. Not cancellable; it lasts as long as the disk does.

        Raises what ended the writer before its time, if anything did.
        """


NewWriter = Callable[[float], LedgerWriter]
"""Makes a writer that tries again after so many seconds what it owes to the disk."""


class Writer:
    """A `LedgerWriter` with a thread of its own.

    A commit blocks for as long as the disk takes, which on a card can be seconds: never on the trio thread, which waits
    for it a moment at the most (`Door`)."""

    def __init__(self, retry_s: float) -> None:
        """retry_s: how long to wait before what is owed to the disk is tried again."""
        self._retry_s = retry_s
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._room = trio.Semaphore(MAX_WAITING)
        self._unfinished: set[Job[Any]] = set()
        self._closing = False
        self._ended = trio.Event()
        self._end_result: outcome.Outcome[None] = outcome.Value(None)
        self.fault: StorageFault | None = None

    async def start(self, open_files: Callable[[], OpenLedger]) -> OpenLedger:
        """Opens on the new thread. Raises what `open_files` raises; the thread has then ended.

        Not cancellable: a half open ledger would keep its lock.
        """
        self._door = Door(self._deliver)
        opening: Job[OpenLedger] = Job(open_files, "read")
        # Daemonic: a crash of the whole process must not hang in a thread that waits for its queue.
        threading.Thread(target=self._main, args=(opening,), name="ledger-writer", daemon=True).start()
        with trio.CancelScope(shield=True):
            await opening.done.wait()
        assert opening.result is not None
        return opening.result.unwrap()

    async def submit(self, job: Job[T]) -> T:
        await trio.lowlevel.checkpoint_if_cancelled()
        at_door = self._door.is_worth_waiting() and not self._unfinished
        try:
            self._room.acquire_nowait()  # the usual case, and a turn of trio fewer
        except trio.WouldBlock:
            await self._room.acquire()
        if self._closing:
            self._room.release()
            raise LedgerClosed
        self._unfinished.add(job)
        if at_door:
            self._door.attend()
        self._queue.put(job)
        if at_door:
            self._door.wait()
        if not job.done.is_set():
            await job.done.wait()
        assert job.result is not None
        return job.result.unwrap()

    async def close(self) -> None:
        self._closing = True
        self._queue.put(None)
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        self._end_result.unwrap()

    def _main(self, opening: Job[OpenLedger]) -> None:
        opening.result = outcome.capture(opening.body)
        self._door.post(opening.deliver)
        if isinstance(opening.result, outcome.Error):
            return
        opened = opening.result.value
        group = GroupCommit(opened.connection, opened.path, opened.reopen)
        ended = outcome.capture(self._serve, group)
        closed = outcome.capture(opened.close, group.trusted)
        self._door.post(partial(self._end, ended if isinstance(ended, outcome.Error) else closed))

    def _serve(self, group: GroupCommit) -> None:
        last = False
        while not last:
            jobs, last = self._next_batch(self._retry_s if group.owes else None)
            begun_s = time.monotonic()
            finished = group.process(jobs)
            self._door.hand_over((finished, group.fault), time.monotonic() - begun_s)
            group.checkpoint_if_due()
        self._door.hand_over((group.give_up(), group.fault), 0.0)

    def _next_batch(self, timeout_s: float | None) -> tuple[Jobs, bool]:
        """Everything that waits by now, and whether it is the last. Empty after `timeout_s`."""
        batch: list[Job[Any]] = []
        try:
            job = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return batch, False
        while job is not None:
            batch.append(job)
            if self._queue.empty():
                return batch, False
            job = self._queue.get()
        return batch, True

    def _deliver(self, batch: tuple[Jobs, StorageFault | None]) -> None:
        finished, self.fault = batch
        for job in finished:
            self._unfinished.remove(job)
            self._room.release()
            job.deliver()

    def _end(self, result: outcome.Outcome[None]) -> None:
        self._closing = True
        self._end_result = result
        if isinstance(result, outcome.Error):
            _log.critical("the ledger's writer has ended by a mistake", exc_info=result.error)
        for job in self._unfinished:
            job.result = outcome.Error(
                LedgerClosed(
                    "the ledger's writer has ended by a mistake; whether this was stored shows at the start"
                )
            )
            self._room.release()
            job.done.set()
        self._unfinished.clear()
        self._ended.set()
