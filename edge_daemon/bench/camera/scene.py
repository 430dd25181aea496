"""A scene: pictures of a screen with the truth about it, and what the settle detector makes of them.

What counts as wrong:

* False settled: `still` on a picture although the screen changed after the first picture of the stretch that the
  verdict claims and before this picture, each by more than one frame interval; or although it could not be told (the
  camera had moved, the screen was dark).
* False moving: anything but `still` although the screen had been settled for the detector's own stretch (250 ms and 3
  pictures) and 3 frame intervals more. Where something small goes on that must first be known for what it is, the
  scene says how long that takes (`learning_ns`).

A slow change begins with the first picture on which 1 % of the screen's 8 x 8 px blocks differ from the page before by
8 grey levels of the camera, and ends with the last that differs so from the page after it; of a switch that moves it
is the share of a text cursor, 0.15 %. What is less before and after may be called either.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edge_daemon.cameras.imaging import Grey
from edge_daemon.cameras.settle import MIN_FRAMES, MIN_STILL_MS, Polygon, SettleDetector, SettleVerdict
from edge_daemon.cameras.settle_noise import COARSE_STEP

MS = 1_000_000
GRACE_FRAMES = 3
UNEVEN_NS = 5 * MS


@dataclass(frozen=True)
class Shot:
    """One picture: a JPEG, or what its decoder would give at `reduction` of each side, with `step` its rounding.
    exposed_ns: its beginning."""

    exposed_ns: int
    jpeg: bytes | None = None
    grey: Grey | None = None
    reduction: int = 4
    step: float = COARSE_STEP


@dataclass(frozen=True)
class Change:
    """The screen changed from `begin_ns` to `end_ns`; equal for a step.

    first_ns, last_ns: from the first to the last trace of it; in between, beside the change itself, either answer is
    right.
    """

    begin_ns: int
    end_ns: int
    first_ns: int
    last_ns: int


@dataclass
class Scene:
    """Pictures in virtual time and the truth. `shots` can be gone through once.

    changes: of the page, known in full once the shots are used up. untellable_ns: from when on nothing may be said.
    learning_ns: how much longer than usual the detector may take. busy_small: something small goes on throughout.
    """

    kind: str
    interval_ns: int
    begin_ns: int
    shots: Iterator[Shot]
    mask: Polygon | None = None
    ignore: tuple[Polygon, ...] = ()
    noise_sigma: float | None = None
    changes: list[Change] = field(default_factory=list)
    untellable_ns: int | None = None
    learning_ns: int = 0
    busy_small: bool = False
    traits: str = ""

    def changed_between(self, from_ns: int, to_ns: int) -> bool:
        """Whether the page changed at any moment between the two."""
        return any(change.begin_ns < to_ns and change.end_ns > from_ns for change in self.changes)

    def settled_since_ns(self, at_ns: int) -> int | None:
        """Since when the page had been as it was at `at_ns`; None while it changed, or if that cannot be told."""
        if self.untellable_ns is not None and at_ns >= self.untellable_ns:
            return None
        since_ns = self.begin_ns
        for change in self.changes:
            if change.first_ns <= at_ns:
                if change.last_ns >= at_ns:
                    return None
                since_ns = max(since_ns, change.last_ns)
        return since_ns

    @property
    def tolerance_ns(self) -> int:
        """One frame interval, and how unevenly the pictures come."""
        return self.interval_ns + UNEVEN_NS

    @property
    def stretch_ns(self) -> int:
        """What the detector needs by its own rules."""
        return max(round(MIN_STILL_MS * MS), (MIN_FRAMES - 1) * self.interval_ns)


@dataclass(frozen=True)
class SceneVerdict:
    """What was wrong with the detector's answers to one scene.

    wrong: the first wrong verdict in words, for whoever looks into it. busy_missed: something small went on and no
    `still` verdict told so.
    """

    kind: str
    false_settled: bool
    false_moving: bool
    busy_missed: bool
    pictures: int
    stills: int
    wrong: str = ""


def judge_scene(scene: Scene) -> SceneVerdict:
    """Show a scene to a new detector and compare every verdict with the truth."""
    detector = SettleDetector(mask=scene.mask, ignore=scene.ignore, noise_sigma=scene.noise_sigma)
    answers: list[tuple[int, SettleVerdict]] = []
    for shot in scene.shots:
        if shot.jpeg is not None:
            answers.append((shot.exposed_ns, detector.feed_jpeg(shot.jpeg, shot.exposed_ns)))
        elif shot.grey is not None:
            answers.append(
                (shot.exposed_ns, detector.feed(shot.grey, shot.exposed_ns, shot.reduction, shot.step))
            )
    settled = [answer for answer in answers if _falsely_settled(scene, *answer)]
    moving = [answer for answer in answers if _falsely_moving(scene, *answer)]
    stills = [verdict for _, verdict in answers if verdict.state == "still"]
    wrong = settled or moving
    return SceneVerdict(
        kind=scene.kind,
        false_settled=bool(settled),
        false_moving=bool(moving),
        busy_missed=scene.busy_small and bool(stills) and not any(verdict.busy_small for verdict in stills),
        pictures=len(answers),
        stills=len(stills),
        wrong=_words(scene, *wrong[0]) if wrong else "",
    )


def _falsely_settled(scene: Scene, exposed_ns: int, verdict: SettleVerdict) -> bool:
    if verdict.state != "still" or verdict.still_since_ns is None:
        return False
    if scene.untellable_ns is not None and exposed_ns - scene.tolerance_ns > scene.untellable_ns:
        return True
    return scene.changed_between(verdict.still_since_ns + scene.tolerance_ns, exposed_ns - scene.tolerance_ns)


def _falsely_moving(scene: Scene, exposed_ns: int, verdict: SettleVerdict) -> bool:
    since_ns = scene.settled_since_ns(exposed_ns)
    if verdict.state == "still" or since_ns is None:
        return False
    allowed_ns = scene.stretch_ns + GRACE_FRAMES * scene.interval_ns + scene.learning_ns
    return exposed_ns - since_ns > allowed_ns


def _words(scene: Scene, exposed_ns: int, verdict: SettleVerdict) -> str:
    changes = ", ".join(
        f"{(change.begin_ns - scene.begin_ns) / MS:.0f}..{(change.end_ns - scene.begin_ns) / MS:.0f}"
        for change in scene.changes
    )
    at_ms = (exposed_ns - scene.begin_ns) / MS
    return (
        f"{verdict.state} at {at_ms:.0f} ms ({verdict.reason}); changes: {changes or 'none'}; {scene.traits}"
    )
