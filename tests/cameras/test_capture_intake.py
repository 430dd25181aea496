from collections.abc import Callable

import pytest

from edge_daemon.cameras.errors import BadPicture, SourceFault
from edge_daemon.cameras.intake import BROKEN_LIMIT, Grabbed, Intake
from edge_daemon.cameras.jpeg import jpeg_size, whole_jpeg
from edge_daemon.cameras.sources import Exposure

MS = 1_000_000
S = 1_000 * MS


@pytest.fixture
def intake() -> Intake:
    return Intake(Exposure(0, 0), frozen_after_ns=2 * S)


def test_each_new_picture_gets_the_next_number(intake: Intake, jpegs: list[bytes]) -> None:
    frames = [intake.take(Grabbed(jpegs[i], i * 66 * MS, i * 66 * MS + MS)) for i in range(4)]
    assert [frame.sequence for frame in frames if frame] == [1, 2, 3, 4]
    assert frames[0] is not None
    assert (frames[0].width, frames[0].height) == (64, 48)


def test_exposure_is_said_to_begin_the_stamps_lag_before_the_stamp(jpegs: list[bytes]) -> None:
    frame = Intake(Exposure(40 * MS, 10 * MS), frozen_after_ns=S).take(Grabbed(jpegs[0], 100 * MS, 130 * MS))
    assert frame is not None
    assert (frame.exposed_ns, frame.received_ns) == (60 * MS, 130 * MS)


def test_the_same_picture_with_the_same_stamp_is_no_new_frame(intake: Intake, jpegs: list[bytes]) -> None:
    assert intake.take(Grabbed(jpegs[0], 0, 0)) is not None
    assert intake.take(Grabbed(jpegs[0], 0, S)) is None
    frame = intake.take(Grabbed(jpegs[1], 1, S))
    assert frame is not None
    assert frame.sequence == 2


def test_a_repeated_stamp_over_another_picture_is_a_new_frame(intake: Intake, jpegs: list[bytes]) -> None:
    frames = [intake.take(Grabbed(jpeg, 0, i * 66 * MS)) for i, jpeg in enumerate(jpegs)]
    assert None not in frames


def test_an_equal_picture_at_a_new_time_is_a_new_frame(intake: Intake, jpegs: list[bytes]) -> None:
    frames = [intake.take(Grabbed(jpegs[0], i * S, i * S)) for i in range(9)]
    assert None not in frames


def test_repetitions_for_too_long_are_a_frozen_camera(intake: Intake, jpegs: list[bytes]) -> None:
    for at in (0, S, 2 * S):
        intake.take(Grabbed(jpegs[0], 0, at))
    with pytest.raises(
        SourceFault, match=r"frozen: the same picture with the same timestamp 4 times over 3\.0 s"
    ):
        intake.take(Grabbed(jpegs[0], 0, 3 * S))


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        ([(20 * MS, 10 * MS)], "10.0 ms after the picture's arrival"),
        ([(0, 11 * S)], "11.0 s old on arrival"),
        ([(50 * MS, 60 * MS), (49 * MS, 70 * MS)], "ran backwards by 1.0 ms"),
    ],
    ids=["future", "old", "backwards"],
)
def test_stamps_that_are_not_this_machines_monotonic_clock_are_refused(
    intake: Intake, jpegs: list[bytes], stamps: list[tuple[int, int]], reason: str
) -> None:
    *good, bad = stamps
    for stamp_ns, received_ns in good:
        assert intake.take(Grabbed(jpegs[0], stamp_ns, received_ns)) is not None
    with pytest.raises(SourceFault, match=reason):
        intake.take(Grabbed(jpegs[1], *bad))


def test_a_cut_picture_is_counted_and_not_numbered(intake: Intake, jpegs: list[bytes]) -> None:
    assert intake.take(Grabbed(jpegs[0][:-40], 0, 0)) is None
    frame = intake.take(Grabbed(jpegs[0], 1, 1))
    assert frame is not None
    assert (frame.sequence, frame.broken) == (1, 1)


def test_many_broken_pictures_in_a_row_end_the_camera(intake: Intake, jpegs: list[bytes]) -> None:
    for at in range(BROKEN_LIMIT - 1):
        assert intake.take(Grabbed(b"\xff\xd8 nothing", at, at)) is None
    with pytest.raises(SourceFault, match=f"{BROKEN_LIMIT} broken pictures in a row"):
        intake.take(Grabbed(b"\xff\xd8 nothing", BROKEN_LIMIT, BROKEN_LIMIT))


def test_zero_bytes_behind_the_end_marker_are_taken_off(jpegs: list[bytes]) -> None:
    assert whole_jpeg(jpegs[0] + bytes(100)) == jpegs[0]


@pytest.mark.parametrize("data", [b"", b"\xff", b"GIF89a\xff\xd9", b"\xff\xd8\xff\xe0"])
def test_what_is_no_whole_jpeg_is_named(data: bytes) -> None:
    with pytest.raises(BadPicture):
        whole_jpeg(data)


def test_the_size_is_read_without_decoding(jpeg: Callable[..., bytes]) -> None:
    assert jpeg_size(jpeg(1, width=640, height=360)) == (640, 360)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8\xff\xc0\x00\x11\x08",
        b"\xff\xd8\xff\xda\x00\x02\xff\xd9",
        b"\xff\xd8nonsense",
    ],
)
def test_a_jpeg_without_a_frame_header_has_no_size(data: bytes) -> None:
    with pytest.raises(BadPicture, match="without a readable frame header"):
        jpeg_size(data)
