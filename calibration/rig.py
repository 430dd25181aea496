"""What the procedure is handed: a rig with three verbs – look, touch, ask – and the facts of its hand.

All calls are synchronous and may take seconds. The procedure is cancelled by a verb that raises.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from calibration.targets import Image

if TYPE_CHECKING:
    from calibration.acceptance import Acceptance

Side = Literal["low", "high"]
"""From which end of an axis the hand comes to a place."""

Turn = Literal["portrait", "landscape_left", "portrait_upside_down", "landscape_right"]
"""How the page on the phone is turned; the names of the plane's contract."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the hand may go, in hand mm; z grows away from the glass."""

    x_min_mm: float
    x_max_mm: float
    y_min_mm: float
    y_max_mm: float
    z_min_mm: float
    z_max_mm: float


@dataclass(frozen=True)
class HandFacts:
    """What is known of a hand before it is calibrated.

    limits: its envelope, whose centre lies over the screen – a person saw to that. hover_z_mm: a height at which
    it travels freely over everything; the search for contact starts here. approach_mm: from how far to one side
    it comes to every place, beyond the drives' play.
    """

    limits: Envelope
    hover_z_mm: float
    approach_mm: float


@dataclass(frozen=True)
class Look:
    """A raw camera picture: BGR uint8 (height, width, 3), exposed after the call, the hand out of it."""

    image: Image


@dataclass(frozen=True)
class HandTouch:
    """One tap of the hand at hand coordinates, and back to hover.

    Every axis comes from its low side, as the acting path does; only the measurement of the play asks for "high".
    """

    x_mm: float
    y_mm: float
    press_z_mm: float
    approach_x: Side = "low"
    approach_y: Side = "low"


@dataclass(frozen=True)
class DigitizerTouch:
    """One tap by a HID board's touch screen, at fractions 0..1 of its axes."""

    x: float
    y: float


@dataclass(frozen=True)
class PointerTouch:
    """One click of a relative pointer, so many counts right and down of the corner it was homed into."""

    x_counts: int
    y_counts: int


Touch = HandTouch | DigitizerTouch | PointerTouch


@dataclass(frozen=True)
class ShowTarget:
    """Asks that the phone show the ChArUco board, or the dots page with every old dot gone. Answer: "done"."""

    target: Literal["charuco", "dots"]
    turn: Turn = "portrait"


@dataclass(frozen=True)
class PointRefused:
    """Asks what to do about a place whose touch could not be measured. Answer: "redo".

    point: its number, counted from 1 in its step. reason: what was wrong, a sentence for a person.
    """

    step: str
    point: int
    reason: str


@dataclass(frozen=True)
class Judge:
    """Asks a person to look at the verdict. Answer: "accept", "reject" or RedoPoints.

    places_mm: the places the model was fitted to, screen mm, by number from 1, for those who want one repeated.
    """

    acceptance: "Acceptance"
    places_mm: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RedoPoints:
    """Touch these places of the fit again, numbered from 1, and judge anew."""

    points: tuple[int, ...]


Request = ShowTarget | PointRefused | Judge
Answer = Literal["done", "redo", "accept", "reject"] | RedoPoints


class Rig(Protocol):
    """One phone under one camera, with a hand over it or a HID board plugged into it."""

    @property
    def hand(self) -> HandFacts | None:
        """None for a phone that no hand touches."""

    def look(self) -> Look:
        """Take a picture with the hand parked out of view. Returns once the picture is exposed."""

    def touch(self, touch: Touch) -> None:
        """Touch once. Raises TouchRefused when it was not carried out, or not known to have been."""

    def ask(self, request: Request) -> Answer:
        """Have a person, or the phone, do or decide something. Raises Declined when they stop the calibration."""
