"""The hand between actions, on a real board behind a pty: homed and parked before use, approached from one side."""

import math
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.boards import Board, HandClient
from edge_daemon.config import MotionSection
from edge_daemon.devices.approach import approach
from edge_daemon.devices.keeper import HandKeeper

MOTION = MotionSection(park_x_mm=100.0, park_y_mm=0.0, park_z_mm=20.0)


@asynccontextmanager
async def kept_hand() -> AsyncIterator[tuple[SimulatedRig, Board, HandKeeper]]:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        async with SimulatedRig(5, Path(directory), boards=("hand",), camera=False) as rig:
            board = Board("hand-1", rig.hand_port, None, "hand")
            keeper = HandKeeper(board, HandClient(board), MOTION, time.monotonic_ns)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(board.run)
                nursery.start_soon(keeper.run, lambda: None)
                assert await keeper.out_of_picture(10.0)
                yield rig, board, keeper
                nursery.cancel_scope.cancel()


async def test_a_hand_that_appears_is_homed_and_parked_before_anybody_may_use_it() -> None:
    async with kept_hand() as (rig, board, keeper):
        assert board.flags is not None
        assert board.flags.homed
        assert keeper.history.parked
        assert rig.hand_true_tip().height_mm > 10


async def test_a_contact_is_approached_from_one_side_and_above() -> None:
    async with kept_hand() as (rig, _board, keeper):
        async with keeper.moving_for_plane():
            await keeper.hand.move(100.0, 65.0, 8.0)
            above = rig.hand_true_tip()
            await approach(keeper.hand, 100.0, 65.0, 8.0, 0.6)
            short = rig.hand_true_tip()
        # 0.6 mm in both axes, less what the backlash swallows when the drives turn round.
        assert 0.4 < math.hypot(above.x_mm - short.x_mm, above.y_mm - short.y_mm) < 0.9
        assert short.height_mm > 5


async def test_a_move_for_the_plane_is_no_move_of_the_edge_and_a_push_is() -> None:
    async with kept_hand() as (rig, _board, keeper):
        before_ns = time.monotonic_ns()
        async with keeper.moving_for_plane():
            assert not keeper.history.parked
            await keeper.hand.move(100.0, 65.0, 8.0)
        assert keeper.history.last_move_end_ns > before_ns
        assert keeper.history.last_edge_move_ns < before_ns
        rig.push_hand(3.0, 0.0, 0.0)
        with trio.fail_after(5):
            while keeper.history.last_edge_move_ns < before_ns:
                await trio.sleep(0.01)


async def test_nothing_that_the_plane_has_done_is_a_move_of_the_edge() -> None:
    async with kept_hand() as (_rig, _board, keeper):
        before_ns = time.monotonic_ns()
        for _ in range(2):
            async with keeper.moving_for_plane():
                await keeper.hand.move(100.0, 65.0, 8.0)
                await keeper.hand.tap(before_ns, 100.0, 65.0, hover_z_mm=8.0, press_z_mm=6.0, dwell_ms=30)
            await keeper.park()
        assert await keeper.out_of_picture(5.0)
        assert not keeper.history.edge_moved_between(before_ns, time.monotonic_ns())
        assert keeper.history.last_move_end_ns > before_ns


async def test_each_cause_that_is_not_the_planes_is_a_move_of_the_edge() -> None:
    async with kept_hand() as (rig, board, keeper):

        async def jog() -> None:
            async with keeper.moving_at_edge() as hand:
                await hand.move(100.0, 65.0, 8.0)

        async def stop() -> None:
            await board.estop()
            await board.clear_estop()

        async def cut_the_link() -> None:
            await rig.unplug("hand", keeps_power=True)
            while keeper.not_ready_reason is None:
                await trio.sleep(0.01)
            await rig.plug("hand")

        async def stand_over_the_phone_and_be_parked_by_staff() -> None:
            async with keeper.moving_for_plane():
                await keeper.hand.move(100.0, 65.0, 8.0)
            await keeper.park(at_edge=True)

        for cause in (jog, stop, cut_the_link, stand_over_the_phone_and_be_parked_by_staff):
            with trio.fail_after(20):
                while keeper.not_ready_reason is not None:
                    await trio.sleep(0.01)
                await keeper.park()
                before_ns = time.monotonic_ns()
                assert not keeper.history.edge_moved_between(before_ns, time.monotonic_ns())
                await cause()
                while not keeper.history.edge_moved_between(before_ns, time.monotonic_ns()):
                    await trio.sleep(0.01)


async def test_a_board_that_restarted_is_homed_again_and_that_is_a_move_of_the_edge() -> None:
    async with kept_hand() as (rig, board, keeper):
        before_ns = time.monotonic_ns()
        await rig.reset_board("hand")
        with trio.fail_after(10):
            while keeper.not_ready_reason is None:
                await trio.sleep(0.01)
            while keeper.not_ready_reason is not None:
                await trio.sleep(0.01)
        assert board.flags is not None
        assert board.flags.homed
        assert keeper.history.last_edge_move_ns > before_ns


async def test_leaving_parks_the_hand_even_while_being_cancelled() -> None:
    async with kept_hand() as (rig, _board, keeper):
        async with keeper.moving_for_plane():
            await keeper.hand.move(100.0, 65.0, 8.0)
        with trio.CancelScope() as scope:
            scope.cancel()
            await keeper.leave_safe()
        assert keeper.history.parked
        assert rig.hand_true_tip().height_mm > 10
