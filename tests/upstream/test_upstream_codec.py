"""Bytes in, typed messages out, or an error that says where; two independent MessagePack codecs agree."""

import struct
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_daemon.contract import Dispatch, ErrorInfo, Outcome, Tap
from edge_daemon.upstream import codec, messages
from edge_daemon.upstream.shape import MAX_DEPTH, BadShape, NotMessagePack, check_shape

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=20), inner, max_size=20),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=20), PLAIN, max_size=4))
@settings(max_examples=60)
def test_the_walk_accepts_every_map_that_msgpack_writes(message: dict[str, Any]) -> None:
    check_shape(msgpack.packb(message), 10_000)


@given(st.binary(max_size=200))
def test_the_walk_and_msgpack_agree_on_what_is_one_value(body: bytes) -> None:
    try:
        msgpack.unpackb(body, strict_map_key=False, raw=True)
        sound = True
    except (ValueError, msgpack.UnpackException, TypeError):
        sound = False
    try:
        check_shape(body, 10_000)
    except NotMessagePack:
        assert not sound
    except BadShape:
        pass
    else:
        assert sound


@given(st.binary(max_size=400))
def test_random_bytes_are_a_message_or_a_typed_error(body: bytes) -> None:
    for decode in (codec.decode_to_edge, codec.decode_from_edge):
        try:
            decode(body)
        except codec.UpstreamError as e:
            assert isinstance(e.info, ErrorInfo)


@given(
    st.dictionaries(st.sampled_from(["type", "id", "deviceId", "action", "lease", "x"]), PLAIN, max_size=3)
)
@settings(max_examples=60)
def test_random_values_in_known_fields_are_refused_by_a_typed_error(message: dict[str, Any]) -> None:
    message = {"type": "dispatch", **message}
    with pytest.raises(codec.UpstreamError):
        codec.decode_to_edge(msgpack.packb(message))


@given(st.binary(min_size=1, max_size=300), st.data())
@settings(max_examples=50)
def test_a_body_damaged_anywhere_is_a_message_or_a_typed_error(noise: bytes, data: st.DataObject) -> None:
    body = bytearray(msgpack.packb(DISPATCH))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at : at + len(noise)] = noise
    try:
        codec.decode_to_edge(bytes(body))
    except codec.UpstreamError:
        pass


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


def test_a_request_is_the_contracts_own_struct() -> None:
    message = codec.decode_to_edge(msgpack.packb(DISPATCH))
    assert isinstance(message, Dispatch)
    assert message.action == Tap(x=500.0, y=250.0)
    assert message.expires_in_ms == 60_000


def test_integers_serve_where_floats_are_due() -> None:
    message = codec.decode_to_edge(msgpack.packb({**DISPATCH, "action": {"type": "tap", "x": 0, "y": 1000}}))
    assert isinstance(message, Dispatch)
    assert message.action == Tap(x=0.0, y=1000.0)


def test_the_type_may_come_last() -> None:
    turned = dict(reversed(DISPATCH.items()))
    assert codec.decode_to_edge(msgpack.packb(turned)) == codec.decode_to_edge(msgpack.packb(DISPATCH))


@given(st.lists(st.binary(max_size=50), max_size=10), st.data())
def test_frames_come_out_whole_however_the_stream_is_cut(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(codec.frame(body, 100) for body in bodies)
    reader = codec.FrameReader(100)
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        reader.feed(stream[:cut])
        stream = stream[cut:]
        while (body := reader.next_body()) is not None:
            found.append(body)
    assert found == bodies


def test_a_length_over_the_cap_is_refused_before_its_body_comes() -> None:
    reader = codec.FrameReader(100)
    reader.feed(struct.pack(">I", 101))
    with pytest.raises(codec.Unframeable, match="101"):
        reader.next_body()


def test_our_own_message_over_the_cap_is_not_sent() -> None:
    with pytest.raises(codec.MessageTooLong):
        codec.encode_to_edge(messages.TakeHold(id=1, device_id="phone-1", hint="x" * 70_000))


def test_nesting_is_accepted_to_the_limit_and_refused_beyond() -> None:
    check_shape(b"\x81\xa1a" * MAX_DEPTH + b"\xc0", 1000)
    with pytest.raises(BadShape, match="nested") as refused:
        check_shape(b"\x81\xa1a" * (MAX_DEPTH + 1) + b"\xc0", 1000)
    assert refused.value.path == ".".join("a" * MAX_DEPTH)


def test_the_place_of_a_fault_is_named_through_lists_and_maps() -> None:
    body = msgpack.packb({"a": [1, {"b": [0, "§"]}]}).replace("§".encode(), b"\xff\xff")
    with pytest.raises(BadShape) as refused:
        check_shape(body, 1000)
    assert refused.value.path == "a[1].b[1]"


@pytest.mark.parametrize(
    "wrong",
    [
        {"k" * 60_000: 1},
        {"type": "t" * 60_000},
        {"action": {"type": "pressKey", "key": "k" * 60_000}},
        {"orgId": "o" * 60_000},
    ],
)
def test_what_is_long_and_wrong_does_not_make_a_long_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(codec.BadMessage) as refused:
        codec.decode_to_edge(msgpack.packb({**DISPATCH, **wrong}))
    assert len(msgspec.msgpack.encode(refused.value.info)) < 1000


def test_a_field_name_is_named_whole_up_to_its_limit_and_refused_beyond() -> None:
    with pytest.raises(codec.BadMessage) as refused:
        codec.decode_to_edge(msgpack.packb({**DISPATCH, "k" * 128: 1}))
    assert refused.value.info.field == "k" * 128
    with pytest.raises(codec.BadMessage) as refused:
        codec.decode_to_edge(msgpack.packb({**DISPATCH, "k" * 129: 1}))
    assert refused.value.info.code == "protocol_error"
    assert refused.value.info.field == "?"


@pytest.mark.parametrize("seed", range(20))
def test_what_the_edge_writes_msgpack_reads_and_writes_back_alike(seed: int) -> None:
    outcome = Outcome(deduplicated=bool(seed % 2))
    wire = codec.encode_from_edge(messages.Result(reply_to=2**seed, outcome=outcome))
    assert msgpack.packb(msgpack.unpackb(wire[4:])) == wire[4:]
