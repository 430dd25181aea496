"""Where a run stands, and how long the rest will take at this run's own pace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from calibration.procedure.steps import Step
from calibration.rig import Answer, HandFacts, Look, Request, Rig, Touch

Clock = Callable[[], float]
"""Seconds that only ever grow: time.monotonic, or a test's own."""


@dataclass(frozen=True)
class Progress:
    """Where the procedure stands.

    number of steps, counted from 1, and the step itself. touches: made so far. detail: the last touch's result, or
    "". fraction: 0..1, never falling. remaining_s: None until this run has touched and looked, which is what it is
    measured by; the time in which a person is asked does not count.
    """

    number: int
    steps: int
    step: Step
    touches: int
    detail: str
    fraction: float = 0.0
    remaining_s: float | None = None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Work:
    """How many touches and looks a step is expected to need."""

    touches: int = 0
    looks: int = 0


@dataclass
class _Spent:
    seconds: list[float] = field(default_factory=list)

    def pace_s(self) -> float:
        """The typical duration of one. The median: a single slow one says nothing about the rest."""
        return float(np.median(self.seconds))


class Meter:
    """Counts and times what a run does, and tells of it."""

    def __init__(
        self,
        steps: Mapping[str, Step],
        expected: Mapping[str, Work],
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> None:
        self.clock = clock
        self._steps, self._expected, self._on_progress = steps, expected, on_progress
        self._touching, self._looking = _Spent(), _Spent()
        self._step = next(iter(steps))
        self._begun_at = (0, 0)
        self._fraction = 0.0

    @property
    def touches(self) -> int:
        """Touches made so far, refused ones included."""
        return len(self._touching.seconds)

    def touched(self, seconds: float) -> None:
        """One touch took so long."""
        self._touching.seconds.append(seconds)

    def looked(self, seconds: float) -> None:
        """One look took so long."""
        self._looking.seconds.append(seconds)

    def begin(self, step: str) -> None:
        """The run has come to this step."""
        self._step = step
        self._begun_at = (self.touches, len(self._looking.seconds))
        self.tell("")

    def tell(self, detail: str) -> None:
        """Tell whoever listens, with the last touch's result."""
        if self._on_progress is None:
            return
        names = list(self._steps)
        self._on_progress(
            Progress(
                number=names.index(self._step) + 1,
                steps=len(names),
                step=self._steps[self._step],
                touches=self.touches,
                detail=detail,
                fraction=self._done(),
                remaining_s=self._remaining_s(),
            )
        )

    def _remaining(self) -> Work:
        names = list(self._steps)
        later = [self._expected[name] for name in names[names.index(self._step) + 1 :]]
        now = self._expected[self._step]
        touches = max(now.touches - (self.touches - self._begun_at[0]), 0)
        looks = max(now.looks - (len(self._looking.seconds) - self._begun_at[1]), 0)
        return Work(touches + sum(work.touches for work in later), looks + sum(work.looks for work in later))

    def _done(self) -> float:
        rest = self._remaining()
        done = self.touches + len(self._looking.seconds)
        # More was needed than expected: what has been told stays told.
        self._fraction = max(self._fraction, done / max(done + rest.touches + rest.looks, 1))
        return self._fraction

    def _remaining_s(self) -> float | None:
        rest, seconds = self._remaining(), 0.0
        for count, spent in ((rest.touches, self._touching), (rest.looks, self._looking)):
            if count and not spent.seconds:
                return None
            seconds += count * spent.pace_s() if count else 0.0
        return seconds


class MeteredRig:
    """A rig whose touches and looks are counted and timed."""

    def __init__(self, rig: Rig, meter: Meter) -> None:
        self._rig, self._meter = rig, meter

    @property
    def hand(self) -> HandFacts | None:
        """As the rig says."""
        return self._rig.hand

    def look(self) -> Look:
        """As the rig does."""
        begun = self._meter.clock()
        look = self._rig.look()
        self._meter.looked(self._meter.clock() - begun)
        return look

    def touch(self, touch: Touch) -> None:
        """As the rig does."""
        begun = self._meter.clock()
        self._rig.touch(touch)
        self._meter.touched(self._meter.clock() - begun)

    def ask(self, request: Request) -> Answer:
        """As the rig does; not timed, for a person may think as long as they like."""
        return self._rig.ask(request)
