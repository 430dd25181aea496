"""What a history is held against: the phones' own logs and the plane's own notebook, never the daemon's word.

Pure: notes in, counts out. A check asks for what the contract promises (at most one touch per key, no receipt lost,
`found: false` only if nothing was dispatched, unknown only where nobody can know, a stale holder and a held device
untouched) and gives no fault the benefit of the doubt.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from edge_daemon.bench.crash.knowledge import Key, Knowledge
from edge_daemon.bench.crash.notes import Notebook, Schedule, Told
from edge_daemon.bench.crash.oracle_kept import judge_kept, may_be_pruned, unreviewed
from edge_daemon.bench.crash.oracle_leave import judge_leave
from edge_daemon.bench.crash.oracle_unknown import is_unknown, judge_unknown
from edge_daemon.bench.crash.phones import Touch
from edge_daemon.bench.crash.verdict import Counts, Verdict

__all__ = ["Counts", "Verdict", "judge"]

LEARNED = ("committedAt", "failedAt", "finishedNs", "clockSynced", "timing", "frameNotes")
"""Of a receipt: what was noted while it came about, and nobody can know later."""


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
        _words(verdict, key, schedule)
        _not_found(verdict, key)
        judge_unknown(verdict, key, known, schedule)
        judge_kept(verdict, key, schedule, finished=finished)
        if finished:
            _end(verdict, key, schedule)
    judge_leave(verdict, known, notebook.barred, schedule)
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


def _words(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    """What is told must be true, and stay what it was."""
    receipts = [(told.at_ns, told.receipt) for told in key.told if told.receipt is not None]
    final = [(at_ns, receipt) for at_ns, receipt in receipts if receipt["status"] != "pending"]
    if not final:
        return
    first_ns, first = final[0]
    if any(
        not _same(first_ns, unreviewed(first), at_ns, unreviewed(receipt), schedule)
        for at_ns, receipt in final
    ):
        verdict.blame("lost_receipts", key, f"told in two ways: {[receipt for _, receipt in final]}")
    elif any(at_ns >= first_ns and receipt["status"] == "pending" for at_ns, receipt in receipts):
        verdict.blame("lost_receipts", key, "pending again after it was final")
    if first["status"] == "committed" and not key.whole:
        verdict.blame("wrong_words", key, f"committed, and touched {key.touched} times, whole: {key.whole}")
    if any(_nobody_asked(receipt) for _, receipt in final):
        verdict.blame("wrong_words", key, "unknown, and no person is asked to look")
    if first["status"] == "failed" and not is_unknown(first) and key.touched:
        verdict.blame("wrong_words", key, f"not executed, and touched: {first['error']['message']}")


def _nobody_asked(receipt: dict[str, Any]) -> bool:
    """A person is asked to look until one has said what became of it."""
    resolved = receipt.get("resolution") is not None
    return is_unknown(receipt) and bool(receipt.get("requiresManualReview")) == resolved


def _same(
    first_ns: int, first: dict[str, Any], at_ns: int, receipt: dict[str, Any], schedule: Schedule
) -> bool:
    """Where an older ledger was put back in between, in which the receipt was pending, its board is asked again: it
    says the same, only when that was learned is another time."""
    if schedule.ledger_lost(first_ns, at_ns):
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
        elif any(_is_later_without_sending(at_ns, told, key) for at_ns in _happened_ns(key)):
            verdict.blame(
                "wrong_not_found", key, f"not found at {_ms(told)} ms, and accepted later all the same"
            )


def _happened_ns(key: Key) -> list[int]:
    return [*(command.at_ns for command in key.commands), *key.accepted_ns]


def _is_later_without_sending(at_ns: int, told: Told, key: Key) -> bool:
    """What was sent behind the question is not what the answer is about, and may be accepted."""
    asked_ns = told.asked_ns or told.at_ns
    return at_ns > told.at_ns and not any(asked_ns < sent.at_ns <= at_ns for sent in key.sent)


def _end(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    """After everything healed: every key that was accepted has its final receipt, which was pushed."""
    last = next((told for told in reversed(key.told) if told.by == "lookup" and told.final_round), None)
    if last is None:
        verdict.blame("lost_receipts", key, "there was no answer to the last question")
        return
    if last.receipt is None and not last.known and may_be_pruned(key, last.at_ns, schedule):
        return
    if last.receipt is None:
        if key.accepted_ns and (last.known or not schedule.ledger_lost(key.accepted_ns[0])):
            verdict.blame("lost_receipts", key, f"accepted, and not found at the end (known: {last.known})")
        elif not last.known and (not schedule.ledger_lost_ns or last.epoch == key.sent[0].epoch):
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


def _ms(told: Told) -> float:
    return told.at_ns / 1e6
