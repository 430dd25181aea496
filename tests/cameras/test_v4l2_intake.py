"""What a driver's frame numbers and a slower rate than asked for mean for the frames that follow."""

from edge_daemon.cameras.capture import frame_header
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Accepted, Grabbed, Intake
from edge_daemon.cameras.sources import Exposure, V4l2Source
from edge_daemon.cameras.status import CameraOnline, Condition

MS = 1_000_000
S = 1_000 * MS
FPS = 25


def taken(intake: Intake, grabbed: Grabbed) -> Accepted:
    frame = intake.take(grabbed)
    assert frame is not None
    return frame


def test_pictures_that_never_came_count_as_captured(jpegs: list[bytes]) -> None:
    intake = Intake(Exposure(0, 0), frozen_after_ns=S)
    taken(intake, Grabbed(jpegs[0], 0, 0))
    frame = taken(intake, Grabbed(jpegs[1], 200 * MS, 200 * MS, missed=4))
    assert (frame.sequence, frame.missed) == (6, 4)
    frame = taken(intake, Grabbed(jpegs[2], 240 * MS, 240 * MS))
    assert (frame.sequence, frame.missed) == (7, 4)


def test_they_count_also_when_the_picture_that_tells_of_them_is_broken(jpegs: list[bytes]) -> None:
    intake = Intake(Exposure(0, 0), frozen_after_ns=S)
    assert intake.take(Grabbed(b"", 0, 0, missed=2)) is None
    frame = taken(intake, Grabbed(jpegs[0], 40 * MS, 40 * MS))
    assert (frame.sequence, frame.missed, frame.broken) == (3, 2, 1)


def test_a_longer_lag_than_reckoned_moves_only_the_guarantee(jpegs: list[bytes]) -> None:
    intake = Intake(Exposure(40 * MS, 20 * MS), frozen_after_ns=S)
    frame = taken(intake, Grabbed(jpegs[0], 100 * MS, 101 * MS, more_lag_ns=15 * MS))
    assert (frame.exposed_ns, frame.exposed_about_ns) == (45 * MS, 80 * MS)


def test_an_exposure_was_over_when_its_picture_arrived_whatever_the_stamp_says(jpegs: list[bytes]) -> None:
    intake = Intake(Exposure(40 * MS, 20 * MS), frozen_after_ns=S)
    frame = taken(intake, Grabbed(jpegs[0], 104 * MS, 100 * MS))
    assert (frame.exposed_ns, frame.exposed_about_ns) == (60 * MS, 80 * MS)


def test_a_camera_whose_driver_drops_half_the_pictures_is_starved(jpegs: list[bytes]) -> None:
    """By the capture's numbers alone it would be at full rate."""
    source = V4l2Source(path="/dev/v4l/by-id/usb-camera", width=64, height=48, fps=FPS)
    intake, condition = Intake(source.exposure, frozen_after_ns=S), Condition(source, 0, 3 * S)
    condition.opened(())
    for number in range(2 * FPS):
        stamp_ns = number * 2 * S // FPS
        frame = taken(
            intake, Grabbed(jpegs[number % len(jpegs)], stamp_ns, stamp_ns, missed=1 if number else 0)
        )
        condition.took(frame_header(frame, 0), stamp_ns)
    assert (condition.counters.captured, condition.counters.missed) == (4 * FPS - 1, 2 * FPS - 1)
    assert isinstance(condition.status, CameraOnline)
    assert [one.fault for one in condition.status.degraded] == [CameraFault.STARVED]
