"""Each backend against something real: files and a stream through OpenCV, HTTP in its variants, a capture process."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic_ns
from typing import Any

import cv2
import numpy as np
import pytest
import trio

from edge_daemon.bench.twin.mjpeg import MjpegServer, Part
from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.files import FilesBackend
from edge_daemon.cameras.http_mjpeg import HttpMjpegBackend
from edge_daemon.cameras.intake import Grabbed
from edge_daemon.cameras.opencv_reader import OpenCvReader
from edge_daemon.cameras.process import capture_process
from edge_daemon.cameras.sources import FilesSource, HttpMjpegSource

PATIENCE_S = 8.0


def brightness(jpeg: bytes | bytearray) -> float:
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert image is not None
    return float(image.mean())


def test_a_video_file_is_played_through_opencv_picture_by_picture_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "phone.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 15, (64, 48))
    assert writer.isOpened()
    levels = (40, 90, 140, 190)
    for level in levels:
        writer.write(np.full((48, 64, 3), level, np.uint8))
    writer.release()
    backend = FilesBackend(FilesSource(path=str(path), fps=240, loop=False))
    backend.open()
    grabbed = [backend.grab() for _ in levels]
    assert [brightness(one.jpeg) for one in grabbed] == pytest.approx(levels, abs=3)
    assert [one.stamp_ns for one in grabbed] == sorted({one.stamp_ns for one in grabbed})
    with pytest.raises(SourceFault, match="at their end") as ended:
        backend.grab()
    assert ended.value.fault is CameraFault.ENDED
    backend.close()


def test_a_file_that_is_no_video_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.avi"
    path.write_text("no video")
    backend = FilesBackend(FilesSource(path=str(path)))
    backend.open()
    with pytest.raises(SourceFault, match="cannot be opened as a video"):
        backend.grab()


def test_a_real_mjpeg_server_is_read_through_opencv_and_its_end_is_noticed(jpegs: list[bytes]) -> None:
    server = MjpegServer()
    server.open()
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(0.01):
            for jpeg in jpegs:
                server.publish(Part(jpeg, monotonic_ns(), monotonic_ns()))

    publishing = threading.Thread(target=publish)
    publishing.start()
    try:
        reader = OpenCvReader(f"http://127.0.0.1:{server.port}/stream")
        shown = {round(brightness(jpeg)) for jpeg in iter_of(reader, 12)}
        assert shown <= {round(brightness(jpeg)) + off for jpeg in jpegs for off in (-1, 0, 1)}
    finally:
        stop.set()
        publishing.join()
        server.close()
    while reader.read() is not None:
        pass
    reader.close()
    with pytest.raises(SourceFault, match="cannot be opened"):
        OpenCvReader(f"http://127.0.0.1:{server.port}/stream")


def iter_of(reader: OpenCvReader, count: int) -> Iterator[bytes]:
    for _ in range(count):
        jpeg = reader.read()
        assert jpeg is not None
        yield jpeg


# -- HTTP ---------------------------------------------------------------------------------------------------------


@contextmanager
def answering(*pieces: bytes) -> Iterator[int]:
    """A server for one connection that sends these pieces and then waits for the client to leave."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            # It leaves with bytes unread.
            with connection, suppress(ConnectionResetError):
                connection.recv(4096)
                for piece in pieces:
                    connection.sendall(piece)
                while connection.recv(4096):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def grabbed_from(port: int, count: int) -> list[Grabbed]:
    backend = HttpMjpegBackend(HttpMjpegSource(url=f"http://127.0.0.1:{port}/?extra_headers=1"))
    try:
        backend.open()
        return [backend.grab() for _ in range(count)]
    finally:
        backend.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=boundarydonotcross\r\n"
FIRST = b"--boundarydonotcross\r\n"


@pytest.mark.parametrize("cut", [1, 7, 4096, 100_000])
def test_a_stream_is_the_same_in_http_chunks_and_without_however_it_is_cut(part: Any, cut: int) -> None:
    pictures = [os.urandom(size) for size in (20_000, 1, 70_000)]
    stream = FIRST + b"".join(part(picture, grab_ns=number) for number, picture in enumerate(pictures))
    pieces = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    if cut < 100:
        pieces = [*pieces[:2000], b"".join(pieces[2000:])]
    chunked = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    for head, body in ((b"\r\n", pieces), (b"Transfer-Encoding: chunked\r\n\r\n", chunked)):
        # With the head comes the first part's beginning, as it does from a fast server.
        with answering(HEAD + head + body[0], *body[1:]) as port:
            assert [bytes(one.jpeg) for one in grabbed_from(port, 3)] == pictures


# -- always drained -----------------------------------------------------------------------------------------------


async def test_a_daemon_that_stands_still_finds_the_newest_pictures_and_the_number_of_the_lost(
    server: Any,
) -> None:
    """The capture process goes on reading its camera: 60 MB are taken off the server while nobody reads from it."""
    big = [
        b"\xff\xd8\xff\xc0\x00\x11\x08\x00\x30\x00\x40" + bytes([n]) * 200_000 + b"\xff\xd9" for n in range(8)
    ]
    order = CaptureOrder(source=HttpMjpegSource(url=server.url, stamp_lag_ms=0), frozen_after_ms=8000)
    with trio.fail_after(PATIENCE_S):
        async with capture_process(order) as process:
            await server.wait_connected()
            last_ns = 0
            for number in range(300):
                last_ns = monotonic_ns()
                await server.push(big[number % 8], grab_ns=last_ns)
            frames: list[pipe.Frame] = []
            while not frames or frames[-1].sequence < 300:
                records = await process.receive()
                assert records is not None
                frames += [header for header, _ in records if isinstance(header, pipe.Frame)]
    assert frames[-1].stamp_ns == last_ns
    assert frames[-1].dropped == 300 - len(frames) > 200
    assert [frame.sequence for frame in frames[-10:]] == list(range(291, 301))
