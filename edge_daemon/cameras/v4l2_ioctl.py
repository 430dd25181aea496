"""The questions to a Video4Linux driver that OpenCV does not pass on: linux/videodev2.h, the parts used here.

Every function takes a descriptor that somebody else opened. `struct timeval` and `unsigned long` are the C types of
this machine, so the sizes, and with them the request numbers, are right on 64 and on 32 bits.
"""

import ctypes
import errno
import fcntl
from typing import NamedTuple

CAPTURE = 1
"""V4L2_BUF_TYPE_VIDEO_CAPTURE: cameras that hand a picture over in one piece."""
_MMAP = 1
CAP_VIDEO_CAPTURE, CAP_STREAMING, CAP_DEVICE_CAPS = 0x1, 0x0400_0000, 0x8000_0000
_FRAME_SIZE_DISCRETE = 1
_LISTED_MOST = 256
"""Formats, sizes: a driver that never says "no more" must not hold us."""

FLAG_QUEUED, FLAG_DONE, FLAG_ERROR = 0x2, 0x4, 0x40
CLOCK_MASK, CLOCK_UNKNOWN, CLOCK_MONOTONIC, CLOCK_COPIED = 0xE000, 0x0000, 0x2000, 0x4000
MOMENT_MASK, MOMENT_END_OF_FRAME, MOMENT_START_OF_EXPOSURE = 0x7_0000, 0x0_0000, 0x1_0000


class _Capability(ctypes.Structure):
    _fields_ = (
        ("driver", ctypes.c_char * 16),
        ("card", ctypes.c_char * 32),
        ("bus_info", ctypes.c_char * 32),
        ("version", ctypes.c_uint32),
        ("capabilities", ctypes.c_uint32),
        ("device_caps", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 3),
    )


class _FormatDescription(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("description", ctypes.c_char * 32),
        ("pixelformat", ctypes.c_uint32),
        ("mbus_code", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 3),
    )


