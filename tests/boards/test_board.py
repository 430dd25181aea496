"""The supervised board: online, offline with a reason, and what execute() says when things go wrong."""

import logging

import pytest
import trio

from edge_daemon.boards import (
    BoardOffline,
    BoardOnline,
    CommandFault,
    Done,
    FlagsReported,
    HandMoved,
    NotExecuted,
    NotSent,
    OutcomeUnknown,
    StatusChanged,
    StopReported,
)
from edge_daemon.boards.board import SUBSCRIBER_BACKLOG
from firmware import wire

ESP32_BOOT_ROM = (
    b"\x1b[0;32m\xfe\x80ets Jul 29 2019 12:21:46\r\n\r\nrst:0x1 (POWERON_RESET),boot:0x13\r\n\x00\xffload:"
)


async def offline_reason(board):
    with board.events() as events:
        if isinstance(board.status, BoardOnline):
            await next_of(events, StatusChanged)
        return board.status.reason


async def next_of(events, kind):
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError("the channel ended")


# -- coming and going ------------------------------------------------------------------------------------


async def test_a_board_comes_online_with_what_it_announced(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        info = board.status.info
        assert (info.uid, info.kind, info.boot_id) == ("00112233aabbccdd", "hand", pty_board.boot_id)
        assert info.reset_cause == "power-on"
        assert info.hand.z_min_mm == -5.0
        assert board.flags.homed
        assert not board.flags.held


async def test_a_missing_port_is_offline_with_a_reason_and_comes_alive_once_there(
    board_of, pty_board, nursery, clock
):
    pty_board.unplug()
    board = board_of(pty_board)
    nursery.start_soon(board.run)
    nursery.start_soon(pty_board.run)
    await trio.sleep(1)
    assert str(pty_board.path) in board.status.reason
    assert "plugged in" in board.status.reason
    pty_board.plug()
    # On the virtual clock, which runs on while a thread opens the port.
    with trio.fail_after(3600):
        await board.wait_online()


async def test_a_port_unplugged_and_plugged_in_again_is_the_same_board_on_the_same_boot(
    supervised, pty_board, clock
):
    async with supervised(pty_board) as board:
        boot_id = board.status.info.boot_id
        pty_board.unplug()
        assert "gone" in await offline_reason(board)
        await trio.sleep(3)
        pty_board.plug()
        assert (await board.wait_online()).boot_id == boot_id
        assert await board.execute(5, wire.OP_TAP, b"after") is not None


async def test_boot_rom_garbage_before_the_hello_is_counted_and_never_a_frame(supervised, pty_board, clock):
    pty_board.greeting = ESP32_BOOT_ROM
    async with supervised(pty_board) as board:
        assert board.line.garbage_bytes >= len(ESP32_BOOT_ROM.replace(b"\x00", b""))
        assert board.line.malformed_frames == 0


async def test_counters_add_up_over_connections_and_tell_resets_by_their_cause(supervised, pty_board, clock):
    pty_board.greeting = ESP32_BOOT_ROM
    async with supervised(pty_board) as board:
        assert board.counters.reconnects == 0
        assert board.counters.resets == {}, "the boot that was there first is no reset"
        garbage = board.counters.line.garbage_bytes
        assert garbage
        pty_board.restart()
        await offline_reason(board)
        await board.wait_online()
        pty_board.unplug()
        await offline_reason(board)
        pty_board.plug()
        await board.wait_online()
        counters = board.counters
        assert (counters.connections, counters.reconnects) == (3, 2)
        assert counters.resets == {"brownout": 1}
        assert counters.line.garbage_bytes > garbage
        assert counters.line.frames > board.line.frames


async def test_a_board_with_another_uid_is_refused_and_told_apart(board_of, pty_board, nursery, clock):
    board = board_of(pty_board, expected_uid="ffffffffffffffff")
    nursery.start_soon(pty_board.run)
    nursery.start_soon(board.run)
    await trio.sleep(5)
    assert "00112233aabbccdd" in board.status.reason
    assert "ffffffffffffffff" in board.status.reason
    assert not pty_board.link.session_open


async def test_a_board_of_another_kind_is_refused(board_of, pty_board, nursery, clock):
    board = board_of(pty_board, kind="hid")
    nursery.start_soon(pty_board.run)
    nursery.start_soon(board.run)
    await trio.sleep(5)
    assert "expected a hid board" in board.status.reason


async def test_a_silent_port_says_what_to_look_at(board_of, pty_board, nursery, clock):
    pty_board.deaf = True
    board = board_of(pty_board)
    nursery.start_soon(board.run)
    nursery.start_soon(pty_board.run)
    await trio.sleep(0.5)
    assert "waiting for the board's HELLO" in board.status.reason
    await trio.sleep(6)
    assert "is the board powered" in board.status.reason


async def test_a_board_that_falls_silent_is_lost_with_its_last_frames_in_the_log(
    supervised, pty_board, caplog, clock
):
    async with supervised(pty_board) as board:
        with caplog.at_level(logging.WARNING):
            pty_board.deaf = True
            assert "silent" in await offline_reason(board)
            await trio.sleep(1)
        pty_board.deaf = False
        await board.wait_online()
    assert "host → board  HEARTBEAT" in caplog.text
    assert "board → host  OPENED" in caplog.text


async def test_stopping_the_supervisor_leaves_no_command_waiting(board_of, pty_board, nursery, clock):
    pty_board.core.duration_us = 60_000_000
    board = board_of(pty_board)
    nursery.start_soon(pty_board.run)
    async with trio.open_nursery() as supervisor:
        supervisor.start_soon(board.run)
        await board.wait_online()

        async def stop():
            await pty_board.command_started.wait()
            supervisor.cancel_scope.cancel()

        nursery.start_soon(stop)
        started = trio.current_time()
        with trio.CancelScope(shield=True), pytest.raises(OutcomeUnknown) as unknown:
            await board.execute(7, wire.OP_TAP, b"x")
        assert not unknown.value.final
        assert trio.current_time() - started < 10
    assert isinstance(board.status, BoardOffline)


# -- commands --------------------------------------------------------------------------------------------


async def test_a_command_reports_its_stages_and_when_it_was_done_on_this_hosts_clock(
    supervised, pty_board, clock
):
    stages = []
    async with supervised(pty_board) as board:
        before_ns = int(trio.current_time() * 1e9)
        done = await board.execute(
            1, wire.OP_TAP, b"tap", on_stage=lambda stage, board_us, mono_ns: stages.append((stage, mono_ns))
        )
        after_ns = int(trio.current_time() * 1e9)
    assert [stage for stage, _ in stages] == ["accepted", "contact"]
    assert [mono_ns for _, mono_ns in stages] == [done.accepted_ns, done.contact_ns]
    slack_ns = done.clock_error_ns
    assert before_ns - slack_ns <= done.accepted_ns < done.contact_ns < done.done_ns <= after_ns + slack_ns
    assert done.data == b"toy"
    assert pty_board.core.finished == [b"tap"]


async def test_commands_given_at_once_run_one_after_the_other(supervised, pty_board, clock):
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:
        for cmd_id in (1, 2, 3):
            nursery.start_soon(board.execute, cmd_id, wire.OP_TAP, b"%d" % cmd_id)
    assert sorted(pty_board.core.finished) == [b"1", b"2", b"3"]


async def test_a_refusal_of_the_board_is_a_fault_that_never_started(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        pty_board.core.refuse_with = wire.FAULT_ENVELOPE
        with pytest.raises(CommandFault) as fault:
            await board.execute(1, wire.OP_TAP, b"far")
    assert (fault.value.name, fault.value.refused, fault.value.effect) == ("envelope", True, False)
    assert "outside" in str(fault.value)


async def test_offline_nothing_is_sent(board_of, pty_board, clock):
    with pytest.raises(NotSent):
        await board_of(pty_board).execute(1, wire.OP_TAP, b"x")


async def test_a_link_lost_while_the_first_byte_waits_for_a_stuck_line_means_not_sent(
    supervised, pty_board, clock
):
    async with supervised(pty_board) as board:
        pty_board.stick()
        with pytest.raises(NotSent, match="before the first byte left"):
            await board.execute(1, wire.OP_TAP, b"x")


async def test_a_link_lost_on_the_way_and_back_on_the_same_boot_is_asked(supervised, pty_board, clock):
    pty_board.core.duration_us = 5_000_000
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:

        async def reconnect():
            await pty_board.command_started.wait()
            pty_board.unplug()
            await trio.sleep(1)
            pty_board.plug()

        nursery.start_soon(reconnect)
        with pytest.raises(CommandFault) as fault:
            await board.execute(1, wire.OP_TAP, b"once")
    assert fault.value.name == "aborted"
    assert pty_board.core.started == [b"once"]
    assert pty_board.core.safe_calls == ["deadman"]


async def test_a_command_that_finished_while_the_link_was_away_is_done(supervised, pty_board, clock):
    pty_board.core.duration_us = 300_000
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:

        async def reconnect():
            await pty_board.command_started.wait()
            pty_board.unplug()
            await trio.sleep(1)
            pty_board.plug()

        nursery.start_soon(reconnect)
        done = await board.execute(1, wire.OP_TAP, b"once")
    assert done.contact_ns is not None
    assert pty_board.core.finished == [b"once"]


async def test_a_board_restarted_on_the_way_leaves_the_outcome_unknown_for_good(supervised, pty_board, clock):
    pty_board.core.duration_us = 5_000_000
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:

        async def restart():
            await pty_board.command_started.wait()
            pty_board.restart()

        nursery.start_soon(restart)
        with pytest.raises(OutcomeUnknown) as unknown:
            await board.execute(1, wire.OP_TAP, b"once")
    assert unknown.value.final
    assert "brownout" in str(unknown.value)
    assert pty_board.core.started == [b"once"]


async def test_a_board_that_restarted_since_a_command_was_decided_gets_nothing_of_it(
    supervised, pty_board, clock
):
    async with supervised(pty_board) as board:
        decided_for = board.status.info.boot_id
        await board.execute(1, wire.OP_TAP, b"same boot", boot_id=decided_for)
        pty_board.restart()
        await offline_reason(board)
        await board.wait_online()
        with pytest.raises(NotSent, match=r"restarted since .*brownout"):
            await board.execute(2, wire.OP_TAP, b"other boot", boot_id=decided_for)
    assert pty_board.core.started == [b"same boot"]


async def test_a_restarted_board_is_back_at_once_on_the_same_open_port(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        pty_board.restart()
        await offline_reason(board)
        lost_at = trio.current_time()
        with trio.fail_after(wire.HELLO_MS / 1000 / 2):
            await board.wait_online()
        assert trio.current_time() - lost_at < wire.HELLO_MS / 1000 / 2
        assert await board.execute(1, wire.OP_TAP, b"after") is not None


async def test_a_board_away_for_long_can_still_be_asked_when_it_is_back(supervised, pty_board, clock):
    pty_board.core.duration_us = 300_000
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:
        boot_id = board.status.info.boot_id

        async def cut():
            await pty_board.command_started.wait()
            pty_board.unplug()

        nursery.start_soon(cut)
        with pytest.raises(OutcomeUnknown) as unknown:
            await board.execute(1, wire.OP_TAP, b"once")
        assert not unknown.value.final
        pty_board.plug()
        assert isinstance(await board.ask(1, boot_id, timeout_s=10), Done)
    assert pty_board.core.started == [b"once"]


async def test_cancelled_on_the_way_the_board_makes_itself_safe_and_can_be_asked(
    supervised, pty_board, clock
):
    pty_board.core.duration_us = 20_000_000
    async with supervised(pty_board) as board:
        boot_id = board.status.info.boot_id
        with trio.move_on_after(1) as scope:
            await board.execute(1, wire.OP_TAP, b"long")
        assert scope.cancelled_caught
        answer = await board.ask(1, boot_id, timeout_s=10)
    assert isinstance(answer, CommandFault)
    assert answer.name == "aborted"
    assert pty_board.core.safe_calls == ["deadman"]
    assert pty_board.core.started == [b"long"]
    assert pty_board.core.finished == []


async def test_a_command_without_an_end_is_given_up_and_its_fate_known(supervised, pty_board, clock):
    pty_board.core.duration_us = 60_000_000
    async with supervised(pty_board) as board:
        with pytest.raises(CommandFault) as fault:
            await board.execute(1, wire.OP_TAP, b"stuck", timeout_s=2)
        assert fault.value.name == "aborted"
        await board.wait_online()


async def test_a_failing_stage_callback_ends_the_command_as_cancellation_does(supervised, pty_board, clock):
    def fail(stage, board_us, mono_ns):
        raise RuntimeError(stage)

    pty_board.core.duration_us = 20_000_000
    async with supervised(pty_board) as board:
        with pytest.raises(RuntimeError, match="accepted"):
            await board.execute(1, wire.OP_TAP, b"x", on_stage=fail)
        assert isinstance(await board.ask(1, pty_board.boot_id), CommandFault)


async def test_asking_tells_what_never_arrived_from_what_another_boot_may_know(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        await board.execute(1, wire.OP_TAP, b"x")
        assert isinstance(await board.ask(1, pty_board.boot_id), Done)
        assert isinstance(await board.ask(2, pty_board.boot_id), NotExecuted)
        other_boot = await board.ask(1, pty_board.boot_id + 1)
        assert isinstance(other_boot, OutcomeUnknown)
        assert other_boot.final


async def test_what_the_board_has_forgotten_is_unknown_for_good_and_newer_ids_are_not(
    supervised, pty_board, clock
):
    pty_board.core.duration_us = 0
    async with supervised(pty_board) as board:
        for cmd_id in range(1, wire.RESULTS_KEPT + 3):
            await board.execute(cmd_id, wire.OP_TAP, b"x")
        forgotten = await board.ask(1, pty_board.boot_id)
        assert isinstance(forgotten, OutcomeUnknown)
        assert forgotten.final
        assert isinstance(await board.ask(1000, pty_board.boot_id), NotExecuted)


# -- stop, data, events ------------------------------------------------------------------------------------


async def test_an_emergency_stop_ends_the_command_and_is_latched_until_cleared(supervised, pty_board, clock):
    pty_board.core.duration_us = 60_000_000
    async with supervised(pty_board) as board, trio.open_nursery() as nursery:
        events = board.events()

        async def stop():
            await pty_board.command_started.wait()
            await board.estop()

        nursery.start_soon(stop)
        with pytest.raises(CommandFault) as fault:
            await board.execute(1, wire.OP_TAP, b"x")
        assert fault.value.name == "estopped"
        assert (await next_of(events, StopReported)).latched
        with pytest.raises(CommandFault) as refused:
            await board.execute(2, wire.OP_TAP, b"y")
        assert refused.value.refused
        await board.clear_estop()
        assert not (await next_of(events, StopReported)).latched
        pty_board.core.duration_us = 1000
        await board.execute(3, wire.OP_TAP, b"z")
    assert pty_board.core.started == [b"x", b"z"]
    assert pty_board.core.safe_calls == ["estop", "clear_estop"]


async def test_a_stop_stays_latched_and_can_be_cleared_over_a_lost_link(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        await board.estop()
        pty_board.unplug()
        await offline_reason(board)
        with pytest.raises(NotSent):
            await board.estop()
        await trio.sleep(1)
        pty_board.plug()
        events = board.events()
        await board.wait_online()
        assert (await next_of(events, StopReported)).latched
        await board.clear_estop()
        assert not board.flags.estopped


async def test_clearing_a_stop_that_is_not_latched_sends_nothing(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        with pytest.raises(NotSent):
            await board.clear_estop()


async def test_a_hand_that_was_pushed_is_reported_with_the_time_it_moved(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        events = board.events()
        pushed_ns = int(trio.current_time() * 1e9)
        pty_board.link.moved(wire.MOVED_PUSHED, pushed_ns // 1000)
        moved = await next_of(events, HandMoved)
        while moved.cause == "restart":
            moved = await next_of(events, HandMoved)
        assert moved.cause == "pushed"
        assert abs(moved.moved_ns - pushed_ns) <= 20_000_000


async def test_a_hand_that_restarted_is_reported_as_moved(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        events = board.events()
        pty_board.restart()
        assert (await next_of(events, HandMoved)).cause == "restart"


async def test_status_and_flags_are_published_as_they_change(supervised, pty_board, clock):
    async with supervised(pty_board) as board:
        events = board.events()
        pty_board.restart()
        assert isinstance((await next_of(events, StatusChanged)).status, BoardOffline)
        assert isinstance((await next_of(events, StatusChanged)).status, BoardOnline)
        pty_board.core.duration_us = 1_000_000
        await board.execute(1, wire.OP_TAP, b"x")
        assert (await next_of(events, FlagsReported)).flags.moving


async def test_a_subscriber_that_stops_listening_finds_its_channel_ended_not_gapped(
    supervised, pty_board, clock
):
    async with supervised(pty_board) as board:
        lazy = board.events()
        for _ in range(SUBSCRIBER_BACKLOG // 3):
            for cause in (wire.MOVED_PUSHED, wire.MOVED_HOMED, wire.MOVED_ESTOP, wire.MOVED_DEADMAN):
                pty_board.link.moved(cause, 1)
            await trio.sleep(0.03)
        with trio.fail_after(5):
            received = [event async for event in lazy]
        assert len(received) == SUBSCRIBER_BACKLOG


async def test_data_is_in_the_board_when_send_data_returns_and_a_refusal_is_a_fault(
    supervised, hid_pty_board, clock
):
    async with supervised(hid_pty_board, kind="hid") as board:
        await board.send_data(wire.OP_TEXT_LOAD, wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=b"abc"))
        assert bytes(hid_pty_board.core.loaded) == b"\x00\x00abc"
        hid_pty_board.core.refuse_with = wire.FAULT_BAD_ARGS
        with pytest.raises(CommandFault) as fault:
            await board.send_data(wire.OP_TEXT_LOAD, wire.pack_args(wire.OP_TEXT_LOAD, 9, tail=b"abc"))
        assert fault.value.name == "bad_args"
        hid_pty_board.core.refuse_with = 0
        await board.send_data(wire.OP_TEXT_LOAD, wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=b"d"))
