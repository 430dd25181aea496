"""The virtual clock of the histories, and its alarms: the same moments as trio's own ways to wait."""

import random
from collections.abc import Awaitable, Callable

import trio
from trio.testing import MockClock

from edge_daemon.bench.crash.virtual_clock import Alarm, VirtualClock, running_clock, sleep

Sleep = Callable[[float], Awaitable[None]]


def woken_s(new_clock: Callable[[], trio.abc.Clock], sleep_for: Sleep) -> list[tuple[float, int]]:
    """When three tasks wake, who sleep for microseconds to seconds as chance has it; in a hundred runs."""
    woken: list[tuple[float, int]] = []

    async def sleeper(number: int, rng: random.Random) -> None:
        for _ in range(3):
            await sleep_for(10 ** rng.uniform(-6, 0))
            woken.append((trio.current_time(), number))

    async def main(seed: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(sleeper, number, random.Random(f"{seed}:{number}"))

    for seed in range(100):
        trio.run(main, seed, clock=new_clock())
    return woken


def in_history(main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main, clock=VirtualClock())


def test_time_passes_as_on_a_mock_clock_to_the_last_bit() -> None:
    expected = woken_s(lambda: MockClock(autojump_threshold=0), trio.sleep)
    assert woken_s(VirtualClock, trio.sleep) == expected
    assert woken_s(VirtualClock, sleep) == expected


def test_an_alarm_goes_off_at_its_time_and_a_ring_comes_before_it() -> None:
    async def main() -> None:
        alarm = Alarm()
        await alarm.wait_until(2.0)
        assert trio.current_time() == 2.0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alarm.wait_until, 9.0)
            await trio.sleep(1.0)
            alarm.ring()
        assert trio.current_time() == 3.0

    in_history(main)


def test_a_ring_that_nobody_waited_for_ends_the_next_wait_and_only_that() -> None:
    async def main() -> None:
        alarm = Alarm()
        alarm.ring()
        await alarm.wait_until(5.0)
        assert trio.current_time() == 0.0
        await alarm.wait_until(5.0)
        assert trio.current_time() == 5.0

    in_history(main)


def test_a_cancelled_wait_leaves_no_alarm_behind() -> None:
    async def main() -> None:
        alarm = Alarm()
        with trio.move_on_after(1.0) as scope:
            await alarm.wait_until(5.0)
        assert scope.cancelled_caught
        assert running_clock().alarms == {}
        await alarm.wait_until(3.0)
        assert trio.current_time() == 3.0

    in_history(main)
