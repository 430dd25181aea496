"""How a board's line has been doing since this daemon looks after it: for health, and for finding bad cables."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields

from edge_daemon.boards.info import BoardInfo, ResetCause
from edge_daemon.boards.link import HostLink


@dataclass(frozen=True, slots=True)
class LineCounters:
    """Counts of one connection's line, or of several added up; all but ``frames`` are zero on a good one."""

    frames: int = 0
    garbage_bytes: int = 0
    crc_errors: int = 0
    oversize: int = 0
    retransmits: int = 0
    naks: int = 0
    stale_frames: int = 0
    malformed_frames: int = 0
    late_replies: int = 0

    @classmethod
    def of(cls, link: HostLink) -> "LineCounters":
        line = link.line
        return cls(
            frames=line.frames,
            garbage_bytes=line.garbage_bytes,
            crc_errors=line.crc_errors,
            oversize=line.oversize,
            retransmits=link.counters.retransmits,
            naks=link.counters.naks,
            stale_frames=link.counters.stale_frames,
            malformed_frames=link.counters.malformed_frames,
            late_replies=link.late_replies,
        )

    def __add__(self, other: "LineCounters") -> "LineCounters":
        return LineCounters(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(LineCounters))
        )


@dataclass(frozen=True, slots=True)
class BoardCounters:
    """Since the daemon's start. ``resets`` are restarts of the board that were seen, by their cause."""

    line: LineCounters
    connections: int
    resets: Mapping[ResetCause, int]

    @property
    def reconnects(self) -> int:
        return max(0, self.connections - 1)


class CounterBook:
    """Adds up over the connections of one board."""

    def __init__(self) -> None:
        self._ended = LineCounters()
        self._resets: Counter[ResetCause] = Counter()
        self._boot_id: int | None = None
        self.connections = 0

    def online(self, info: BoardInfo) -> None:
        """A session is open. The boot that is seen first is no restart that anybody saw."""
        self.connections += 1
        if self._boot_id not in (None, info.boot_id):
            self._resets[info.reset_cause] += 1
        self._boot_id = info.boot_id

    def ended(self, link: HostLink) -> None:
        """The link's own counts are final."""
        self._ended += LineCounters.of(link)

    def read(self, link: HostLink | None) -> BoardCounters:
        """With those of the present link, if there is one."""
        line = self._ended if link is None else self._ended + LineCounters.of(link)
        return BoardCounters(line, self.connections, dict(self._resets))
