"""What the daemon has the hand do, as the same commands: taps with their approach, and parking for a look."""

from typing import Any, Literal

from edge_daemon.bench.calibrate.arm import Arm
from edge_daemon.config import MotionSection
from firmware import wire

Side = Literal["low", "high"]
# As the staff's touches do (edge_daemon/staff/rig.py): 6 mm clear the glass once its height is known.
STAFF_HOVER_MM = 6.0


class Moves:
    """In mm; the daemon's default settings."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self._motion = MotionSection()
        self.park()

    def facts(self) -> dict[str, Any]:
        """What the solver is told of the hand: the firmware's own envelope and two settings of the daemon's."""
        limits = self._arm.limits
        return {
            "limits": {
                "x_min_mm": limits.x_min / 1000,
                "x_max_mm": limits.x_max / 1000,
                "y_min_mm": limits.y_min / 1000,
                "y_max_mm": limits.y_max / 1000,
                "z_min_mm": limits.z_min / 1000,
                "z_max_mm": limits.z_max / 1000,
            },
            "hover_z_mm": self._motion.search_z_mm,
            "approach_mm": self._motion.approach_mm,
        }

    def park(self) -> None:
        motion = self._motion
        self._arm.do(wire.OP_PARK, *_um(motion.park_x_mm, motion.park_y_mm, motion.park_z_mm))

    def touch(self, x_mm: float, y_mm: float, press_z_mm: float, sides: tuple[Side, Side] | None) -> None:
        """A staff touch. sides None: straight from wherever the hand is, as a rig without the promise would."""
        hover_z_mm = min(press_z_mm + STAFF_HOVER_MM, self._arm.limits.z_max / 1000)
        self._tap(x_mm, y_mm, press_z_mm, hover_z_mm, sides)

    def act(
        self, x_mm: float, y_mm: float, contact_z_mm: float, overtravel_mm: float, *, direct: bool
    ) -> None:
        """A tap of the plane's, as devices/hand_touch.py makes it."""
        hover_z_mm = contact_z_mm + self._motion.hover_mm
        sides: tuple[Side, Side] | None = None if direct else ("low", "low")
        self._tap(x_mm, y_mm, contact_z_mm - overtravel_mm, hover_z_mm, sides)

    def _tap(
        self,
        x_mm: float,
        y_mm: float,
        press_z_mm: float,
        hover_z_mm: float,
        sides: tuple[Side, Side] | None,
    ) -> None:
        if sides is not None:
            by = self._motion.approach_mm
            beside = [
                at - by if side == "low" else at + by for at, side in zip((x_mm, y_mm), sides, strict=True)
            ]
            self._arm.do(wire.OP_MOVE, *_um(*beside, hover_z_mm))
        self._arm.do(wire.OP_TAP, *_um(x_mm, y_mm, hover_z_mm, press_z_mm), self._motion.dwell_ms)


def _um(*places_mm: float) -> tuple[int, ...]:
    return tuple(round(place * 1000) for place in places_mm)
