"""Whether what went to a board was allowed to: by its holder, its time, the staff and whoever may take it back."""

from collections.abc import Sequence

from edge_daemon.bench.crash.knowledge import Key, Knowledge
from edge_daemon.bench.crash.notes import Barred, Schedule, Told
from edge_daemon.bench.crash.oracle_kept import may_be_pruned
from edge_daemon.bench.crash.verdict import Verdict

MS = 1_000_000
NEVER_LOOKED_AT = ("storage_unavailable", "rate_limited", "unknown_device", "permission_denied")
"""Refusals behind which no token need have been noted: the disk would not take it, or the session turned it away."""


def judge_leave(verdict: Verdict, known: Knowledge, barred: Sequence[Barred], schedule: Schedule) -> None:
    """All of these checks, of every key."""
    for key in known.keys:
        _fencing(verdict, key, known, schedule)
        _barred(verdict, key, barred, schedule)
        _late(verdict, key)
        _canceled(verdict, key, known)
        _conflict(verdict, key, schedule)


def _fencing(verdict: Verdict, key: Key, known: Knowledge, schedule: Schedule) -> None:
    """What goes to a board bears the highest token that the daemon had shown any plane to have seen for the device."""
    for command in key.commands:
        token = max((sent.token for sent in key.sent if sent.at_ns <= command.at_ns), default=0)
        for other in known.keys:
            if other.name[0] != key.name[0] or other.token <= token:
                continue
            seen = [at_ns for at_ns, shown in _tokens_shown(other) if at_ns < command.at_ns and shown > token]
            # With the ledger its tokens are lost: only what was seen since counts.
            if any(not schedule.ledger_lost(seen_ns, command.at_ns) for seen_ns in seen):
                verdict.blame(
                    "fencing_violations",
                    key,
                    f"given to the board with token {token} after {other.token} was answered",
                )
                return


def _tokens_shown(key: Key) -> list[tuple[int, int]]:
    """When the daemon showed to have seen a token of the key's, accepted or refused, and which that is at least."""
    answered = [
        (told.at_ns, told.token)
        for told in (*key.told, *key.others)
        if told.to in ("dispatch", "other") and _was_looked_at(told)
    ]
    accepted = [
        (at_ns, min(sent.token for sent in key.sent if sent.at_ns <= at_ns))
        for at_ns in key.accepted_ns
        if any(sent.at_ns <= at_ns for sent in key.sent)
    ]
    return sorted(accepted + answered)


def _was_looked_at(told: Told) -> bool:
    return told.error is None or told.error["code"] not in NEVER_LOOKED_AT


def _barred(verdict: Verdict, key: Key, barred: Sequence[Barred], schedule: Schedule) -> None:
    for command in key.commands:
        for bar in barred:
            if bar.device != command.device or command.at_ns < bar.from_ns:
                continue
            if bar.until_ns is not None and command.at_ns > bar.until_ns:
                continue
            if bar.why == "estopped":
                excused = any(
                    one.board == command.board
                    and one.what == "stopped"
                    and bar.from_ns <= one.at_ns <= command.at_ns
                    for one in schedule.boards
                )
            else:
                excused = schedule.ledger_lost(bar.from_ns, command.at_ns)
            if not excused:
                verdict.blame(
                    "held_violations", key, f"given to the board at {command.at_ns / 1e6} ms while {bar.why}"
                )


def _late(verdict: Verdict, key: Key) -> None:
    """Each dispatch says how long it may wait, and how long its lease lasts; both count from when it was sent."""
    for command in key.commands:
        until = [sent.at_ns + sent.may_wait_ms * MS for sent in key.sent if sent.at_ns <= command.at_ns]
        if until and command.at_ns > max(until):
            late_ms = (command.at_ns - max(until)) / MS
            verdict.blame("late_violations", key, f"given to the board {late_ms} ms after it might begin")


def _canceled(verdict: Verdict, key: Key, known: Knowledge) -> None:
    """What was taken back is not done; and what still waits behind another action can be taken back."""
    for told in key.told:
        if told.receipt is None:
            continue
        code = (told.receipt.get("error") or {}).get("code")
        if code == "canceled" and key.commands:
            verdict.blame("cancel_violations", key, "taken back, and given to the board")
            return
        later = [command for command in key.commands if command.at_ns > told.at_ns]
        if told.to == "cancel" and later and _at_work_on_another(key, told, known):
            verdict.blame("cancel_violations", key, "was to be taken back while it waited, and was done")
            return


def _at_work_on_another(key: Key, told: Told, known: Knowledge) -> bool:
    """Whether the device had another action in hand from the question to the answer: it has one at a time."""
    for other in known.keys:
        if other is key or other.name[0] != key.name[0]:
            continue
        begun = [command.at_ns for command in other.commands if command.at_ns <= told.asked_ns]
        if begun and any(at_ns >= told.at_ns for at_ns in other.hovers_ns):
            return True
    return False


def _conflict(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    """Another action under a key that was accepted is refused as such, and the key's own action never is."""
    for told in key.others:
        if told.receipt is not None:
            verdict.blame("conflict_violations", key, "another action was answered with its receipt")
            continue
        code = _code(told)
        accepted = any(at_ns <= told.asked_ns for at_ns in key.accepted_ns)
        lost = schedule.ledger_lost(key.sent[0].at_ns, told.at_ns)
        may_come_again = told.error is not None and told.error["retryable"]
        if accepted and not lost and not may_come_again and code != "idempotency_conflict":
            verdict.blame("conflict_violations", key, f"another action under it was refused as {code}")
    for told in key.told:
        if _code(told) == "idempotency_conflict" and not may_be_pruned(key, told.at_ns, schedule):
            verdict.blame("conflict_violations", key, "its own action was refused as another one")


def _code(told: Told) -> str:
    return told.error["code"] if told.error is not None else ""
