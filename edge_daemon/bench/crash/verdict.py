"""What the oracle says of a history: counts by kind, and a sentence for each violation."""

from dataclasses import dataclass, field, fields

from edge_daemon.bench.crash.knowledge import Key

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
    late_violations: int = 0
    cancel_violations: int = 0
    conflict_violations: int = 0
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