class _FrameSize(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("pixel_format", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        # A union: two numbers for one size, six for a range.
        ("numbers", ctypes.c_uint32 * 6),
        ("reserved", ctypes.c_uint32 * 2),
    )


class _Timeval(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_usec", ctypes.c_long))


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("bytesused", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("field", ctypes.c_uint32),
        ("timestamp", _Timeval),
        ("timecode", ctypes.c_uint32 * 4),
        ("sequence", ctypes.c_uint32),
        ("memory", ctypes.c_uint32),
        # A union of an offset, a pointer and a descriptor.
        ("m", ctypes.c_ulong),
        ("length", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("request_fd", ctypes.c_int32),
    )


class _QueryControl(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("name", ctypes.c_char * 32),
        ("minimum", ctypes.c_int32),
        ("maximum", ctypes.c_int32),
        ("step", ctypes.c_int32),
        ("default_value", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 2),
    )


class _Control(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint32), ("value", ctypes.c_int32))


def _number(direction: int, number: int, size: int) -> int:
    """_IOC of asm-generic/ioctl.h for type 'V'."""
    return direction << 30 | size << 16 | ord("V") << 8 | number


_WRITE, _READ = 1, 2
_QUERYCAP = _number(_READ, 0, ctypes.sizeof(_Capability))
_ENUM_FMT = _number(_READ | _WRITE, 2, ctypes.sizeof(_FormatDescription))
_QUERYBUF = _number(_READ | _WRITE, 9, ctypes.sizeof(_Buffer))
_STREAMON = _number(_WRITE, 18, ctypes.sizeof(ctypes.c_int))
_G_CTRL = _number(_READ | _WRITE, 27, ctypes.sizeof(_Control))
_S_CTRL = _number(_READ | _WRITE, 28, ctypes.sizeof(_Control))
_QUERYCTRL = _number(_READ | _WRITE, 36, ctypes.sizeof(_QueryControl))
_ENUM_FRAMESIZES = _number(_READ | _WRITE, 74, ctypes.sizeof(_FrameSize))


class Node(NamedTuple):
    """What is behind a device node. `capabilities`: V4L2_CAP_… of this node."""

    driver: str
    card: str
    capabilities: int


class Buffer(NamedTuple):
    """One of the driver's buffers. `stamp_ns` and `sequence` are those of the picture in it, and 0 where none is."""

    number: int
    flags: int
    bytes_used: int
    stamp_ns: int
    sequence: int

    @property
    def is_done(self) -> bool:
        """A picture is in it that nobody has taken yet."""
        return bool(self.flags & FLAG_DONE)

    @property
    def is_queued(self) -> bool:
        """The driver has it and no picture is in it yet."""
        return bool(self.flags & FLAG_QUEUED)

    def is_whole(self, least_bytes: int) -> bool:
        """The driver does not say that this picture may be damaged, and has filled so much. Told until it is taken."""
        return not self.flags & FLAG_ERROR and self.bytes_used >= least_bytes


class ControlRange(NamedTuple):
    minimum: int
    maximum: int
    step: int


def node(fd: int) -> Node:
    """Raises OSError: ENOTTY when this is no Video4Linux device."""
    found = _Capability()
    fcntl.ioctl(fd, _QUERYCAP, found)
    # A device of several nodes tells about the whole of it in `capabilities` and about this one in `device_caps`.
    of_the_node = found.capabilities & CAP_DEVICE_CAPS
    return Node(
        found.driver.decode(errors="replace"),
        found.card.decode(errors="replace"),
        found.device_caps if of_the_node else found.capabilities,
    )


def pixel_formats(fd: int) -> list[str]:
    """The four-letter names of what the camera gives, in its own order. Raises OSError."""
    names = []
    for index in range(_LISTED_MOST):
        found = _FormatDescription(index=index, type=CAPTURE)
        try:
            fcntl.ioctl(fd, _ENUM_FMT, found)
        except OSError as error:
            if error.errno == errno.EINVAL:
                break
            raise
        names.append(found.pixelformat.to_bytes(4, "little").decode("latin-1").rstrip())
    return names


def frame_sizes(fd: int, pixel_format: str) -> list[tuple[int, int]]:
    """(width, height) of each size in that format; empty where the driver takes any or does not say.

    Raises OSError.
    """
    sizes = []
    for index in range(_LISTED_MOST):
        found = _FrameSize(index=index, pixel_format=fourcc(pixel_format))
        try:
            fcntl.ioctl(fd, _ENUM_FRAMESIZES, found)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTTY):
                break
            raise
        if found.type == _FRAME_SIZE_DISCRETE:
            sizes.append((int(found.numbers[0]), int(found.numbers[1])))
    return sizes


def fourcc(name: str) -> int:
    """The number of a four-letter name."""
    return int.from_bytes(name.ljust(4).encode("latin-1"), "little")


def buffers(fd: int) -> list[Buffer]:
    """Every buffer of the stream. Raises OSError: ENODEV when the device is gone."""
    found = []
    for number in range(_LISTED_MOST):
        try:
            found.append(buffer(fd, number))
        except OSError as error:
            if error.errno == errno.EINVAL:
                break
            raise
    return found


def buffer(fd: int, number: int) -> Buffer:
    """One of them. Raises OSError: EINVAL when there are not so many."""
    asked = _Buffer(index=number, type=CAPTURE, memory=_MMAP)
    fcntl.ioctl(fd, _QUERYBUF, asked)
    stamp_ns = (asked.timestamp.tv_sec * 1_000_000 + asked.timestamp.tv_usec) * 1000
    return Buffer(number, asked.flags, asked.bytesused, stamp_ns, asked.sequence)


def start_stream(fd: int) -> None:
    """Raises OSError with the driver's reason."""
    fcntl.ioctl(fd, _STREAMON, ctypes.c_int(CAPTURE))


def control_range(fd: int, control: int) -> ControlRange | None:
    """None when the camera has no such control. Raises OSError."""
    asked = _QueryControl(id=control)
    try:
        fcntl.ioctl(fd, _QUERYCTRL, asked)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTTY):
            return None
        raise
    return ControlRange(asked.minimum, asked.maximum, asked.step)


def read_control(fd: int, control: int) -> int:
    """Raises OSError."""
    asked = _Control(id=control)
    fcntl.ioctl(fd, _G_CTRL, asked)
    return int(asked.value)


def write_control(fd: int, control: int, value: int) -> None:
    """Raises OSError: ERANGE outside the control's range, EBUSY or EACCES while it cannot be changed."""
    fcntl.ioctl(fd, _S_CTRL, _Control(id=control, value=value))
