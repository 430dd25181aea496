"""The bench's plane against an edge that only says what PROTOCOL.md shows, without any code of the daemon's."""

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio

from edge_daemon.bench.plane import Plane, PlaneDisconnected, PlaneError, TcpAddress, open_plane

DOCUMENT = Path(__file__).parents[2] / "edge_daemon" / "upstream" / "PROTOCOL.md"
TOKEN = b"c0ffee00" * 8


def documented(kind: str) -> dict[str, Any]:
    """The first example of a message."""
    text = DOCUMENT.read_text(encoding="utf-8").split(f"\n### `{kind}` – ", 1)[1]
    hexed = text.split("```hex\n", 1)[1].split("```", 1)[0]
    message: dict[str, Any] = msgpack.unpackb(bytes.fromhex(hexed)[4:])
    return message


class ScriptedEdge:
    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = bytearray()

    async def say(self, kind: str, **changes: Any) -> None:
        await self.say_all({**documented(kind), **changes})

    async def say_all(self, *messages: dict[str, Any]) -> None:
        bodies = [msgpack.packb(message) for message in messages]
        await self.stream.send_all(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))

    async def hear(self) -> dict[str, Any]:
        while len(self._buffer) < 4 or len(self._buffer) < 4 + int.from_bytes(self._buffer[:4], "big"):
            data = await self.stream.receive_some()
            assert data, "the plane hung up"
            self._buffer += data
        end = 4 + int.from_bytes(self._buffer[:4], "big")
        message: dict[str, Any] = msgpack.unpackb(bytes(self._buffer[4:end]))
        del self._buffer[:end]
        return message

    async def welcome(self) -> dict[str, Any]:
        await self.say("challenge", authentication="none")
        hello = await self.hear()
        await self.say("welcome")
        return hello


Script = Callable[[ScriptedEdge], Any]


@asynccontextmanager
async def listening(script: Script) -> AsyncIterator[TcpAddress]:
    """An edge on loopback that plays its script to the first plane that comes, and then hangs up."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def play() -> None:
        async with await listener.accept() as stream:
            await script(ScriptedEdge(stream))

    async with listener, trio.open_nursery() as inner:
        inner.start_soon(play)
        yield TcpAddress("127.0.0.1", listener.socket.getsockname()[1], TOKEN)


async def test_hello_is_the_documented_one() -> None:
    async def script(edge: ScriptedEdge) -> None:
        assert await edge.welcome() == {"type": "hello", "protocol": 2, "planeId": "plane-1"}

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        assert plane.epoch == 3
        assert plane.devices["phone-1"]["backendKind"] == "robot_hand"


async def test_both_proofs_are_the_documented_ones() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.say("challenge")
        hello = await edge.hear()
        edge_nonce = documented("challenge")["nonce"]
        plane = b"edge-daemon/1 plane\0" + edge_nonce + hello["nonce"] + b"plane-1"
        assert hello["proof"] == hmac.new(TOKEN, plane, hashlib.sha256).digest()
        ours = b"edge-daemon/1 edge\0" + hello["nonce"] + edge_nonce + b"edge-7"
        await edge.say("welcome", proof=hmac.new(TOKEN, ours, hashlib.sha256).digest())

    async with listening(script) as address, open_plane("plane-1", address):
        pass


async def test_an_edge_without_the_secret_is_left() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.say("challenge")
        await edge.hear()
        await edge.say("welcome")

    async with listening(script) as address:
        with pytest.raises(PlaneDisconnected, match="secret"):
            async with open_plane("plane-1", address):
                pass


async def test_a_refused_hello_is_told() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.say("challenge", authentication="none")
        await edge.hear()
        error = {"code": "permission_denied", "message": "another plane is here", "retryable": False}
        await edge.say_all({"type": "error", "error": error})

    async with listening(script) as address:
        with pytest.raises(PlaneError, match="another plane") as refused:
            async with open_plane("plane-1", address):
                pass
        assert refused.value.code == "permission_denied"


async def test_progress_is_collected_until_the_result() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        request = await edge.hear()
        assert {key: request[key] for key in ("type", "deviceId", "idempotencyKey", "action")} == {
            "type": "dispatch",
            "deviceId": "phone-1",
            "idempotencyKey": "k-1",
            "action": {"type": "tap", "x": 1.0, "y": 2.0},
        }
        await edge.say("progress", replyTo=request["id"])
        await edge.say("result", replyTo=request["id"])

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        answer = await plane.dispatch("phone-1", {"type": "tap", "x": 1.0, "y": 2.0}, key="k-1")
        assert answer.committed
        assert not answer.deduplicated
        assert answer.error is None
        assert answer.stages == ["contact"]


async def test_an_error_answers_its_request_only() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        request = await edge.hear()
        await edge.say_all(
            {"type": "error", "error": {"code": "expired", "message": "m", "retryable": False}}
        )
        await edge.say("error", replyTo=request["id"])

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        with pytest.raises(PlaneError, match=r"got 1000\.5"):
            await plane.look("phone-1")
        assert [error["code"] for error in plane.complaints] == ["expired"]


async def test_a_pushed_receipt_is_filed_and_then_acknowledged() -> None:
    filed = []

    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        await edge.say("receipt")
        assert await edge.hear() == {
            "type": "ackReceipt",
            "deviceId": "phone-1",
            "idempotencyKey": "tap-0002",
        }
        filed.append(dict(plane.notebook))

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        await plane.disconnected.wait()
    assert filed[0]["phone-1", "tap-0002"]["reason"] == "outcome_unknown"


async def test_pings_are_given_back_with_the_planes_clock() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        await edge.say("ping", monotonicNs=42)
        assert await edge.hear() == {"type": "pong", "monotonicNs": 42, "planeUnixMs": 1234.5}

    async with listening(script) as address, open_plane("plane-1", address, unix_ms=lambda: 1234.5) as plane:
        await plane.disconnected.wait()


async def test_a_connection_that_breaks_leaves_the_outcome_open() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        await edge.hear()

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        with pytest.raises(PlaneDisconnected, match="before dispatch was answered"):
            await plane.dispatch("phone-1", {"type": "tap", "x": 1.0, "y": 2.0})
        assert plane.notebook == {}


async def test_messages_cut_anywhere_are_put_together() -> None:
    async def script(edge: ScriptedEdge) -> None:
        await edge.welcome()
        body = msgpack.packb(documented("deviceChanged"))
        for byte in len(body).to_bytes(4, "big") + body:
            await edge.stream.send_all(bytes([byte]))

    async with listening(script) as address, open_plane("plane-1", address) as plane:
        await plane.wait_until(lambda: bool(plane.devices["phone-1"].get("parked")))


def test_the_plane_shares_no_code_with_the_daemon() -> None:
    source = Path(Plane.__module__.replace(".", "/") + ".py")
    text = (Path(__file__).parents[2] / source).read_text(encoding="utf-8")
    assert re.findall(r"^(?:from|import) (edge_daemon\S*)", text, flags=re.MULTILINE) == []
