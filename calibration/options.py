"""What a technician may set, with the ranges in which the procedure is safe."""

import math

import msgspec

from calibration.errors import OptionsInvalid


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The procedure's settings. Raises OptionsInvalid for a value outside its safe range."""

    board_looks: int = 5
    """Pictures of the board whose corners are averaged."""
    camera_residual_max_px: float = 0.35
    """Largest held-out r.m.s. of board corners; well-focused cameras reach 0.1."""
    coarse_step_mm: float = 1.0
    """Step of the first search downward. The stylus must give way by that much without harm."""
    contact_resolution_mm: float = 0.06
    """Half width of the interval in which a contact height is left."""
    tilt_max: float = 0.06
    """The steepest glass against the hand's plane, mm per mm; 0.06 is 3.4 degrees."""
    triangle_mm: float = 12.0
    """Side of the first triangle of touches."""
    overtravel_mm: float = 0.3
    """How far beyond contact a touch presses."""
    overtravel_limit_mm: float = 1.5
    """How far beyond contact the stylus may ever press."""
    grid_columns: int = 3
    """Places across the screen, two at least."""
    grid_rows: int = 5
    """Places down the screen."""
    grid_inset_mm: float = 7.0
    """Distance of the outer places from the screen's edge."""
    held_out: int = 8
    """Acceptance touches; the first four are the screen's corners."""
    held_out_inset_mm: float = 4.0
    """Distance of the acceptance touches from the screen's edge, at least."""
    acceptance_max_mm: float = 0.6
    """The worst acceptance touch that is still accepted."""
    moved_max_px: float = 0.5
    """Largest shift of the board's corners from begin to end: phone and camera must not move."""

    def __post_init__(self) -> None:
        ranges: dict[str, tuple[float, float]] = {
            "board_looks": (1, 50),
            "camera_residual_max_px": (0.01, 2.0),
            "coarse_step_mm": (0.2, 2.0),
            "contact_resolution_mm": (0.02, 0.2),
            "tilt_max": (0.0, 0.15),
            "triangle_mm": (6.0, 40.0),
            "overtravel_mm": (0.1, 1.0),
            "overtravel_limit_mm": (0.3, 3.0),
            "grid_columns": (2, 9),
            "grid_rows": (2, 15),
            "grid_inset_mm": (4.0, 20.0),
            "held_out": (5, 100),
            "held_out_inset_mm": (2.0, 20.0),
            "acceptance_max_mm": (0.05, 2.0),
            "moved_max_px": (0.1, 5.0),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise OptionsInvalid(f"option {name} is {value}; it must be {low:g} to {high:g}")
        for name in ("coarse_step_mm", "overtravel_mm"):
            # A press that finds nothing is repeated once, twice as deep.
            needed = getattr(self, name) * (2.0 if name == "overtravel_mm" else 1.0)
            if needed > self.overtravel_limit_mm:
                raise OptionsInvalid(
                    f"option {name} presses up to {needed} mm beyond contact, more than "
                    f"overtravel_limit_mm = {self.overtravel_limit_mm}; lower the one or raise the other"
                )

    @classmethod
    def quick(cls) -> "Options":
        """Nine places and five acceptance touches: for trying a rig out, not for production."""
        return cls(board_looks=3, grid_rows=3, held_out=5)
