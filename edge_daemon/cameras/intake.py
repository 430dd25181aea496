"""What every captured picture goes through before it counts as a frame, sans-IO.

Whole? Stamped by a clock we can use? New? Only then it gets the next capture sequence number.
"""

import zlib
from typing import NamedTuple

from edge_daemon.cameras.errors import BadPicture, SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.jpeg import jpeg_size, whole_jpeg
from edge_daemon.cameras.sources import Exposure

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
    exposure_ns: how long this very picture was exposed before its stamp, where the camera says so.
    missed: pictures that the camera took between the one before and this one and that never came.
    more_lag_ns: how much longer before its stamp than the source reckons this picture's exposure may have begun.
    """

    jpeg: bytes | bytearray
    stamp_ns: int
    received_ns: int
    exposure_ns: int | None = None
    missed: int = 0
    more_lag_ns: int = 0


class Accepted(NamedTuple):
    """A numbered frame. exposed_ns: its exposure did not begin before. exposed_about_ns: when it most likely began.
    captured_about_ns: when it was most likely over. missed: of the numbers so far, those of pictures that never
    came."""

    sequence: int
    stamp_ns: int
    exposed_ns: int
    exposed_about_ns: int
    captured_about_ns: int
    received_ns: int
    width: int
    height: int
    crc32: int
    broken: int
    jpeg: bytes | bytearray
    missed: int = 0


class StampCheck:
    """Refuses stamps that are not this machine's CLOCK_MONOTONIC, or run backwards."""

    def __init__(self) -> None:
        self._last_ns: int | None = None

    def check(self, stamp_ns: int, received_ns: int) -> None:
        """Raises SourceFault. An equal stamp passes: drivers repeat stamps over differing pictures."""
        age_ms = (received_ns - stamp_ns) / 1e6
        if stamp_ns > received_ns + FUTURE_TOLERANCE_NS:
            raise SourceFault(
                f"the camera's timestamp lies {-age_ms:.1f} ms after the picture's arrival: it is not this machine's "
                'CLOCK_MONOTONIC, or marks something later than the exposure; configure timestamp = "arrival"',
                CameraFault.NO_CLOCK,
            )
        if received_ns - stamp_ns > PLAUSIBLE_AGE_NS:
            raise SourceFault(
                f"the camera's picture is {age_ms / 1000:.1f} s old on arrival: an old picture is repeated, or the "
                'timestamp is not this machine\'s CLOCK_MONOTONIC (then configure timestamp = "arrival")',
                CameraFault.NO_CLOCK,
            )
        if self._last_ns is not None and stamp_ns < self._last_ns:
            raise SourceFault(
                f"the camera's timestamp ran backwards by {(self._last_ns - stamp_ns) / 1e6:.1f} ms: "
                "no order of pictures can be had from it",
                CameraFault.NO_CLOCK,
            )
        self._last_ns = stamp_ns


class FreezeCheck:
    """The same timestamp AND the same picture again is no new frame; for longer than `limit_ns` it is a
    frozen camera.

    Either alone proves nothing: stamps repeat on some drivers while the pictures differ, and a noiseless
    source gives equal pictures at new times. `last`: stamp and CRC of the picture known already, from before the
    camera was opened anew: a frozen one shows it again.
    """

    def __init__(self, limit_ns: int, last: tuple[int, int] | None = None) -> None:
        self._limit_ns = limit_ns
        self._last = last
        self._since_ns: int | None = None
        self._repeats = 0

    def begin(self) -> None:
        """The camera was opened anew: it gets the whole patience again."""
        self._since_ns, self._repeats = None, 0

    def is_new(self, stamp_ns: int, crc32: int, now_ns: int) -> bool:
        """False for a repetition. Raises SourceFault once repetitions have lasted too long."""
        if (stamp_ns, crc32) != self._last:
            self._last, self._since_ns, self._repeats = (stamp_ns, crc32), now_ns, 0
            return True
        if self._since_ns is None:
            self._since_ns = now_ns
        self._repeats += 1
        if now_ns - self._since_ns > self._limit_ns:
            raise SourceFault(
                f"the camera is frozen: the same picture with the same timestamp {self._repeats + 1} times "
                f"over {(now_ns - self._since_ns) / 1e9:.1f} s",
                CameraFault.FROZEN,
            )
        return False


