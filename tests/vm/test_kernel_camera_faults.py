"""The camera as the daemon has it, with its capture process, on a real driver that fails in every way it can."""

import os
import signal
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic_ns

import cv2
import numpy as np
import pytest
import trio
import vivid as kernel
from vivid import START_OF_EXPOSURE, Vivid

from edge_daemon.cameras.camera import Camera, CameraOffline, CameraOnline
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.ring import RawFrame

PATIENCE_S = 60.0
RECOVERED_S = 3.0
"""What is promised, from the end of the cause to the next new picture."""
RED, BLUE = 7, 9
"""Test patterns: the whole picture in one colour."""
COUNTER_ON_IT = 1
"""So that no two pictures are equal, as with any sensor."""
PAUSE_S = 2.0
PAUSES = 5


@pytest.fixture
def vivid():
    """A camera whose timestamps are right, showing red."""
    driver = Vivid()
    driver.set(timestamp_source=START_OF_EXPOSURE, test_pattern=RED, osd_text_mode=COUNTER_ON_IT)
    yield driver
    driver.unload()


@dataclass
class Watched:
    """A running camera and every status that it has had since it was online."""

    camera: Camera
    statuses: list[object] = field(default_factory=list)
    _news: trio.Event = field(default_factory=trio.Event)

    @property
    def faults(self) -> list[CameraFault | None]:
        return [status.fault for status in self.statuses if isinstance(status, CameraOffline)]

    @property
    def reasons(self) -> str:
        return "\n".join(status.reason for status in self.statuses if isinstance(status, CameraOffline))

    async def watch(self) -> None:
        known = self.camera.status
        while True:
            known = await self.camera.status_other_than(known)
            self.statuses.append(known)
            self._news.set()
            self._news = trio.Event()

    async def until(self, holds: Callable[[object], bool]) -> None:
        """Until some status since the last call of `forget` was so."""
        while not any(holds(status) for status in self.statuses):
            await self._news.wait()

    async def until_offline(self) -> None:
        await self.until(lambda status: isinstance(status, CameraOffline))

    async def recover_s(self, cause_ended_ns: int) -> float:
        """From then to the next picture after the camera was seen to be offline."""
        offline_ns = next(status.since_ns for status in self.statuses if isinstance(status, CameraOffline))
        # Nobody waits long for a frame of a camera that is dead; for the camera itself one may.
        await self.camera.wait_online()
        frame = await self.camera.frame_after(max(offline_ns, cause_ended_ns), PATIENCE_S)
        return (frame.received_ns - cause_ended_ns) / 1e9

    def forget(self) -> None:
        self.statuses.clear()


@asynccontextmanager
async def watched(**fields):
    """The camera, online."""
    camera = Camera("cam-1", kernel.source(**fields))
    watched = Watched(camera)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(camera.run)
            nursery.start_soon(watched.watch)
            await camera.wait_online()
            await camera.frame_after(monotonic_ns(), PATIENCE_S)
            watched.forget()
            yield watched
            nursery.cancel_scope.cancel()


async def aside(work: Callable[..., object], *arguments: object, **controls: int) -> int:
    """Do it while frames go on being taken; returns when it was done, CLOCK_MONOTONIC."""

    def do() -> None:
        work(*arguments, **controls)

    await trio.to_thread.run_sync(do)
    return monotonic_ns()


def note_recovery(figures, fault: str, seconds: float, camera: Watched) -> None:
    figures.values.setdefault("camera_recover_s", {})[fault] = round(seconds, 2)
    assert seconds <= RECOVERED_S, camera.reasons


# -- faults --


async def test_a_fatal_stream_error_is_named_and_recovered(vivid, figures):
    async with watched() as camera:
        # It is over as soon as it has happened, and seen at once: the longest way to a new picture.
        pressed_ns = monotonic_ns()
        await aside(vivid.press, "inject_fatal_streaming_error")
        await camera.until_offline()
        note_recovery(figures, "fatal_stream_error", await camera.recover_s(pressed_ns), camera)
    assert camera.faults[0] is CameraFault.DRIVER_ERROR
    assert "ended the stream with an error" in camera.reasons


async def test_a_disconnected_camera_is_unplugged_and_comes_back(vivid, figures):
    """The driver takes it as plugged in again once nobody holds the old node."""
    async with watched() as camera:
        pressed_ns = monotonic_ns()
        await aside(vivid.press, "disconnect")
        await camera.until_offline()
        note_recovery(figures, "disconnect", await camera.recover_s(pressed_ns), camera)
    assert camera.faults[0] is CameraFault.UNPLUGGED


async def test_a_stream_that_the_driver_refuses_to_start_is_named_and_started_again(vivid, figures):
    async with watched() as camera:
        # The refusal waits for the next start, which the other fault brings about.
        await aside(vivid.press, "inject_vidioc_streamon_error")
        pressed_ns = await aside(vivid.press, "inject_fatal_streaming_error")
        await camera.until(
            lambda status: (
                isinstance(status, CameraOffline) and "refused to start the stream" in status.reason
            )
        )
        note_recovery(figures, "stream_on_error", await camera.recover_s(pressed_ns), camera)
    assert set(camera.faults) <= {CameraFault.DRIVER_ERROR}


