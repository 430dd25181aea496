import errno

import pytest

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.v4l2_buffers import (
    BufferWatch,
    clock_notes,
    marks_start_of_exposure,
    refuse_foreign_clock,
    refuse_lost_buffers,
)
from edge_daemon.cameras.v4l2_ioctl import (
    CLOCK_COPIED,
    CLOCK_MONOTONIC,
    CLOCK_UNKNOWN,
    FLAG_DONE,
    FLAG_ERROR,
    FLAG_QUEUED,
    MOMENT_END_OF_FRAME,
    MOMENT_START_OF_EXPOSURE,
    Buffer,
    fourcc,
    node,
)

WRAP = 1 << 32


def done(index: int, sequence: int, flags: int = 0) -> Buffer:
    return Buffer(index, FLAG_DONE | flags, 1000, sequence * 40_000_000, sequence % WRAP)


def queued(index: int) -> Buffer:
    return Buffer(index, FLAG_QUEUED, 1000, 0, 0)


def lost(index: int) -> Buffer:
    return Buffer(index, 0, 0, 0, 0)


def test_no_picture_comes_while_every_buffer_is_empty() -> None:
    assert BufferWatch(5).coming([queued(0), queued(1)]) is None


def test_the_oldest_waiting_picture_comes_first() -> None:
    watch = BufferWatch(5)
    coming = watch.coming([done(0, 9), queued(1), done(2, 7), done(3, 8)])
    assert coming is not None
    assert coming.buffer.number == 2


def test_pictures_between_two_that_came_are_missed() -> None:
    watch = BufferWatch(5)
    watch.taken(done(0, 7), 0)
    following, later = watch.coming([done(1, 8)]), watch.coming([done(1, 12)])
    assert following is not None
    assert later is not None
    assert (following.missed, later.missed) == (0, 4)


def test_nothing_is_missed_before_the_first_picture() -> None:
    coming = BufferWatch(5).coming([done(0, 500)])
    assert coming is not None
    assert coming.missed == 0


def test_the_drivers_count_begins_again_at_zero_after_32_bits() -> None:
    watch = BufferWatch(5)
    watch.taken(done(0, WRAP - 2), 0)
    coming = watch.coming([done(1, WRAP + 1), done(2, WRAP - 1)])
    assert coming is not None
    assert (coming.buffer.number, coming.missed) == (2, 0)
    watch.taken(coming.buffer, 0)
    coming = watch.coming([done(1, WRAP + 1)])
    assert coming is not None
    assert coming.missed == 1


def test_a_driver_that_does_not_count_misses_nothing() -> None:
    watch = BufferWatch(5)
    watch.taken(done(0, 0), 0)
    coming = watch.coming([done(1, 0)])
    assert coming is not None
    assert coming.missed == 0


def test_a_picture_is_dated_by_the_last_look_that_found_it_incomplete() -> None:
    """However late the next look is: a process may be stopped for seconds between the two."""
    watch = BufferWatch(5)
    watch.look([queued(0), queued(1)], 100)
    watch.look([done(0, 1), queued(1)], 200)
    first = watch.coming([done(0, 1), queued(1)])
    assert first is not None
    assert first.not_before_ns == 100
    watch.taken(first.buffer, 0)
    watch.look([queued(0), done(1, 2)], 9_000)
    second = watch.coming([queued(0), done(1, 2)])
    assert second is not None
    assert second.not_before_ns == 200


def test_a_picture_that_no_look_found_incomplete_is_dated_by_the_start_of_the_stream() -> None:
    watch = BufferWatch(5)
    watch.look([done(0, 1)], 100)
    coming = watch.coming([done(0, 1)])
    assert coming is not None
    assert coming.not_before_ns == 5


def test_a_picture_is_dated_by_its_buffers_return_where_no_look_came_between() -> None:
    """Not by the look of a round before: the order of the dates is the order of the pictures."""
    watch = BufferWatch(5)
    watch.look([queued(0), queued(1)], 100)
    watch.taken(done(0, 1), 150)
    watch.taken(done(1, 2), 160)
    both = [done(0, 3), done(1, 4)]
    watch.look(both, 400)
    first = watch.coming(both)
    assert first is not None
    assert (first.buffer.number, first.not_before_ns) == (0, 150)
    watch.taken(first.buffer, 410)
    second = watch.coming([queued(0), done(1, 4)])
    assert second is not None
    assert second.not_before_ns == 160


def test_a_picture_is_whole_unless_marked_or_short() -> None:
    assert done(0, 1).is_whole(1000)
    assert not done(0, 1).is_whole(1001)
    assert not done(0, 1, FLAG_ERROR).is_whole(1)


def test_a_driver_that_copies_its_timestamps_has_no_clock() -> None:
    refuse_foreign_clock(done(0, 1, CLOCK_MONOTONIC))
    refuse_foreign_clock(done(0, 1, CLOCK_UNKNOWN))
    with pytest.raises(SourceFault, match="copies its timestamps") as caught:
        refuse_foreign_clock(done(0, 1, CLOCK_COPIED))
    assert caught.value.fault is CameraFault.NO_CLOCK


def test_a_driver_that_does_not_name_its_clock_is_said_to() -> None:
    assert clock_notes(done(0, 1, CLOCK_MONOTONIC)) == ()
    assert clock_notes(done(0, 1, CLOCK_UNKNOWN)) == (
        "the driver does not say of which clock its timestamps are",
    )


def test_what_moment_a_timestamp_marks_is_read_from_the_driver() -> None:
    assert marks_start_of_exposure(done(0, 1, MOMENT_START_OF_EXPOSURE))
    assert not marks_start_of_exposure(done(0, 1, MOMENT_END_OF_FRAME))


def test_buffers_that_the_driver_has_lost_end_the_stream_before_it_dries_up() -> None:
    refuse_lost_buffers([queued(0), queued(1), lost(2), lost(3)])
    with pytest.raises(SourceFault, match="3 of the driver's 4 buffers got lost"):
        refuse_lost_buffers([queued(0), lost(1), lost(2), lost(3)])


def test_a_four_letter_name_is_the_number_that_the_kernel_uses() -> None:
    # V4L2_PIX_FMT_MJPEG and V4L2_PIX_FMT_Y16 of linux/videodev2.h, the latter with its trailing space.
    assert fourcc("MJPG") == 0x47504A4D
    assert fourcc("Y16") == 0x20363159


def test_what_is_no_video_device_says_so() -> None:
    with open("/dev/null", "rb") as null, pytest.raises(OSError) as caught:
        node(null.fileno())
    assert caught.value.errno == errno.ENOTTY
