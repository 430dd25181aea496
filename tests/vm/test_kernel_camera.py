"""The V4L2 backend on a real driver: its clock, its formats, its settings, its names, what it marks as damaged."""

import statistics
import subprocess
import time
from contextlib import contextmanager

import pytest
import vivid as kernel
from vivid import PATH, START_OF_EXPOSURE, Vivid

from edge_daemon.cameras.backend import backend_for
from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import FUTURE_TOLERANCE_NS
from edge_daemon.cameras.jpeg import jpeg_size, whole_jpeg

MS = 1_000_000
INTERVAL_NS = 10**9 // kernel.FPS
BY_ID = "/dev/v4l/by-id/usb-Two_of_one_make-video-index0"
OF_ONE = "/dev/v4l/by-path/place-%n-video-index0"
"""udev puts the node's number in."""


@pytest.fixture
def vivid():
    """A camera whose timestamps are right."""
    driver = Vivid()
    driver.set(timestamp_source=START_OF_EXPOSURE)
    yield driver
    driver.unload()


@contextmanager
def opened(**fields):
    """The backend on that source, and what it says of the camera."""
    backend = backend_for(kernel.source(**fields))
    try:
        notes = backend.open()
        yield backend, notes
    finally:
        backend.close()


def refusal(**fields) -> SourceFault:
    with pytest.raises(SourceFault) as caught, opened(**fields):
        pass
    return caught.value


# -- the clock --


def test_a_driver_whose_timestamps_lie_in_the_future_is_found_at_the_start(vivid, figures):
    vivid.set(timestamp_source=kernel.END_OF_FRAME)
    fault = refusal()
    figures.values["camera_future_stamp"] = str(fault)
    assert fault.fault is CameraFault.NO_CLOCK
    assert "after the picture's arrival" in str(fault)
    assert 'timestamp = "arrival"' in str(fault)


def test_a_driver_that_counts_from_another_moment_is_found_at_the_start(vivid):
    vivid.set(wrap_timestamp=2)
    assert refusal().fault is CameraFault.NO_CLOCK


def test_a_driver_whose_clock_is_right_is_used_and_its_stamp_precedes_the_hand_over(vivid, figures):
    with opened() as (backend, notes):
        frames = [backend.grab() for _ in range(25)]
    assert notes == ()
    ages_ms = [(frame.received_ns - frame.stamp_ns) / MS for frame in frames]
    figures.values["camera_stamp_to_hand_over_ms"] = {
        "median": round(statistics.median(ages_ms), 2),
        "max": round(max(ages_ms), 2),
    }
    assert min(ages_ms) > 0
    # A machine that halts for a moment lets some wait in the queue; most are handed over at once.
    assert statistics.median(ages_ms) < INTERVAL_NS / MS
    assert all(frame.more_lag_ns == 0 for frame in frames)


def test_a_camera_with_a_wrong_clock_is_used_by_arrival_and_a_queued_picture_is_not_taken_for_new(vivid):
    vivid.set(timestamp_source=kernel.END_OF_FRAME)
    with opened(timestamp="arrival") as (backend, _notes):
        backend.grab()
        paused_ns = time.monotonic_ns()
        time.sleep(0.5)
        resumed_ns = time.monotonic_ns()
        frames = [backend.grab() for _ in range(8)]
    queued = [frame for frame in frames if frame.stamp_ns < resumed_ns]
    # OpenCV's four buffers were filled within the first 160 ms; nothing may be said of them but that.
    assert len(queued) >= 4
    assert all(frame.stamp_ns <= paused_ns + MS * 100 for frame in queued[:4])
    assert frames[-1].stamp_ns > resumed_ns
    assert all(frame.received_ns + FUTURE_TOLERANCE_NS > frame.stamp_ns for frame in frames)
    assert frames[0].more_lag_ns == pytest.approx(INTERVAL_NS, abs=2)


# -- format and rate --


def test_a_camera_without_motion_jpeg_is_refused_with_what_it_gives_and_the_way_out(vivid):
    fault = refusal(pixel_format="mjpg")
    assert fault.fault is CameraFault.NOT_MJPEG
    assert "gives no MJPG, only YUYV, UYVY" in str(fault)
    assert 'pixel_format = "yuyv"' in str(fault)


@pytest.mark.parametrize("pixel_format", ["yuyv", "grey"])
def test_raw_pictures_become_jpegs_of_the_cameras_size(vivid, pixel_format):
    with opened(pixel_format=pixel_format) as (backend, notes):
        jpeg = backend.grab().jpeg
    assert notes == ()
    assert jpeg_size(whole_jpeg(jpeg)) == (kernel.WIDTH, kernel.HEIGHT)


