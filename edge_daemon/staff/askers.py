"""Who answers what a procedure asks: a person, or the numbers alone; and how the phone comes to show its page."""

from collections.abc import Awaitable, Callable

from calibration.errors import Declined
from calibration.rig import Answer, Judge, PointRefused, Request, ShowTarget
from edge_daemon.staff.page_server import Pages
from edge_daemon.staff.rig import Asker

Shower = Callable[[ShowTarget], Awaitable[None]]
"""Has the phone show a target; raises `Declined` when it does not."""

PAGE_TIMEOUT_S = 20.0
"""A page that is open hears of a new target at once; a phone that sleeps has to be woken by somebody."""


def by_page(pages: Pages, timeout_s: float = PAGE_TIMEOUT_S) -> Shower:
    """The page that the phone has open is told."""

    async def show(request: ShowTarget) -> None:
        await pages.show(request.target, request.turn, timeout_s)

    return show


def unattended(show: Shower) -> Asker:
    """Nobody is asked: a place that went wrong is touched again, and the limits alone judge."""

    async def answer(request: Request) -> Answer:
        match request:
            case ShowTarget():
                await show(request)
                return "done"
            case PointRefused():
                # The procedure itself gives up after a few times.
                return "redo"
            case Judge(acceptance=acceptance):
                return "accept" if acceptance.passed else "reject"
        raise Declined(f"nobody is there to answer {type(request).__name__}")

    return answer
