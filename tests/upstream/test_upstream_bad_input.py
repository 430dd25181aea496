"""Whatever a plane sends, it is told what was wrong, by field, and the daemon serves on."""

import math
from typing import Any

import msgpack
import pytest
import trio
import trio.testing

DISPATCH = {
    "type": "dispatch",
    "id": 1,
    "deviceId": "phone-1",
    "idempotencyKey": "k-1",
    "orgId": "org-1",
    "actor": {"kind": "run"},
    "lease": {"leaseId": "l-1", "fencingToken": 1, "remainingMs": 600_000},
    "action": {"type": "tap", "x": 500.0, "y": 250.0},
}


def dispatch_with(path: str, value: Any) -> dict[str, Any]:
    message = msgpack.unpackb(msgpack.packb(DISPATCH))
    *steps, last = path.split(".")
    at = message
    for step in steps:
        at = at[step]
    at[last] = value
    return message


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("action.x", 1000.5, "<= 1000.0, got 1000.5"),
        ("action.x", -0.001, ">= 0.0, got -0.001"),
        ("action.x", math.nan, "got nan"),
        ("action.y", math.inf, "got inf"),
        ("action.x", "500", "got `str`"),
        ("action.x", True, "got `bool`"),
        ("action.x", None, "got `None`"),
        ("action.x", [[[]]], "got `array`"),
        ("action.z", 3, "unknown field"),
        ("action.type", "smash", "smash"),
        ("action", 7, "got `int`"),
        ("surprise", 1, "unknown field"),
        ("lease.surprise", 1, "unknown field"),
        ("idempotencyKey", "bell\x07", "matching regex"),
        ("idempotencyKey", "new\nline", "matching regex"),
        ("idempotencyKey", "line end\n", "matching regex"),
        ("idempotencyKey", "agent:1", "matching regex"),
        ("idempotencyKey", "", "matching regex"),
        ("idempotencyKey", "k" * 129, "matching regex"),
        ("idempotencyKey", "schlüssel", "matching regex"),
        ("deviceId", "../etc", "matching regex"),
        ("lease.fencingToken", 0, ">= 1"),
        ("lease.fencingToken", 2**53, "<="),
        ("lease.remainingMs", 600_001, "<= 600000"),
        ("lease.fencingToken", 1.5, "got `float`"),
        ("expiresInMs", 0, ">= 1"),
        ("actor.kind", "ghost", "ghost"),
        ("action", {"type": "longPress", "x": 1, "y": 1, "durationMs": 199}, ">= 200"),
        ("action", {"type": "swipe", "fromX": 0, "fromY": 0, "toX": 1}, "missing required field `toY`"),
        ("action", {"type": "typeText", "text": "a" * 4097}, "<= 4096"),
        ("action", {"type": "pressKey", "key": "self_destruct"}, "self_destruct"),
    ],
)
async def test_a_wrong_field_is_named_and_the_session_goes_on(edge, path: str, value: Any, said: str) -> None:
    async with edge.raw() as peer:
        assert (await peer.hello())["type"] == "welcome"
        await peer.say(dispatch_with(path, value))
        answer = await peer.hear()
        assert answer["type"] == "error"
        assert answer["replyTo"] == 1
        assert answer["error"]["code"] == "invalid_argument"
        assert answer["error"]["field"].startswith(path)
        assert said in answer["error"]["message"]
        assert edge.rig.ledger == {}
        await peer.still_serves()


@pytest.mark.parametrize(
    "request_id", [-1, 2**32, "", "x" * 65, "tab\t", 1.5, None], ids=lambda value: repr(value)[:12]
)
async def test_a_wrong_id_is_refused_without_reply_to(edge, request_id: Any) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say({"type": "listDevices", "id": request_id})
        answer = await peer.hear()
        assert answer["error"]["field"] == "id"
        assert "replyTo" not in answer
        await peer.still_serves()


