"""The calibration page's server over real sockets: what it serves, what it takes, and what it refuses."""

import json
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing

from calibration.errors import Declined
from calibration.screen import ScreenGeometry
from calibration.targets import page_html
from edge_daemon.staff import page_http, page_server
from edge_daemon.staff.page_server import MAX_CONNECTIONS, PageListen
from edge_daemon.upstream.listeners import EndpointRefused

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)


@pytest.fixture
async def pages():
    async with page_server.page_server(PageListen(), SCREEN) as served:
        yield served


async def connect(pages):
    url = urlsplit(pages.url)
    return await trio.open_tcp_stream(url.hostname, url.port)


async def exchange(pages, request: bytes):
    """(status, headers, body) of the answer to raw bytes; the server must hang up after it."""
    async with await connect(pages) as stream:
        await stream.send_all(request)
        return await answer_on(stream)


async def answer_on(stream):
    answer = b""
    with trio.fail_after(20):
        async for chunk in stream:
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]) if lines[0] else None, headers, body


async def get(pages, path):
    return await exchange(pages, f"GET {path} HTTP/1.1\r\nHost: rig\r\n\r\n".encode())


async def post(pages, value, path="report"):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = (
        f"POST {urlsplit(pages.url).path}{path} HTTP/1.1\r\nHost: rig\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return await exchange(pages, head.encode() + body)


def touch(number, x_px=100.5, y_px=200.25, **changes):
    return {
        "number": number,
        "xPx": x_px,
        "yPx": y_px,
        "turn": "portrait",
        "atMs": 10.5,
        "fingers": 1,
    } | changes


def report(number, *touches, **changes):
    return {
        "pageId": "a-page-id",
        "report": number,
        "order": 0,
        "showing": "dots",
        "canvasWidthPx": 1080,
        "canvasHeightPx": 2340,
        "dpr": 3.0,
        "turn": "portrait",
        "turns": 0,
        "touches": list(touches),
    } | changes


async def test_the_page_is_served_under_its_token_and_may_load_nothing(pages):
    status, headers, body = await get(pages, urlsplit(pages.url).path)
    assert status == 200
    assert body.decode() == page_html(SCREEN)
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/order?after=0", "/AAAAAAAAAAAAAAAAAAAAAA/", "//", "/../", "/%00/"])
async def test_who_does_not_have_the_token_gets_nothing(pages, path):
    status, _, body = await get(pages, path)
    assert status == 404
    assert body == b"there is nothing here\n"


async def test_a_touch_reported_without_the_token_is_not_taken(pages):
    body = json.dumps(report(1, touch(1))).encode()
    head = f"POST /report HTTP/1.1\r\nHost: rig\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    assert (await exchange(pages, head + body))[0] == 404
    assert pages.touches == []


async def test_each_server_has_a_token_of_its_own(pages):
    async with page_server.page_server(PageListen(), SCREEN) as other:
        assert urlsplit(other.url).path != urlsplit(pages.url).path
        assert (await get(other, urlsplit(pages.url).path))[0] == 404


async def test_show_reaches_the_waiting_page_and_returns_what_the_page_says(pages):
    states = []
    async with trio.open_nursery() as nursery:
        polled = []

        async def poll():
            polled.append(await get(pages, f"{urlsplit(pages.url).path}order?after=0"))

        async def show():
            states.append(await pages.show("dots", "landscape_left", 10))

        nursery.start_soon(poll)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(show)
        while not polled:
            await trio.testing.wait_all_tasks_blocked(0.01)
        status, _, body = polled[0]
        order = json.loads(body)
        assert (status, order) == (200, {"number": 1, "show": "dots", "turn": "landscape_left"})
        # Not yet: the old page, the wrong turn, and a size that cannot be.
        await post(pages, report(1, order=0))
        await post(pages, report(2, order=1))
        await post(pages, report(3, order=1, turn="landscape_left"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert states == []
        turned = {"turn": "landscape_left", "canvasWidthPx": 2340, "canvasHeightPx": 1080, "turns": 1}
        await post(pages, report(4, order=1, **turned))
    assert states == [pages.state]
    assert (pages.state.canvas_width_px, pages.state.dpr, pages.state.turns) == (2340, 3.0, 1)


async def test_a_page_that_is_loaded_late_gets_the_order_that_stands(pages):
    with pytest.raises(Declined, match="no page was opened"):
        await pages.show("charuco", "portrait", 0.01)
    status, _, body = await get(pages, f"{urlsplit(pages.url).path}order?after=0")
    assert (status, json.loads(body)["show"]) == (200, "charuco")


@pytest.mark.parametrize(
    ("showing", "words"),
    [("menu", "menu"), ("hidden", "front"), ("wrong_turn", "turned"), ("wrong_size", "1080 x 2200 px")],
)
async def test_a_page_that_does_not_follow_is_declined_with_what_it_said(pages, showing, words):
    await post(pages, report(1, showing=showing, canvasHeightPx=2200))
    with pytest.raises(Declined, match=words):
        await pages.show("charuco", "portrait", 0.01)


async def test_an_order_is_waited_for_and_then_answered_with_nothing(pages, monkeypatch):
    monkeypatch.setattr(page_server, "POLL_S", 0.01)
    status, _, body = await get(pages, f"{urlsplit(pages.url).path}order?after=0")
    assert (status, body) == (204, b"")


async def test_touches_are_taken_once_in_px_of_the_screen(pages):
    assert (await post(pages, report(1, touch(1), touch(2, 5.0, 6.0, fingers=2))))[0] == 204
    # The page did not hear the answer and sends again, with one more.
    await post(pages, report(2, touch(1), touch(2, 5.0, 6.0, fingers=2), touch(3, 7.0, 8.0)))
    assert [(t.x_px, t.y_px, t.fingers) for t in pages.touches] == [
        (100.5, 200.25, 1),
        (5.0, 6.0, 2),
        (7.0, 8.0, 1),
    ]


async def test_touches_of_the_page_before_the_order_are_none_of_the_ordered_page(pages):
    await post(pages, report(1, touch(1)))
    with pytest.raises(Declined):
        await pages.show("dots", "portrait", 0.01)
    assert pages.touches == []
    await post(pages, report(2, touch(2)))
    assert pages.touches == []
    await post(pages, report(3, touch(3), order=1))
    assert len(pages.touches) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b"\xff\xfe",
        json.dumps(report(1) | {"unknown": 1}).encode(),
        json.dumps(report(1, showing="everything")).encode(),
        json.dumps(report(1, canvasWidthPx=-1)).encode(),
        json.dumps(report(1, pageId="x" * 65)).encode(),
        json.dumps(report(1, *(touch(n) for n in range(1, 66)))).encode(),
        json.dumps(report(1, touch(1, x_px=1081.0))).encode(),
        json.dumps(report(1, touch(1, turn="sideways"))).encode(),
        json.dumps(report(1, touch(1))).replace("100.5", "NaN").encode(),
    ],
)
async def test_a_report_that_is_none_is_refused_whole_and_in_words(pages, body):
    status, _, words = await post(pages, body)
    assert status == 400
    assert b"Traceback" not in words
    assert len(words) > 10
    assert pages.touches == []
    assert pages.state is None


async def test_a_body_beyond_the_limit_is_refused_whether_or_not_its_length_was_said(pages):
    # Far beyond: what the server leaves unread must not cost the client its answer.
    large = b" " * (page_http.MAX_BODY_BYTES + 1_000_000)
    assert (await post(pages, large))[0] == 413
    path = urlsplit(pages.url).path
    head = f"POST {path}report HTTP/1.1\r\nHost: rig\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert (await exchange(pages, head + b"%x\r\n" % len(large) + large + b"\r\n0\r\n\r\n"))[0] == 413


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: rig\r\nX: " + b"a" * 20_000, 431),
    ],
)
async def test_what_is_no_request_is_answered_and_hung_up_on(pages, request_bytes, status):
    assert (await exchange(pages, request_bytes))[0] == status
    assert (await get(pages, urlsplit(pages.url).path))[0] == 200


