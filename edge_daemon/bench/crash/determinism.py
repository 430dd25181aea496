"""One seed, one history: trio's own dice are thrown by the seed, and nothing collects garbage in between."""

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio
from trio._core import _run as trio_run

from edge_daemon.bench.crash.virtual_clock import VirtualClock

T = TypeVar("T")


@contextmanager
def seeded_scheduling(seed: str) -> Iterator[None]:
    """Trio shuffles the tasks that are due; here always in the same way.

    What `hypothesis-trio` uses for that is trio's own and private; a test watches that it still works. The order in
    which a garbage collector finds things would be another source of differences, and costs time besides.
    """
    former = trio_run._ALLOW_DETERMINISTIC_SCHEDULING
    state = trio_run._r.getstate()
    was_collecting = gc.isenabled()
    gc.disable()
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio_run._r.seed(seed)
    try:
        yield
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = former  # type: ignore[misc]
        trio_run._r.setstate(state)
        if was_collecting:
            gc.enable()


def run_seeded(seed: str, main: Callable[[], Awaitable[T]]) -> T:
    """Runs `main` under trio on a virtual clock that jumps whenever nobody has anything to do."""

    async def undisturbed() -> T:
        _ask_nobody_outside()
        return await main()

    with seeded_scheduling(seed):
        return trio.run(undisturbed, clock=VirtualClock())


class _NothingComes:
    """In place of trio's manager of sockets: it looks for bytes only where the loop would wait for them.

    On a virtual clock it never waits while a history lives, and nothing in one comes from outside. Ctrl-C that meets
    trio's own code is heard when the main task is next at work, at the latest at the history's end.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def get_events(self, timeout_s: float) -> Any:
        return self._manager.get_events(timeout_s) if timeout_s else ()

    def process_events(self, events: Any) -> None:
        if events:
            self._manager.process_events(events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def _ask_nobody_outside() -> None:
    """Of thousands of rounds in a history each asks the kernel for bytes, and each step, six times, in Python, whether
    somebody watches. The answer is always no; asking is a twentieth of the time. Private parts of trio as well."""
    runner = trio_run.GLOBAL_RUN_CONTEXT.runner
    runner.io_manager = _NothingComes(runner.io_manager)  # type: ignore[assignment]
    runner.instruments = {}  # type: ignore[assignment]
