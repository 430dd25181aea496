"""What every captured picture goes through before it counts as a frame, sans-IO.

Whole? Stamped by a clock we can use? New? Only then it gets the next capture sequence number.
"""

import binascii
from typing import NamedTuple

from edge_daemon.cameras.errors import BadPicture, SourceFault
from edge_daemon.cameras.jpeg import jpeg_size, whole_jpeg

FUTURE_TOLERANCE_NS = 5_000_000
"""A stamp may lie this far after its own arrival: USB cameras' own clocks are fitted to ours with a small
error."""
PLAUSIBLE_AGE_NS = 10_000_000_000
"""An older picture is no live picture: a server repeats an old one, or its clock is not our
CLOCK_MONOTONIC."""
BROKEN_LIMIT = 10
"""Broken pictures in a row that a bad cable explains; more, and the camera must be opened anew."""


class Grabbed(NamedTuple):
    """One picture as a backend hands it over.

    stamp_ns: the source's own time for the picture, CLOCK_MONOTONIC; exposure began at most `lag_ns` before
    it.
    received_ns: when the picture was complete here, CLOCK_MONOTONIC.
    """

    jpeg: bytes
    stamp_ns: int
    received_ns: int


class Accepted(NamedTuple):
    sequence: int
    exposed_ns: int
    received_ns: int
    width: int
    height: int
    crc32: int
    broken: int
    jpeg: bytes


class StampCheck:
    """Refuses stamps that are not this machine's CLOCK_MONOTONIC, or run backwards."""

    def __init__(self) -> None:
        self._last_ns: int | None = None

    def check(self, stamp_ns: int, received_ns: int) -> None:
        """Raises SourceFault. An equal stamp passes: drivers repeat stamps over differing pictures."""
        age_ms = (received_ns - stamp_ns) / 1e6
        if stamp_ns > received_ns + FUTURE_TOLERANCE_NS:
            raise SourceFault(
                f"the camera's timestamp lies {-age_ms:.1f} ms after the picture's arrival: it is not this "
                "machine's "
                'CLOCK_MONOTONIC, or marks something later than the exposure; configure timestamp = "arrival"'
            )
        if received_ns - stamp_ns > PLAUSIBLE_AGE_NS:
            raise SourceFault(
                f"the camera's picture is {age_ms / 1000:.1f} s old on arrival: an old picture is "
                "repeated, or the "
                'timestamp is not this machine\'s CLOCK_MONOTONIC (then configure timestamp = "arrival")'
            )
        if self._last_ns is not None and stamp_ns < self._last_ns:
            raise SourceFault(
                f"the camera's timestamp ran backwards by {(self._last_ns - stamp_ns) / 1e6:.1f} ms: "
                "no order of pictures can be had from it"
            )
        self._last_ns = stamp_ns


class FreezeCheck:
    """The same timestamp AND the same picture again is no new frame; for longer than `limit_ns` it is a
    frozen camera.

    Either alone proves nothing: stamps repeat on some drivers while the pictures differ, and a noiseless
    source gives equal pictures at new times.
    """

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._last: tuple[int, int] | None = None
        self._since_ns = 0
        self._repeats = 0

    def is_new(self, stamp_ns: int, crc32: int, now_ns: int) -> bool:
        """False for a repetition. Raises SourceFault once repetitions have lasted too long."""
        if (stamp_ns, crc32) != self._last:
            self._last, self._since_ns, self._repeats = (stamp_ns, crc32), now_ns, 0
            return True
        self._repeats += 1
        if now_ns - self._since_ns > self._limit_ns:
            raise SourceFault(
                f"the camera is frozen: the same picture with the same timestamp {self._repeats + 1} times "
                "over "
                f"{(now_ns - self._since_ns) / 1e9:.1f} s"
            )
        return False


class Intake:
    """Turns grabbed pictures into numbered frames. One per capture process; numbers begin at 1."""

    def __init__(self, *, lag_ns: int, frozen_after_ns: int) -> None:
        self._lag_ns = lag_ns
        self._stamps = StampCheck()
        self._freeze = FreezeCheck(frozen_after_ns)
        self._sequence = 0
        self._broken = 0
        self._broken_in_a_row = 0

    def take(self, grabbed: Grabbed) -> Accepted | None:
        """The numbered frame, or None for a repetition or a broken picture (counted in the next frame's
        `broken`).

        Raises SourceFault when the camera cannot be used like this.
        """
        self._stamps.check(grabbed.stamp_ns, grabbed.received_ns)
        try:
            jpeg = whole_jpeg(grabbed.jpeg)
            width, height = jpeg_size(jpeg)
        except BadPicture as error:
            self._count_broken(error)
            return None
        self._broken_in_a_row = 0
        crc32 = binascii.crc32(jpeg)
        if not self._freeze.is_new(grabbed.stamp_ns, crc32, grabbed.received_ns):
            return None
        self._sequence += 1
        return Accepted(
            sequence=self._sequence,
            exposed_ns=grabbed.stamp_ns - self._lag_ns,
            received_ns=grabbed.received_ns,
            width=width,
            height=height,
            crc32=crc32,
            broken=self._broken,
            jpeg=jpeg,
        )

    def _count_broken(self, error: BadPicture) -> None:
        self._broken += 1
        self._broken_in_a_row += 1
        if self._broken_in_a_row >= BROKEN_LIMIT:
            raise SourceFault(
                f"{self._broken_in_a_row} broken pictures in a row, the last: {error}"
            ) from error