async def test_typed_text_is_never_repeated_in_an_error(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        secret = "correct horse" * 400
        await peer.say(dispatch_with("action", {"type": "typeText", "text": secret}))
        answer = await peer.hear()
        assert "horse" not in str(answer)
        assert "5200 characters" in answer["error"]["message"]


async def test_an_unknown_device_is_named_in_the_outcome(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say(dispatch_with("deviceId", "phone-9"))
        answer = await peer.hear()
        assert answer["type"] == "result"
        assert answer["outcome"]["error"]["code"] == "unknown_device"
        assert answer["outcome"]["error"]["field"] == "deviceId"
        await peer.still_serves()


def nested(depth: int, leaf: bytes = b"\xc0") -> bytes:
    return b"\x91" * depth + leaf


SHAPES = {
    "a list": (msgpack.packb([1, 2]), None),
    "a number": (b"\x07", None),
    "a string": (msgpack.packb("hello"), None),
    "nothing but nil": (b"\xc0", None),
    "an unknown type": (msgpack.packb({"type": "explode", "id": 3}), "type"),
    "no type": (msgpack.packb({"id": 3}), "type"),
    "a type that is a number": (msgpack.packb({"type": 7, "id": 3}), "type"),
    "a message of the edge": (msgpack.packb({"type": "ok", "replyTo": 3}), "type"),
    "deep nesting in a field": (
        b"\x83\xa4type\xa4look\xa2id\x01\xa6format" + nested(60_000),
        "format" + "[0]" * 15,
    ),
    "deep nesting before the type": (b"\x82\xa4junk" + nested(60_000) + b"\xa4type\xa4ping", "junk"),
    "deep maps": (b"\x81\xa1a" * 16_000 + b"\xc0", "a.a.a"),
    "a key twice": (b"\x83\xa4type\xa4ping\xabmonotonicNs\x01\xabmonotonicNs\x02", "monotonicNs"),
    "the type twice": (b"\x83\xa4type\xa4ping\xa4type\xa4pong\xabmonotonicNs\x01", "type"),
    "a key that is a number": (b"\x82\xa4type\xa4ping\x01\x02", "?"),
    "a key that is bin": (b"\x82\xc4\x04type\xa4ping\xa1a\x02", "?"),
    "text that is not UTF-8": (b"\x82\xa4type\xa4ping\xa4name\xa2\xff\xfe", "name"),
    "an extension type": (b"\x82\xa4type\xa4ping\xa1t\xd6\xff\x00\x00\x00\x00", "t"),
    "too many values": (msgpack.packb({"type": "ping", "junk": [0] * 2000}), "junk[1021]"),
}


@pytest.mark.parametrize(("body", "field"), SHAPES.values(), ids=SHAPES)
async def test_a_body_without_the_shape_of_a_message_is_refused_and_the_session_goes_on(
    edge, body: bytes, field: str | None
) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.frame(body)
        answer = await peer.hear()
        assert answer["type"] == "error"
        assert answer["error"]["code"] == "protocol_error"
        assert (answer["error"].get("field") or "").startswith(field or "")
        await peer.still_serves()


UNFRAMEABLE = {
    "truncated": msgpack.packb(DISPATCH)[:-1],
    "trailing bytes": msgpack.packb({"type": "ping", "monotonicNs": 1}) + b"\xc0",
    "no MessagePack at all": b"\xc1",
    "an empty frame": b"",
    "a list longer than its frame": b"\x82\xa4type\xa4ping\xa1a\xdd\xff\xff\xff\xff",
    "a string longer than its frame": b"\x82\xa4type\xdb\xff\xff\xff\xff",
}


@pytest.mark.parametrize("body", UNFRAMEABLE.values(), ids=UNFRAMEABLE)
async def test_after_bytes_that_are_no_message_the_connection_ends_with_an_error(edge, body: bytes) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.frame(body)
        answer = await peer.hear()
        assert answer["error"]["code"] == "protocol_error"
        assert await peer.hear() is None
    async with edge.raw() as peer:
        await peer.hello()
        await peer.still_serves()


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_a_frame_over_the_cap_is_refused_by_its_length_and_the_error_arrives(edge, tcp: bool) -> None:
    async with edge.raw_tcp() if tcp else edge.raw() as peer:
        if not tcp:
            await peer.hello()
        else:
            await peer.hear()
        # More than the edge reads at once: closing over unread bytes causes a reset, which must not eat the
        # error.
        await peer.stream.send_all((65_537).to_bytes(4, "big") + b"\x00" * 120_000)
        answer = await peer.hear()
        assert answer["error"]["code"] == "protocol_error"
        assert "65537" in answer["error"]["message"]
        await trio.testing.wait_all_tasks_blocked()
        await peer.stream.send_eof()
        assert await peer.hear() is None


async def test_a_frame_of_exactly_the_cap_is_read(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        empty = len(msgpack.packb({"type": "ping", "x": b"a" * 60_000})) - 60_000
        body = msgpack.packb({"type": "ping", "x": b"a" * (65_536 - empty)})
        assert len(body) == 65_536
        await peer.frame(body)
        answer = await peer.hear()
        assert answer["error"]["field"] == "x"
        await peer.still_serves()


async def test_hello_twice_is_refused_and_the_session_goes_on(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say({"type": "hello", "protocol": 1, "planeId": "plane-1"})
        answer = await peer.hear()
        assert answer["error"]["code"] == "protocol_error"
        assert answer["error"]["field"] == "type"
        await peer.still_serves()


async def test_a_message_before_hello_ends_the_connection(edge) -> None:
    async with edge.raw() as peer:
        await peer.hear()
        await peer.say(DISPATCH)
        answer = await peer.hear()
        assert answer["error"]["code"] == "protocol_error"
        assert answer["error"]["field"] == "type"
        assert await peer.hear() is None
    assert edge.rig.ledger == {}


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"protocol": 4}, "protocol_error", "protocol"),
        ({"protocol": 0}, "protocol_error", "protocol"),
        ({"protocol": "1"}, "invalid_argument", "protocol"),
        ({"planeId": ""}, "invalid_argument", "planeId"),
        ({"planeId": "a\nb"}, "invalid_argument", "planeId"),
        ({"epoch": 0}, "invalid_argument", "epoch"),
        ({"proof": b"\0" * 32}, "invalid_argument", "proof"),
        ({"surprise": 1}, "invalid_argument", "surprise"),
    ],
)
async def test_a_wrong_hello_ends_the_connection_with_the_field(
    edge, fields: dict[str, Any], code: str, field: str
) -> None:
    async with edge.raw() as peer:
        await peer.hear()
        await peer.say({"type": "hello", "protocol": 1, "planeId": "plane-1", **fields})
        answer = await peer.hear()
        assert answer["error"]["code"] == code
        assert answer["error"]["field"] == field
        assert await peer.hear() is None


