"""What the procedure is handed: a rig with three verbs, and two facts about its hand.

All calls are synchronous and may take seconds. The procedure is cancelled by a verb that raises.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from calibration.targets import Image


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the hand may go, in hand mm; z grows away from the glass."""

    x_min_mm: float
    x_max_mm: float
    y_min_mm: float
    y_max_mm: float
    z_min_mm: float
    z_max_mm: float


@dataclass(frozen=True)
class Look:
    """A raw camera picture: BGR uint8 (height, width, 3), exposed after the call, the hand out of it."""

    image: Image


@dataclass(frozen=True)
class ShowTarget:
    """Asks that the phone show the ChArUco board, or the dots page with every old dot gone."""

    target: Literal["charuco", "dots"]


class Rig(Protocol):
    """One phone under one hand and one camera."""

    @property
    def limits(self) -> Envelope:
        """The hand's envelope. Its centre lies over the screen: a person saw to that."""

    @property
    def hover_z_mm(self) -> float:
        """A height at which the hand travels freely over everything. Search for contact starts here."""

    def look(self) -> Look:
        """Take a picture with the hand parked out of view. Returns once the picture is exposed."""

    def touch(self, x_mm: float, y_mm: float, press_z_mm: float) -> None:
        """Tap once at hand coordinates and return to hover.

        The rig promises to come to (x, y) from the same side each time, beyond the drives' backlash; the
        acting path does the same, so the calibration holds for it. Raises TouchRefused.
        """

    def ask(self, request: ShowTarget) -> None:
        """Have a person, or the phone, do something; returns when it is done. Raises Declined."""
