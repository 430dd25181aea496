"""What a technician may set, with the ranges in which the procedure is safe."""

import math

import msgspec

from calibration.acceptance import MARKS_MAX_LIMIT_MM, MARKS_MEAN_LIMIT_MM
from calibration.errors import OptionsInvalid


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The procedure's settings. Raises OptionsInvalid for a value outside its safe range."""

    board_looks: int = 5
    """Pictures of the board whose corners are averaged."""
    mark_looks: int = 3
    """Pictures of the control marks that are averaged to judge the camera model, and at the end."""
    camera_residual_max_px: float = 0.35
    """Largest held-out r.m.s. of board corners; well-focused cameras reach 0.1."""
    marks_mean_max_mm: float = MARKS_MEAN_LIMIT_MM
    """Largest common offset of the control marks from where the page draws them: a bias of the camera model."""
    marks_max_mm: float = MARKS_MAX_LIMIT_MM
    """Largest offset of a single control mark."""
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
    backlash_touches: int = 3
    """Touches from each side for the play of the drives; three make the sides' places alike in rows and columns."""
    grid_columns: int = 4
    """Places of the hand's fit across the screen, two at least."""
    grid_rows: int = 6
    """Places of the hand's fit down the screen."""
    grid_inset_mm: float = 5.5
    """Distance of the outer places from the screen's edge."""
    hid_columns: int = 3
    """Places of a HID board's fit across the screen."""
    hid_rows: int = 4
    """Places of a HID board's fit down the screen."""
    pointer_step_counts: int = 4
    """Counts a report of a relative pointer: constant and small, so that the phone does not accelerate it."""
    pointer_home_counts: int = 4000
    """Counts up and left that bring a pointer into its corner from anywhere on the screen."""
    held_out: int = 12
    """Acceptance touches, twelve at least; four of them are the screen's corners."""
    held_out_inset_mm: float = 3.0
    """Distance of the acceptance touches from the screen's edge, at least."""
    p95_max_mm: float = 0.30
    """Largest 95th percentile of the acceptance touches' errors."""
    acceptance_max_mm: float = 0.50
    """The worst acceptance touch that is still accepted."""
    moved_max_px: float = 0.5
    """Largest shift of what must not move, camera px: board and control marks, from begin to end."""
    redo_max: int = 3
    """How often one place may be touched again after a missed or double touch or a page that was disturbed."""
    judge_max: int = 3
    """How often places may be touched again after a verdict."""

    def __post_init__(self) -> None:
        ranges: dict[str, tuple[float, float]] = {
            "board_looks": (3, 50),
            "mark_looks": (1, 50),
            "camera_residual_max_px": (0.01, 2.0),
            "marks_mean_max_mm": (0.005, 1.0),
            "marks_max_mm": (0.01, 2.0),
            "coarse_step_mm": (0.2, 2.0),
            "contact_resolution_mm": (0.02, 0.2),
            "tilt_max": (0.0, 0.15),
            "triangle_mm": (6.0, 40.0),
            "overtravel_mm": (0.1, 1.0),
            "overtravel_limit_mm": (0.3, 3.0),
            "backlash_touches": (2, 6),
            "grid_columns": (2, 9),
            "grid_rows": (2, 15),
            "grid_inset_mm": (4.0, 20.0),
            "hid_columns": (2, 9),
            "hid_rows": (2, 15),
            "pointer_step_counts": (1, 127),
            "pointer_home_counts": (100, 100_000),
            "held_out": (12, 100),
            "held_out_inset_mm": (2.0, 20.0),
            "p95_max_mm": (0.02, 2.0),
            "acceptance_max_mm": (0.05, 2.0),
            "moved_max_px": (0.1, 5.0),
            "redo_max": (0, 10),
            "judge_max": (0, 10),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise OptionsInvalid(f"option {name} is {value}; it must be {low:g} to {high:g}")
        for name in ("coarse_step_mm", "overtravel_mm"):
            # A press of the fit that finds nothing is repeated twice as deep.
            needed = getattr(self, name) * (2.0 if name == "overtravel_mm" else 1.0)
            if needed > self.overtravel_limit_mm:
                raise OptionsInvalid(
                    f"option {name} presses up to {needed} mm beyond contact, more than "
                    f"overtravel_limit_mm = {self.overtravel_limit_mm}; lower the one or raise the other"
                )

    @classmethod
    def quick(cls) -> "Options":
        """Nine places for the fit: for trying a rig out, not for production. The verdict is as strict as ever."""
        return cls(board_looks=3, mark_looks=1, backlash_touches=2, grid_columns=3, grid_rows=3)
