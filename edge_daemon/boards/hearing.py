"""One task's ear for the events of a link."""

from collections import deque
from types import TracebackType

import trio

from edge_daemon.boards.link_events import LinkEvent, Lost


class Hearing:
    """Hears events of some kinds, and Lost, from `with` to its end; for one waiting task.

    A trio memory channel would do, at the price of 15 µs an exchange for its making and for the extra turn of
    the event loop that its `receive` takes.
    """

    __slots__ = ("_among", "_heard", "_kinds", "_waiting")

    def __init__(self, among: "list[Hearing]", *kinds: type[LinkEvent]) -> None:
        self._among = among
        self._kinds = (*kinds, Lost)
        self._heard: deque[LinkEvent] = deque()
        self._waiting: trio.lowlevel.Task | None = None

    def __enter__(self) -> "Hearing":
        self._among.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._among.remove(self)

    def hear(self, event: LinkEvent) -> None:
        """From the link: keeps the event if it is of a kind that is listened for, and wakes the task."""
        if isinstance(event, self._kinds):
            self._heard.append(event)
            if self._waiting is not None:
                trio.lowlevel.reschedule(self._waiting)
                self._waiting = None

    @property
    def empty(self) -> bool:
        """Whether receive() would have to wait."""
        return not self._heard

    async def receive(self) -> LinkEvent:
        """The next event. Cancelling loses none."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._heard:
            self._waiting = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)
        return self.take()

    def take(self) -> LinkEvent:
        """The next event, which is there."""
        return self._heard.popleft()

    def _stop_waiting(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED
