"""What is kept of a receipt: a person's word on it, and after its retention that its key was used."""

from typing import Any

from edge_daemon.bench.crash.knowledge import Key
from edge_daemon.bench.crash.notes import Schedule, Told
from edge_daemon.bench.crash.verdict import Verdict


def judge_kept(verdict: Verdict, key: Key, schedule: Schedule, *, finished: bool) -> None:
    """A resolution that was told stays, is the one that was given, and is pushed; a key that was let go stays used."""
    _resolution(verdict, key, schedule)
    if finished:
        _pushed(verdict, key, schedule)
    _spent(verdict, key, schedule)


def unreviewed(receipt: dict[str, Any]) -> dict[str, Any]:
    """As it was before a person said anything of it."""
    if receipt.get("resolution") is None:
        return receipt
    return {name: value for name, value in receipt.items() if name != "resolution"} | {
        "requiresManualReview": True
    }


def may_be_pruned(key: Key, at_ns: int, schedule: Schedule) -> bool:
    """Retention may have let it go by then: it was acknowledged, and no person was still asked to look at it."""
    pruned_ns = [pruned_ns for pruned_ns in schedule.pruned_ns if pruned_ns <= at_ns]
    if not pruned_ns or not key.acknowledged_ns or key.acknowledged_ns[0] > at_ns:
        return False
    told = [told.receipt for told in key.told if told.receipt is not None and told.at_ns <= at_ns]
    asked = any(receipt.get("requiresManualReview") for receipt in told)
    answered = any(receipt.get("resolution") for receipt in told)
    return not asked or answered or any(resolved.at_ns <= at_ns for resolved in key.resolved)


def _resolution(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    said = {resolution["outcome"] for told in key.told if (resolution := _resolution_of(told)) is not None}
    if len(said | {resolved.outcome for resolved in key.resolved}) > 1:
        verdict.blame("lost_receipts", key, f"resolved in two ways: {sorted(said)}")
    since_ns = [told.at_ns for told in key.told if _resolution_of(told) is not None]
    since_ns += [resolved.at_ns for resolved in key.resolved]
    if not since_ns:
        return
    for told in key.told:
        # A push may have been on its way.
        if told.receipt is None or told.to == "" or told.asked_ns <= min(since_ns):
            continue
        lost = schedule.ledger_lost(min(since_ns), told.at_ns)
        if _resolution_of(told) is None and not lost:
            verdict.blame("lost_receipts", key, "a person's word on it was kept, and is not told")
            return


def _pushed(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    if not key.resolved or schedule.ledger_lost(key.resolved[0].at_ns):
        return
    if not any(told.by == "push" and _resolution_of(told) is not None for told in key.told):
        verdict.blame("lost_receipts", key, "a person's word on it was never pushed")


def _spent(verdict: Verdict, key: Key, schedule: Schedule) -> None:
    """The receipt of a key that was let go does not come back, and its action is refused if it is sent again."""
    gone = next((told for told in key.told if _is_gone(told, key, schedule)), None)
    if gone is None or schedule.ledger_lost(gone.at_ns):
        return
    for told in key.told:
        if told.to not in ("dispatch", "lookup") or told.asked_ns <= gone.at_ns:
            continue
        if told.receipt is not None:
            verdict.blame("lost_receipts", key, "was let go, and is there again")
        elif told.to == "lookup" and told.known:
            verdict.blame("wrong_not_found", key, "was let go, and nothing is said to have been dispatched")
        elif (
            told.error is not None
            and not told.error["retryable"]
            and told.error["code"] != "idempotency_conflict"
        ):
            verdict.blame(
                "lost_receipts", key, f"was let go, and sent again is refused as {told.error['code']}"
            )


def _is_gone(told: Told, key: Key, schedule: Schedule) -> bool:
    return (
        told.to == "lookup"
        and not told.known
        and not schedule.ledger_lost_ns
        and may_be_pruned(key, told.at_ns, schedule)
    )


def _resolution_of(told: Told) -> dict[str, Any] | None:
    return (told.receipt or {}).get("resolution")