class StandstillCheck:
    """One timestamp over different pictures: now and then a driver's slip, for longer than `limit_ns` no clock.

    last_ns: the newest stamp known from before the camera was opened anew.
    """

    def __init__(self, limit_ns: int, last_ns: int | None = None) -> None:
        self._limit_ns = limit_ns
        self._stamp_ns = last_ns
        self._since_ns: int | None = None
        self._moved = True
        self.begin()

    def begin(self) -> None:
        """The camera was opened anew: it has to show that its clock goes."""
        self._moved = self._stamp_ns is None

    def is_new(self, stamp_ns: int, received_ns: int) -> bool:
        """False while the stamps still are the one of before the opening. Raises SourceFault. For new pictures only."""
        if stamp_ns != self._stamp_ns:
            self._stamp_ns, self._since_ns, self._moved = stamp_ns, received_ns, True
            return True
        since_ns = self._since_ns = received_ns if self._since_ns is None else self._since_ns
        if received_ns - since_ns > self._limit_ns:
            raise SourceFault(
                f"the camera's timestamp has stood still for {(received_ns - since_ns) / 1e9:.1f} s while its "
                'pictures change: it does not say when they were taken; configure timestamp = "arrival"',
                CameraFault.NO_CLOCK,
            )
        return self._moved


class Intake:
    """Turns grabbed pictures into numbered frames. One per capture process; numbers begin at 1.

    exposure: by how much the source's stamps follow the start of the exposure. last: see FreezeCheck.
    """

    def __init__(
        self, exposure: Exposure, *, frozen_after_ns: int, last: tuple[int, int] | None = None
    ) -> None:
        self._exposure = exposure
        self._freeze = FreezeCheck(frozen_after_ns, last)
        self._standstill = StandstillCheck(frozen_after_ns, None if last is None else last[0])
        self._sequence = 0
        self._missed = 0
        self._broken = 0
        self.begin()

    def begin(self) -> None:
        """The camera was opened (again): its clock is judged anew, what it showed last is remembered."""
        self._stamps = StampCheck()
        self._standstill.begin()
        self._freeze.begin()
        self._broken_in_a_row = 0

    @property
    def captured(self) -> int:
        """Frames numbered so far."""
        return self._sequence

    def take(self, grabbed: Grabbed) -> Accepted | None:
        """The numbered frame, or None for a repetition or a broken picture (counted in the next frame's
        `broken`).

        Raises SourceFault when the camera cannot be used like this.
        """
        # The camera took them, so they count as captured, whatever becomes of this one.
        self._sequence += grabbed.missed
        self._missed += grabbed.missed
        try:
            jpeg = whole_jpeg(grabbed.jpeg)
            width, height = jpeg_size(jpeg)
        except BadPicture as error:
            self._count_broken(error)
            return None
        self._broken_in_a_row = 0
        crc32 = zlib.crc32(jpeg)
        # First of all: a camera that froze long ago shows its old picture, and its clock is not what is wrong.
        if not self._freeze.is_new(grabbed.stamp_ns, crc32, grabbed.received_ns):
            return None
        self._stamps.check(grabbed.stamp_ns, grabbed.received_ns)
        if not self._standstill.is_new(grabbed.stamp_ns, grabbed.received_ns):
            return None
        self._sequence += 1
        longest_ns, likely_ns = self._exposure.longest_ns, self._exposure.likely_ns
        since_over_ns = self._exposure.since_over_ns
        if grabbed.exposure_ns is not None:
            longest_ns, likely_ns = max(longest_ns, grabbed.exposure_ns), grabbed.exposure_ns
            since_over_ns = 0
        # Within its tolerance a stamp may follow the arrival; the exposure was over by then all the same.
        over_ns = min(grabbed.stamp_ns, grabbed.received_ns)
        return Accepted(
            sequence=self._sequence,
            stamp_ns=grabbed.stamp_ns,
            exposed_ns=over_ns - longest_ns - grabbed.more_lag_ns,
            exposed_about_ns=over_ns - likely_ns,
            captured_about_ns=over_ns - since_over_ns,
            received_ns=grabbed.received_ns,
            width=width,
            height=height,
            crc32=crc32,
            broken=self._broken,
            jpeg=jpeg,
            missed=self._missed,
        )

    def _count_broken(self, error: BadPicture) -> None:
        self._broken += 1
        self._broken_in_a_row += 1
        if self._broken_in_a_row >= BROKEN_LIMIT:
            raise SourceFault(
                f"{self._broken_in_a_row} broken pictures in a row, the last: {error}",
                CameraFault.BROKEN_STREAM,
            ) from error
