"""Ids of board commands go up, whatever happens to the daemon, its machine and its card: a board that stays up judges
by them what it never had."""

from collections.abc import Callable

import pytest

from edge_daemon.devices.command_ids import CommandIds
from firmware import wire
from firmware.memory import ResultMemory

NS_PER_S = 1_000_000_000


def used(ids: CommandIds, memory: ResultMemory, commands: int = wire.RESULTS_KEPT + 4) -> None:
    for _ in range(commands):
        memory.finish(memory.begin(ids.next(), 1), wire.STATE_DONE, b"")


def test_ids_grow_even_when_the_clock_stands_still_and_fit_the_wire() -> None:
    ids = CommandIds(lambda: 10**15)
    drawn = [ids.next() for _ in range(100)]
    assert drawn == sorted(set(drawn))
    assert all(0 < cmd_id < 2**63 for cmd_id in drawn), "the top bit is the housekeeping family's"


@pytest.mark.parametrize("clock_s", [30, 3600, 7200])
def test_a_board_is_certain_of_every_id_given_after_it_has_told_which_it_had(clock_s: int) -> None:
    """With a ledger made anew, or put back, the clock says anything."""
    memory = ResultMemory()
    used(CommandIds(lambda: 3600 * NS_PER_S), memory)
    told = memory.highest()[0]
    after = CommandIds(lambda: clock_s * NS_PER_S, told=lambda: told)
    for _ in range(3 * wire.RESULTS_KEPT):
        cmd_id = after.next()
        assert cmd_id > told
        assert memory.state_of_unknown(cmd_id) == wire.STATE_ABSENT
        used(after, memory, 1)


def test_ids_of_two_ledgers_made_anew_differ_for_a_board_that_tells_both_the_same() -> None:
    random_bits: list[Callable[[int], int]] = [lambda bits: 5, lambda bits: 9]
    first, second = (CommandIds(lambda: 0, bits, told=lambda: 1 << 40).next() for bits in random_bits)
    assert first != second


def test_ids_begin_above_what_is_pending() -> None:
    assert CommandIds(lambda: 0, above=1 << 50).next() > 1 << 50
