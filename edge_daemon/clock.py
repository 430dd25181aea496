"""Time at the edge: monotonic to order, expire and measure; the plane's clock only to label.

A Pi boots with a wrong wall clock, so wall time is only ever derived: CLOCK_MONOTONIC plus the offset to the
plane's clock, measured on the link.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

NS_PER_MS = 1_000_000

MonotonicNs = Callable[[], int]
"""A reading of CLOCK_MONOTONIC in nanoseconds; tests and simulations hand in their own."""


def machine_boot_id() -> str:
    """The kernel's id of this boot; monotonic times of two boots must never be compared."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class PlaneClock:
    """Converts monotonic time to the plane's clock with the offset measured on the link.

    Before the first measurement it falls back to the machine's own wall clock and says so (`synced`).
    """

    def __init__(
        self, monotonic_ns: MonotonicNs = time.monotonic_ns, wall_s: Callable[[], float] = time.time
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_s = wall_s
        self._offset_ms: float | None = None
        self._round_trip_ns = 0

    @property
    def synced(self) -> bool:
        return self._offset_ms is not None

    def measured(self, sent_ns: int, plane_unix_ms: float, received_ns: int) -> None:
        """One echo: asked at `sent_ns`, the plane read `plane_unix_ms`, the answer came at `received_ns`.

        The reading is taken to lie midway (Cristian's algorithm): the error is at most half the round trip;
        an echo with a round trip more than twice the best one is worth less than the offset we have.
        """
        round_trip_ns = received_ns - sent_ns
        if self.synced and round_trip_ns > 2 * self._round_trip_ns:
            # Age the bar so that a link which became slower for good is believed in the end.
            self._round_trip_ns += self._round_trip_ns // 8 + 1
            return
        self._round_trip_ns = round_trip_ns
        self._offset_ms = plane_unix_ms - (sent_ns + received_ns) / 2 / NS_PER_MS

    def iso(self, at_ns: int) -> str:
        """ISO-8601 UTC with milliseconds for the monotonic reading `at_ns`."""
        offset_ms = self._offset_ms
        if offset_ms is None:
            offset_ms = self._wall_s() * 1000.0 - self._monotonic_ns() / NS_PER_MS
        unix_s = (at_ns / NS_PER_MS + offset_ms) / 1000.0
        return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
