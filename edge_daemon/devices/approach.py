"""How every contact is approached: each axis from one side, beyond the drives' backlash.

Calibration touches and the plane's touches must come the same way; a drive with 0.15 mm of backlash lands that
much elsewhere from the other side.
"""

from edge_daemon.boards import HandClient
from edge_daemon.upstream.service import Side


async def approach(
    hand: HandClient,
    x_mm: float,
    y_mm: float,
    hover_z_mm: float,
    approach_mm: float,
    side_x: Side = "low",
    side_y: Side = "low",
) -> None:
    """Brings the hand to hover `approach_mm` short of (x, y), so that it arrives away from the given ends of the axes.

    A separate command that cannot touch the glass. Raises what `HandClient.move` raises.
    """
    await hand.move(
        x_mm + _offset(approach_mm, side_x),
        y_mm + _offset(approach_mm, side_y),
        hover_z_mm,
    )


def _offset(approach_mm: float, side: Side) -> float:
    return -approach_mm if side == "low" else approach_mm
