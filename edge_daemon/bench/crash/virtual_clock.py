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
        self.alarms: dict[Alarm, float] = {}
        """When those go off that somebody waits at."""

    def start_clock(self) -> None: ...

    def current_time(self) -> float:
        return self._now_s

    def now_ns(self) -> int:
        """Of the world: nanoseconds since its beginning."""
        return int(self._now_s * 1e9)

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Of trio's deadlines the next; the next alarm may come before it."""
        next_s = min((deadline, *self.alarms.values()))
        if next_s == math.inf:
            return math.inf
        # A step added, as MockClock does it: its rounding is part of the histories.
        self._now_s += max(0.0, next_s - self._now_s)
        for alarm in [alarm for alarm, due_s in self.alarms.items() if due_s <= self._now_s]:
            alarm.go_off()
        return 0.0


def running_clock() -> VirtualClock:
    """Of the history that plays."""
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, VirtualClock)
    return clock


class Alarm:
    """One task waits here until a time, or until somebody rings; on a `VirtualClock`.

    It wakes when `move_on_after` around the wait for an event would, without the cancel scope and the exception that
    each of them costs: boards wait here hundreds of times in a history.
    """

    def __init__(self) -> None:
        self._clock = running_clock()
        self._waiting: trio.lowlevel.Task | None = None
        self._rung = False

    def ring(self) -> None:
        """Now; where nobody waits, the next wait is over at once."""
        self._rung = True
        if self._waiting is not None:
            self.go_off()

    def go_off(self) -> None:
        """Wakes the task that waits."""
        trio.lowlevel.reschedule(self._let_go())

    async def wait_until(self, at_s: float) -> None:
        """On trio's clock; infinity: until it rings."""
        if self._rung:
            await trio.lowlevel.checkpoint()
        else:
            self._waiting = trio.lowlevel.current_task()
            self._clock.alarms[self] = at_s
            await trio.lowlevel.wait_task_rescheduled(self._give_up)
        self._rung = False

    def _give_up(self, raise_cancel: object) -> trio.lowlevel.Abort:
        self._let_go()
        return trio.lowlevel.Abort.SUCCEEDED

    def _let_go(self) -> trio.lowlevel.Task:
        task, self._waiting = self._waiting, None
        assert task is not None
        del self._clock.alarms[self]
        return task


async def sleep(seconds: float) -> None:
    """As `trio.sleep`, by an alarm."""
    await Alarm().wait_until(trio.current_time() + seconds)
