"""A board's microseconds on this host's monotonic clock."""

from collections import deque
from dataclasses import dataclass

# 32 samples at a heartbeat each 200 ms: 6.4 s, in which two crystals of 50 ppm part by 0.6 ms at most.
SAMPLES_KEPT = 32


@dataclass(frozen=True, slots=True)
class _Sample:
    offset_ns: int
    error_ns: int


class ClockMap:
    """Offset between a board's clock and CLOCK_MONOTONIC, from exchanges that bracket a board time.

    The board read its clock after we had sent and before we received, so the offset lies within half the
    round trip of the bracket's middle (Cristian, 1989). The narrowest recent bracket is used.
    """

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES_KEPT)
        self._best = _Sample(0, 0)

    def sample(self, sent_ns: int, received_ns: int, board_us: int) -> None:
        """Add one exchange: board_us was read between sent_ns and received_ns."""
        middle_ns = (sent_ns + received_ns) // 2
        error_ns = (received_ns - sent_ns + 1) // 2
        self._samples.append(_Sample(middle_ns - board_us * 1000, error_ns))
        self._best = min(self._samples, key=lambda sample: sample.error_ns)

    @property
    def known(self) -> bool:
        """Whether any exchange has been seen; to_host_ns() means nothing before."""
        return bool(self._samples)

    @property
    def error_ns(self) -> int:
        """Half the round trip of the sample in use: the bound on the mapping's error, drift aside."""
        return self._best.error_ns

    def to_host_ns(self, board_us: int) -> int:
        """Board microseconds as time.monotonic_ns() of this host."""
        return board_us * 1000 + self._best.offset_ns
