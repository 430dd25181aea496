"""Why a camera's device node cannot be opened. Apart from `v4l2` so that asking costs no OpenCV: a camera
that is missing for a night is asked for every few seconds."""

import os

from edge_daemon.cameras.errors import SourceFault


def refuse_unreachable(path: str) -> None:
    """Raises SourceFault with the system's reason; OpenCV itself would only say that it is not opened."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except FileNotFoundError as error:
        raise SourceFault(
            f"{path} does not exist: the camera is unplugged, or `ls -l /dev/v4l/by-*` knows it by another "
            "name"
        ) from error
    except OSError as error:
        raise SourceFault(
            f"{path} cannot be opened: {error.strerror} (the daemon's user must be in group video)"
        ) from error