async def test_an_id_in_use_is_refused_without_pretending_to_answer_its_owner(edge) -> None:
    edge.rig.gate = trio.Event()
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say(DISPATCH)
        await edge.rig.begun.wait()
        await peer.say({"type": "listDevices", "id": 1})
        while (answer := await peer.hear())["type"] == "progress":
            pass
        assert answer["error"]["field"] == "id"
        assert "replyTo" not in answer
        edge.rig.gate.set()
        while (answer := await peer.hear())["type"] != "result":
            assert answer["type"] in ("progress", "receipt")
        assert answer["replyTo"] == 1


async def test_a_plane_asking_what_only_staff_may_is_refused(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        for kind in ("takeHold", "staffLook", "estop", "staffPark"):
            message = {"type": kind, "id": 4, "deviceId": "phone-1"}
            await peer.say({**message, "hint": "x"} if kind == "takeHold" else message)
            answer = await peer.hear()
            assert answer["replyTo"] == 4
            assert answer["error"]["code"] == "permission_denied"
        await peer.still_serves()
    assert edge.rig.holds == {}
    assert edge.rig.stopped == set()


async def test_staff_asking_what_only_a_plane_may_is_refused(edge) -> None:
    async with edge.raw(edge.staff_socket) as peer:
        await peer.hear()
        await peer.say({"type": "staffHello", "protocol": 2, "staffId": "jo"})
        assert (await peer.hear())["type"] == "welcome"
        await peer.say(DISPATCH)
        assert (await peer.hear())["error"]["code"] == "permission_denied"
        await peer.say({"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": "k"})
        assert (await peer.hear())["error"]["code"] == "permission_denied"
    assert edge.rig.ledger == {}


@pytest.mark.parametrize("which", ["plane", "staff"])
async def test_the_listener_decides_the_role_not_the_claim(edge, which: str) -> None:
    path = edge.plane_socket if which == "plane" else edge.staff_socket
    claim = {"type": "staffHello", "staffId": "jo"} if which == "plane" else {"type": "hello", "planeId": "p"}
    async with edge.raw(path) as peer:
        assert (await peer.hear())["role"] == which
        await peer.say({**claim, "protocol": 1})
        answer = await peer.hear()
        assert answer["error"]["code"] == "permission_denied"
        assert await peer.hear() is None
