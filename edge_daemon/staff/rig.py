"""The calibration's rig, reached through a running daemon.

The procedure is synchronous and runs in a worker thread; each verb hops to the trio loop and back, so that a
cancelled run leaves at its next verb.
"""

from collections.abc import Awaitable, Callable

import cv2
import numpy as np
import trio

from calibration.errors import Declined, TouchRefused
from calibration.rig import Envelope, Look, ShowTarget
from edge_daemon.contract import Refused
from edge_daemon.upstream.client import StaffClient
from edge_daemon.upstream.service import RigFacts, StaffTouchAt

Asker = Callable[[ShowTarget], Awaitable[None]]
"""Has a person (or a simulated one) show a target on the phone; raises `Declined`."""

TOUCH_DWELL_MS = 60
"""As long as the plane's taps press by default: the dot appears where those land."""


class DaemonRig:
    """Implements `calibration.rig.Rig` for one held device. Verbs are called from a trio worker thread."""

    def __init__(self, client: StaffClient, facts: RigFacts, asker: Asker) -> None:
        self._client = client
        self._facts = facts
        self._asker = asker
        envelope = facts.envelope
        self._limits = Envelope(
            x_min_mm=envelope.x_min_mm,
            x_max_mm=envelope.x_max_mm,
            y_min_mm=envelope.y_min_mm,
            y_max_mm=envelope.y_max_mm,
            z_min_mm=envelope.z_min_mm,
            z_max_mm=envelope.z_max_mm,
        )

    @property
    def limits(self) -> Envelope:
        return self._limits

    @property
    def hover_z_mm(self) -> float:
        return self._facts.search_z_mm

    def look(self) -> Look:
        picture = trio.from_thread.run(self._client.look, self._facts.device_id)
        image = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            raise Declined(f"camera {picture.camera} sent a picture that is no JPEG")
        return Look(image=np.asarray(image, dtype=np.uint8))

    def touch(self, x_mm: float, y_mm: float, press_z_mm: float) -> None:
        at = StaffTouchAt(
            x_mm=x_mm,
            y_mm=y_mm,
            press_z_mm=press_z_mm,
            hover_z_mm=self._hover_over(press_z_mm),
            dwell_ms=TOUCH_DWELL_MS,
        )
        try:
            trio.from_thread.run(self._client.touch, self._facts.device_id, at)
        except Refused as refusal:
            raise TouchRefused(str(refusal)) from refusal

    def _hover_over(self, press_z_mm: float) -> float:
        # Before the glass is found the press may be anywhere below; 6 mm clear it once it is.
        return min(press_z_mm + 6.0, self._limits.z_max_mm)

    def ask(self, request: ShowTarget) -> None:
        trio.from_thread.run(self._asker, request)
