"""A camera server that does what it is told, and pictures to serve."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic_ns
from typing import Any

import cv2
import numpy as np
import pytest
import trio

from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.sources import HttpMjpegSource

PATIENCE_S = 8.0
"""Only a bound on a test that hangs; nothing is measured with it."""

HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=boundarydonotcross\r\n\r\n"
BOUNDARY = b"--boundarydonotcross\r\n"


def jpeg_of(level: int, *, width: int = 64, height: int = 48) -> bytes:
    """A small lit picture that differs for each level 0..199."""
    image = np.full((height, width), 40 + level, np.uint8)
    image[height // 2 :, :] = 250 - level
    done, encoded = cv2.imencode(".jpg", image)
    assert done
    return encoded.tobytes()


class CameraServer:
    """Motion-JPEG over HTTP in µStreamer's words, from the same trio loop as the test."""

    def __init__(self) -> None:
        self.port = 0
        self.streams: list[trio.SocketStream] = []
        self.connected = 0
        self.change = trio.Event()
        self.head = HEAD
        self.on_connect: Callable[[], bytes] | None = None
        """Gives what each new connection is sent at once."""
        self._scope: trio.CancelScope | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/stream?extra_headers=1"

    async def listen(self, nursery: trio.Nursery) -> None:
        """Plug it in: the same port again after `unplug`."""
        listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        self._scope = trio.CancelScope()

        async def serve() -> None:
            assert self._scope is not None
            with self._scope:
                await trio.serve_listeners(self._stream, listeners)

        nursery.start_soon(serve)

    def unplug(self) -> None:
        """Close every connection and refuse new ones."""
        assert self._scope is not None
        self._scope.cancel()

    async def _stream(self, stream: trio.SocketStream) -> None:
        try:
            request = b""
            while b"\r\n\r\n" not in request:
                data = await stream.receive_some()
                if not data:
                    return
                request += data
            await stream.send_all(self.head + BOUNDARY)
            if self.on_connect is not None:
                await stream.send_all(self.on_connect())
            self.streams.append(stream)
            self.connected += 1
            self._announce()
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            # A killed client: what the tests do on purpose.
            return
        finally:
            if stream in self.streams:
                self.streams.remove(stream)
            self._announce()

    def _announce(self) -> None:
        self.change.set()
        self.change = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.change.wait()

    async def wait_connected(self, count: int = 1) -> None:
        """Until there have been `count` connections in all and one is open."""
        await self.until(lambda: self.connected >= count and bool(self.streams))

    async def send(self, raw: bytes) -> None:
        for stream in list(self.streams):
            try:
                await stream.send_all(raw)
            except trio.BrokenResourceError:
                # Closed by the client meanwhile; `_stream` sees it too.
                continue

    async def push(self, jpeg: bytes, **part: object) -> None:
        await self.send(part_of(jpeg, **part))

    async def play(self, jpegs: list[bytes], *, every_s: float = 0.015) -> None:
        """Serve them round and round, each as exposed just now."""
        while True:
            for jpeg in jpegs:
                await self.push(jpeg)
                await trio.sleep(every_s)

    @asynccontextmanager
    async def playing(self, jpegs: list[bytes]) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.play, jpegs)
            yield
            nursery.cancel_scope.cancel()

    def over(self, *, silence_s: float = PATIENCE_S, **options: Any) -> Camera:
        """A camera on this server; what is not its subject is out of the way."""
        options = {"stamp_lag_ms": 0, "url": self.url} | options
        return Camera("over", HttpMjpegSource(**options), silence_s=silence_s)


def part_of(
    jpeg: bytes,
    *,
    grab_ns: int | None = None,
    headers: dict[str, str] | None = None,
    length: int | None = None,
    end: bytes = b"\r\n" + BOUNDARY,
) -> bytes:
    """One part as µStreamer sends it. `headers` None means its time header, `grab_ns` None means now."""
    if headers is None:
        grab_ns = monotonic_ns() if grab_ns is None else grab_ns
        headers = {
            "X-Timestamp": "1.000000",
            "X-UStreamer-Online": "true",
            "X-UStreamer-Grab-Time": f"{grab_ns // 10**9}.{grab_ns % 10**9:09d}",
        }
    lines = [
        "Content-Type: image/jpeg",
        f"Content-Length: {len(jpeg) if length is None else length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + jpeg + end


@asynccontextmanager
async def _running(camera: Camera) -> AsyncIterator[Camera]:
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(camera.run)
            yield camera
            nursery.cancel_scope.cancel()


@pytest.fixture
def running() -> Callable[[Camera], AbstractAsyncContextManager[Camera]]:
    """Runs a camera for the length of a block; a test that hangs fails."""
    return _running


@pytest.fixture
def part() -> Callable[..., bytes]:
    return part_of


@pytest.fixture
def jpeg() -> Callable[..., bytes]:
    return jpeg_of


@pytest.fixture(scope="session")
def jpegs() -> list[bytes]:
    """Eight different lit pictures, 64x48."""
    return [jpeg_of(level * 9) for level in range(8)]


@asynccontextmanager
async def _serving() -> AsyncIterator[CameraServer]:
    server = CameraServer()
    async with trio.open_nursery() as nursery:
        await server.listen(nursery)
        yield server
        nursery.cancel_scope.cancel()


@pytest.fixture
async def server() -> AsyncIterator[CameraServer]:
    async with _serving() as running:
        yield running


class View:
    """What a camera over a phone sees, 1280x720: a page of coloured icons on a lit table."""

    WIDTH, HEIGHT = 1280, 720
    SCREEN = ((480.0, 30.0), (800.0, 30.0), (800.0, 690.0), (480.0, 690.0))

    def __init__(self) -> None:
        self._random = np.random.default_rng(20)
        self._pages: dict[int, np.ndarray] = {}

    def page(self, seed: int) -> np.ndarray:
        """A page of its own for each seed, to be drawn upon."""
        if seed not in self._pages:
            self._pages[seed] = self._drawn(seed)
        return self._pages[seed].copy()

    def _drawn(self, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        image = np.full((self.HEIGHT, self.WIDTH, 3), (60, 70, 65), np.uint8)
        cv2.rectangle(image, (470, 10), (810, 710), (20, 20, 20), -1)
        cv2.rectangle(image, (480, 30), (800, 690), (245, 245, 245), -1)
        for row in range(6):
            for column in range(4):
                x, y = 495 + column * 76, 60 + row * 100
                colour = tuple(int(value) for value in random.integers(30, 230, 3))
                cv2.rectangle(image, (x, y), (x + 55, y + 55), colour, -1)
                cv2.putText(image, f"App {random.integers(99)}", (x, y + 72), 0, 0.45, (40, 40, 40), 1)
        return cv2.GaussianBlur(image, (0, 0), 0.8)

    def shot(self, image: np.ndarray, sigma: float, *, quality: int = 90) -> bytes:
        """A JPEG of the view with sensor noise of `sigma` grey levels."""
        if sigma:
            noise = np.empty(image.shape[:2], np.float32)
            cv2.setRNGSeed(int(self._random.integers(2**31)))
            cv2.randn(noise, 0.0, sigma)
            image = cv2.add(image, cv2.merge([noise] * 3), dtype=cv2.CV_8U)
        done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
        assert done
        return encoded.tobytes()


@pytest.fixture
def view() -> View:
    return View()