async def test_a_driver_that_refuses_its_buffers_is_recovered(vivid, figures):
    async with watched() as camera:
        await aside(vivid.press, "inject_vidioc_reqbufs_error")
        pressed_ns = await aside(vivid.press, "inject_fatal_streaming_error")
        await camera.until_offline()
        note_recovery(figures, "buffer_request_error", await camera.recover_s(pressed_ns), camera)


async def test_a_driver_that_gives_nothing_is_blocked_until_it_gives_again(vivid, figures):
    async with watched() as camera:
        await aside(vivid.set, percentage_of_dropped_buffers=100)
        await camera.until(lambda status: isinstance(status, CameraOffline) and status.fault is not None)
        ended_ns = await aside(vivid.set, percentage_of_dropped_buffers=0)
        note_recovery(figures, "no_pictures", await camera.recover_s(ended_ns), camera)
    assert camera.faults[0] is CameraFault.BLOCKED
    assert "gave no picture for 2 s" in camera.reasons


async def test_an_unbound_driver_is_an_unplugged_camera_and_bound_again_it_comes_back(vivid, figures):
    async with watched() as camera:
        before = camera.camera.counters.captured
        await aside(vivid.unbind)
        await camera.until(
            lambda status: isinstance(status, CameraOffline) and "does not exist" in status.reason
        )
        # Long enough that whoever looks for it ever more seldom would be at its slowest.
        await trio.sleep(8)
        assert isinstance(camera.camera.status, CameraOffline)
        ended_ns = await aside(vivid.bind)
        await aside(vivid.set, timestamp_source=START_OF_EXPOSURE)
        note_recovery(figures, "driver_unbound", await camera.recover_s(ended_ns), camera)
        assert camera.camera.counters.captured > before
    assert camera.faults[0] is CameraFault.UNPLUGGED
    # Bound again, its clock is wrong at first, which is found and said too.
    assert set(camera.faults) <= {CameraFault.UNPLUGGED, CameraFault.NO_CLOCK}


async def test_dropped_pictures_are_counted_as_captured_and_the_camera_is_starved(vivid, figures):
    async with watched() as camera:
        before = camera.camera.latest()
        assert before is not None
        missed_before = camera.camera.counters.missed
        await aside(vivid.set, percentage_of_dropped_buffers=60)
        await camera.until(lambda status: has(status, CameraFault.STARVED))
        after = await camera.camera.frame_after(monotonic_ns(), PATIENCE_S)
        counted = after.sequence - before.sequence
        by_time = (after.exposed_ns - before.exposed_ns) / 1e9 * kernel.FPS
        figures.values["camera_dropped"] = {
            "counted": counted,
            "by_time": round(by_time, 1),
            "missed": camera.camera.counters.missed - missed_before,
        }
        assert counted == pytest.approx(by_time, abs=1)
        assert camera.camera.counters.missed - missed_before > counted / 3

        camera.forget()
        ended_ns = await aside(vivid.set, percentage_of_dropped_buffers=0)
        await camera.until(lambda status: isinstance(status, CameraOnline) and not status.degraded)
        note_recovery(figures, "dropped_pictures", (monotonic_ns() - ended_ns) / 1e9, camera)
    assert camera.faults == []


def has(status: object, fault: CameraFault) -> bool:
    return isinstance(status, CameraOnline) and any(one.fault is fault for one in status.degraded)


# -- a pause --


@pytest.mark.parametrize("timestamp", ["driver", "arrival"])
async def test_pictures_kept_in_the_drivers_queue_during_a_pause_are_never_served_as_new(
    vivid, figures, timestamp
):
    """The picture itself tells: its colour changes during the pause, so an old one has the old colour."""
    counts = figures.values.setdefault("camera_pause", {}).setdefault(
        timestamp, {"pauses": 0, "queued": 0, "stale_frames_served": 0}
    )
    colour = RED
    async with watched(timestamp=timestamp) as camera:
        for _ in range(PAUSES):
            pid = camera.camera.capture_pid
            assert pid is not None
            before = await camera.camera.frame_after(monotonic_ns(), PATIENCE_S)
            os.kill(pid, signal.SIGSTOP)
            await trio.sleep(PAUSE_S)
            colour = BLUE if colour == RED else RED
            changed_ns = await aside(vivid.set, test_pattern=colour)
            os.kill(pid, signal.SIGCONT)
            frame = await camera.camera.frame_after(changed_ns, PATIENCE_S)
            counts["pauses"] += 1
            counts["stale_frames_served"] += shown(frame) != colour
            counts["queued"] += count_queued(camera.camera, before.sequence, changed_ns, colour)
    assert counts["stale_frames_served"] == 0
    # Otherwise nothing was shown by this: the old ones must have come, and after the pause.
    assert counts["queued"] >= PAUSES


def shown(frame: RawFrame) -> int:
    """Which of the two colours fills the picture."""
    image = cv2.imdecode(np.frombuffer(frame.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    blue, _green, red = image.reshape(-1, 3).mean(axis=0)
    return RED if red > blue else BLUE


def count_queued(camera: Camera, after: int, changed_ns: int, colour: int) -> int:
    """Pictures of the old colour that arrived after the change."""
    frames = (camera.frame_numbered(number) for number in range(after + 1, camera.counters.captured + 1))
    return sum(1 for one in frames if one and one.received_ns > changed_ns and shown(one) != colour)
