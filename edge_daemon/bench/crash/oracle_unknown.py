"""Whether `outcome_unknown` was said where nobody could know, and nowhere else."""

from collections.abc import Sequence
from typing import Any

from edge_daemon.bench.crash.knowledge import Key, Knowledge
from edge_daemon.bench.crash.notes import AboutBoard, FirstByte, Schedule, Told
from edge_daemon.bench.crash.verdict import Verdict
from firmware import wire

GONE_FOR_GOOD_NS = 28_000_000_000
"""Longer than this away, a board may be given up: the daemon waits for half a minute."""


def judge_unknown(verdict: Verdict, key: Key, known: Knowledge, schedule: Schedule) -> None:
    """Only what befell the board before the daemon had made up its mind can have been the reason."""
    said = said_unknown(key)
    if said is None or said.receipt is None:
        return
    verdict.counts.unknown += 1
    until_ns = _decided_ns(said.receipt, said.at_ns, schedule)
    first = next((command for command in key.commands if command.at_ns <= until_ns), None)
    since_ns = first.at_ns if first is not None else key.sent[0].at_ns
    about = [
        one
        for one in schedule.boards
        if one.device == key.name[0]
        and (first is None or one.board == first.board)
        and since_ns <= one.at_ns <= until_ns
    ]
    # A command may also go to a board that is down already and has not been missed yet.
    restarted = any(one.what in ("stopped", "started") for one in about)
    if first is None:
        gone = restarted or _was_gone(about, until_ns)
        if gone and _died_first_in_line(key, until_ns, known, schedule):
            verdict.counts.unknown_unsent += 1
        else:
            verdict.blame("unknown_outside_window", key, "unknown, and no byte had gone to the board")
        return
    broken_off = _broken_off(first, about)
    if not (restarted or broken_off or _forgot(first, until_ns, schedule) or _was_gone(about, until_ns)):
        verdict.blame("unknown_outside_window", key, "unknown, and the board was there all the time and knew")


def said_unknown(key: Key) -> Told | None:
    """When it was first told."""
    return next((told for told in key.told if told.receipt is not None and is_unknown(told.receipt)), None)


def is_unknown(receipt: dict[str, Any]) -> bool:
    return receipt.get("reason") == "outcome_unknown"


def _decided_ns(receipt: dict[str, Any], told_ns: int, schedule: Schedule) -> int:
    """When the receipt came about by its own word, on the world's clock, and never later than it was told: a word that
    narrows what may excuse it. The boot it names is that of its acceptance; it may have come about in a later one."""
    finished_ns = receipt.get("finishedNs")
    if finished_ns is None:
        return told_ns
    at_ns = [zero_ns + finished_ns for zero_ns in schedule.boots.values() if zero_ns + finished_ns <= told_ns]
    return max(at_ns, default=told_ns)


def _broken_off(first: FirstByte, about: Sequence[AboutBoard]) -> bool:
    return any(one.what == "broken off" and one.cmd_id == first.cmd_id and one.pressing for one in about)


def _forgot(first: FirstByte, until_ns: int, schedule: Schedule) -> bool:
    given = [at_ns for at_ns, board in schedule.given if board == first.board]
    return sum(first.at_ns < at_ns <= until_ns for at_ns in given) >= wire.RESULTS_KEPT


def _died_first_in_line(key: Key, until_ns: int, known: Knowledge, schedule: Schedule) -> bool:
    """Whether a daemon died with it, and no other action of the device is unknown because of the same death: only the
    first in line can have been on its way. An older copy of the ledger, in which the key was pending, does not tell
    who was in line."""
    sent_ns = key.sent[0].at_ns
    if any(sent_ns <= copied_ns <= lost_ns <= until_ns for lost_ns, copied_ns in schedule.put_back):
        return True
    died_ns = [at_ns for at_ns in schedule.deaths_ns if sent_ns <= at_ns <= until_ns]
    if not died_ns:
        return False
    for other in known.keys:
        also = said_unknown(other)
        if other is key or other.name[0] != key.name[0] or not other.sent or also is None:
            continue
        # What had been decided before that death was not in line any more, whenever it was told.
        decided_ns = also.at_ns if also.receipt is None else _decided_ns(also.receipt, also.at_ns, schedule)
        if other.sent[0].at_ns <= died_ns[-1] <= decided_ns:
            return False
    return True


def _was_gone(about: Sequence[AboutBoard], until_ns: int) -> bool:
    away_ns: int | None = None
    for one in about:
        if one.what == "away":
            away_ns = one.at_ns
        elif one.what == "back" and away_ns is not None:
            if one.at_ns - away_ns >= GONE_FOR_GOOD_NS:
                return True
            away_ns = None
    return away_ns is not None and until_ns - away_ns >= GONE_FOR_GOOD_NS
