"""Frames as the daemon holds them, and the ring they are kept in, bounded in bytes."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from edge_daemon.cameras.errors import FrameTooBig


class RawFrame(NamedTuple):
    """One captured picture, not decoded.

    sequence: counts the camera's captures since the daemon started, across replaced capture processes.
    exposed_ns: the exposure did not begin before this; CLOCK_MONOTONIC. The guarantee: what is asked for after a
        moment is judged by it.
    exposed_about_ns: when it most likely began. The estimate: ages are told from it, nothing else is.
    captured_about_ns: when it was most likely over: by then the camera had captured it.
    received_ns: when the picture had arrived in the capture process; CLOCK_MONOTONIC.
    """

    camera: str
    sequence: int
    exposed_ns: int
    received_ns: int
    jpeg: bytes
    width: int
    height: int
    crc32: int
    exposed_about_ns: int
    captured_about_ns: int


class FrameRing:
    """The newest frames whose JPEGs together take at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._frames: deque[RawFrame] = deque()
        self._bytes = 0

    def append(self, frame: RawFrame) -> None:
        """Keep `frame`, let go of the oldest as needed. Raises FrameTooBig when it alone is over the
        bound."""
        size = len(frame.jpeg)
        if size > self._max_bytes:
            raise FrameTooBig(f"a frame of {size} bytes does not fit a ring of {self._max_bytes}")
        self._frames.append(frame)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._frames.popleft().jpeg)

    @property
    def bytes(self) -> int:
        """Taken by the JPEGs now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[RawFrame]:
        """Oldest first."""
        return iter(self._frames)

    def newest(self) -> RawFrame | None:
        return self._frames[-1] if self._frames else None

    def first_after(self, sequence: int, exposed_ns: int) -> RawFrame | None:
        """The oldest kept frame that was captured after `sequence` and exposed after `exposed_ns`."""
        found = None
        for frame in reversed(self._frames):
            if frame.sequence <= sequence:
                break
            if frame.exposed_ns > exposed_ns:
                found = frame
        return found
