"""The wait for a still screen, through the real capture process."""

from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest
import trio

from edge_daemon.cameras.camera import Camera, CameraOnline, CameraStatus
from edge_daemon.cameras.errors import FrameTimeout
from edge_daemon.cameras.sources import FilesSource

MS = 1_000_000
PATIENCE_S = 8.0


async def test_the_screen_is_settled_once_it_is_still_after_the_moment(
    running: Any, server: Any, view: Any
) -> None:
    shots = [view.shot(view.page(1), 2) for _ in range(4)]
    async with running(server.over()) as camera:
        await server.wait_connected()
        moment_ns = monotonic_ns()
        async with server.playing(shots):
            verdict = await camera.settled(moment_ns, PATIENCE_S, mask=view.SCREEN)
        assert (verdict.state, verdict.timed_out) == ("still", False)
        assert verdict.still_since_ns is not None
        assert verdict.still_since_ns > moment_ns
        frame = camera.latest()
        assert frame is not None
        assert verdict.sequence is not None
        assert frame.sequence >= verdict.sequence


async def test_stillness_before_the_moment_counts_for_nothing_and_after_it_at_once(
    running: Any, server: Any, view: Any
) -> None:
    """Six pictures of a still screen are there already; none comes any more."""
    page = view.page(1)
    now_ns = monotonic_ns()
    exposed_ns = [now_ns - 70 * MS * age for age in (5, 4, 3, 2, 1, 0)]
    async with running(server.over()) as camera:
        await server.wait_connected()
        for grab_ns in exposed_ns:
            await server.push(view.shot(page, 2), grab_ns=grab_ns)
        await camera.frame_after(exposed_ns[-2], PATIENCE_S)
        verdict = await camera.settled(exposed_ns[-1], 0.05)
        assert (verdict.state, verdict.frames) == ("unreliable", 0)
        verdict = await camera.settled(exposed_ns[0] - 1, PATIENCE_S)
        assert (verdict.state, verdict.still_since_ns) == ("still", exposed_ns[0])


async def test_a_stuck_camera_is_named_and_its_picture_is_not_taken_for_a_still_screen(
    running: Any, server: Any, view: Any
) -> None:
    async with running(server.over(silence_s=0.5)) as camera, server.playing([view.shot(view.page(1), 2)]):
        status: CameraStatus = await camera.wait_online()
        verdict = await camera.settled(monotonic_ns(), 0.4)
        assert (verdict.state, verdict.timed_out) == ("unreliable", True)
        assert "repetitions of the one before" in verdict.reason
        status = await camera.status_other_than(status)
        assert isinstance(status, CameraOnline)
        assert "again and again under new timestamps" in status.degraded[0].words


async def test_a_stuck_cameras_picture_is_never_served_as_new(running: Any, server: Any, view: Any) -> None:
    """Not even before anybody can know that it is stuck; and whoever waits for one waits no longer than for a dead
    camera."""
    live, stuck = view.shot(view.page(1), 2), view.shot(view.page(1), 2)
    async with running(server.over(silence_s=0.5)) as camera:
        await server.wait_connected()
        await server.push(live)
        await server.push(stuck)
        await camera.frame_after(0, PATIENCE_S)
        asked_ns, asked_at = monotonic_ns(), trio.current_time()
        async with server.playing([stuck]):
            with pytest.raises(FrameTimeout, match="the same picture comes again and again"):
                await camera.frame_after(asked_ns, PATIENCE_S)
        assert trio.current_time() - asked_at < PATIENCE_S / 2
        newest = camera.latest()
        assert newest is not None
        assert newest.exposed_ns > asked_ns
        async with server.playing([live, stuck]):
            while camera.latest().crc32 == newest.crc32:
                await trio.sleep(0.01)
            assert (await camera.frame_after(asked_ns, PATIENCE_S)).exposed_ns > newest.exposed_ns


async def test_a_recording_of_one_still_picture_is_still(running: Any, view: Any, tmp_path: Path) -> None:
    (tmp_path / "0.jpg").write_bytes(view.shot(view.page(1), 2))
    async with running(Camera("bench", FilesSource(path=str(tmp_path), fps=30))) as camera:
        assert (await camera.settled(monotonic_ns(), PATIENCE_S)).state == "still"


async def test_a_screen_that_keeps_moving_is_reported_as_a_timeout(
    running: Any, server: Any, view: Any
) -> None:
    shots = [view.shot(view.page(seed), 2) for seed in range(4)]
    async with running(server.over()) as camera, server.playing(shots):
        await camera.wait_online()
        verdict = await camera.settled(monotonic_ns(), 0.4, mask=view.SCREEN, noise_sigma=0.5)
        assert (verdict.state, verdict.timed_out, verdict.still_since_ns) == ("moving", True, None)
        assert "not still within 0.4 s" in verdict.reason


async def test_a_screen_nobody_saw_is_unreliable_not_moving(running: Any, server: Any) -> None:
    async with running(server.over()) as camera:
        await server.wait_connected()
        verdict = await camera.settled(monotonic_ns(), 0.05)
        assert (verdict.state, verdict.timed_out, verdict.frames) == ("unreliable", True, 0)
        assert "offline" in verdict.reason
