"""The real capture process against a real HTTP camera that does what it is told."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any

import cv2
import numpy as np
import pytest
import trio
import trio.testing

from edge_daemon.cameras.camera import Camera, CameraOffline, CameraOnline, CameraStatus, backoff_s
from edge_daemon.cameras.capture import pause_s
from edge_daemon.cameras.errors import CameraClosed, FrameTimeout
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.sources import FilesSource, HttpMjpegSource, V4l2Source

MS = 1_000_000
PATIENCE_S = 8.0
"""Only a bound on a test that hangs; nothing is measured with it."""


async def offline_because(camera: Camera, words: str) -> CameraOffline:
    status: CameraStatus = camera.status
    while not (isinstance(status, CameraOffline) and words in status.reason):
        status = await camera.status_other_than(status)
    return status


def gone(pid: int) -> bool:
    """Reaped, not merely dead: a zombie would still take the signal."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_frame_asked_for_after_a_moment_was_exposed_after_it(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        moment_ns = monotonic_ns()
        async with trio.open_nursery() as nursery:
            got = []

            async def ask() -> None:
                got.append(await camera.frame_after(moment_ns, PATIENCE_S))

            nursery.start_soon(ask)
            await server.push(jpegs[0], grab_ns=moment_ns - 5 * MS)
            while camera.latest() is None:
                await camera.status_other_than(camera.status)
            assert not got, "a picture of before the moment was handed out"
            await server.push(jpegs[1], grab_ns=moment_ns + 1)
        assert (got[0].exposed_ns, got[0].jpeg) == (moment_ns + 1, jpegs[1])


