"""What the suite asks of its worker processes, one JSON object a line, and what comes back."""

from dataclasses import asdict, fields

import msgspec

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.play import History
from edge_daemon.bench.crash.points import PointKind, Strike

RANDOM = "random histories"
"""The tally of those, beside the faults' own."""

VIOLATIONS_KEPT = 5
"""Of one task, in words: the counts are complete, and one history is enough to begin with."""

Figures = dict[str, int]
"""The fields of `Counts`."""


class Cut(msgspec.Struct, frozen=True):
    """A fault at a point, as `points.Strike`; the base scenario's seed with it."""

    seed: int
    fault: str
    kind: PointKind
    n: int
    after: bool

    @classmethod
    def of(cls, seed: int, strike: Strike) -> "Cut":
        return cls(seed, strike.fault, strike.kind, strike.n, strike.after)

    @property
    def name(self) -> str:
        """As `--replay` takes it."""
        side = ":after" if self.after else ""
        return f"{self.seed}:{self.fault}:{self.kind.replace(' ', '-')}:{self.n}{side}"


class PlayCuts(msgspec.Struct, frozen=True, tag="cuts"):
    """Faults at points of the base scenario."""

    cuts: tuple[Cut, ...]


class PlayRandom(msgspec.Struct, frozen=True, tag="random"):
    """Random histories of these seeds, one after another."""

    seeds: tuple[int, ...]


class CountPoints(msgspec.Struct, frozen=True, tag="points"):
    """How many points of each kind the base scenario passes."""

    seed: int


class KillReal(msgspec.Struct, frozen=True, tag="kills"):
    """kill -9 of real processes."""

    seed: int
    kills: int


class MeasureCost(msgspec.Struct, frozen=True, tag="cost"):
    """What a durable commit costs beside a bare one, by so many actions of each."""

    actions: int


Task = PlayCuts | PlayRandom | CountPoints | KillReal | MeasureCost


class Tally(msgspec.Struct):
    """Histories of one kind. `struck`: in how many the fault came about; `figures` adds up `Counts`; `signs`: in how
    many histories each was seen (`effects.signs_of`)."""

    histories: int = 0
    struck: int = 0
    keys: int = 0
    figures: Figures = msgspec.field(default_factory=lambda: figures_of(Counts()))
    signs: dict[str, int] = {}

    def add(self, other: "Tally") -> None:
        self.histories += other.histories
        self.struck += other.struck
        self.keys += other.keys
        for name, count in other.figures.items():
            self.figures[name] += count
        for name, count in other.signs.items():
            self.signs[name] = self.signs.get(name, 0) + count

    def add_history(self, history: History) -> None:
        signs = dict.fromkeys(history.signs, 1)
        self.add(Tally(1, int(history.struck), history.keys, figures_of(history.counts), signs))


class Violation(msgspec.Struct, frozen=True):
    """A history that broke a promise. `replay`: what to give to `--replay`, empty where nothing can repeat it."""

    replay: str
    problems: tuple[str, ...]


class Played(msgspec.Struct, tag="played"):
    """Of `PlayCuts` and `PlayRandom`. `broken`: histories that ended by a mistake; they show nothing."""

    tallies: dict[str, Tally] = msgspec.field(default_factory=dict)
    violations: list[Violation] = msgspec.field(default_factory=list)
    broken: list[str] = msgspec.field(default_factory=list)

    def add(self, tally: str, replay: str, history: History) -> None:
        self.tallies.setdefault(tally, Tally()).add_history(history)
        if (history.counts.violations or history.problems) and len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(Violation(replay, history.problems))

    def add_all(self, other: "Played") -> None:
        for name, tally in other.tallies.items():
            self.tallies.setdefault(name, Tally()).add(tally)
        self.violations += other.violations
        self.broken += other.broken


class Points(msgspec.Struct, frozen=True, tag="counted"):
    """Of `CountPoints`."""

    points: dict[PointKind, int]


class Killed(msgspec.Struct, tag="killed"):
    """Of `KillReal`; adds up over several."""

    kills: int = 0
    moments: dict[str, int] = msgspec.field(default_factory=dict)
    board_resets: int = 0
    cable_flaps: int = 0
    plane_cuts: int = 0
    keys: int = 0
    touches: int = 0
    felt: dict[str, int] = msgspec.field(default_factory=dict)
    """Keys by what was asked for and how much of it a phone felt."""
    committed: int = 0
    figures: Figures = msgspec.field(default_factory=lambda: figures_of(Counts()))
    problems: list[str] = msgspec.field(default_factory=list)
    wall_s: float = 0.0

    def add(self, other: "Killed") -> None:
        for name in (
            "kills",
            "board_resets",
            "cable_flaps",
            "plane_cuts",
            "keys",
            "touches",
            "committed",
            "wall_s",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for ours, theirs in ((self.moments, other.moments), (self.felt, other.felt)):
            for name, count in theirs.items():
                ours[name] = ours.get(name, 0) + count
        for name, count in other.figures.items():
            self.figures[name] += count
        self.problems += other.problems


class Costed(msgspec.Struct, frozen=True, tag="costed"):
    """Of `MeasureCost`: the fields of `CostFigures`."""

    figures: dict[str, float]


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """So much more of a long task is done; its result is still to come."""

    done: int


Result = Played | Points | Killed | Costed
Line = Result | Progress

_task_decoder = msgspec.json.Decoder(Task)
_line_decoder = msgspec.json.Decoder(Line)


def encode(message: Task | Line) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def decode_task(line: bytes) -> Task:
    return _task_decoder.decode(line)


def decode_line(line: bytes) -> Line:
    return _line_decoder.decode(line)


def figures_of(counts: Counts) -> Figures:
    return asdict(counts)


PROMISED_ZERO = tuple(field.name for field in fields(Counts) if Counts(**{field.name: 1}).violations)
"""The figures that must be zero: those that the oracle itself counts as violations."""


def violated(figures: Figures) -> Figures:
    """Those of `PROMISED_ZERO` that are not zero."""
    return {name: figures[name] for name in PROMISED_ZERO if figures[name]}


def size_of(task: Task) -> int:
    """How many units of progress a task is."""
    match task:
        case PlayCuts():
            return len(task.cuts)
        case PlayRandom():
            return len(task.seeds)
        case KillReal():
            return task.kills
        case CountPoints() | MeasureCost():
            return 1
