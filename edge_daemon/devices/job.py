"""One accepted or about to be accepted action on its way through a device."""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from edge_daemon.clock import NS_PER_MS
from edge_daemon.contract import Dispatch, Progress, Receipt, Refused, Stage, Timing
from edge_daemon.ledger import CommandRef

ProgressListener = Callable[[Progress], None]


@dataclass
class Job:
    """Mutable on purpose: it gathers what happened. Owned by its device; listeners only read."""

    request: Dispatch
    arrived_ns: int
    receipt: Receipt | None = None
    """None until the pending receipt is durable."""
    refusal: Refused | None = None
    """Set when the key was not accepted: nothing was stored, nothing will be executed."""
    deduplicated: bool = False
    command: CommandRef | None = None
    """Whom to ask about it, as the ledger has it; no other boot of the board may get the action."""
    begun: bool = False
    """Set once nothing can take it back: the command is on its way to the board."""
    admitted: trio.Event = field(default_factory=trio.Event)
    """Set when the ledger knows the key, or when it was refused: only from then on `found: false` is true."""
    finished: trio.Event = field(default_factory=trio.Event)
    listeners: list[ProgressListener] = field(default_factory=list)
    stages_ns: dict[Stage, int] = field(default_factory=dict)

    @property
    def expires_ns(self) -> int:
        """Past this moment it may not begin: the request's own limit or the lease's end, whichever is first."""
        return self.arrived_ns + self.request.expires_in_ms * NS_PER_MS

    @property
    def lease_ends_ns(self) -> int:
        return self.arrived_ns + self.request.lease.remaining_ms * NS_PER_MS

    def reached(self, stage: Stage, at_ns: int) -> None:
        """Notes the stage and tells the listeners. A listener must not block and must not raise."""
        self.stages_ns.setdefault(stage, at_ns)
        progress = Progress(
            device_id=self.request.device_id,
            idempotency_key=self.request.idempotency_key,
            stage=stage,
            elapsed_ms=(at_ns - self.arrived_ns) / NS_PER_MS,
        )
        for listener in self.listeners:
            listener(progress)

    def timing(self) -> Timing:
        def since_arrival(stage: Stage) -> float | None:
            at_ns = self.stages_ns.get(stage)
            return None if at_ns is None else round((at_ns - self.arrived_ns) / NS_PER_MS, 3)

        return Timing(
            queued_ms=0.0,
            accepted_ms=since_arrival("dispatched"),
            contact_ms=since_arrival("contact"),
            hover_ms=since_arrival("hover"),
        )
