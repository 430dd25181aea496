"""What touched the phone, when, and on whose account: the memory behind `edgeMovedSince` and `settled`."""

from dataclasses import dataclass


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

    def moved_for_plane(self, now_ns: int, *, parked: bool) -> None:
        self.last_move_end_ns = max(self.last_move_end_ns, now_ns)
        self.parked = parked

    def touched_at_edge(self, now_ns: int) -> None:
        """Staff had a HID board touch the phone; the hand, where there is one, stands where it stood."""
        self.last_edge_move_ns = max(self.last_edge_move_ns, now_ns)
        self.last_move_end_ns = max(self.last_move_end_ns, now_ns)

    def moved_at_edge(self, now_ns: int, *, parked: bool = False) -> None:
        self.last_edge_move_ns = max(self.last_edge_move_ns, now_ns)
        self.moved_for_plane(now_ns, parked=parked)
