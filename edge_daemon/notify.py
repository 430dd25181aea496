"""sd_notify(3) in a few lines: tells systemd that the daemon is ready or stopping."""

import logging
import os
import socket

logger = logging.getLogger(__name__)


def notify_systemd(state: str) -> None:
    """Sends `state` (such as READY=1) to the service manager; does nothing outside of one."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # the abstract namespace
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.sendto(state.encode(), address)
    except OSError as error:
        # The rig goes on without its manager hearing of it; a manager that minds will restart us.
        logger.warning("the service manager could not be told %s: %s", state, error.strerror)
