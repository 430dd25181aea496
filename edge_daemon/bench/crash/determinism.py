"""One seed, one history: trio's own dice are thrown by the seed, and nothing collects garbage in between."""

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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
    with seeded_scheduling(seed):
        return trio.run(main, clock=VirtualClock())
