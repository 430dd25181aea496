"""What the plane was told and what the phones felt while real processes were killed, and what it comes to.

Pure: no process, no clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.real_notes import BoardKind, Entry, Felt, Flap, Message

_NOTHING = Felt()
_BROKEN_OFF_AFTER_NS = (300_000_000, 1_500_000_000)
"""When a board whose host fell silent breaks off what it does: its deadman, 600 ms after the last heartbeat, and what a
busy machine adds. The last of it may have been felt just then, with the board not done yet."""
_BROKEN_OFF_BEFORE_NS = (-20_000_000, 150_000_000)
"""The same where the host came back sooner: how long before that the last of it was felt. A hand still has to lift."""


@dataclass(frozen=True)
class Seen:
    """What the world's side knows of one device."""

    felt: Mapping[str, Felt] = field(default_factory=dict)
    """By key; keys of which the phone felt nothing are not in it."""
    strays: Sequence[str] = ()
    """A phrase for each thing that the phone felt and that belongs to no key."""
    resets_ns: Mapping[BoardKind, Sequence[int]] = field(default_factory=dict)
    kills_ns: Sequence[int] = ()
    """When the daemon was killed."""
    flaps: Mapping[BoardKind, Sequence[Flap]] = field(default_factory=dict)


def judge_entries(entries: Sequence[Entry], seen: Mapping[str, Seen], say: Callable[[str], None]) -> Counts:
    """Held against the phones' logs. `say` is told each violation in words."""
    counts = Counts()
    for device, world in seen.items():
        for stray in world.strays:
            counts.stray_touches += 1
            say(f"{device}: {stray}")
    for entry in entries:
        world = seen[entry.device]
        felt = world.felt.get(entry.key, _NOTHING)
        _judge_touches(entry, felt, counts, say)
        _judge_words(entry, felt, world, counts, say)
    return counts


def _judge_touches(entry: Entry, felt: Felt, counts: Counts, say: Callable[[str], None]) -> None:
    if felt.times > 1:
        counts.double_touches += felt.times - 1
        say(f"{_name(entry)}: felt {felt.times} times, {felt.wholes} of them whole")
    if felt.times and entry.stale:
        counts.fencing_violations += 1
        say(f"{_name(entry)}: felt, with the stale token {entry.token}")


def _judge_words(entry: Entry, felt: Felt, world: Seen, counts: Counts, say: Callable[[str], None]) -> None:
    receipt = entry.receipt
    if entry.found is None:
        counts.stuck += 1
        say(f"{_name(entry)}: getReceipt was never answered at the end")
        return
    if receipt is None:
        if entry.accepted_told:
            counts.lost_receipts += 1
            say(f"{_name(entry)}: accepted and told so, and not found at the end")
        if felt.times:
            counts.wrong_not_found += 1
            say(f"{_name(entry)}: not found, and felt {felt.times} times")
        return
    if receipt["status"] == "pending":
        counts.lost_receipts += 1
        say(f"{_name(entry)}: still pending when everything had healed")
        return
    for earlier in entry.told:
        if earlier != receipt:
            counts.lost_receipts += 1
            say(f"{_name(entry)}: was told {_words(earlier)} and is now {_words(receipt)}")
            break
    unknown = receipt.get("reason") == "outcome_unknown"
    if receipt["status"] == "committed" and not felt.wholes:
        counts.wrong_words += 1
        say(f"{_name(entry)}: committed, and the phone felt {'a part' if felt.parts else 'nothing'} of it")
    if receipt["status"] == "failed" and not unknown and felt.times:
        counts.wrong_words += 1
        say(f"{_name(entry)}: {_words(receipt)}, and felt {felt.times} times")
    if unknown:
        _judge_unknown(entry, receipt, felt, world, counts, say)


def _judge_unknown(
    entry: Entry, receipt: Message, felt: Felt, world: Seen, counts: Counts, say: Callable[[str], None]
) -> None:
    counts.unknown += 1
    if not receipt.get("requiresManualReview"):
        counts.wrong_words += 1
        say(f"{_name(entry)}: unknown without asking for a review")
    if not _may_be_unknown(entry, felt, world):
        counts.unknown_outside_window += 1
        say(
            f"{_name(entry)}: unknown although its board never restarted and broke nothing off: {_words(receipt)}"
        )


def _may_be_unknown(entry: Entry, felt: Felt, world: Seen) -> bool:
    """Its board forgot it by a restart, or broke it off, as a part of it on the phone shows."""
    resets_ns = world.resets_ns.get(entry.wish.board, ())
    flaps = world.flaps.get(entry.wish.board, ())
    told_ns = entry.final_ns or max(resets_ns, default=0)
    until_ns = min(told_ns, (entry.receipt or {}).get("finishedNs", told_ns))
    if felt.parts or any(entry.first_sent_ns <= at_ns <= until_ns for at_ns in resets_ns):
        return True
    if not felt.times:
        # A hand that was on its way down to the glass cannot tell whether it had arrived.
        flapped = any(entry.first_sent_ns <= flap.at_ns <= until_ns for flap in flaps)
        return entry.wish.board == "hand" and flapped
    return _ended_when_broken_off(felt.last_ns, [*world.kills_ns, *(flap.at_ns for flap in flaps)], flaps)


def _ended_when_broken_off(last_ns: int, silent_ns: Sequence[int], flaps: Sequence[Flap]) -> bool:
    low_ns, high_ns = _BROKEN_OFF_AFTER_NS
    if any(low_ns <= last_ns - at_ns <= high_ns for at_ns in silent_ns):
        return True
    low_ns, high_ns = _BROKEN_OFF_BEFORE_NS
    return any(low_ns <= flap.opened_ns - last_ns <= high_ns for flap in flaps)


def _name(entry: Entry) -> str:
    return f"{entry.device} {entry.key} ({entry.wish.kind})"


def _words(receipt: Message) -> str:
    error = receipt.get("error") or {}
    return " ".join(filter(None, (receipt["status"], receipt.get("reason"), error.get("message"))))
