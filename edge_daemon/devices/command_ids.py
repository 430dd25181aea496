"""Ids for board commands: never used twice, and growing, so that a board can tell old ones from new ones."""

import secrets
from collections.abc import Callable

from edge_daemon.clock import NS_PER_MS, MonotonicNs

_RANDOM_BITS = 24


class CommandIds:
    """Milliseconds since the machine's boot above 24 random bits: 1..2^64-1, strictly growing.

    A board is certain that it never had a command only above the ids it has forgotten, so ids grow, also over a
    restart of this daemon. A restart of the machine begins lower; the random bits keep such ids apart from the
    ones that a board which stayed up still remembers.
    """

    def __init__(
        self, monotonic_ns: MonotonicNs, random_bits: Callable[[int], int] = secrets.randbits
    ) -> None:
        self._now_ns = monotonic_ns
        self._random_bits = random_bits
        self._last = 0

    def next(self) -> int:
        fresh = (self._now_ns() // NS_PER_MS) << _RANDOM_BITS | self._random_bits(_RANDOM_BITS)
        self._last = max(self._last + 1, fresh)
        return self._last
