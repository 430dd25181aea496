"""Two codecs that share no line, on one wire: what either writes is byte for byte what the other would."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgpack
import msgspec
import pytest
import trio

from edge_daemon.bench.plane import PlaneError, open_plane
from edge_daemon.upstream import codec
from edge_daemon.upstream.listeners import unix_listener

TAP = {"type": "tap", "x": 500.0, "y": 250.0}


class Tapped:
    """What went over the wire, by direction."""

    def __init__(self) -> None:
        self.to_edge = bytearray()
        self.from_edge = bytearray()


@asynccontextmanager
async def wire_tap(edge_path: Path, at: Path) -> AsyncIterator[Tapped]:
    tapped = Tapped()

    async def copy(source: trio.SocketStream, sink: trio.SocketStream, record: bytearray) -> None:
        async for data in source:
            record += data
            await sink.send_all(data)
        await sink.send_eof()

    async def carry(plane: trio.SocketStream) -> None:
        async with await trio.open_unix_socket(edge_path) as edge, trio.open_nursery() as both:
            both.start_soon(copy, plane, edge, tapped.to_edge)
            both.start_soon(copy, edge, plane, tapped.from_edge)

    with unix_listener(at) as listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, carry, [listener])
            yield tapped
            nursery.cancel_scope.cancel()


def bodies(wire: bytearray, cap: int) -> list[bytes]:
    reader = codec.FrameReader(cap)
    reader.feed(wire)
    return list(iter(reader.next_body, None))


async def test_everything_said_in_a_session_is_the_same_bytes_in_both_codecs(edge, tmp_path: Path) -> None:
    edge.rig.record("before")
    async with wire_tap(edge.plane_socket, tmp_path / "tap") as tapped:
        async with open_plane("plane-1", tmp_path / "tap") as plane:
            await plane.dispatch("phone-1", TAP, key="k-1", observed_frame="f-1", expires_in_ms=5000)
            for action in (
                {"type": "swipe", "fromX": 1, "fromY": 2.5, "toX": 3, "toY": 4.0, "durationMs": 450},
                {"type": "longPress", "x": 0, "y": 1000},
                {"type": "typeText", "text": "grüße ☃ 🤖"},
                {"type": "pressKey", "key": "home"},
                {"type": "openApp", "appId": "com.example.app"},
            ):
                await plane.dispatch("phone-2", action)
            await plane.look("phone-1", format="png")
            await plane.get_receipt("phone-1", "k-1", epoch=3)
            await plane.cancel("phone-1", "k-1")
            await plane.set_parked("phone-1", True)
            with pytest.raises(PlaneError):
                await plane.look("phone-1")
            await plane.list_devices()
            await plane.wait_until(lambda: len(plane.pushed) == 7)
        towards = bodies(tapped.to_edge, codec.MAX_BYTES_TO_EDGE)
        back = bodies(tapped.from_edge, codec.MAX_BYTES_FROM_EDGE)
    for body in towards:
        typed = codec.decode_to_edge(body)
        assert msgspec.msgpack.encode(msgspec.msgpack.decode(body)) == body
        assert codec.decode_to_edge(codec.encode_to_edge(typed)[4:]) == typed
    for body in back:
        assert codec.encode_from_edge(codec.decode_from_edge(body))[4:] == body
        assert msgpack.packb(msgpack.unpackb(body)) == body
    said = {msgpack.unpackb(body)["type"] for body in towards + back}
    assert said >= {
        "challenge", "hello", "welcome", "dispatch", "progress", "result", "look", "picture", "getReceipt",
        "receiptAnswer", "cancel", "setParked", "ok", "error", "listDevices", "devices", "deviceChanged",
        "receipt", "ackReceipt",
    }  # fmt: skip
