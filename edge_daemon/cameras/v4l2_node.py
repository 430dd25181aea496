"""Why a camera's device node cannot be opened, and which descriptor of this process has it open.

Apart from `v4l2` so that asking costs no OpenCV: a camera that is missing for a night is looked for every half second.
"""

import errno
import os
from pathlib import Path

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.v4l2_ioctl import CAP_STREAMING, CAP_VIDEO_CAPTURE, node

UDEV_DATA = Path("/run/udev/data")
"""One file for each device node, "c<major>:<minor>", with a line "S:<link>" for each link that it asks for."""
NODES = Path("/sys/dev/char")
"""A link to each device node's directory, by its number."""
_GONE = (errno.ENODEV, errno.ENXIO)


def refuse_unreachable(path: str) -> None:
    """Raises SourceFault with the system's reason; OpenCV itself would only say that it is not opened."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise SourceFault(
            f"{path} does not exist: the camera is unplugged, or `ls -l /dev/v4l/by-*` knows it by another name",
            CameraFault.UNPLUGGED,
        ) from error
    except OSError as error:
        if error.errno in _GONE:
            raise unplugged(path) from error
        raise SourceFault(
            f"{path} cannot be opened: {error.strerror} (the daemon's user must be in group video)"
        ) from error
    try:
        _refuse_no_camera(path, fd)
        refuse_ambiguous(path)
    finally:
        os.close(fd)


def unplugged(path: str) -> SourceFault:
    """Its node is there, or was until now, and nothing is behind it."""
    return SourceFault(f"{path} has no camera behind it any more: it is unplugged", CameraFault.UNPLUGGED)


def _refuse_no_camera(path: str, fd: int) -> None:
    try:
        found = node(fd)
    except OSError as error:
        if error.errno in _GONE:
            raise unplugged(path) from error
        raise SourceFault(f"{path} is no camera: {error.strerror}") from error
    if not found.capabilities & CAP_VIDEO_CAPTURE or not found.capabilities & CAP_STREAMING:
        raise SourceFault(
            f"{path} ({found.card}, driver {found.driver}) gives no pictures: a camera may have several nodes, take "
            "the one whose link ends in -index0"
        )


def refuse_ambiguous(path: str, udev_data: Path = UDEV_DATA, nodes: Path = NODES) -> None:
    """Raises SourceFault when several cameras ask for this name: two of one make without serial numbers share their
    by-id link, and it leads to whichever was found last."""
    claimants = _claimants(path.removeprefix("/dev/"), udev_data)
    if len(claimants) > 1:
        names = ", ".join(f"/dev/{(nodes / number).resolve().name}" for number in claimants)
        raise SourceFault(
            f"{path} is the name of {len(claimants)} cameras at once ({names}): configure a link that only one of them "
            "has, see `ls -l /dev/v4l/by-path`"
        )


def _claimants(link: str, udev_data: Path) -> list[str]:
    """The number of each device node that asks for `link`, "<major>:<minor>"."""
    found = []
    try:
        entries = [entry for entry in udev_data.iterdir() if entry.name.startswith("c81:")]
    except OSError:
        # No udev here: then nobody makes such links either.
        return []
    for entry in entries:
        try:
            lines = entry.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        if f"S:{link}" in lines:
            found.append(entry.name[1:])
    return sorted(found)


def descriptor_of(path: str) -> int:
    """The descriptor by which this process has the node open. It stays its opener's: not to be closed.

    The opener is OpenCV. Its own descriptor is needed because a driver answers about the buffers of a stream only to
    whoever began it (uvcvideo: EBUSY to everybody else). Raises OSError when there is none.
    """
    wanted = os.stat(path).st_rdev
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.fstat(int(name)).st_rdev == wanted:
                return int(name)
        except OSError:
            # The descriptor of the listing itself, closed by now.
            continue
    raise OSError(errno.EBADF, os.strerror(errno.EBADF), path)
