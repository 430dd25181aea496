"""The rig's end of the calibration page: serves it to the phone, tells it what to show, takes its touches.

The page works without; with it nobody has to touch the phone between the steps, and the phone's own touches
can be compared with what the camera saw.
"""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec
import trio

from calibration.errors import Declined
from calibration.screen import ScreenGeometry
from calibration.targets import Turn, page_html
from edge_daemon.staff.page_http import HttpAnswer, HttpRequest, RequestRefused, serve_request
from edge_daemon.staff.page_messages import (
    ORDER_ENCODER,
    REPORT_DECODER,
    Order,
    PageReport,
    PageState,
    PageTouch,
    Target,
    state_of,
)
from edge_daemon.upstream.listeners import EndpointRefused, is_loopback

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 16
MAX_TOUCHES: Final = 10_000
MAX_PAGES: Final = 16
"""How often the page may be loaded anew before the first load's touches could be taken twice."""
POLL_S: Final = 25.0
"""Below the half minute after which phones and routers drop a silent connection."""
_TOKEN_BYTES: Final = 16
_WILDCARDS: Final = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class PageListen:
    """Where the page is served. Beyond loopback only when allowed: everyone in that network can try it.

    Raises EndpointRefused.
    """

    host: str = "127.0.0.1"
    port: int = 0
    allow_beyond_loopback: bool = False
    url_host: str | None = None
    """How the phone reaches this machine; needed where `host` stands for every address."""

    def __post_init__(self) -> None:
        if not self.allow_beyond_loopback and not is_loopback(self.host):
            raise EndpointRefused(
                f"page server on {self.host!r}: everyone in that network could open the page; listen on "
                "127.0.0.1, or set allow_beyond_loopback = true"
            )
        if self.host in _WILDCARDS and self.url_host is None:
            raise EndpointRefused(
                f"page server on {self.host!r}: set url_host to the name or address by which the phone "
                "reaches this machine"
            )
        if not 0 <= self.port <= 65535:
            raise EndpointRefused(f"page server: port {self.port} is not within 0..65535")


@asynccontextmanager
async def page_server(listen: PageListen, screen: ScreenGeometry) -> AsyncIterator["Pages"]:
    """Serve the page for one screen while the block runs; at its end every connection is closed.

    The URL holds a random token that is made here and forgotten with the block: who does not have it, gets
    nothing and can report nothing.

    Raises EndpointRefused where it cannot listen, TargetImpossible where the targets do not fit the screen.
    """
    page = await trio.to_thread.run_sync(page_html, screen)
    try:
        listeners = await trio.open_tcp_listeners(listen.port, host=listen.host)
    except OSError as error:
        raise EndpointRefused(f"page server on {listen.host}:{listen.port}: {error}") from error
    host = listen.url_host or listen.host
    port = listeners[0].socket.getsockname()[1]
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    bracketed = f"[{host}]" if ":" in host else host
    pages = Pages(screen, page.encode("utf-8"), token, f"http://{bracketed}:{port}/{token}/")
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.serve_listeners, pages.serve, listeners))
            yield pages
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The server raises nothing; what the caller's own block raised reaches it as it was.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


