"""The process with the hidden truth: serves the three verbs of a rig, and afterwards judges a calibration.

    python -m edge_daemon.bench.calibrate.world SEED RIG_FD JUDGE_FD [MUTATION]

On RIG_FD the solver asks for looks, touches and pages until it closes; on JUDGE_FD the suite then sends the
calibration and gets back how the phone took 1,000 taps by it. The one mutation that is the rig's breaks its promise to
come to every place from one side.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import msgspec

from calibration.result import DeviceCalibration
from edge_daemon.bench.calibrate.arm import Arm, ArmRefused
from edge_daemon.bench.calibrate.channel import Channel, ChannelClosed
from edge_daemon.bench.calibrate.judge import camera_to_screen_max_mm, judge_taps
from edge_daemon.bench.calibrate.moves import Moves
from edge_daemon.bench.twin.truth import Truth
from edge_daemon.bench.twin.virtual import MS, VirtualRig

FRAME_NS = 1_000_000_000 // 15
# What a person takes to put the next page on the phone. An assumption, stated with the figure it enters.
PAGE_MS = 10_000
# From the end of an exposure to the picture in the solver's hands, beyond the camera's own latency.
TRANSFER_MS = 20


@dataclass
class Spent:
    """Virtual time of the calibration, ms."""

    hand_ms: float = 0.0
    camera_ms: float = 0.0
    person_ms: float = 0.0
    touches: int = 0
    looks: int = 0

    @property
    def total_s(self) -> float:
        return (self.hand_ms + self.camera_ms + self.person_ms) / 1000


@dataclass
class World:
    """One simulated rig in virtual time and the clerk that notes what each verb took."""

    seed: int
    two_sided: bool = False
    spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        self.rig = VirtualRig(Truth(self.seed))
        self.moves = Moves(Arm(self.rig))
        self._latency_ns = round(self.rig.truth.camera.latency_ms * MS)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """One verb of the solver's."""
        began_ns = self.rig.now_ns
        match request:
            case {"verb": "facts"}:
                return self.moves.facts()
            case {"verb": "look"}:
                return self._look(began_ns)
            case {"verb": "touch"}:
                return self._touch(request, began_ns)
            case {"verb": "show"}:
                self.rig.phone.show_page(request["target"], now_ns=began_ns, turn=request["turn"])
                self.rig.pass_ms(PAGE_MS)
                self.spent.person_ms += PAGE_MS
                return {}
        raise ValueError(f"no such verb: {request}")

    def _look(self, began_ns: int) -> dict[str, Any]:
        self.moves.park()
        parked_ns = self.rig.now_ns
        self.spent.hand_ms += (parked_ns - began_ns) / MS
        self.rig.pass_ns(-parked_ns % FRAME_NS)
        picture = self.rig.take_picture()
        self.rig.pass_ns(self._latency_ns + TRANSFER_MS * MS)
        self.spent.camera_ms += (self.rig.now_ns - parked_ns) / MS
        self.spent.looks += 1
        return {"jpeg": picture.jpeg}

    def _touch(self, request: dict[str, Any], began_ns: int) -> dict[str, Any]:
        sides = None if self.two_sided else (request["approach_x"], request["approach_y"])
        self.spent.touches += 1
        try:
            self.moves.touch(request["x_mm"], request["y_mm"], request["press_z_mm"], sides)
        except ArmRefused as refusal:
            return {"refused": f"the board refused the touch with FAULT code {refusal}"}
        finally:
            self.spent.hand_ms += (self.rig.now_ns - began_ns) / MS
        return {}

    def judge(self, calibration: DeviceCalibration, taps: int) -> dict[str, Any]:
        """How true the calibration is: by the camera's real geometry and by the phone's own log."""
        figures = judge_taps(
            self.rig, self.moves, calibration, taps, seed=self.seed, two_sided=self.two_sided
        )
        return {
            **msgspec.to_builtins(figures),
            "camera_to_screen_max_mm": camera_to_screen_max_mm(self.rig, calibration),
        }


def _serve(world: World, rig: Channel) -> None:
    while True:
        try:
            request = rig.receive()
        except ChannelClosed:
            return
        rig.send(world.answer(request))


def main(arguments: list[str]) -> None:
    seed, rig_fd, judge_fd = (int(argument) for argument in arguments[:3])
    rig, suite = Channel.inherited(rig_fd), Channel.inherited(judge_fd)
    world = World(seed, two_sided="no_one_sided_approach" in arguments[3:])
    _serve(world, rig)
    suite.send({**vars(world.spent), "rig_time_s": world.spent.total_s})
    try:
        request = suite.receive()
    except ChannelClosed:
        return
    calibration = msgspec.json.decode(request["calibration"], type=DeviceCalibration)
    suite.send(world.judge(calibration, request["taps"]))


if __name__ == "__main__":
    main(sys.argv[1:])
