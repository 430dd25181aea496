"""What the states of a driver's buffers tell about the picture that comes next, sans-IO.

OpenCV hands out pixels and a time. It hides the driver's frame number (so frames that were never handed over cannot
be counted), the mark of a damaged picture, the clock of the timestamp, and buffers that it lost.
"""

from collections.abc import Sequence
from typing import NamedTuple

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.v4l2_ioctl import (
    CLOCK_COPIED,
    CLOCK_MASK,
    CLOCK_UNKNOWN,
    MOMENT_MASK,
    MOMENT_START_OF_EXPOSURE,
    Buffer,
)

_WRAP = 1 << 32
_BUFFERS_LEAST = 2
"""One that is filled while the other is read; with fewer the camera stands still between pictures."""


class Coming(NamedTuple):
    """The picture that the next read will hand over.

    missed: how many the camera took since the one before it that nobody will ever get.
    not_before_ns: when it was certainly not complete yet, by our own clock.
    """

    buffer: Buffer
    missed: int
    not_before_ns: int


class BufferWatch:
    """Follows the buffers of one stream from look to look. begun_ns: a moment before the stream was started."""

    def __init__(self, begun_ns: int) -> None:
        self._begun_ns = begun_ns
        self._last: int | None = None
        self._incomplete_ns: dict[int, int] = {}

    def look(self, buffers: Sequence[Buffer], looked_ns: int) -> None:
        """Note which buffers were not complete. `looked_ns`: read from the clock BEFORE the driver was asked."""
        for buffer in buffers:
            if not buffer.is_done:
                self._incomplete_ns[buffer.number] = looked_ns

    def coming(self, buffers: Sequence[Buffer]) -> Coming | None:
        """The picture that waits at the head of the driver's queue; None when none waits."""
        waiting = [buffer for buffer in buffers if buffer.is_done]
        if not waiting:
            return None
        first = min(waiting, key=lambda buffer: self._steps_to(buffer.sequence))
        missed = 0 if self._last is None else max(0, self._steps_to(first.sequence) - 1)
        return Coming(first, missed, self._incomplete_ns.get(first.number, self._begun_ns))

    def taken(self, buffer: Buffer, taken_ns: int) -> None:
        """That picture was read, and its buffer not yet given back: the next one in it is complete only later."""
        self._last = buffer.sequence
        self._incomplete_ns[buffer.number] = taken_ns

    def _steps_to(self, sequence: int) -> int:
        """From the last one taken. The driver counts in 32 bits and begins again at 0."""
        return sequence if self._last is None else (sequence - self._last) % _WRAP


def refuse_foreign_clock(buffer: Buffer) -> None:
    """Raises SourceFault when the driver itself says that its timestamps are not of this machine's clock."""
    if buffer.flags & CLOCK_MASK == CLOCK_COPIED:
        raise SourceFault(
            "the driver copies its timestamps from somewhere else instead of telling when a picture was taken; "
            'configure timestamp = "arrival"',
            CameraFault.NO_CLOCK,
        )


def clock_notes(buffer: Buffer) -> tuple[str, ...]:
    """What is doubtful about the timestamps, in words. Their values are judged apart from this."""
    notes = []
    if buffer.flags & CLOCK_MASK == CLOCK_UNKNOWN:
        notes.append("the driver does not say of which clock its timestamps are")
    return tuple(notes)


def marks_start_of_exposure(buffer: Buffer) -> bool:
    """Whether the driver says that its timestamp is the exposure's start; otherwise it is the frame's end."""
    return buffer.flags & MOMENT_MASK == MOMENT_START_OF_EXPOSURE


def refuse_lost_buffers(buffers: Sequence[Buffer]) -> None:
    """Raises SourceFault when the driver did not take back so many that pictures cannot flow. None being read now."""
    lost = sum(1 for buffer in buffers if not buffer.is_queued and not buffer.is_done)
    if len(buffers) - lost < _BUFFERS_LEAST:
        raise SourceFault(
            f"{lost} of the driver's {len(buffers)} buffers got lost: it refused to take them back",
            CameraFault.BLOCKED,
        )
