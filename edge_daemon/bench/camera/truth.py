"""What really happened on a simulated rig while a plane looked and acted: exposures, commands, moves at the edge.

Nothing in here comes from the daemon.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from edge_daemon.bench.camera.commands import ACTIONS, HAND_MOVES, Command, CommandLog
from edge_daemon.bench.camera.marks import Marks
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX
from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.bench.twin.sensor import Exposure
from firmware import wire

LINK_LOST_NS, LINK_BACK_NS = 3_000_000_000, 2_000_000_000
"""Around the moment at which a lost board is found again: it went silent no earlier, and is homed and parked then."""


@dataclass(frozen=True)
class EdgeMove:
    """Something at the edge that moved the hand, or may have; CLOCK_MONOTONIC ns.

    certain: the hand moved, or its board stopped or restarted, at some moment of it. Otherwise only nothing before
    and after it is known.
    """

    kind: str
    begin_ns: int
    end_ns: int
    certain: bool = True


@dataclass(frozen=True)
class Sight:
    """What a picture of that exposure shows of hand and screen."""

    hand_in_view: bool
    screen_moving: bool


@dataclass(frozen=True)
class History:
    """A copy of all of it, to judge by. Exposures and sights by the exposure's sequence."""

    exposures: dict[int, Exposure]
    sights: dict[int, Sight]
    hand: tuple[Command, ...]
    keys: tuple[Command, ...]
    edge_moves: tuple[EdgeMove, ...]
    opened_ns: tuple[int, ...] = ()
    """When the hand's board was found again by the daemon."""

    def action_between(self, from_ns: int, to_ns: int) -> Command | None:
        """The one command that carried out an action; None when it was none, or cannot be told from others."""
        found = [
            command
            for command in (*self.hand, *self.keys)
            if command.op in ACTIONS and from_ns <= command.sent_ns <= to_ns
        ]
        return found[0] if len(found) == 1 else None

    def homings(self) -> Iterator[EdgeMove]:
        """The daemon homes by its own decision: the plane asked for none."""
        for command in self.hand:
            if command.op == wire.OP_HOME and command.accepted_ns is not None:
                ended_ns = command.ended_ns if command.ended_ns is not None else command.accepted_ns
                yield EdgeMove("homing", command.sent_ns, ended_ns)

    def returns(self) -> Iterator[EdgeMove]:
        """A hand that parks after a move of the edge's ends that move: no plane sent it there."""
        moves = [command for command in self.hand if command.op in HAND_MOVES]
        for before, command in itertools.pairwise(sorted(moves, key=lambda one: one.sent_ns)):
            at_edge = before.op == wire.OP_HOME or any(
                move.begin_ns <= before.sent_ns <= move.end_ns for move in self.edge_moves
            )
            if command.op == wire.OP_PARK and at_edge and command.accepted_ns is not None:
                ended_ns = command.ended_ns if command.ended_ns is not None else command.accepted_ns
                yield EdgeMove("return to its park position", command.sent_ns, ended_ns)

    def link_breaks(self) -> Iterator[EdgeMove]:
        """While daemon and board did not hear each other, the board's deadman may have lifted the hand or not."""
        for at_ns in self.opened_ns:
            yield EdgeMove("link break", at_ns - LINK_LOST_NS, at_ns + LINK_BACK_NS, certain=False)

    def hand_moved_between(self, from_ns: int, to_ns: int) -> bool:
        """Whether a command set the hand going, for whomever."""
        return any(
            from_ns < command.sent_ns < to_ns
            for command in self.hand
            if command.op in HAND_MOVES and command.accepted_ns is not None
        )


class Witness:
    """Watches a rig and marks its pictures. Its verbs may be called from any thread."""

    def __init__(self, rig: SimulatedRig) -> None:
        self._rig = rig
        self._lock = threading.Lock()
        self._marks = Marks(rig.camera.truth_project, (PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX))
        self._exposures: dict[int, Exposure] = {}
        self._sights: dict[int, Sight] = {}
        self._edge_moves: list[EdgeMove] = []
        self._hand, self._keys = CommandLog(), CommandLog()
        self.marking = True
        """Whether pictures are marked; a black picture with marks would not be black."""
        rig.line("hand").listener = self._hand.hear
        rig.line("hid").listener = self._keys.hear
        rig.camera.pen = self._pen

    def link_broke_since(self, since_ns: int) -> bool:
        """Whether the daemon lost and found one of the boards again, or has not found it yet."""
        return any(at_ns > since_ns for log in (self._hand, self._keys) for at_ns in log.opened_ns())

    def collect(self) -> None:
        """Keep the exposures: the camera remembers the last few minutes only."""
        found = {exposure.sequence: exposure for exposure in self._rig.camera.exposures}
        with self._lock:
            self._exposures |= found

    def newest(self) -> int:
        """The sequence of the last exposure that was painted; 0 before the first."""
        with self._lock:
            return max(self._sights, default=0)

    def history(self) -> History:
        self.collect()
        with self._lock:
            return History(
                exposures=dict(self._exposures),
                sights=dict(self._sights),
                hand=tuple(self._hand.commands()),
                keys=tuple(self._keys.commands()),
                edge_moves=tuple(self._edge_moves),
                opened_ns=tuple(self._hand.opened_ns()),
            )

    @contextmanager
    def edge_move(self, kind: str) -> Iterator[None]:
        """Around whatever the bench does at the edge, until nothing of it goes on any more.

        What fails half-way may have moved the hand or not.
        """
        move = EdgeMove(kind, time.monotonic_ns(), 0, certain=False)
        try:
            yield
            move = replace(move, certain=True)
        finally:
            with self._lock:
                self._edge_moves.append(replace(move, end_ns=time.monotonic_ns()))

    def _pen(self, picture: Image, number: int) -> None:
        sight = Sight(self._rig.camera.hand_in_view(), self._rig.phone.moving(time.monotonic_ns()))
        with self._lock:
            self._sights[number] = sight
        if self.marking:
            self._marks.paint(picture, number)
