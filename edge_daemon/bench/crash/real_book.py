"""What the plane wrote down while real processes were killed, and what it comes to. Pure: no process, no clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edge_daemon.bench.crash.oracle import Counts

Message = dict[str, Any]


@dataclass
class Entry:
    """One key as the plane knows it. `number` is its place on the glass, which belongs to no other key."""

    device: str
    key: str
    number: int
    token: int
    stale: bool = False
    """Sent with a token lower than one the plane had seen accepted."""
    first_sent_ns: int = 0
    accepted_told: bool = False
    told: list[Message] = field(default_factory=list)
    """Every final receipt that came: answers and pushed ones."""
    final_ns: int = 0
    refusals: list[str] = field(default_factory=list)
    found: Message | None = None
    """The ReceiptAnswer at the end, when everything had healed."""

    @property
    def receipt(self) -> Message | None:
        return None if self.found is None else self.found.get("receipt")

    def tell(self, receipt: Message, now_ns: int) -> None:
        """A receipt came; pending ones are no promise of an outcome, final ones are."""
        self.accepted_told = True
        if receipt["status"] != "pending":
            self.told.append(receipt)
            self.final_ns = self.final_ns or now_ns


@dataclass(frozen=True)
class Seen:
    """What the world's side knows of one device: touches by place number, touches at no key's place, board resets."""

    touches: Mapping[int, int]
    strays: int
    resets_ns: Sequence[int]


def judge_entries(entries: Sequence[Entry], seen: Mapping[str, Seen], say: Callable[[str], None]) -> Counts:
    """Held against the touch logs. `say` is told each violation in words."""
    counts = Counts()
    for device, world in seen.items():
        if world.strays:
            counts.stray_touches += world.strays
            say(f"{device}: {world.strays} touch(es) at the place of no key")
    for entry in entries:
        world = seen[entry.device]
        touches = world.touches.get(entry.number, 0)
        _judge_touches(entry, touches, counts, say)
        _judge_words(entry, touches, world, counts, say)
    return counts


def _judge_touches(entry: Entry, touches: int, counts: Counts, say: Callable[[str], None]) -> None:
    if touches > 1:
        counts.double_touches += touches - 1
        say(f"{entry.device} {entry.key}: touched {touches} times")
    if touches and entry.stale:
        counts.fencing_violations += 1
        say(f"{entry.device} {entry.key}: touched with the stale token {entry.token}")


def _judge_words(entry: Entry, touches: int, world: Seen, counts: Counts, say: Callable[[str], None]) -> None:
    name = f"{entry.device} {entry.key}"
    receipt = entry.receipt
    if entry.found is None:
        counts.stuck += 1
        say(f"{name}: getReceipt was never answered at the end")
        return
    if receipt is None:
        if entry.accepted_told:
            counts.lost_receipts += 1
            say(f"{name}: accepted and told so, and not found at the end")
        if touches:
            counts.wrong_not_found += 1
            say(f"{name}: not found, and touched {touches} times")
        return
    if receipt["status"] == "pending":
        counts.lost_receipts += 1
        say(f"{name}: still pending when everything had healed")
        return
    for earlier in entry.told:
        if earlier != receipt:
            counts.lost_receipts += 1
            say(f"{name}: was told {_words(earlier)} and is now {_words(receipt)}")
            break
    unknown = receipt.get("reason") == "outcome_unknown"
    if receipt["status"] == "committed" and touches == 0:
        counts.wrong_words += 1
        say(f"{name}: committed, and the phone saw nothing")
    if receipt["status"] == "failed" and not unknown and touches:
        counts.wrong_words += 1
        say(f"{name}: {_words(receipt)}, and the phone was touched {touches} times")
    if unknown:
        _judge_unknown(entry, receipt, world, counts, say)


def _judge_unknown(
    entry: Entry, receipt: Message, world: Seen, counts: Counts, say: Callable[[str], None]
) -> None:
    counts.unknown += 1
    if not receipt.get("requiresManualReview"):
        counts.wrong_words += 1
        say(f"{entry.device} {entry.key}: unknown without asking for a review")
    until_ns = entry.final_ns or max(world.resets_ns, default=0)
    if not any(entry.first_sent_ns <= at_ns <= until_ns for at_ns in world.resets_ns):
        counts.unknown_outside_window += 1
        say(f"{entry.device} {entry.key}: unknown although its board never restarted: {_words(receipt)}")


def _words(receipt: Message) -> str:
    error = receipt.get("error") or {}
    return " ".join(filter(None, (receipt["status"], receipt.get("reason"), error.get("message"))))
