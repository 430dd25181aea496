"""Frames, and what a hand noticed about the frame an action was decided on."""

from typing import Literal

from edge_daemon.contract.base import Data
from edge_daemon.contract.identity import FrameId, Orientation

SettleState = Literal["still", "moving", "unreliable"]
ImageFormat = Literal["png", "jpeg"]


class PixelSize(Data, frozen=True, kw_only=True):
    width: int
    height: int


class FrameNotes(Data, frozen=True, kw_only=True, omit_defaults=False):
    """Measured, never guessed.

    age_ms: the bound frame's exposure (driver timestamp, monotonic; its most likely beginning) to the action's
        acceptance by the board.
    newer_frames: frames the camera captured after the bound one, fetched by anybody or not.
    edge_moved_since: the hand moved after the frame for a reason that did not come from the plane.
    settled: the frame was taken after the screen was still following the hand's last move, with the hand out
        of the picture. False also when that could not be told; `settle_reason` then says why.
    """

    age_ms: float
    newer_frames: int
    edge_moved_since: bool
    settled: bool
    settle_reason: str | None = None


class Picture(Data, frozen=True, kw_only=True):
    """One rectified picture of the screen; its edges are the grid's edges."""

    format: ImageFormat
    image: bytes
    pixel_size: PixelSize
    orientation: Orientation
    sequence: int
    captured_at: str | None
    """ISO-8601 on the plane's clock; None when no plane clock has been measured yet."""
    clock_synced: bool
    age_ms: float
    """From exposure to the moment of sending."""
    settle: SettleState
    settle_reason: str | None = None
    hand_in_picture: bool = False
    source: Literal["camera"] = "camera"
    frame_id: FrameId | None = None
    """Only for the lease's holder; a watch gets the picture alone."""
    orientation_mismatch: Orientation | None = None
    """The picture shows a screen turned this way, and not as `orientation` says: no place is to be bound to it."""
