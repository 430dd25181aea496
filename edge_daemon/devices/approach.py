"""How every contact is approached: from the same side, beyond the drives' backlash.

Calibration touches and the plane's touches must come the same way; a drive with 0.15 mm of backlash lands that
much elsewhere from the other side.
"""

from edge_daemon.boards import HandClient


async def approach(hand: HandClient, x_mm: float, y_mm: float, hover_z_mm: float, approach_mm: float) -> None:
    """Brings the hand to hover `approach_mm` short of (x, y) in both axes, so that it arrives moving towards +x, +y.

    A separate command that cannot touch the glass. Raises what `HandClient.move` raises.
    """
    await hand.move(x_mm - approach_mm, y_mm - approach_mm, hover_z_mm)
