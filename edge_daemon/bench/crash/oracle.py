"""What a history is held against: the phones' own logs and the plane's own notebook, never the daemon's word.

Pure: notes in, counts out. A check asks for what the contract promises (at most one touch per key, no receipt lost,
`found: false` only if nothing was dispatched, unknown only where nobody can know, a stale holder and a held device
untouched) and gives no fault the benefit of the doubt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from edge_daemon.bench.crash.knowledge import Key, Knowledge
from edge_daemon.bench.crash.notes import AboutBoard, Barred, Notebook, Schedule, Told
from edge_daemon.bench.crash.phones import Touch
from firmware import wire

GONE_FOR_GOOD_NS = 25_000_000_000
"""Longer than this away, a board may be given up: the daemon waits for half a minute."""


LEARNED = ("committedAt", "failedAt", "finishedNs", "clockSynced", "timing", "frameNotes")
"""Of a receipt: what was noted while it came about, and nobody can know later."""

NEVER_LOOKED_AT = ("storage_unavailable", "rate_limited", "unknown_device", "permission_denied")
"""Refusals behind which no token need have been noted: the disk would not take it, or the session turned it away."""

NO_VIOLATION = ("unknown", "unknown_unsent")
"""Counted and published, and no violation by themselves."""


@dataclass
class Counts:
    """What is wrong in a history, by kind; all but `unknown` and `unknown_unsent` must be zero.

    unknown_unsent: of `unknown`, those whose command had not left yet, where nobody can know that afterwards: the
    daemon died with the receipt pending and first in line, and the board forgot as well. The last durable word is the
    pending receipt; whatever word were written later, between it and the first byte there is a moment to die in.
    """

    double_touches: int = 0
    stray_touches: int = 0
    lost_receipts: int = 0
    wrong_not_found: int = 0
    wrong_words: int = 0
    unknown_outside_window: int = 0
    fencing_violations: int = 0
    held_violations: int = 0
    text_leaks: int = 0
    crashes: int = 0
    stuck: int = 0
    unknown: int = 0
    unknown_unsent: int = 0

    @property
    def violations(self) -> int:
        """Zero where the promise was kept."""
        return sum(getattr(self, one.name) for one in fields(self) if one.name not in NO_VIOLATION)

    def add(self, other: "Counts") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class Verdict:
    """The counts, and a sentence for each violation."""

    counts: Counts = field(default_factory=Counts)
    problems: list[str] = field(default_factory=list)

    def blame(self, kind: str, key: Key | None, why: str, count: int = 1) -> None:
        setattr(self.counts, kind, getattr(self.counts, kind) + count)
        self.problems.append(f"{kind}: {f'{key.name[0]} {key.name[1]}: ' if key is not None else ''}{why}")


def judge(
    notebook: Notebook,
    schedule: Schedule,
    touches: Sequence[Touch],
    *,
    finished: bool = True,
    remains: Mapping[str, bytes] | None = None,
) -> Verdict:
    """The verdict on one history.

    touches: of all phones. finished: whether it came to its end, with every key asked for after everything had
    healed. remains: what the daemon left behind or said, by where; no typed text may be found in it.
    """
    verdict = Verdict()
    known = Knowledge.of(notebook, schedule, touches)
    for key in known.keys:
        _touches(verdict, key)
        _words(verdict, key, schedule.ledger_lost_ns)
        _not_found(verdict, key)
        _unknown(verdict, key, known, schedule)
        _fencing(verdict, key, known, schedule.ledger_lost_ns)
        _barred(verdict, key, notebook.barred, schedule.ledger_lost_ns)
        if finished:
            _end(verdict, key, schedule.ledger_lost_ns)
    for touch in known.strays:
        verdict.blame("stray_touches", None, f"nobody asked for {touch}")
    for crash in schedule.crashes:
        verdict.blame("crashes", None, crash)
    if not finished:
        verdict.blame("stuck", None, "the history did not come to its end")
    _text(verdict, known, remains or {})
    return verdict


def _touches(verdict: Verdict, key: Key) -> None:
    if key.touched > 1:
        verdict.blame("double_touches", key, f"touched {key.touched} times", key.touched - 1)
    elif len(key.commands) > 1:
        ids = [command.cmd_id for command in key.commands]
        verdict.blame(
            "double_touches", key, f"given to the board as {len(ids)} commands: {ids}", len(ids) - 1
        )


def _words(verdict: Verdict, key: Key, ledger_lost_ns: Sequence[int]) -> None:
    """What is told must be true, and stay what it was."""
    receipts = [(told.at_ns, told.receipt) for told in key.told if told.receipt is not None]
    final = [(at_ns, receipt) for at_ns, receipt in receipts if receipt["status"] != "pending"]
    if not final:
        return
    first_ns, first = final[0]
    if any(not _same(first_ns, first, at_ns, receipt, ledger_lost_ns) for at_ns, receipt in final):
        verdict.blame("lost_receipts", key, f"told in two ways: {[receipt for _, receipt in final]}")
    elif any(at_ns >= first_ns and receipt["status"] == "pending" for at_ns, receipt in receipts):
        verdict.blame("lost_receipts", key, "pending again after it was final")
    if first["status"] == "committed" and not key.whole:
        verdict.blame("wrong_words", key, f"committed, and touched {key.touched} times, whole: {key.whole}")
    if first["status"] == "failed" and not _is_unknown(first) and key.touched:
        verdict.blame("wrong_words", key, f"not executed, and touched: {first['error']['message']}")


def _same(
    first_ns: int, first: dict[str, Any], at_ns: int, receipt: dict[str, Any], ledger_lost_ns: Sequence[int]
) -> bool:
    """Where an older ledger was put back in between, in which the receipt was pending, its board is asked again: it
    says the same, only when that was learned is another time."""
    if any(first_ns <= lost_ns <= at_ns for lost_ns in ledger_lost_ns):
        return _untimed(first) == _untimed(receipt)
    return receipt == first


def _untimed(receipt: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in receipt.items() if name not in LEARNED}


def _not_found(verdict: Verdict, key: Key) -> None:
    """`found: false` says that nothing was dispatched under the key, and that nothing will be."""
    for told in key.told:
        if told.by != "lookup" or told.receipt is not None or not told.known:
            continue
        if key.touched_before(told.at_ns) or any(command.at_ns <= told.at_ns for command in key.commands):
            verdict.blame("wrong_not_found", key, f"not found at {_ms(told)} ms, after it went to the board")
        elif any(at_ns <= told.at_ns for at_ns in key.accepted_ns):
            verdict.blame(
                "wrong_not_found", key, f"not found at {_ms(told)} ms, after its acceptance was told"
            )
        elif any(_is_later_without_sending(command.at_ns, told, key) for command in key.commands):
            verdict.blame(
                "wrong_not_found", key, f"not found at {_ms(told)} ms, and dispatched later all the same"
            )


def _is_later_without_sending(at_ns: int, told: Told, key: Key) -> bool:
    return at_ns > told.at_ns and not any(told.at_ns <= sent.at_ns <= at_ns for sent in key.sent)


def _unknown(verdict: Verdict, key: Key, known: Knowledge, schedule: Schedule) -> None:
    said = _said_unknown(key)
    if said is None:
        return
    verdict.counts.unknown += 1
    if said.receipt is not None and not said.receipt.get("requiresManualReview"):
        verdict.blame("wrong_words", key, "unknown, and no person is asked to look")
    first = next((command for command in key.commands if command.at_ns <= said.at_ns), None)
    since_ns = first.at_ns if first is not None else key.sent[0].at_ns
    about = [
        one for one in schedule.boards if one.device == key.name[0] and since_ns <= one.at_ns <= said.at_ns
    ]
    # A command may also go to a board that is down already and has not been missed yet.
    restarted = any(one.what in ("stopped", "started") for one in about)
    if first is None:
        if (restarted or _was_gone(about, said.at_ns)) and _died_first_in_line(key, said, known, schedule):
            verdict.counts.unknown_unsent += 1
        else:
            verdict.blame("unknown_outside_window", key, "unknown, and no byte had gone to the board")
        return
    broken_off = any(
        one.what == "broken off" and one.cmd_id == first.cmd_id and one.pressing for one in about
    )
    given = [at_ns for at_ns, device in schedule.given if device == key.name[0]]
    forgot = sum(first.at_ns < at_ns <= said.at_ns for at_ns in given) >= wire.RESULTS_KEPT
    if not (restarted or broken_off or forgot or _was_gone(about, said.at_ns)):
        verdict.blame("unknown_outside_window", key, "unknown, and the board was there all the time and knew")


def _said_unknown(key: Key) -> Told | None:
    return next((told for told in key.told if told.receipt is not None and _is_unknown(told.receipt)), None)


def _died_first_in_line(key: Key, said: Told, known: Knowledge, schedule: Schedule) -> bool:
    """Whether a daemon died with it, and no other action of the device is unknown because of the same death: only the
    first in line can have been on its way. An older copy of the ledger does not tell who was in line."""
    if any(key.sent[0].at_ns <= at_ns <= said.at_ns for at_ns in schedule.ledger_lost_ns):
        return True
    died_ns = [at_ns for at_ns in schedule.deaths_ns if key.sent[0].at_ns <= at_ns <= said.at_ns]
    if not died_ns:
        return False
    for other in known.keys:
        also = _said_unknown(other)
        if other is key or other.name[0] != key.name[0] or not other.sent or also is None:
            continue
        if other.sent[0].at_ns <= died_ns[-1] <= also.at_ns:
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


def _fencing(verdict: Verdict, key: Key, known: Knowledge, lost_ns: Sequence[int]) -> None:
    """What goes to a board bears the highest token that the daemon had shown any plane to have seen for the device."""
    for command in key.commands:
        token = max((sent.token for sent in key.sent if sent.at_ns <= command.at_ns), default=0)
        for other in known.keys:
            if other.name[0] != key.name[0] or other.token <= token:
                continue
            seen = [at_ns for at_ns, shown in _tokens_shown(other) if at_ns < command.at_ns and shown > token]
            # With the ledger its tokens are lost: only what was seen since counts.
            if any(not any(seen_ns <= lost <= command.at_ns for lost in lost_ns) for seen_ns in seen):
                verdict.blame(
                    "fencing_violations",
                    key,
                    f"given to the board with token {token} after {other.token} was answered",
                )
                return


def _tokens_shown(key: Key) -> list[tuple[int, int]]:
    """When the daemon showed to have seen the key's token, accepted or refused, and which that is at least."""
    answered = [told.at_ns for told in key.told if told.by == "result" and _was_looked_at(told)]
    return [
        (at_ns, min(sent.token for sent in key.sent if sent.at_ns <= at_ns))
        for at_ns in sorted([*key.accepted_ns, *answered])
        if any(sent.at_ns <= at_ns for sent in key.sent)
    ]


