"""The clock of a history: it stands still while anybody has something to do, and then is at the next deadline."""

import math

import trio


class VirtualClock(trio.abc.Clock):
    """As `trio.testing.MockClock` with autojump, in half as many rounds of trio's loop.

    Trio asks a clock how long to sleep when no task can run: this one is there already. Whoever waits for all tasks to
    be blocked, or for a thread, would be overtaken; no history does either.
    """

    def __init__(self) -> None:
        self._now_s = 0.0

    def start_clock(self) -> None: ...

    def current_time(self) -> float:
        return self._now_s

    def deadline_to_sleep_time(self, deadline: float) -> float:
        if deadline == math.inf:
            return math.inf
        # A step added, as MockClock does it: its rounding is part of the histories.
        self._now_s += max(0.0, deadline - self._now_s)
        return 0.0
