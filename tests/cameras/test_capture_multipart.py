import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.multipart import MultipartParser, Part, boundary_of

MEASURED = (
    b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: 11\r\nX-Time: 1.5\r\n\r\nfirst\r\n--fr\r\n"
    b"--frame\r\ncontent-length:0\r\n\r\n\r\n"
    b"--frame\r\nContent-Length: 6\r\n\r\nsecond\r\n--frame--\r\n"
)
DELIMITED = b"\r\n--frame\r\nA: b\r\n\r\nfirst\r\n--fram\r\n--frame\r\n\r\n\r\nsecond\r\n--frame--"


def parser(**options: int) -> MultipartParser:
    return MultipartParser("frame", **({"max_part_bytes": 1000} | options))


def bodies(pieces: list[bytes]) -> list[bytes]:
    parsing = parser()
    found = []
    for piece in pieces:
        if not parsing.ended:
            found += [part.body for part in parsing.feed(piece)]
    assert parsing.ended
    return found


@pytest.mark.parametrize(
    ("stream", "expected"),
    [(MEASURED, [b"first\r\n--fr", b"", b"second"]), (DELIMITED, [b"first\r\n--fram", b"\r\nsecond"])],
    ids=["with Content-Length", "without Content-Length"],
)
def test_parts_are_the_same_wherever_the_stream_is_split(stream: bytes, expected: list[bytes]) -> None:
    for at in range(len(stream) + 1):
        assert bodies([stream[:at], stream[at:]]) == expected
    assert bodies([stream[i : i + 1] for i in range(len(stream))]) == expected


@given(
    st.lists(st.binary(max_size=60).filter(lambda body: b"--frame" not in body), min_size=1, max_size=5),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
)
def test_any_bodies_in_any_pieces_come_out_as_they_went_in(parts: list[bytes], sizes: list[int]) -> None:
    stream = (
        b"".join(b"--frame\r\nContent-Length: %d\r\n\r\n%s\r\n" % (len(body), body) for body in parts)
        + b"--frame--"
    )
    pieces, at = [], 0
    while at < len(stream):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream[at : at + size])
        at += size
    assert bodies(pieces) == parts


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_any_bytes_end_in_parts_or_a_fault_with_bounded_memory(pieces: list[bytes]) -> None:
    parsing = parser(max_part_bytes=100)
    try:
        for piece in pieces:
            for part in parsing.feed(piece):
                assert len(part.body) <= 100
    except SourceFault:
        return


def test_a_measured_part_is_handed_out_before_the_next_boundary_arrives() -> None:
    assert parser().feed(b"--frame\r\nContent-Length: 3\r\nX-T: 1\r\n\r\nabc") == [
        Part({"content-length": "3", "x-t": "1"}, b"abc")
    ]


def test_what_comes_later_behind_a_part_must_be_the_boundary_too() -> None:
    """Its picture is handed out by then; the next one would be read from the middle of something."""
    parsing = parser()
    assert len(parsing.feed(b"--frame\r\nContent-Length: 3\r\n\r\nabc")) == 1
    with pytest.raises(SourceFault, match="of 3 bytes is not followed by the boundary but by 64 65 66"):
        parsing.feed(b"def")


def test_a_part_received_into_its_place_is_the_part() -> None:
    parsing = parser()
    assert parsing.room() is None
    assert parsing.feed(b"--frame\r\nContent-Length: 6\r\n\r\nab") == []
    for piece, parts in ((b"cd", []), (b"ef", [Part({"content-length": "6"}, b"abcdef")])):
        room = parsing.room()
        assert room is not None
        room[: len(piece)] = piece
        assert parsing.received(len(piece)) == parts
    assert parsing.room() is None


def test_a_boundary_right_behind_the_body_without_a_line_break_is_accepted() -> None:
    assert bodies(
        [b"--frame\r\nContent-Length: 3\r\n\r\nabc--frame\r\nContent-Length: 1\r\n\r\nd--frame--"]
    ) == [
        b"abc",
        b"d",
    ]


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"--frame\r\nContent-Length: 9\r\n\r\nabc\r\n--frame\r\n", "not followed by the boundary"),
        (b"--frame\r\nContent-Length: 1\r\n\r\nabcdefghijklmn", "not followed by the boundary"),
        (b"--frame\r\nContent-Length: 1001\r\n\r\n", "more than the 1000 allowed"),
        (b"--frame\r\n\r\n" + bytes(1100), "more than the"),
        (b"--frame\r\nContent-Length: -1\r\n\r\n", "which is no number"),
        ("--frame\r\nContent-Length: ²\r\n\r\n".encode("latin-1"), "which is no number"),
        (b"--frame\r\nno colon here\r\n\r\n", "without a colon"),
        (b"--frameless\r\nA: b\r\n\r\n", "another boundary"),
        (b"--frame\r\n" + b"A: b\r\n" * 2000, "part headers"),
        (bytes(9000), "before a boundary"),
        (b"garbage--frame\r\nA: b\r\n\r\n", "belong to no part"),
    ],
)
def test_a_stream_that_is_not_what_it_says_is_refused_with_the_reason(stream: bytes, reason: str) -> None:
    with pytest.raises(SourceFault, match=reason):
        parser().feed(stream)


def test_bytes_after_the_closing_boundary_are_refused() -> None:
    parsing = parser()
    parsing.feed(b"--frame--")
    with pytest.raises(SourceFault, match="after the closing boundary"):
        parsing.feed(b"x")


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/x-mixed-replace;boundary=frame", "frame"),
        ('multipart/x-mixed-replace; boundary="frame"', "frame"),
        ("Multipart/X-Mixed-Replace; charset=x; Boundary=--frame", "--frame"),
    ],
)
def test_the_boundary_is_found_however_it_is_written(content_type: str, boundary: str) -> None:
    assert boundary_of(content_type) == boundary


def test_a_boundary_named_with_its_dashes_is_the_same_boundary() -> None:
    assert (
        len(MultipartParser("--frame", max_part_bytes=10).feed(b"--frame\r\nContent-Length: 1\r\n\r\nx")) == 1
    )


@pytest.mark.parametrize("content_type", ["image/jpeg", "text/html; boundary=frame", ""])
def test_what_is_no_multipart_stream_is_refused(content_type: str) -> None:
    with pytest.raises(SourceFault, match="multipart/x-mixed-replace"):
        boundary_of(content_type)


def test_a_stream_without_a_boundary_is_refused() -> None:
    with pytest.raises(SourceFault, match="names no boundary"):
        boundary_of("multipart/x-mixed-replace; boundary=")
