import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_daemon.cameras.errors import FrameTooBig, UnknownFrame
from edge_daemon.cameras.frames import FrameBook, FrameRecord
from edge_daemon.cameras.ring import FrameRing, RawFrame
from edge_daemon.cameras.settle import SettleVerdict

STILL = SettleVerdict("still", "unchanged", still_since_ns=1)


def frame(sequence: int, size: int = 10) -> RawFrame:
    return RawFrame(
        "over",
        sequence,
        sequence * 100,
        sequence * 100 + 5,
        bytes(size),
        64,
        48,
        0,
        sequence * 100,
        sequence * 100,
    )


def minted(book: FrameBook, sequence: int = 1) -> FrameRecord:
    record = book.mint(frame(sequence), orientation="portrait", settle=STILL, fencing_token=3)
    assert record is not None
    return record


@given(st.lists(st.integers(0, 100), max_size=60))
def test_the_ring_never_holds_more_bytes_than_it_may_and_always_the_newest(sizes: list[int]) -> None:
    ring = FrameRing(100)
    for sequence, size in enumerate(sizes, 1):
        ring.append(frame(sequence, size))
        assert ring.bytes == sum(len(kept.jpeg) for kept in ring) <= 100
        newest = ring.newest()
        assert newest is not None
        assert newest.sequence == sequence


def test_a_frame_larger_than_the_ring_is_refused_and_nothing_is_lost() -> None:
    ring = FrameRing(100)
    ring.append(frame(1))
    with pytest.raises(FrameTooBig, match="101 bytes does not fit a ring of 100"):
        ring.append(frame(2, 101))
    assert [kept.sequence for kept in ring] == [1]


def test_the_ring_finds_the_first_frame_after_a_number_and_a_time() -> None:
    ring = FrameRing(1000)
    for sequence in range(1, 6):
        ring.append(frame(sequence))
    found = ring.first_after(1, 350)
    assert found is not None
    assert found.sequence == 4
    assert ring.first_after(5, 0) is None
    assert ring.first_after(0, 500) is None


def test_a_minted_frame_is_remembered_with_what_the_notes_need() -> None:
    book = FrameBook()
    record = minted(book, 7)
    assert book.lookup(record.frame_id) == record
    assert (record.sequence, record.exposed_ns, record.orientation) == (7, 700, "portrait")
    assert (record.settle, record.fencing_token) == (STILL, 3)


def test_a_watch_mints_no_frame() -> None:
    book = FrameBook()
    assert book.mint(frame(1), orientation="portrait", settle=STILL, fencing_token=None) is None
    assert len(book) == 0


def test_the_book_forgets_the_oldest_and_says_so() -> None:
    book = FrameBook(capacity=2)
    first, second, third = (minted(book, n) for n in (1, 2, 3))
    assert len(book) == 2
    assert book.lookup(second.frame_id) == second
    assert book.lookup(third.frame_id) == third
    with pytest.raises(UnknownFrame, match="is forgotten: 2 newer ones"):
        book.lookup(first.frame_id)


def test_a_frame_of_an_earlier_run_is_not_taken_for_one_of_this_run() -> None:
    earlier = minted(FrameBook())
    book = FrameBook()
    minted(book)
    with pytest.raises(UnknownFrame, match="not served for this device since the daemon started"):
        book.lookup(earlier.frame_id)


@pytest.mark.parametrize("tail", ["0", "2", "1x", "²", "", "9" * 5000])
def test_a_frame_that_never_was_is_unknown(tail: str) -> None:
    book = FrameBook()
    prefix = minted(book).frame_id[:-1]
    with pytest.raises(UnknownFrame, match="not served"):
        book.lookup(prefix + tail)
