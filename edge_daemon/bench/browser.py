"""The simulated phone's browser with the calibration page open: follows the rig's orders, reports what it shows.

As `calibration/targets/rig.js` does in a real one, without its touches: the camera sees those.
"""

import json
from typing import Any, Final

import h11
import trio

from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX, SCREEN_WIDTH_PX

_LANDSCAPE: Final = ("landscape_left", "landscape_right")
_READ_BYTES: Final = 65536


class PageClosed(Exception):
    """Nobody serves the page any more, or not under this address."""


async def open_page(
    phone: Phone, url: str, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Shows whatever the rig orders, until the page is served no more. Started once the page is known to the rig."""
    browser = _Browser(phone, url)
    try:
        await browser.report("menu", "portrait")
        task_status.started()
        while True:
            await browser.follow()
    except (PageClosed, h11.RemoteProtocolError, OSError, trio.BrokenResourceError):
        return


class _Browser:
    def __init__(self, phone: Phone, url: str) -> None:
        host_and_port, _, token = url.removeprefix("http://").partition("/")
        self._host, _, port = host_and_port.rpartition(":")
        self._port, self._token = int(port), token.strip("/")
        self._phone = phone
        self._order = 0
        self._reports = 0

    async def follow(self) -> None:
        """The next order, obeyed and reported."""
        order = await self._exchange("GET", f"order?after={self._order}")
        if order is None:
            return
        self._phone.show_page(order["show"], turn=order["turn"])
        self._order = order["number"]
        await self.report(order["show"], order["turn"])

    async def report(self, showing: str, turn: str) -> None:
        self._reports += 1
        size = (SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX)
        width, height = size[::-1] if turn in _LANDSCAPE else size
        await self._exchange(
            "POST",
            "report",
            {
                "pageId": "simulated-phone",
                "report": self._reports,
                "order": self._order,
                "showing": showing,
                "canvasWidthPx": width,
                "canvasHeightPx": height,
                "dpr": 1.0,
                "turn": turn,
                "turns": 0,
                "touches": [],
            },
        )

    async def _exchange(self, method: str, name: str, body: dict[str, Any] | None = None) -> Any:
        """The answer's JSON, None where it has none. Raises PageClosed."""
        content = b"" if body is None else json.dumps(body).encode()
        connection = h11.Connection(h11.CLIENT)
        headers = [("Host", self._host), ("Content-Length", str(len(content))), ("Connection", "close")]
        request = h11.Request(method=method, target=f"/{self._token}/{name}", headers=headers)
        received = b""
        async with await trio.open_tcp_stream(self._host, self._port) as stream:
            for part in (request, h11.Data(data=content), h11.EndOfMessage()):
                await stream.send_all(connection.send(part) or b"")
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some(_READ_BYTES))
                elif isinstance(event, h11.Response) and event.status_code >= 300:
                    raise PageClosed(f"{method} {name}: status {event.status_code}")
                elif isinstance(event, h11.Data):
                    received += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return json.loads(received) if received else None
                elif isinstance(event, h11.ConnectionClosed):
                    raise PageClosed(f"{method} {name}: hung up")