class Pages:
    """The page on the phone, as seen from the rig."""

    def __init__(self, screen: ScreenGeometry, page: bytes, token: str, url: str) -> None:
        self.url = url
        self._screen = screen
        self._page = page
        self._token = token.encode("ascii")
        self._connections = 0
        self._order: Order | None = None
        self._touches: list[PageTouch] = []
        self._state: PageState | None = None
        self._obeyed = 0
        # By page id: the last report, and the last touch taken of it. A page that missed our answer sends again.
        self._taken: dict[str, tuple[int, int]] = {}
        self._changed = trio.Event()

    @property
    def state(self) -> PageState | None:
        """What the page last said, or None as long as none was opened."""
        return self._state

    @property
    def touches(self) -> list[PageTouch]:
        """The fingers that came down since the dots were last ordered, oldest first."""
        return list(self._touches)

    async def show(self, target: Target, turn: Turn, timeout_s: float) -> PageState:
        """Have the page show a target, turned that way, and wait until it says that it does.

        Raises Declined, with what the page said last, when it does not within `timeout_s`. The order stays:
        a phone that is opened or turned later still follows it.
        """
        number = 1 if self._order is None else self._order.number + 1
        self._order = Order(number=number, show=target, turn=turn)
        self._touches = []
        self._notify()
        with trio.move_on_after(timeout_s):
            while True:
                state, changed = self._state, self._changed
                if (
                    state is not None
                    and self._obeyed == number
                    and (state.showing, state.turn) == (target, turn)
                    and state.fills(self._screen)
                ):
                    return state
                await changed.wait()
        raise Declined(f"the phone does not show {target!r}, {turn}, within {timeout_s:g} s: {self._said()}")

    def _said(self) -> str:
        state, screen = self._state, self._screen
        if state is None:
            return f"no page was opened; open {self.url} on the phone"
        is_px = f"{state.canvas_width_px} x {state.canvas_height_px} px"
        match state.showing:
            case "menu":
                return "the page is in its menu; press a button on it once, for full screen"
            case "hidden":
                return "the page is not in front; switch the phone to it"
            case "wrong_size":
                return f"the page has {is_px}, the screen {screen.width_px} x {screen.height_px} px"
            case "wrong_turn" | "turned":
                return f"the page is turned {state.turn or 'nobody knows how'}; turn the phone"
            case shown:
                return f"it says that it shows {shown!r}, {state.turn}, on {is_px}; reload the page"

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        if self._connections >= MAX_CONNECTIONS:
            log.warning("page server: refused a connection, %d are open", self._connections)
            await stream.aclose()
            return
        self._connections += 1
        try:
            await serve_request(stream, self._answer)
        finally:
            self._connections -= 1

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        _, token, *rest = [*request.path.split("/"), ""][:4]
        name = rest[0] if rest else ""
        known = secrets.compare_digest(token.encode("utf-8"), self._token)
        if not known or request.path != f"/{token}/{name}":
            raise RequestRefused(HTTPStatus.NOT_FOUND, "there is nothing here")
        match request.method, name:
            case "GET", "":
                return HttpAnswer(HTTPStatus.OK, "text/html; charset=utf-8", self._page)
            case "GET", "order":
                return await self._next_order(_after(request.query))
            case "POST", "report":
                self._take(_decoded(request.body))
                return HttpAnswer(HTTPStatus.NO_CONTENT)
            case _, "" | "order" | "report":
                raise RequestRefused(HTTPStatus.METHOD_NOT_ALLOWED, f"not to be asked by {request.method}")
        raise RequestRefused(HTTPStatus.NOT_FOUND, "there is nothing here")

    async def _next_order(self, after: int) -> HttpAnswer:
        with trio.move_on_after(POLL_S):
            while True:
                if self._order is not None and self._order.number > after:
                    return HttpAnswer(HTTPStatus.OK, "application/json", ORDER_ENCODER.encode(self._order))
                await self._changed.wait()
        return HttpAnswer(HTTPStatus.NO_CONTENT)

    def _take(self, report: PageReport) -> None:
        for touch in report.touches:
            if touch.x_px > self._screen.width_px or touch.y_px > self._screen.height_px:
                raise RequestRefused(
                    HTTPStatus.BAD_REQUEST,
                    f"touch {touch.number} at ({touch.x_px:g}, {touch.y_px:g}) px is off the screen",
                )
        last_report, last_touch = self._taken.pop(report.page_id, (0, 0))
        fresh = [touch for touch in report.touches if touch.number > last_touch]
        if len(self._touches) + len(fresh) > MAX_TOUCHES:
            raise RequestRefused(HTTPStatus.CONFLICT, f"over {MAX_TOUCHES} touches; show the dots page anew")
        numbers = [last_touch, *(touch.number for touch in fresh)]
        self._taken[report.page_id] = (max(last_report, report.report), max(numbers))
        if len(self._taken) > MAX_PAGES:
            del self._taken[next(iter(self._taken))]
        if self._order is None or report.order == self._order.number:
            # Touches on what the page showed before the present order are none of its touches.
            self._touches += [PageTouch(t.x_px, t.y_px, t.turn, t.fingers, t.at_ms) for t in fresh]
        if report.report > last_report:
            self._state, self._obeyed = state_of(report), report.order
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


def _after(query: str) -> int:
    name, _, number = query.partition("=")
    if name != "after" or not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "ask for order?after=NUMBER")
    return int(number)


def _decoded(body: bytes) -> PageReport:
    try:
        return REPORT_DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, f"not a report: {error}") from error
