"""HTTP/1.1 for the page's server: one bounded request a connection, one answer. h11 keeps the protocol."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import h11
import trio

MAX_HEADER_BYTES: Final = 8 * 1024
MAX_BODY_BYTES: Final = 32 * 1024
"""Sixty-four touches in JSON are a third of it."""
REQUEST_WITHIN_S: Final = 10.0
SEND_WITHIN_S: Final = 20.0
DRAIN_WITHIN_S: Final = 1.0

# Nothing the page shows may be stored, framed, guessed at or passed on; its URL is its password.
_HEADERS: Final = (
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    query: str
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: HTTPStatus
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""


class RequestRefused(Exception):
    """The answer to a request that is not served."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.answer = HttpAnswer(status, body=f"{reason}\n".encode())


async def serve_request(
    stream: trio.SocketStream, answer_to: Callable[[HttpRequest], Awaitable[HttpAnswer]]
) -> None:
    """Read one request, answer it and hang up. `answer_to` is cancelled when the client hangs up first.

    Whatever the client sends or leaves out ends in an answer or in a closed connection, never in an error.
    """
    try:
        async with stream:
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
            try:
                request = await _read_in_time(stream, connection)
                answer = await _unless_hung_up(stream, answer_to, request)
            except RequestRefused as refused:
                answer = refused.answer
            if answer is not None:
                await _send(stream, connection, answer)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        # A phone that leaves the network is no event here: whoever waits for the page has a time limit.
        return


async def _read_in_time(stream: trio.SocketStream, connection: h11.Connection) -> HttpRequest:
    with trio.move_on_after(REQUEST_WITHIN_S):
        try:
            return await _read(stream, connection)
        except h11.RemoteProtocolError as error:
            raise RequestRefused(HTTPStatus(error.error_status_hint), f"bad request: {error}") from error
    raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT, f"no whole request within {REQUEST_WITHIN_S:.0f} s")


async def _read(stream: trio.SocketStream, connection: h11.Connection) -> HttpRequest:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                # Sent by command line clients before larger bodies; without an answer they wait.
                go_on = connection.send(h11.InformationalResponse(status_code=100, headers=[]))
                await stream.send_all(go_on or b"")
            connection.receive_data(await stream.receive_some(4096))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                raise RequestRefused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over {MAX_BODY_BYTES} bytes"
                )
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            path, _, query = head.target.decode("ascii").partition("?")
            return HttpRequest(head.method.decode("ascii"), path, query, bytes(body))
        else:
            raise trio.BrokenResourceError("hung up before a request")


async def _unless_hung_up(
    stream: trio.SocketStream,
    answer_to: Callable[[HttpRequest], Awaitable[HttpAnswer]],
    request: HttpRequest,
) -> HttpAnswer | None:
    answer: HttpAnswer | None = None
    refused: RequestRefused | None = None

    async def listen() -> None:
        try:
            # One request a connection: the end is the only thing that may still come.
            while await stream.receive_some(4096):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        try:
            answer = await answer_to(request)
        except RequestRefused as refusal:
            refused = refusal
        nursery.cancel_scope.cancel()
    if refused is not None:
        raise refused
    return answer


async def _send(stream: trio.SocketStream, connection: h11.Connection, answer: HttpAnswer) -> None:
    headers = [*_HEADERS, ("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
    head = h11.Response(status_code=answer.status, headers=headers, reason=answer.status.phrase)
    with trio.move_on_after(SEND_WITHIN_S):
        await stream.send_all(
            (connection.send(head) or b"")
            + (connection.send(h11.Data(data=answer.body)) or b"")
            + (connection.send(h11.EndOfMessage()) or b"")
        )
        await stream.send_eof()
    # Closed with unread bytes the kernel would reset the connection, and the client might lose the answer.
    with trio.move_on_after(DRAIN_WITHIN_S):
        while await stream.receive_some(4096):
            pass
