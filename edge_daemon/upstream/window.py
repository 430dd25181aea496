"""Which receipts are on their way to one plane: a bounded number, and which word of each."""

from collections import deque
from dataclasses import dataclass, field

from edge_daemon.contract import Receipt

Name = tuple[str, str]


@dataclass(slots=True)
class _OnItsWay:
    last_resolved: bool
    """Whether what was pushed last has a resolution."""
    unanswered: deque[bool] = field(default_factory=deque)
    """The same, of each push not acknowledged yet, in their order."""


class Window:
    """A receipt stays in it from its push until its acknowledgement is durable.

    One that a person has resolved goes out again, also while the push before that waits for its acknowledgement. That
    one, when it comes, is of what it answers and not of the resolution.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._there: dict[Name, _OnItsWay] = {}

    def take(self, receipt: Receipt) -> bool:
        """Whether to push it now."""
        name, resolved = (receipt.device_id, receipt.idempotency_key), receipt.resolution is not None
        there = self._there.get(name)
        if there is None:
            if len(self._there) >= self._size:
                return False
            there = self._there[name] = _OnItsWay(resolved)
        elif there.last_resolved == resolved:
            return False
        there.last_resolved = resolved
        there.unanswered.append(resolved)
        return True

    def acknowledged(self, name: Name) -> bool:
        """The plane says that it has it; whether with its resolution."""
        there = self._there.get(name)
        if there is None:
            return False
        return there.unanswered.popleft() if there.unanswered else there.last_resolved

    def settled(self, name: Name) -> None:
        """That is durable."""
        there = self._there.get(name)
        if there is not None and not there.unanswered:
            del self._there[name]

    def clear(self) -> None:
        self._there.clear()