def _was_looked_at(told: Told) -> bool:
    return told.error is None or told.error["code"] not in NEVER_LOOKED_AT


def _barred(verdict: Verdict, key: Key, barred: Sequence[Barred], lost_ns: Sequence[int]) -> None:
    for command in key.commands:
        for bar in barred:
            if bar.device != command.device or command.at_ns < bar.from_ns:
                continue
            if bar.until_ns is not None and command.at_ns > bar.until_ns:
                continue
            if not any(bar.from_ns <= at_ns <= command.at_ns for at_ns in lost_ns):
                verdict.blame(
                    "held_violations", key, f"given to the board at {command.at_ns / 1e6} ms while {bar.why}"
                )


def _end(verdict: Verdict, key: Key, lost_ns: Sequence[int]) -> None:
    """After everything healed: every key that was accepted has its final receipt, which was pushed."""
    last = next((told for told in reversed(key.told) if told.by == "lookup" and told.final_round), None)
    if last is None:
        verdict.blame("lost_receipts", key, "there was no answer to the last question")
        return
    if last.receipt is None:
        excused = not last.known and bool(lost_ns)
        if key.accepted_ns and not excused:
            verdict.blame("lost_receipts", key, f"accepted, and not found at the end (known: {last.known})")
        elif not last.known and not lost_ns:
            verdict.blame("lost_receipts", key, "not known at the end, and the ledger is the one there was")
        return
    if last.receipt["status"] == "pending":
        verdict.blame("lost_receipts", key, "still pending at the end")
        return
    if not any(told.by == "push" for told in key.told) and not key.acknowledged:
        verdict.blame("lost_receipts", key, "its final receipt was never pushed")
    for told in key.told:
        error = told.error
        if told.final_round and told.by == "result" and error is not None and not error["retryable"]:
            verdict.blame(
                "lost_receipts", key, f"sent again with the same arguments, answered {error['code']}"
            )


def _text(verdict: Verdict, known: Knowledge, remains: Mapping[str, bytes]) -> None:
    for key in known.keys:
        if not key.mark.text:
            continue
        secret = key.mark.text.encode()
        said = repr([(told.receipt, told.error) for told in key.told]).encode()
        for where, content in {**remains, "what a plane was told": said}.items():
            if secret in content or secret.hex().encode() in content:
                verdict.blame("text_leaks", key, f"its text stands in {where}")


def _is_unknown(receipt: Mapping[str, object]) -> bool:
    return receipt.get("reason") == "outcome_unknown"


def _ms(told: Told) -> float:
    return told.at_ns / 1e6
