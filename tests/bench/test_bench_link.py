"""The link bench: faults strike where they are told to, and the verdict is not the link's own word."""

import sys

import numpy as np
import pytest
import trio

from edge_daemon.bench.link import faults
from edge_daemon.bench.link.fuzz import fuzz_board, fuzz_host
from edge_daemon.bench.link.mutations import Mutator
from edge_daemon.bench.link.presses import PressLog, Watches, place_mm
from edge_daemon.bench.link.process import open_process_world
from edge_daemon.bench.link.proxy import NS_PER_MS, Proxy, frame_of
from edge_daemon.bench.link.scenario import Run, Told, contradiction, judge, make_ready, play
from edge_daemon.bench.link.suite import Effort, LinkReport, play_every_position
from edge_daemon.bench.link.virtual import play_virtual
from edge_daemon.bench.twin.boards import available_runtime
from firmware import wire


def heartbeat(seq):
    return wire.encode_frame(wire.HOST_HEARTBEAT, 1, 2, seq, wire.pack_body(wire.HOST_HEARTBEAT, 0))


def command(seq):
    return wire.encode_frame(wire.CMD, 1, 2, seq, wire.pack_body(wire.CMD, seq + 1, wire.OP_HOME, tail=b""))


def seqs(data):
    return [frame.seq for frame in wire.Decoder().feed(data)]


@pytest.fixture
def proxy():
    return Proxy(np.random.default_rng(1))


# -- the proxy ------------------------------------------------------------------------------------------------


def test_a_good_line_passes_every_byte_pattern_of_frames_at_once(proxy):
    stream = b"".join(heartbeat(n) for n in range(5))
    for byte in stream:
        proxy.pass_bytes("to_board", bytes([byte]), 0)
    assert seqs(proxy.ways["to_board"].take(0)) == [0, 1, 2, 3, 4]
    assert proxy.ways["to_host"].take(0) == b""


def test_a_fault_strikes_exactly_the_frame_it_is_armed_for(proxy):
    struck = []
    proxy.arm("to_board", 2, lambda block, frame, now_ns: struck.append(frame.seq))
    proxy.pass_bytes("to_host", heartbeat(90), 0)
    proxy.pass_bytes("to_board", b"\x00noise\x00" + b"".join(heartbeat(n) for n in range(4)), 0)
    assert struck == [2]
    assert seqs(proxy.ways["to_board"].take(0)) == [0, 1, 3]
    assert proxy.struck


def test_a_late_frame_arrives_after_the_next_new_command_not_after_a_repeated_one(proxy):
    proxy.pass_bytes("to_board", command(0), 0)
    proxy.keep_for_next_command("to_host", heartbeat(7))
    proxy.pass_bytes("to_board", command(0), 0)
    assert proxy.ways["to_host"].take(NS_PER_MS * 10) == b""
    proxy.pass_bytes("to_board", command(1), 0)
    assert seqs(proxy.ways["to_host"].take(NS_PER_MS * 10)) == [7]


@pytest.mark.parametrize(
    ("name", "arrive"),
    [
        ("drop", [1, 2]),
        ("duplicate", [0, 0, 1, 2]),
        ("truncate", [1, 2]),
        ("bit_flip", [1, 2]),
        ("byte_lost", [1, 2]),
        ("byte_inserted", [1, 2]),
        ("delimiter_inside", [1, 2]),
        ("merge", [0, 1, 2]),
        ("run_together", [2]),
        ("swap", [1, 0, 2]),
        ("burst_loss", []),
        ("delay", [0, 1, 2]),
        ("fragment", [0, 1, 2]),
        ("garbage_burst", [0, 1, 2]),
        ("boot_rom_text", [0, 1, 2]),
        ("freeze", [0, 1, 2]),
        ("slow", [0, 1, 2]),
        ("one_way", []),
    ],
)
def test_each_fault_of_the_line_does_what_its_name_says(proxy, name, arrive):
    faults.arm(name, "to_board", 0, proxy, None, np.random.default_rng(2))
    for n in range(3):
        proxy.pass_bytes("to_board", heartbeat(n), 0)
    late_ns = 10_000 * NS_PER_MS
    assert seqs(proxy.ways["to_board"].take(late_ns)) == arrive


def test_after_healing_nothing_is_held_lost_or_spoiled(proxy):
    rng = np.random.default_rng(2)
    at_ns = 0
    for name in ("freeze", "one_way", "baud_noise", "burst_loss", "run_together", "slow"):
        faults.arm(name, "to_board", 0, proxy, None, rng)
        proxy.pass_bytes("to_board", heartbeat(0), at_ns)
        proxy.heal()
        proxy.pull()
        at_ns += 2000 * NS_PER_MS
        assert not proxy.busy(at_ns)
        proxy.pass_bytes("to_board", heartbeat(1), at_ns)
        assert seqs(proxy.ways["to_board"].take(at_ns)) == [1], name


def test_there_are_at_least_twenty_faults_each_with_its_meaning():
    assert len(faults.FAULTS) >= 20
    assert all(fault.__doc__ for fault in faults.FAULTS.values())
    assert set(faults.SPOILERS) <= set(faults.FAULTS)


# -- the verdict -------------------------------------------------------------------------------------------------


def test_a_press_is_one_way_down_through_the_glass_whose_place_says_whose_it_is():
    log = PressLog()
    x_mm, y_mm = place_mm(5)
    for z_um in (3000, 100, -100, -500, -500, -100, 100, 3000):
        log.setpoint(round(x_mm * 1000), round(y_mm * 1000), z_um)
    assert log.count_at(place_mm(5)) == 1
    assert log.count_at(place_mm(6)) == 0
    assert log.strays([place_mm(6)]) == 1


