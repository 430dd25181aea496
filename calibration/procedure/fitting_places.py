"""The numbered places that a model is fitted to, and their touches, which can be made again."""

from collections.abc import Sequence

import msgspec

from calibration.errors import RigRefused
from calibration.procedure.place import Aim, touch_place
from calibration.procedure.run import Run
from calibration.screen import Pair
from calibration.targets import DOT_DIAMETER_MM


class FittingPlaces:
    """Touches places by number, from 1, and keeps which touch is each place's latest."""

    def __init__(self, run: Run, places: Sequence[Pair], aim: Aim) -> None:
        """aim: for places in the fit, better known with every dot."""
        self._run, self._aim = run, aim
        self.places = tuple(places)
        self._records: dict[int, int] = {}

    def adopt(self, number: int, record: int) -> None:
        """The place has been touched already, by that touch of the session."""
        self._records[number] = record

    def touch_all(self) -> None:
        """Touch every place that has no touch yet, in order. Raises PictureRefused and what the rig raises."""
        for number in range(1, len(self.places) + 1):
            if number not in self._records:
                self._touch(number)

    def redo(self, numbers: Sequence[int]) -> None:
        """Touch these places again; their former touches serve no fit any more.

        Raises RigRefused for a number that no place has.
        """
        unknown = [number for number in numbers if not 1 <= number <= len(self.places)]
        if unknown or not numbers:
            raise RigRefused(
                f"asked to touch places {list(numbers)} again; places are numbered 1 to {len(self.places)}"
            )
        for number in sorted(set(numbers)):
            records, former = self._run.session.records, self._records[number]
            records[former] = msgspec.structs.replace(records[former], replaced=True)
            self._touch(number)

    def _touch(self, number: int) -> None:
        place, _ = touch_place(self._run, "grid", number, self.places[number - 1], DOT_DIAMETER_MM, self._aim)
        self._records[number] = len(self._run.session.records) - 1
        self._run.meter.tell(f"({place[0]:.1f}, {place[1]:.1f}) mm: touched")
