"""The calibration's rig, reached through the daemon: its socket for a technician's tool, its desk for itself.

The procedure is synchronous and runs in a worker thread; each verb hops to the trio loop and back, so that a
cancelled run leaves at its next verb.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import cv2
import numpy as np
import trio

from calibration.errors import Declined, TouchRefused
from calibration.options import Options
from calibration.rig import (
    Answer,
    DigitizerTouch,
    Envelope,
    HandFacts,
    HandTouch,
    Look,
    PointerTouch,
    Request,
    Touch,
)
from edge_daemon.contract import Refused
from edge_daemon.upstream.service import (
    DigitizerTouchAt,
    HandTouchAt,
    PointerTouchAt,
    RawPicture,
    RigFacts,
    RigHand,
    StaffTouchAt,
)

Asker = Callable[[Request], Awaitable[Answer]]
"""Answers what the procedure asks of a person, or of the phone; raises `Declined` to stop it."""

TOUCH_DWELL_MS = 60
"""As long as the plane's taps press by default: the dot appears where those land."""
CLEARANCE_MM = 6.0
"""Hover over the place pressed to: before the glass is found the press may be anywhere below, this clears it after."""


@dataclass(frozen=True)
class RigVerbs:
    """How one held device is looked at and touched; both raise `Refused`."""

    look: Callable[[], Awaitable[RawPicture]]
    touch: Callable[[StaffTouchAt], Awaitable[None]]


class StaffRig:
    """Implements `calibration.rig.Rig`. Its verbs are called from a trio worker thread."""

    def __init__(self, verbs: RigVerbs, facts: RigFacts, options: Options, asker: Asker) -> None:
        self._verbs = verbs
        self._options = options
        self._asker = asker
        self._hand = _hand_facts(facts.hand) if facts.hand is not None else None

    @property
    def hand(self) -> HandFacts | None:
        return self._hand

    def look(self) -> Look:
        picture = trio.from_thread.run(self._verbs.look)
        image = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise Declined(f"camera {picture.camera} sent a picture that is no JPEG; look at its stream")
        return Look(image=np.asarray(image, dtype=np.uint8))

    def touch(self, touch: Touch) -> None:
        try:
            trio.from_thread.run(self._verbs.touch, self._order(touch))
        except Refused as refusal:
            raise TouchRefused(str(refusal)) from refusal

    def ask(self, request: Request) -> Answer:
        return trio.from_thread.run(self._asker, request)

    def _order(self, touch: Touch) -> StaffTouchAt:
        match touch:
            case HandTouch():
                assert self._hand is not None, "the procedure was told that there is none"
                return HandTouchAt(
                    x_mm=touch.x_mm,
                    y_mm=touch.y_mm,
                    press_z_mm=touch.press_z_mm,
                    hover_z_mm=min(touch.press_z_mm + CLEARANCE_MM, self._hand.limits.z_max_mm),
                    dwell_ms=TOUCH_DWELL_MS,
                    approach_x=touch.approach_x,
                    approach_y=touch.approach_y,
                )
            case DigitizerTouch(x=x, y=y):
                return DigitizerTouchAt(x=x, y=y, dwell_ms=TOUCH_DWELL_MS)
            case PointerTouch(x_counts=x_counts, y_counts=y_counts):
                return PointerTouchAt(
                    x_counts=x_counts,
                    y_counts=y_counts,
                    home_counts=self._options.pointer_home_counts,
                    step_counts=self._options.pointer_step_counts,
                    dwell_ms=TOUCH_DWELL_MS,
                )


def _hand_facts(hand: RigHand) -> HandFacts:
    envelope = hand.envelope
    limits = Envelope(
        x_min_mm=envelope.x_min_mm,
        x_max_mm=envelope.x_max_mm,
        y_min_mm=envelope.y_min_mm,
        y_max_mm=envelope.y_max_mm,
        z_min_mm=envelope.z_min_mm,
        z_max_mm=envelope.z_max_mm,
    )
    return HandFacts(limits, hand.search_z_mm, hand.approach_mm)
