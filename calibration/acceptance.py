"""The verdict on a calibration: how far touches that no model was fitted to landed from where they were sent."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from calibration.causes import marks_cause, mean_shift, touch_cause
from calibration.errors import OptionsInvalid
from calibration.screen import Pair, ScreenGeometry

Verdict = Literal["accepted", "refused"]

# With fewer the 95th percentile says nothing.
TOUCHES_MIN = 12
# Simulated, 400 cameras of 7.4 px/mm, 12 marks found to 0.02 to 0.03 mm an axis: a sound model has a mean of 0.025 to
# 0.038 mm at most; one fitted to corners half a pixel off both ways 0.058 at least.
MARKS_MEAN_LIMIT_MM = 0.05
# What is promised of the camera's model over the whole screen. On pictures marks are found to 0.006 mm, and a sound
# model's worst is below 0.02; a weak lens taken for none has 0.14 at the marks and twice that in the corners.
MARKS_MAX_LIMIT_MM = 0.10


class HeldOutTouch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An acceptance touch: where it was sent and where it landed, screen mm, and the error both ways."""

    target_mm: Pair
    landed_mm: Pair
    error_mm: float
    error_grid: float


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far held-out touches landed from where they were sent: the calibration's only verdict.

    Grid units are per axis: the grid's two units have different lengths. failing and cause are empty when accepted.
    """

    touches: tuple[HeldOutTouch, ...]
    p95_limit_mm: float
    max_limit_mm: float
    p50_mm: float
    p95_mm: float
    max_mm: float
    p95_x_grid: float
    p95_y_grid: float
    max_x_grid: float
    max_y_grid: float
    verdict: Verdict
    failing: str = ""
    cause: str = ""

    @classmethod
    def of(
        cls,
        screen: ScreenGeometry,
        pairs: Sequence[tuple[Pair, Pair]],
        *,
        p95_limit_mm: float,
        max_limit_mm: float,
        marks: Sequence[tuple[Pair, Pair]] = (),
        touches_min: int = TOUCHES_MIN,
    ) -> "Acceptance":
        """Judge (target, landed) pairs in screen mm, in the order they were made. Percentiles are linear.

        marks: (drawn, seen) of the page's control marks in the same pictures, if measured; they only help to name the
        cause. touches_min: lower only to judge again what an older version accepted with fewer. Raises OptionsInvalid
        for fewer touches than that.
        """
        if len(pairs) < touches_min:
            raise OptionsInvalid(
                f"{len(pairs)} acceptance touches; at least {touches_min} are needed for a verdict: raise held_out"
            )
        targets = np.array([pair[0] for pair in pairs], dtype=np.float64)
        landed = np.array([pair[1] for pair in pairs], dtype=np.float64)
        mm = np.linalg.norm(landed - targets, axis=1)
        grid = np.abs(screen.mm_to_grid(landed - targets))
        p50_mm, p95_mm = (float(v) for v in np.percentile(mm, [50.0, 95.0]))
        p95_x_grid, p95_y_grid = (float(v) for v in np.percentile(grid, 95.0, axis=0))
        max_mm = float(mm.max())
        failing = ""
        if not max_mm <= max_limit_mm:
            failing = f"max {max_mm:.2f} mm, the limit is {max_limit_mm} mm"
        elif not p95_mm <= p95_limit_mm:
            failing = f"p95 {p95_mm:.2f} mm, the limit is {p95_limit_mm} mm"
        cause = ""
        if failing:
            cause = touch_cause(screen, targets, landed - targets, mean_shift(marks) if marks else None)
        return cls(
            touches=tuple(
                HeldOutTouch(
                    target_mm=t, landed_mm=at, error_mm=float(e), error_grid=float(np.hypot(g[0], g[1]))
                )
                for (t, at), e, g in zip(pairs, mm, grid, strict=True)
            ),
            p95_limit_mm=p95_limit_mm,
            max_limit_mm=max_limit_mm,
            p50_mm=p50_mm,
            p95_mm=p95_mm,
            max_mm=max_mm,
            p95_x_grid=p95_x_grid,
            p95_y_grid=p95_y_grid,
            max_x_grid=float(grid[:, 0].max()),
            max_y_grid=float(grid[:, 1].max()),
            verdict="refused" if failing else "accepted",
            failing=failing,
            cause=cause,
        )

    @property
    def worst(self) -> HeldOutTouch:
        """The touch that landed furthest from its target."""
        return max(self.touches, key=lambda touch: touch.error_mm)

    @property
    def passed(self) -> bool:
        """Whether the calibration may be used."""
        return self.verdict == "accepted"


def judge_marks(
    drawn_mm: Sequence[Pair],
    seen_mm: Sequence[Pair],
    mean_limit_mm: float = MARKS_MEAN_LIMIT_MM,
    max_limit_mm: float = MARKS_MAX_LIMIT_MM,
) -> str:
    """Judge the camera model by control marks that it was not fitted to, screen mm.

    "" when their mean offset and the worst one are within the limits, else the failing number with its likely cause,
    as a sentence. Raises OptionsInvalid for lists of different lengths or fewer than three marks.
    """
    if len(drawn_mm) != len(seen_mm) or len(drawn_mm) < 3:
        raise OptionsInvalid(
            f"{len(drawn_mm)} control marks drawn and {len(seen_mm)} seen; a verdict needs three pairs at least"
        )
    drawn = np.array(drawn_mm, dtype=np.float64)
    errors = np.array(seen_mm, dtype=np.float64) - drawn
    mean_mm = float(np.hypot(*errors.mean(axis=0)))
    max_mm = float(np.hypot(*errors.T).max())
    failing = ""
    if not mean_mm <= mean_limit_mm:
        failing = f"control marks lie {mean_mm:.3f} mm off on the mean, the limit is {mean_limit_mm} mm"
    elif not max_mm <= max_limit_mm:
        failing = f"a control mark lies {max_mm:.3f} mm off, the limit is {max_limit_mm} mm"
    return failing and f"{failing}; {marks_cause(drawn, errors)}"
