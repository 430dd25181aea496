"""What can go wrong with a camera. Each message says what was wrong, with which value, and what to do."""

from edge_daemon.cameras.faults import CameraFault


class CameraError(Exception):
    """Base of everything this room raises on purpose."""


class SourceFault(CameraError):
    """The camera, or the server in front of it, cannot be used as it is now: close it and open it again.

    fault: its name.
    """

    def __init__(self, words: str, fault: CameraFault = CameraFault.UNUSABLE) -> None:
        super().__init__(words)
        self.fault = fault


class BadPicture(CameraError):
    """Bytes that are not a whole JPEG, or a picture of another size than the calibration was made for."""


class FrameTooBig(CameraError):
    """A single frame larger than what may be kept or sent."""


class FrameTimeout(CameraError):
    """No frame of the asked kind came in time; the message carries the camera's status."""


class CameraClosed(CameraError):
    """The camera was closed for good; nothing will come from it any more."""


class PipeError(CameraError):
    """The capture process sent bytes that are no record."""


class UnknownFrame(CameraError):
    """A frame id this book does not hold: forgotten, from an earlier run, or never minted."""
