"""How long anybody waits, in virtual time: the daemon's own side runs as it is, capture and clock are played."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from edge_daemon.bench.camera.soak import SOURCE, simulate
from edge_daemon.bench.camera.soak_capture import Ill, SimulatedCaptures, World, at_once, now_ns
from edge_daemon.cameras.camera import SILENCE_S, Camera, CameraOffline
from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.errors import FrameTimeout

HOUR_S = 3600.0


class NeverOpens:
    """A capture process whose camera does not come up."""

    pid = 1

    async def receive(self) -> None:
        await trio.sleep_forever()

    async def why_it_ended(self) -> None:
        return None


@asynccontextmanager
async def never_opens(_order: CaptureOrder) -> AsyncIterator[Any]:
    yield NeverOpens()


@asynccontextmanager
async def simulated(world: World, capture: Any = None) -> AsyncIterator[Camera]:
    camera = Camera(
        "over", SOURCE, capture=capture or SimulatedCaptures(world), now_ns=now_ns, in_thread=at_once
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(camera.run)
        yield camera
        nursery.cancel_scope.cancel()


async def waited_s(wait: Any) -> float:
    began = trio.current_time()
    with pytest.raises(FrameTimeout):
        await wait
    return trio.current_time() - began


@pytest.mark.parametrize("ill", [Ill.SILENT, Ill.CRASH, Ill.GONE, Ill.FROZEN, Ill.STANDSTILL])
async def test_nobody_waits_longer_than_three_seconds_on_a_dead_camera(
    ill: Ill, autojump_clock: trio.testing.MockClock
) -> None:
    world = World()
    async with simulated(world) as camera:
        await camera.wait_online()
        world.fall_ill(ill)
        await trio.sleep(0.5)
        assert await waited_s(camera.frame_after(now_ns(), HOUR_S)) <= SILENCE_S
        # Whoever asks now need not wait at all.
        assert await waited_s(camera.frame_after(now_ns(), HOUR_S)) == 0
        began = trio.current_time()
        verdict = await camera.settled(now_ns(), HOUR_S)
        assert (verdict.state, verdict.timed_out) == ("unreliable", True)
        assert trio.current_time() == began
        world.fall_ill(None)
        await camera.wait_online()
        assert (await camera.frame_after(now_ns(), HOUR_S)).exposed_ns > 0


async def test_nobody_waits_for_a_camera_that_is_being_opened_and_the_status_says_that_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with simulated(World(), never_opens) as camera:
        assert await waited_s(camera.frame_after(0, HOUR_S)) == SILENCE_S
        assert isinstance(camera.status, CameraOffline)
        assert (camera.status.fault, camera.status.reason) == (None, "the camera is being opened")
        await camera.status_other_than(camera.status)
        assert camera.status.words.startswith("blocked: no picture for 10 s")
        await camera.status_other_than(camera.status)
        assert camera.status.reason.startswith("being opened again, after: no picture for 10 s")


async def test_a_living_camera_is_waited_for_as_long_as_was_asked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with simulated(World()) as camera:
        await camera.wait_online()
        assert await waited_s(camera.frame_after(now_ns() + 3600 * 10**9, 30.0)) == 30.0


async def test_a_restarted_camera_counts_on_and_an_unchanged_status_is_no_news(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = World()
    async with simulated(world) as camera:
        status = await camera.wait_online()
        with trio.move_on_after(60):
            await camera.status_other_than(status)
            pytest.fail("nothing has changed")
        world.fall_ill(Ill.CRASH)
        await camera.status_other_than(status)
        world.fall_ill(None)
        again = await camera.wait_online()
        assert replace(again, since_ns=0) == replace(status, since_ns=0)
        assert again.since_ns > status.since_ns
        assert camera.counters.captured == world.delivered


def test_every_fault_is_named_while_it_lasts_and_gone_within_three_seconds_of_its_end() -> None:
    found = simulate(len(Ill) * 16.0 / 3600, healthy_s=8.0, ill_s=8.0, growth=False)
    assert found.problems == []
    assert set(found.recover_s) == {ill.words for ill in Ill}
    assert max(found.recover_s.values()) <= 3.0