@pytest.mark.parametrize(("method", "name"), [("POST", ""), ("DELETE", "report"), ("PUT", "order")])
async def test_other_methods_are_refused(pages, method, name):
    path = urlsplit(pages.url).path + name
    request = f"{method} {path} HTTP/1.1\r\nHost: rig\r\nContent-Length: 0\r\n\r\n".encode()
    assert (await exchange(pages, request))[0] == 405


@pytest.mark.parametrize(
    "query", ["", "?after=", "?after=-1", "?after=1e3", "?after=9999999999", "?before=1"]
)
async def test_an_order_is_asked_for_by_number_only(pages, query):
    assert (await get(pages, f"{urlsplit(pages.url).path}order{query}"))[0] == 400


async def test_a_client_that_sends_slowly_is_hung_up_on(pages, monkeypatch):
    monkeypatch.setattr(page_http, "REQUEST_WITHIN_S", 0.05)
    status, _, _ = await exchange(pages, b"GET / HTTP/1.1\r\nHo")
    assert status == 408


async def test_a_client_that_goes_in_the_middle_of_anything_harms_nobody(pages):
    path = urlsplit(pages.url).path.encode()
    for begun in (b"", b"GET ", b"GET " + path + b"order?after=0 HTTP/1.1\r\nHost: rig\r\n\r\n"):
        stream = await connect(pages)
        await stream.send_all(begun)
        await stream.aclose()
    assert (await get(pages, urlsplit(pages.url).path))[0] == 200


