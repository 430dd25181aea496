"""The ledger's writer without its thread: the same batches, on trio's own clock and in an order that a seed decides."""

import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import outcome
import trio

from edge_daemon.ledger.commit import GroupCommit, Job
from edge_daemon.ledger.errors import LedgerClosed, StorageFault
from edge_daemon.ledger.opening import OpenLedger

T = TypeVar("T")


class InlineWriter:
    """A `LedgerWriter`. A thread would run beside the virtual clock; this is a system task of trio, and as little
    bound to whoever opened the ledger as the thread is: it ends with `close`, or with trio.

    What waits when the disk's latency is over is one batch. Values become public in the order of the batch, as the
    thread does it; those who wait for them are woken in a random order, some of them later than others: trio promises
    no order, and the ledger must not rest on one.
    """

    def __init__(
        self,
        retry_s: float,
        *,
        rng: random.Random,
        latency_s: Callable[[], float] = lambda: 0.0,
        sleep: Callable[[float], Awaitable[None]] = trio.sleep,
    ) -> None:
        """latency_s: asked for each batch, how long its commit takes in virtual seconds. sleep: for so long."""
        self._retry_s = retry_s
        self._rng = rng
        self._latency_s = latency_s
        self._sleep = sleep
        self._waiting: list[Job[Any]] = []
        self._woken: dict[int, trio.Event] = {}
        self._work = trio.Event()
        self._closing = False
        self._ended = trio.Event()
        self._end_result: outcome.Outcome[None] = outcome.Value(None)
        self.fault: StorageFault | None = None

    async def start(self, open_files: Callable[[], OpenLedger]) -> OpenLedger:
        """Raises what `open_files` raises."""
        opened = open_files()
        trio.lowlevel.spawn_system_task(self._main, opened, name="inline ledger writer")
        return opened

    async def submit(self, job: Job[T]) -> T:
        """As the thread's: cancelled, the job is done all the same and only its result is lost."""
        if self._closing:
            raise LedgerClosed
        woken = self._woken[id(job)] = trio.Event()
        self._waiting.append(job)
        self._work.set()
        await woken.wait()
        assert job.result is not None
        return job.result.unwrap()

    async def close(self) -> None:
        self._closing = True
        self._work.set()
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        self._end_result.unwrap()

    async def _main(self, opened: OpenLedger) -> None:
        group = GroupCommit(opened.connection, opened.path, opened.reopen)
        served = await outcome.acapture(self._serve, group)
        if isinstance(served, outcome.Error) and isinstance(served.error, trio.Cancelled):
            served.unwrap()  # trio ends and nobody has closed the ledger: that was a crash
        closed = outcome.capture(opened.close, group.trusted)
        self._closing = True
        self._end_result = served if isinstance(served, outcome.Error) else closed
        for job in self._waiting:
            job.result = outcome.Error(LedgerClosed())
            self._woken.pop(id(job)).set()
        self._waiting.clear()
        self._ended.set()

    async def _serve(self, group: GroupCommit) -> None:
        last = False
        while not last:
            if group.owes:
                with trio.move_on_after(self._retry_s):
                    await self._work.wait()
            else:
                await self._work.wait()
            latency_s = self._latency_s()
            if latency_s:
                await self._sleep(latency_s)
            self._work = trio.Event()
            last = self._closing
            jobs, self._waiting = self._waiting, []
            await self._deliver(group.process(jobs), group.fault)
            group.checkpoint_if_due()
        await self._deliver(group.give_up(), group.fault)

    async def _deliver(self, finished: list[Job[Any]], fault: StorageFault | None) -> None:
        self.fault = fault
        for job in finished:
            job.deliver()
        woken = [self._woken.pop(id(job)) for job in finished]
        self._rng.shuffle(woken)
        for event in woken:
            event.set()
            if len(woken) > 1 and self._rng.random() < 0.5:
                await trio.lowlevel.checkpoint()
