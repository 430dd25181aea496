"""Worker processes, and the tasks they share. One that dies or hangs costs its task and says which one that was."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO

import trio

from edge_daemon.bench.crash.tasks import (
    CountPoints,
    KillReal,
    MeasureCost,
    PlayCuts,
    PlayRandom,
    Progress,
    Result,
    Task,
    decode_line,
    encode,
    size_of,
)

SILENT_S = 180.0
"""Longer than any task is without a word, on a machine with much else to do: then something hangs."""
END_S = 5.0
"""For a worker that is told to end to end what it started."""


class WorkerLost(Exception):
    """A worker ended or fell silent in the middle of a task; the message has its last words."""


OnResult = Callable[[Task, Result], None]
OnLost = Callable[[Task, str], None]
OnProgress = Callable[[int], None]


async def work_off(
    tasks: Iterable[Task],
    workers: int,
    on_result: OnResult,
    on_lost: OnLost,
    on_progress: OnProgress = lambda done: None,
    *,
    mutation: str | None = None,
) -> None:
    """All tasks, by so many processes at the same time; `mutation`: what is broken in each of them.

    on_progress: how many more histories or kills are done. Cancellation ends the processes.
    """
    queue = iter(tasks)
    async with trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(_work, queue, on_result, on_lost, on_progress, mutation)


async def _work(
    queue: Iterator[Task], on_result: OnResult, on_lost: OnLost, on_progress: OnProgress, mutation: str | None
) -> None:
    with tempfile.TemporaryFile() as words:
        worker = _Worker(mutation, words)
        try:
            for task in queue:
                try:
                    on_result(task, await worker.do(task, on_progress))
                except WorkerLost as lost:
                    on_lost(task, str(lost))
        finally:
            await worker.end()


class _Worker:
    """One process, started when it is needed and again after it was lost."""

    def __init__(self, mutation: str | None, words: IO[bytes]) -> None:
        self._arguments = [mutation] if mutation is not None else []
        self._words = words
        self._process: trio.Process | None = None
        self._received = bytearray()

    async def do(self, task: Task, on_progress: OnProgress) -> Result:
        """Raises WorkerLost; the next task has a new process."""
        process = self._process or await self._start()
        told = 0
        try:
            assert process.stdin is not None
            await process.stdin.send_all(encode(task))
            while True:
                line = decode_line(await self._next_line(process))
                if not isinstance(line, Progress):
                    on_progress(size_of(task) - told)
                    return line
                told += line.done
                on_progress(line.done)
        except (WorkerLost, trio.BrokenResourceError) as error:
            await self.end()
            why = str(error) if isinstance(error, WorkerLost) else "it ended"
            raise WorkerLost(f"{describe(task)}: {why}; its last words: {self._last_words()}") from error

    async def end(self) -> None:
        """Told to end by the end of its input; killed when it does not."""
        process, self._process = self._process, None
        self._received.clear()
        if process is None:
            return
        with trio.CancelScope(shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.move_on_after(END_S):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()

    async def _start(self) -> trio.Process:
        # A session of its own: Ctrl-C at the terminal is for the suite, which then ends its workers.
        self._process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "edge_daemon.bench.crash.worker", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )
        return self._process

    async def _next_line(self, process: trio.Process) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._received:
            with trio.move_on_after(SILENT_S) as silence:
                data = await process.stdout.receive_some()
            if silence.cancelled_caught:
                raise WorkerLost(f"no word for {SILENT_S:.0f} s")
            if not data:
                raise WorkerLost("it ended")
            self._received += data
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received[:] = rest
        return line

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "none"


def describe(task: Task) -> str:
    """Which one it was, so that it can be tried alone."""
    match task:
        case PlayCuts():
            return f"faults from {task.cuts[0].name} to {task.cuts[-1].name}"
        case PlayRandom():
            return f"random histories {task.seeds[0]} to {task.seeds[-1]}"
        case KillReal():
            return f"{task.kills} real kills of seed {task.seed}"
        case CountPoints():
            return f"the points of seed {task.seed}"
        case MeasureCost():
            return f"the cost of {task.actions} actions"
