"""The places at which a fault can strike, each counted as it passes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PointKind = Literal["disk write", "disk sync", "serial write", "serial read", "socket write"]
POINTS: tuple[PointKind, ...] = ("disk write", "disk sync", "serial write", "serial read", "socket write")


@dataclass(frozen=True)
class Strike:
    """Which fault strikes where. n counts from 1; after: right behind the n-th instead of right before it."""

    fault: str
    kind: PointKind
    n: int
    after: bool = False


class Points:
    """Counts what passes; an armed action strikes right before the n-th of its kind, or right behind it.

    Whoever is about to pass a point calls `before`, does it, and calls `behind`. An action that ties the hands of
    the daemon in `before` has to be asked about by the caller: what it was about to do must then have no effect.
    """

    def __init__(self) -> None:
        self.passed: dict[PointKind, int] = dict.fromkeys(POINTS, 0)
        self.here: object = None
        """The line at which the last serial point was passed; None at another kind of point."""
        self._armed: dict[tuple[PointKind, int, bool], list[Callable[[], None]]] = {}

    def arm(self, kind: PointKind, n: int, action: Callable[[], None], *, after: bool = False) -> None:
        """`action` is called once, at the n-th point of this kind since the beginning (from 1)."""
        self._armed.setdefault((kind, n, after), []).append(action)

    def arm_next(self, kind: PointKind, ahead: int, action: Callable[[], None]) -> None:
        """As `arm`, right before the `ahead`-th from now on."""
        self.arm(kind, self.passed[kind] + ahead, action)

    def disarm(self) -> None:
        """What has not struck yet will not any more."""
        self._armed.clear()

    def before(self, kind: PointKind, here: object = None) -> None:
        self.passed[kind] += 1
        if self._armed:
            self.here = here
            self._strike(kind, after=False)

    def behind(self, kind: PointKind, here: object = None) -> None:
        if self._armed:
            self.here = here
            self._strike(kind, after=True)

    def _strike(self, kind: PointKind, *, after: bool) -> None:
        for action in self._armed.pop((kind, self.passed[kind], after), ()):
            action()
