"""The process without the truth: runs the calibration package against a rig that it knows by its three verbs only.

    python -m edge_daemon.bench.calibrate.solver RIG_FD RESULT_FD [MUTATION]

Sends the suite the calibration as JSON or the refusal by name, and which modules it had imported at the end.
"""

import sys
from typing import Any

import cv2
import msgspec
import numpy as np

from calibration import Options, ScreenGeometry, calibrate
from calibration.errors import CalibrationError, Declined, TouchRefused
from calibration.rig import (
    Answer,
    Envelope,
    HandFacts,
    HandTouch,
    Judge,
    Look,
    PointRefused,
    Request,
    ShowTarget,
    Touch,
)
from edge_daemon.bench.calibrate.channel import Channel, ChannelClosed
from edge_daemon.bench.calibrate.mutations import mutate

# The simulated phone's data sheet, which a technician has too.
SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
P95_LIMIT_MM, MAX_LIMIT_MM = 0.15, 0.25


class PipeRig:
    """calibration.rig.Rig at the other end of a socket; a person who lets everything be repeated and accepts."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        facts = self._do({"verb": "facts"})
        self._hand = HandFacts(
            limits=Envelope(**facts["limits"]),
            hover_z_mm=facts["hover_z_mm"],
            approach_mm=facts["approach_mm"],
        )

    @property
    def hand(self) -> HandFacts:
        return self._hand

    def look(self) -> Look:
        jpeg = np.frombuffer(self._do({"verb": "look"})["jpeg"], np.uint8)
        image = cv2.imdecode(jpeg, cv2.IMREAD_COLOR)
        if image is None:
            raise Declined("the camera sent a picture that is no JPEG")
        return Look(np.asarray(image, dtype=np.uint8))

    def touch(self, touch: Touch) -> None:
        if not isinstance(touch, HandTouch):
            raise TouchRefused("this rig has a hand and nothing else")
        refused = self._do({"verb": "touch", **vars(touch)}).get("refused")
        if refused:
            raise TouchRefused(refused)

    def ask(self, request: Request) -> Answer:
        match request:
            case ShowTarget():
                self._do({"verb": "show", "target": request.target, "turn": request.turn})
                return "done"
            case PointRefused():
                return "redo"
            case Judge():
                return "accept"

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._channel.send(request)
            return self._channel.receive()
        except ChannelClosed as error:
            raise TouchRefused("the simulated rig has ended") from error


def main(arguments: list[str]) -> None:
    cv2.setNumThreads(1)
    rig, suite = (Channel.inherited(int(argument)) for argument in arguments[:2])
    mutate(arguments[2] if len(arguments) > 2 else "")
    result: dict[str, Any]
    try:
        options = Options(p95_max_mm=P95_LIMIT_MM, acceptance_max_mm=MAX_LIMIT_MM)
        result = {"calibration": msgspec.json.encode(calibrate(PipeRig(rig), SCREEN, options))}
    except CalibrationError as refusal:
        result = {"refusal": type(refusal).__name__, "because": str(refusal)}
    suite.send({**result, "modules": sorted(sys.modules)})


if __name__ == "__main__":
    main(sys.argv[1:])