async def test_the_newest_of_the_frames_after_the_moment_is_given(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        moment_ns = monotonic_ns()
        for number, jpeg in enumerate(jpegs[:3]):
            await server.push(jpeg, grab_ns=moment_ns + number + 1)
        await camera.frame_after(moment_ns + 2, PATIENCE_S)
        assert (await camera.frame_after(moment_ns, PATIENCE_S)).jpeg == jpegs[2]


async def test_the_lag_of_the_stamp_is_taken_off(running: Any, server: Any, jpegs: list[bytes]) -> None:
    async with running(server.over(stamp_lag_ms=30)) as camera:
        await server.wait_connected()
        grab_ns = monotonic_ns()
        await server.push(jpegs[0], grab_ns=grab_ns)
        assert (await camera.frame_after(0, PATIENCE_S)).exposed_ns == grab_ns - 30 * MS


async def test_frames_are_counted_as_captured_not_as_fetched(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        await server.push(jpegs[0])
        bound = await camera.frame_after(0, PATIENCE_S)
        assert camera.captured_after(bound.sequence) == 0
        for jpeg in jpegs[1:5]:
            await server.push(jpeg)
        last_ns = monotonic_ns()
        await server.push(jpegs[5], grab_ns=last_ns)
        await camera.frame_after(last_ns - 1, PATIENCE_S)
        assert camera.captured_after(bound.sequence) == 5
        with pytest.raises(ValueError, match=r"sequence 99 is not of 0\.\.6"):
            camera.captured_after(99)


async def test_frames_are_counted_up_to_a_moment_of_exposure(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        moment_ns = monotonic_ns()
        for number, jpeg in enumerate(jpegs):
            await server.push(jpeg, grab_ns=moment_ns + number)
        await camera.frame_after(moment_ns + len(jpegs) - 2, PATIENCE_S)
        assert camera.captured_between(1, moment_ns + 3) == 3
        assert camera.captured_between(1, moment_ns) == 0
        assert camera.captured_between(1, moment_ns + 10**9) == camera.captured_after(1) == 7
        kept = camera.frame_numbered(3)
        assert kept is not None
        assert kept.jpeg == jpegs[2]
        assert camera.frame_numbered(9) is None


async def test_the_grab_time_is_read_under_its_new_name_too(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        await server.push(
            jpegs[0], headers={"X-UStreamer-Grab-Begin-Time": f"{monotonic_ns() // 10**6 / 1000:.6f}"}
        )
        await camera.frame_after(0, PATIENCE_S)


async def test_an_unplugged_camera_is_offline_and_comes_back_with_its_numbers_going_on(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera, trio.open_nursery() as nursery:
        nursery.start_soon(server.play, jpegs)
        await camera.wait_online()
        pid = camera.capture_pid
        server.unplug()
        status = await offline_because(camera, "stream")
        assert status.fault is CameraFault.SERVER_GONE
        before = camera.latest()
        assert before is not None
        unplugged_ns = monotonic_ns()
        await server.listen(nursery)
        frame = await camera.frame_after(unplugged_ns, PATIENCE_S)
        assert frame.sequence > before.sequence
        assert isinstance(camera.status, CameraOnline)
        assert camera.capture_pid == pid, "a server that is back needs no new process"
        nursery.cancel_scope.cancel()


async def test_a_killed_capture_process_is_named_and_replaced(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera, server.playing(jpegs):
        await camera.wait_online()
        pid = camera.capture_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await offline_because(camera, "ended by SIGKILL")
        await camera.wait_online()
        assert camera.capture_pid not in (None, pid)
        assert gone(pid)


async def test_a_capture_process_that_hangs_is_killed_and_replaced(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over(silence_s=0.5)) as camera, server.playing(jpegs):
        await camera.wait_online()
        pid = camera.capture_pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await offline_because(camera, "no picture for 0.5 s; the capture process was killed")
        await camera.wait_online()
        assert gone(pid)


async def test_a_camera_that_stalls_is_opened_anew(running: Any, server: Any, jpegs: list[bytes]) -> None:
    async with running(server.over(silence_s=0.5)) as camera:
        async with server.playing(jpegs):
            await camera.wait_online()
        await offline_because(camera, "no picture for 0.5 s")
        async with server.playing(jpegs):
            await camera.wait_online()


async def test_a_frozen_camera_is_named(
    running: Any, server: Any, part: Callable[..., bytes], jpegs: list[bytes]
) -> None:
    async with running(server.over(silence_s=0.5)) as camera, trio.open_nursery() as nursery:
        await server.wait_connected()
        frozen = part(jpegs[0], grab_ns=monotonic_ns())

        async def repeat() -> None:
            while True:
                await server.send(frozen)
                await trio.sleep(0.02)

        nursery.start_soon(repeat)
        await offline_because(camera, "frozen: the same picture with the same timestamp")
        assert camera.counters.captured == 1, "repetitions were counted as captured"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda part, jpeg: part(jpeg, headers={"X-Timestamp": "1.5"}), "add ?extra_headers=1"),
        (lambda part, jpeg: part(jpeg, headers={"X-UStreamer-Grab-Time": "soon"}), "'soon', which is no time"),
        (lambda part, jpeg: part(jpeg, headers={"X-UStreamer-Grab-Time": "Infinity"}), "which is no time"),
        (lambda part, jpeg: part(jpeg, grab_ns=monotonic_ns() + 3600 * 10**9), "after the picture's arrival"),
        (lambda part, jpeg: part(jpeg, grab_ns=1), "old on arrival"),
        (lambda part, jpeg: part(jpeg, headers={"X-UStreamer-Online": "false"}), "no signal from its camera"),
        (lambda part, jpeg: part(jpeg, length=len(jpeg) - 9), "not followed by the boundary"),
        (lambda part, jpeg: part(jpeg, length=10**9), "more than the 8388608 allowed"),
        (lambda part, jpeg: part(jpeg, length=len(jpeg) + 3), "not followed by the boundary"),
        (lambda part, jpeg: b"".join(part(jpeg[:-30]) for _ in range(10)), "10 broken pictures in a row"),
    ],
    ids=[
        "no time header", "no time", "endless time", "other clock", "old", "no signal", "short length",
        "oversize", "truncated part", "truncated pictures",
    ],
)  # fmt: skip
async def test_a_stream_that_cannot_be_trusted_is_offline_with_the_reason(
    running: Any,
    server: Any,
    part: Callable[..., bytes],
    jpegs: list[bytes],
    spoil: Callable[[Callable[..., bytes], bytes], bytes],
    reason: str,
) -> None:
    server.on_connect = lambda: spoil(part, jpegs[0])
    async with running(server.over()) as camera:
        await offline_because(camera, reason)


async def test_a_stream_that_heals_is_used_again(
    running: Any, server: Any, part: Callable[..., bytes], jpegs: list[bytes]
) -> None:
    server.on_connect = lambda: part(jpegs[0], length=len(jpegs[0]) - 9)
    async with running(server.over()) as camera:
        await offline_because(camera, "not followed by the boundary")
        server.on_connect = lambda: part(jpegs[0])
        await camera.wait_online()


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\n", "answers 404 Not Found"),
        (b"HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n", "not with multipart/x-mixed-replace"),
        (b"SSH-2.0-OpenSSH\r\n", "no camera stream at http://127.0.0.1"),
    ],
)
async def test_what_is_no_camera_stream_is_offline_with_the_reason(
    running: Any, server: Any, head: bytes, reason: str
) -> None:
    server.head = head
    async with running(server.over()) as camera:
        await offline_because(camera, reason)


async def test_arrival_times_are_used_only_where_configured_and_said(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    camera = server.over(timestamp="arrival", stamp_lag_ms=200)
    async with running(camera):
        await server.wait_connected()
        before_ns = monotonic_ns()
        await server.push(jpegs[0], headers={})
        frame = await camera.frame_after(0, PATIENCE_S)
        assert before_ns - 200 * MS <= frame.exposed_ns == frame.received_ns - 200 * MS
        assert isinstance(camera.status, CameraOnline)
        assert "arrival less 200 ms" in camera.status.degraded[0].words


async def test_a_camera_that_does_not_exist_is_offline_with_the_reason_and_comes_alive(
    running: Any, tmp_path: Path, jpegs: list[bytes]
) -> None:
    folder = tmp_path / "camera"
    async with running(Camera("bench", FilesSource(path=str(folder), fps=60))) as camera:
        await offline_because(camera, f"{folder} does not exist")
        made = tmp_path / "made"
        made.mkdir()
        for number, jpeg in enumerate(jpegs[:3]):
            (made / f"{number}.jpg").write_bytes(jpeg)
        cv2.imwrite(str(made / "3.png"), np.full((48, 64, 3), 200, np.uint8))
        made.rename(folder)
        await camera.wait_online()
        bound = camera.latest()
        assert bound is not None
        moment_ns = monotonic_ns()
        assert (await camera.frame_after(moment_ns, PATIENCE_S)).exposed_ns > moment_ns


async def test_a_camera_that_keeps_failing_gets_a_new_process_and_is_tried_soon_enough_for_ever(
    running: Any, tmp_path: Path
) -> None:
    assert [backoff_s(deaths) for deaths in (1, 2, 3, 4, 10_000)] == [0.25, 0.5, 1, 1.5, 1.5]
    assert [pause_s(failures) for failures in (1, 2, 5, 10_000)] == [0.05, 0.1, 0.5, 0.5]
    async with running(Camera("bench", FilesSource(path=str(tmp_path / "none")))) as camera:
        status = await offline_because(camera, "does not exist")
        pid = camera.capture_pid
        while camera.counters.restarts == 0:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert camera.capture_pid != pid
        assert camera.counters.failures >= 3
        assert camera.status == status, "nothing new is to be said, and nobody is woken for it"


async def test_a_v4l2_camera_that_is_not_there_is_offline_with_the_reason(running: Any) -> None:
    source = V4l2Source(path="/dev/v4l/by-id/usb-no-such-camera", width=640, height=480, fps=30)
    async with running(Camera("usb", source)) as camera:
        await offline_because(
            camera, "/dev/v4l/by-id/usb-no-such-camera does not exist: the camera is unplugged"
        )


async def test_a_black_picture_is_named_while_the_camera_is_online(
    running: Any, server: Any, jpeg: Callable[..., bytes], jpegs: list[bytes]
) -> None:
    done, encoded = cv2.imencode(".jpg", np.full((48, 64), 3, np.uint8))
    assert done
    source = HttpMjpegSource(url=server.url)
    camera = Camera("over", source, silence_s=PATIENCE_S, look_every_s=0.02)
    async with running(camera):
        async with server.playing([encoded.tobytes()]):
            status: CameraStatus = await camera.wait_online()
            status = await camera.status_other_than(status)
            assert isinstance(status, CameraOnline)
            assert "the picture is black (mean level 3 of 255)" in status.degraded[0].words
        async with server.playing(jpegs):
            status = await camera.status_other_than(status)
            assert isinstance(status, CameraOnline)
            assert status.degraded == ()


async def test_no_frame_in_time_is_a_timeout_with_the_cameras_status(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        await server.push(jpegs[0])
        await camera.wait_online()
        with pytest.raises(FrameTimeout, match=r"within 0 s \(online, newest picture"):
            await camera.frame_after(monotonic_ns(), 0)
        server.unplug()
        await offline_because(camera, "stream")
        with pytest.raises(FrameTimeout, match="offline: "):
            await camera.frame_after(monotonic_ns(), 0)


async def test_cancelling_kills_and_reaps_the_capture_process(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera, server.playing(jpegs):
        await camera.wait_online()
        pid = camera.capture_pid
        assert pid is not None
    assert gone(pid)
    assert camera.capture_pid is None


async def test_closing_ends_the_run_and_every_wait(server: Any) -> None:
    camera = server.over()
    ended = []

    async def expect(wait: Callable[[], Any]) -> None:
        with pytest.raises(CameraClosed):
            await wait()
        ended.append(wait)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(camera.run)
            await server.wait_connected()
            nursery.start_soon(expect, lambda: camera.frame_after(monotonic_ns(), PATIENCE_S))
            nursery.start_soon(expect, lambda: camera.settled(0, PATIENCE_S))
            nursery.start_soon(expect, camera.wait_online)
            await trio.testing.wait_all_tasks_blocked()
            camera.close()
    assert len(ended) == 3
    assert isinstance(camera.status, CameraOffline)
    assert camera.status.reason == "closed"


PARENT = """
import sys, trio
from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.sources import FilesSource

async def main():
    camera = Camera("bench", FilesSource(path=sys.argv[1], fps=0.1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(camera.run)
        await camera.wait_online()
        print(camera.capture_pid, flush=True)

trio.run(main)
"""


async def test_the_capture_process_ends_when_the_daemon_is_killed(tmp_path: Path, jpegs: list[bytes]) -> None:
    """It sleeps until its next picture, ten seconds off, so that only the daemon's end can end it in time."""
    (tmp_path / "0.jpg").write_bytes(jpegs[0])
    with trio.fail_after(PATIENCE_S):
        daemon = await trio.lowlevel.open_process(
            [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert daemon.stdout is not None
        capture = os.pidfd_open(int(await daemon.stdout.receive_some()))
        try:
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
            await trio.lowlevel.wait_readable(capture)
        finally:
            os.close(capture)
            await daemon.stdout.aclose()