def test_a_size_that_the_camera_has_not_is_refused_with_those_it_has(vivid):
    fault = refusal(width=800, height=600)
    assert fault.fault is CameraFault.NOT_AS_ASKED
    assert "asked for 800x600" in str(fault)
    assert "320x180, 640x360" in str(fault)


def test_another_rate_than_asked_is_said_and_reckoned_with(vivid):
    with opened(fps=120) as (backend, notes):
        frame = backend.grab()
    assert notes == ("gives 60.0 fps, asked for 120",)
    # A picture may be exposed for all of the longer interval.
    assert frame.more_lag_ns == pytest.approx((1 / 60 - 1 / 120) * 1e9, abs=2)


# -- locked controls --


def test_a_locked_gain_is_what_the_driver_then_has(vivid):
    assert vivid.get("gain_automatic") == 1
    with opened(gain=33) as (_backend, notes):
        assert vivid.get("gain_automatic") == 0
        assert vivid.get("gain") == 33
    assert notes == ()


def test_what_cannot_be_locked_as_asked_is_said(vivid):
    with opened(gain=300, exposure_100us=100, focus=40) as (_backend, notes):
        pass
    assert notes == (
        "exposure_100us cannot be locked at 100: the camera has no such control",
        "gain is 255, asked for 300; it has 0..255",
        "focus cannot be locked at 40: the camera has no such control",
    )


# -- names --


def test_a_name_that_two_cameras_share_is_refused_and_each_is_reached_by_one_of_its_own():
    driver = Vivid(devices=2)
    try:
        kernel.link_all(BY_ID, OF_ONE)
        # Two of this driver share their place too.
        for shared in (BY_ID, PATH):
            assert "the name of 2 cameras at once (/dev/video0, /dev/video1)" in str(refusal(path=shared))
        for number in (0, 1):
            path = OF_ONE.replace("%n", str(number))
            with opened(path=path, timestamp="arrival") as (backend, _notes):
                assert backend.grab().jpeg
    finally:
        driver.unload()
        kernel.unlink_all()


def test_a_by_id_name_of_one_camera_is_used(vivid):
    kernel.link_all(BY_ID)
    try:
        with opened(path=BY_ID) as (backend, _notes):
            assert backend.grab().jpeg
    finally:
        kernel.unlink_all()


def test_a_node_that_gives_no_pictures_is_told_from_a_camera():
    driver = Vivid(nodes=kernel.OUTPUT_NODE)
    try:
        fault = refusal()
    finally:
        driver.unload()
    assert fault.fault is CameraFault.UNUSABLE
    assert "gives no pictures" in str(fault)


def test_a_camera_that_another_program_uses_is_refused_with_its_name(vivid):
    command = ["v4l2-ctl", "-d", PATH, "--stream-mmap", "--stream-count=0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as other:
        try:
            assert other.stderr is not None
            # It draws a character for each picture: it streams.
            assert other.stderr.read(1)
            assert f"pid {other.pid} (v4l2-ctl) has it open" in str(refusal())
        finally:
            other.kill()


# -- damaged and lost pictures --


def test_a_picture_that_the_driver_marks_as_damaged_counts_as_broken(vivid):
    with opened() as (backend, _notes):
        vivid.press("inject_v4l2_buf_flag_error")
        jpegs = [backend.grab().jpeg for _ in range(12)]
    assert jpegs.count(b"") == 1
    assert jpegs[-1]


def test_pictures_that_the_driver_lost_are_counted_also_across_the_end_of_its_count(vivid, figures):
    vivid.set(wrap_sequence_number=1)
    with opened() as (backend, _notes):
        first = backend.grab()
        vivid.set(percentage_of_dropped_buffers=60)
        # Its count ends 128 frames after the start.
        frames = [backend.grab() for _ in range(70)]
    taken = len(frames) + sum(frame.missed for frame in frames)
    by_time = (frames[-1].stamp_ns - first.stamp_ns) / INTERVAL_NS
    figures.values["camera_driver_gaps"] = {
        "handed_over": len(frames),
        "missed": taken - len(frames),
        "by_time": round(by_time, 1),
    }
    assert taken > 140
    assert taken == pytest.approx(by_time, abs=1)


def test_buffers_that_the_driver_does_not_take_back_are_noticed_before_the_stream_dries_up(vivid):
    with (
        opened() as (backend, _notes),
        pytest.raises(SourceFault, match="3 of the driver's 4 buffers got lost"),
    ):
        for _ in range(3):
            vivid.press("inject_vidioc_qbuf_error")
            for _ in range(6):
                backend.grab()
