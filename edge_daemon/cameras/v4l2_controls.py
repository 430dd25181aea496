"""Locked exposure, gain and focus: set, read back, and the difference told.

By the driver's own controls, beside OpenCV: that one answers "done" to a value that the driver ignores, does not know
the automatic gain, and cannot say which values a camera has.
"""

from typing import NamedTuple

from edge_daemon.cameras.sources import V4l2Source
from edge_daemon.cameras.v4l2_ioctl import control_range, read_control, write_control

EXPOSURE_AUTO, EXPOSURE_ABSOLUTE, EXPOSURE_AUTO_PRIORITY = 0x009A0901, 0x009A0902, 0x009A0903
FOCUS_ABSOLUTE, FOCUS_AUTO = 0x009A090A, 0x009A090C
AUTOGAIN, GAIN = 0x00980912, 0x00980913
"""V4L2_CID_…, linux/v4l2-controls.h."""
_MANUAL, _APERTURE_PRIORITY = 1, 3
"""V4L2_EXPOSURE_MANUAL and V4L2_EXPOSURE_APERTURE_PRIORITY, the two that USB cameras know."""


class _Wish(NamedTuple):
    """`release`: what must be set first, in this order, for the driver to heed the value. Such a control may be
    missing: then there is no automatic to switch off."""

    name: str
    control: int
    value: int | None
    release: tuple[tuple[int, int], ...]


def _wishes(source: V4l2Source) -> tuple[_Wish, ...]:
    # A driver that still is in automatic mode accepts an exposure and ignores it; some leave that mode only by a
    # change, so it is set first.
    manual = ((EXPOSURE_AUTO, _APERTURE_PRIORITY), (EXPOSURE_AUTO, _MANUAL))
    return (
        _Wish("exposure_100us", EXPOSURE_ABSOLUTE, source.exposure_100us, manual),
        _Wish("gain", GAIN, source.gain, ((AUTOGAIN, 0),)),
        _Wish("focus", FOCUS_ABSOLUTE, source.focus, ((FOCUS_AUTO, 0),)),
    )


def set_controls(fd: int, source: V4l2Source) -> tuple[str, ...]:
    """Lock what the source asks for; returns each difference in words. Raises OSError only when the device is gone."""
    notes = []
    if source.exposure_100us is None:
        notes += _automatic_exposure(fd)
    for wish in _wishes(source):
        if wish.value is not None:
            for control, value in wish.release:
                _try(fd, control, value)
            notes += _lock(fd, wish.name, wish.control, wish.value)
    return tuple(notes)


def _automatic_exposure(fd: int) -> list[str]:
    """Back to automatic, as it may have been locked before; but not at the cost of the rate, on which the longest
    possible exposure is reckoned."""
    _try(fd, EXPOSURE_AUTO, _APERTURE_PRIORITY)
    if control_range(fd, EXPOSURE_AUTO_PRIORITY) is None:
        return []
    _try(fd, EXPOSURE_AUTO_PRIORITY, 0)
    if read_control(fd, EXPOSURE_AUTO_PRIORITY) == 0:
        return []
    return ["slows down in the dark and cannot be told not to: lock its exposure (exposure_100us)"]


def _lock(fd: int, name: str, control: int, value: int) -> list[str]:
    limits = control_range(fd, control)
    if limits is None:
        return [f"{name} cannot be locked at {value}: the camera has no such control"]
    refused = _try(fd, control, value)
    got = read_control(fd, control)
    if got == value:
        return []
    why = f" ({refused})" if refused else ""
    return [f"{name} is {got}, asked for {value}; it has {limits.minimum}..{limits.maximum}{why}"]


def _try(fd: int, control: int, value: int) -> str:
    """Set it; returns the driver's reason when it does not want to, which the reading back then judges."""
    try:
        write_control(fd, control, value)
    except OSError as error:
        return error.strerror or str(error)
    return ""
