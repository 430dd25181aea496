"""Ids for board commands: never used twice, and growing, so that a board can tell old ones from new ones."""

import secrets
from collections.abc import Callable

from edge_daemon.clock import NS_PER_MS

_RANDOM_BITS = 24


class CommandIds:
    """Milliseconds above 24 random bits: 1..2^63-1, strictly growing.

    A board is certain that it never had a command only above the ids it has forgotten, and it may stay up while the
    machine restarts, or while its card is replaced. So the milliseconds are the ledger's, which go on across boots;
    and an id is above whatever the boards were given before, as they tell when they come online: a ledger made anew
    or put back knows nothing of it.
    """

    def __init__(
        self,
        lived_ns: Callable[[], int],
        random_bits: Callable[[int], int] = secrets.randbits,
        *,
        told: Callable[[], int] = lambda: 0,
        above: int = 0,
    ) -> None:
        """lived_ns: a clock that goes on across boots. told: the highest id that any board was given before this
        daemon's session with it. above: the highest that is pending."""
        self._lived_ns = lived_ns
        self._random_bits = random_bits
        self._told = told
        self._last = above

    def next(self) -> int:
        """Draw it once the board that it is meant for is online: before, nobody knows what that was given."""
        told, ms = self._told(), self._lived_ns() // NS_PER_MS
        if told > self._last:
            ms = max(ms, (told >> _RANDOM_BITS) + 1)
        fresh = ms << _RANDOM_BITS | self._random_bits(_RANDOM_BITS)
        self._last = max(self._last + 1, fresh)
        return self._last
