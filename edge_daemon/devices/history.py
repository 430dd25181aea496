"""What touched the phone, when, and on whose account: the memory behind `edgeMovedSince` and `settled`."""

from collections import deque
from dataclasses import dataclass, field

MOVES_KEPT = 64
"""A push tells itself every few hundred ms while it goes on; an action takes seconds at most."""


@dataclass
class HandHistory:
    """Times are CLOCK_MONOTONIC nanoseconds; 0 means never since this daemon started."""

    last_move_end_ns: int = 0
    """End of the hand's last move for whatever reason."""
    last_edge_move_ns: int = 0
    """Last moment the hand moved for a reason that did not come from the plane: a jog, a calibration, homing,
    an e-stop, a board restart, a push by hand."""
    parked: bool = False
    """The hand is known to stand at its park position, out of the picture."""
    _parked_ns: int = 0
    _left_ns: int = 0
    _edge_moves_ns: deque[int] = field(default_factory=lambda: deque(maxlen=MOVES_KEPT))
    _forgotten_ns: int = 0

    # -- what moved ---------------------------------------------------------------------------------------

    def leaves_park(self, now_ns: int) -> None:
        """From now on the hand may be in the picture."""
        if self.parked:
            self._left_ns = now_ns
        self.parked = False

    def moved_for_plane(self, now_ns: int) -> None:
        """A move of the plane's has ended, and the hand stands somewhere over the phone."""
        self.last_move_end_ns = max(self.last_move_end_ns, now_ns)
        self.leaves_park(now_ns)

    def moved_at_edge(self, now_ns: int) -> None:
        """The hand moved, or may have, for a reason that is not the plane's."""
        self._note_edge_move(now_ns)
        self.moved_for_plane(now_ns)

    def touched_at_edge(self, now_ns: int) -> None:
        """Staff had a HID board touch the phone; the hand, where there is one, stands where it stood."""
        self._note_edge_move(now_ns)
        self.last_move_end_ns = max(self.last_move_end_ns, now_ns)

    def came_to_park(self, now_ns: int, *, at_edge: bool = False) -> None:
        """The hand stands parked. Parking ends the move before it, so it is on the same account.

        at_edge: staff asked for it.
        """
        if at_edge or 0 < self.last_move_end_ns <= self.last_edge_move_ns:
            self._note_edge_move(now_ns)
        self.last_move_end_ns = max(self.last_move_end_ns, now_ns)
        self.parked, self._parked_ns = True, now_ns

    def _note_edge_move(self, now_ns: int) -> None:
        if len(self._edge_moves_ns) == MOVES_KEPT:
            self._forgotten_ns = max(self._forgotten_ns, self._edge_moves_ns[0])
        self._edge_moves_ns.append(now_ns)
        self.last_edge_move_ns = max(self.last_edge_move_ns, now_ns)

    # -- what is asked ------------------------------------------------------------------------------------

    def edge_moved_between(self, after_ns: int, until_ns: int) -> bool:
        """Whether anything of the edge's moved the hand after the one moment and not after the other."""
        kept = any(after_ns < moved_ns <= until_ns for moved_ns in self._edge_moves_ns)
        return kept or after_ns < self._forgotten_ns

    def was_out_of_picture(self, exposed_ns: int, complete_ns: int) -> bool:
        """Whether the hand stood parked all the while a picture was taken: exposed no earlier, complete no later.

        False for a picture of an earlier stay at the park position than the last: nobody remembers those.
        """
        return self._parked_ns < exposed_ns and (self.parked or complete_ns <= self._left_ns)
