"""The interface every kind of camera implements inside the capture process."""

from typing import Protocol

from edge_daemon.cameras.intake import Grabbed
from edge_daemon.cameras.sources import CameraSource, CsiSource, FilesSource, HttpMjpegSource, V4l2Source


class Backend(Protocol):
    """Blocking on purpose: it runs alone in a process that can be killed."""

    def open(self) -> tuple[str, ...]:
        """Open the camera; returns what it gives other than what was asked. Raises SourceFault."""
        ...

    def grab(self) -> Grabbed:
        """Wait for the next picture. Raises SourceFault when there is none to be had."""
        ...

    def close(self) -> None:
        """Give the camera back. Safe to call at any time."""
        ...


def backend_for(source: CameraSource) -> Backend:
    """The backend of a source. Raises SourceFault when the device is not even there.

    Imported only when used: OpenCV and numpy cost a third of a second and 60 MB.
    """
    match source:
        case HttpMjpegSource():
            from edge_daemon.cameras.http_mjpeg import HttpMjpegBackend

            return HttpMjpegBackend(source)
        case V4l2Source():
            from edge_daemon.cameras.v4l2_node import refuse_unreachable

            refuse_unreachable(source.path)
            from edge_daemon.cameras.v4l2 import V4l2Backend

            return V4l2Backend(source)
        case CsiSource():
            from edge_daemon.cameras.csi import CsiBackend

            return CsiBackend(source)
        case FilesSource():
            from edge_daemon.cameras.files import FilesBackend

            return FilesBackend(source)
