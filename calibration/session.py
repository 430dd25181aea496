"""Touching and looking: every touch is checked against the envelope, seen by the camera and kept."""

import msgspec
import numpy as np

from calibration.detect import Dot, DotFinder
from calibration.errors import NoDot, OutOfReach
from calibration.result import Pair, TouchRecord, TouchStep
from calibration.rig import Rig, ShowTarget
from calibration.targets import Image, Points


class TouchSession:
    """The dots page of one calibration: touches put on it, and all that was measured."""

    def __init__(self, rig: Rig, finder: DotFinder) -> None:
        self._rig = rig
        self._finder = finder
        self.records: list[TouchRecord] = []
        self.dots: list[Pair] = []
        rig.ask(ShowTarget("dots"))
        self._before: Image = rig.look().image

    def touch(self, step: TouchStep, hand_mm: Pair, press_z_mm: float, target_mm: Pair | None) -> Dot | None:
        """Touch at hand coordinates and find the fresh dot; None when the touch left none.

        Raises OutOfReach before anything moves, what the rig raises, and PictureRefused (but NoDot).
        """
        self._require_reach(hand_mm, press_z_mm)
        self._rig.touch(hand_mm[0], hand_mm[1], press_z_mm)
        after = self._rig.look().image
        dot: Dot | None
        try:
            dot = self._finder.find(self._before, after)
        except NoDot:
            dot = None
        self._before = after
        seen = None if dot is None else (dot.x_mm, dot.y_mm)
        if seen is not None:
            self.dots.append(seen)
        self.records.append(
            TouchRecord(
                step=step,
                hand_mm=hand_mm,
                press_z_mm=press_z_mm,
                seen_mm=seen,
                whole=dot is not None and dot.whole,
                target_mm=target_mm,
            )
        )
        return dot

    def pairs(self) -> tuple[Points, Points, list[int]]:
        """All whole dots so far: seen screen mm (N, 2), commanded hand mm (N, 2), their record numbers."""
        chosen = [(i, r.seen_mm, r.hand_mm) for i, r in enumerate(self.records) if r.whole and r.seen_mm]
        seen = np.array([s for _, s, _ in chosen], dtype=np.float64).reshape(-1, 2)
        hand = np.array([h for _, _, h in chosen], dtype=np.float64).reshape(-1, 2)
        return seen, hand, [i for i, _, _ in chosen]

    def mark_outlier(self, number: int) -> None:
        """Note in the record that the fit dropped this touch."""
        self.records[number] = msgspec.structs.replace(self.records[number], outlier=True)

    def _require_reach(self, hand_mm: Pair, press_z_mm: float) -> None:
        box = self._rig.limits
        for axis, value, low, high in (
            ("x", hand_mm[0], box.x_min_mm, box.x_max_mm),
            ("y", hand_mm[1], box.y_min_mm, box.y_max_mm),
            ("z", press_z_mm, box.z_min_mm, box.z_max_mm),
        ):
            if not low <= value <= high:
                raise OutOfReach(
                    f"the next touch needs hand {axis} = {value:.2f} mm, the envelope is {low:.2f} to "
                    f"{high:.2f} mm; move the phone so that its whole screen is within the hand's reach"
                )
