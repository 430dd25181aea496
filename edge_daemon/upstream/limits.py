"""The numbers that bound one session. Told to the peer in `welcome`, so that no plane has to guess them."""

from dataclasses import dataclass
from typing import Final

from edge_daemon.clock import NS_PER_MS
from edge_daemon.upstream.codec import MAX_BYTES_FROM_EDGE, MAX_BYTES_TO_EDGE
from edge_daemon.upstream.messages import SessionRules

NS_PER_S: Final = 1_000 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class SessionLimits:
    hello_ns: int = 5 * NS_PER_S
    ping_ns: int = 2 * NS_PER_S
    silence_ns: int = 15 * NS_PER_S
    """Nothing received, or a write that does not get on, for this long: the peer is gone."""
    requests: int = 64
    looks: int = 4
    """Pictures are the big answers."""
    outbox_window: int = 32
    queued_bytes: int = 2 * MAX_BYTES_FROM_EDGE
    """More than this waiting to be written: the peer does not read."""
    progress_backlog_bytes: int = 64 * 1024
    """With more than this waiting, progress is not worth queueing."""
    staff_actions: bool = False
    """Whether a plane may ask for what is the staff's: the operator's decision, never the peer's claim."""

    def rules(self) -> SessionRules:
        return SessionRules(
            max_requests=self.requests,
            max_looks=self.looks,
            outbox_window=self.outbox_window,
            ping_ms=self.ping_ns // NS_PER_MS,
            silence_ms=self.silence_ns // NS_PER_MS,
            max_bytes_to_edge=MAX_BYTES_TO_EDGE,
            max_bytes_from_edge=MAX_BYTES_FROM_EDGE,
        )


DEFAULT_LIMITS: Final = SessionLimits()