@pytest.mark.parametrize(
    ("word", "effect", "presses", "agrees"),
    [
        ("done", False, 1, True),
        ("done", False, 0, False),
        ("done", False, 2, False),
        ("not executed", False, 0, True),
        ("not executed", False, 1, False),
        ("aborted", False, 0, True),
        ("aborted", False, 1, False),
        ("aborted", True, 0, True),
        ("aborted", True, 1, True),
        ("unknown", False, 1, True),
        ("unknown", False, 2, False),
        ("unreachable", False, 0, False),
    ],
)
def test_the_daemons_word_is_held_against_the_number_of_presses(word, effect, presses, agrees):
    assert (contradiction(Told((1, 1), word, effect), presses) is None) == agrees


def test_unknown_is_allowed_only_where_the_board_restarted_or_forgot():
    for may_be_unknown in (True, False):
        run = Run("drop", may_be_unknown=may_be_unknown)
        judge(run, [Told(place_mm(1), "unknown")], PressLog())
        assert run.unknown
        assert bool(run.problems) != may_be_unknown


def test_a_press_that_nobody_asked_for_is_a_double_execution():
    log = PressLog()
    log.setpoint(1, 1, -1)
    run = Run("drop")
    judge(run, [], log)
    assert (run.doubles, len(run.problems)) == (1, 1)


def test_watches_fire_at_the_press_or_after_a_while():
    log, fired = PressLog(), []
    watches = Watches(log)
    watches.when_pressed(True, 0, lambda: fired.append("down"))
    watches.later(5, lambda: fired.append("later"))
    watches.look(4)
    assert fired == []
    log.setpoint(0, 0, -1)
    watches.look(5)
    assert sorted(fired) == ["down", "later"]
    assert not watches


def test_the_report_has_the_keys_that_its_readers_know():
    report = LinkReport(1, "micropython")
    report.add(Run("drop", struck=True), "here")
    report.add(Run("drop"), "here")
    told = report.as_json()
    assert told["faults"]["drop"] == {"runs": 1, "recovered": 1, "unknown": 0}
    assert told["not_struck"] == 1
    assert (told["suite"], told["verdict"]) == ("link", "pass")
    assert {
        "double_executions",
        "lost_results",
        "rtt_us",
        "floor_rtt_us",
        "ratio_p50",
        "fuzz_frames",
        "crashes",
        "heap_growth_bytes",
    } <= set(told)
    report.add(Run("drop", struck=True, doubles=1, problems=["twice"]), "there")
    assert report.as_json()["verdict"] == "fail"


# -- the worlds ----------------------------------------------------------------------------------------------------


def test_on_the_virtual_clock_a_fault_at_every_frame_leaves_nothing_twice_and_nothing_lost():
    report = LinkReport(5, "virtual clock")
    play_every_position(report, Effort(1, 1, 0, 0, 0), names=["one_way"])
    assert report.problems == []
    assert report.faults["one_way"].recovered == report.faults["one_way"].runs > 30


def test_a_board_that_restarts_under_a_command_is_unknown_and_back_at_work():
    run = play_virtual("reset_during", "to_board", 4, (1,))
    assert (run.struck, run.unknown, run.problems) == (True, True, [])


def test_a_board_whose_memory_another_host_has_used_up_is_unknown():
    runs = [play_virtual("another_host", "to_board", index, (1,)) for index in range(5, 10)]
    assert any(run.unknown for run in runs)
    assert all(run.problems == [] for run in runs)


async def test_on_a_real_pty_with_the_firmware_in_its_own_process_the_same_holds(tmp_path_factory):
    rng = np.random.default_rng(1)
    with trio.fail_after(60):
        async with open_process_world(tmp_path_factory.mktemp("l"), rng) as world:
            await make_ready(world)
            for name, direction, index in (("drop", "to_board", 0), ("vanish", "to_host", 1)):
                run = await play(
                    world,
                    name,
                    lambda name=name, way=direction, at=index: faults.arm(
                        name, way, at, world.proxy, world, rng
                    ),
                    armed_first=False,
                )
                assert (run.struck, run.recovered, run.problems) == (True, True, []), name
            run = await play(
                world,
                "reset_during",
                lambda: faults.arm("reset_during", "to_board", 0, world.proxy, world, rng),
                armed_first=False,
            )
            assert (run.unknown, run.problems, world.boots) == (True, [], 2)


# -- spoiled frames -----------------------------------------------------------------------------------------------


def test_a_spoiled_frame_is_never_an_intact_one():
    frames = [heartbeat(1), command(2)]
    mutator = Mutator(frames, 1)
    for _ in range(3000):
        assert frame_of(mutator.next()) is None


def test_both_interpreters_spoil_frames_alike_and_take_nothing_from_them():
    results = [fuzz_host(3000, 1), fuzz_board("cpython", 3000, 1)]
    if available_runtime() == "micropython":
        results.append(fuzz_board("micropython", 3000, 1))
        assert results[-1].heap_growth_bytes <= 64
    for result in results:
        assert (result.frames, result.problems) == (3000, [])


def test_a_receiver_that_dies_of_a_frame_is_a_crash(monkeypatch, tmp_path):
    dying = tmp_path / "fuzz_board.py"
    dying.write_text("raise SystemExit('died')")
    monkeypatch.setattr(sys.modules["edge_daemon.bench.link.fuzz"], "BOARD", dying)
    result = fuzz_board("cpython", 10, 1)
    assert result.crashes == 1
    assert "died" in result.problems[0]