async def test_connections_beyond_the_limit_are_refused_and_a_freed_place_is_given_again(pages):
    waiting = [await connect(pages) for _ in range(MAX_CONNECTIONS)]
    for stream in waiting:
        await stream.send_all(
            f"GET {urlsplit(pages.url).path}order?after=0 HTTP/1.1\r\nHost: rig\r\n\r\n".encode()
        )
    await trio.testing.wait_all_tasks_blocked(0.01)
    async with await connect(pages) as refused:
        assert await refused.receive_some(1) == b""
    for stream in waiting:
        await stream.aclose()
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert (await get(pages, urlsplit(pages.url).path))[0] == 200


async def test_leaving_the_block_closes_every_connection_and_the_port():
    async with page_server.page_server(PageListen(), SCREEN) as served:
        stream = await connect(served)
        await stream.send_all(b"GET / HT")
        await trio.testing.wait_all_tasks_blocked(0.01)
    with trio.fail_after(5):
        assert await stream.receive_some(1) == b""
    await stream.aclose()
    with pytest.raises(OSError):
        await connect(served)


async def test_what_the_callers_block_raises_comes_out_as_it_was():
    with pytest.raises(Declined, match="no page was opened"):
        async with page_server.page_server(PageListen(), SCREEN) as served:
            await served.show("dots", "portrait", 0.01)


def test_beyond_loopback_only_when_allowed_and_with_a_name_for_the_phone():
    with pytest.raises(EndpointRefused, match="allow_beyond_loopback"):
        PageListen(host="192.168.1.20")
    with pytest.raises(EndpointRefused, match="url_host"):
        PageListen(host="0.0.0.0", allow_beyond_loopback=True)
    PageListen(host="192.168.1.20", allow_beyond_loopback=True)


async def test_the_url_names_the_address_that_the_phone_reaches():
    listen = PageListen(host="0.0.0.0", allow_beyond_loopback=True, url_host="rig-7.local")
    async with page_server.page_server(listen, SCREEN) as served:
        assert urlsplit(served.url).hostname == "rig-7.local"


async def test_a_port_that_is_taken_is_refused_by_name():
    (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with taken:
        port = taken.socket.getsockname()[1]
        with pytest.raises(EndpointRefused, match=str(port)):
            async with page_server.page_server(PageListen(port=port), SCREEN):
                raise AssertionError("must not be served")
