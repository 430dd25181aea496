"""The histories in which each mutation does harm: few, so that all of them take seconds."""

from dataclasses import dataclass

from edge_daemon.bench.crash.points import PointKind
from edge_daemon.bench.crash.tasks import Cut, PlayCuts


@dataclass(frozen=True)
class Spread:
    """A fault at so many points of a kind, spread evenly over the base scenario; its points may come to be others."""

    fault: str
    kind: PointKind
    times: int
    after: bool = False


DIRECTED: dict[str, tuple[Spread, ...]] = {
    "no_dedup_check": (Spread("duplicate_dispatch", "socket write", 3),),
    "no_pending_write": (Spread("process_death", "serial write", 8),),
    "no_fsync": (Spread("power_cut_nothing_kept", "serial write", 6),),
    "blind_resend": (Spread("line_silent", "serial read", 8),),
    "token_in_memory_only": (Spread("stale_token", "serial write", 6),),
    "found_false_after_restored_ledger": (Spread("ledger_restored", "serial write", 6),),
}


def directed(mutation: str, seed: int, points: dict[PointKind, int]) -> PlayCuts:
    """The task, the same with the mutation and without; `points`: how many the base scenario of `seed` has."""
    cuts = tuple(
        Cut(seed, spread.fault, spread.kind, n, spread.after)
        for spread in DIRECTED[mutation]
        for n in spread_over(points[spread.kind], spread.times)
    )
    return PlayCuts(cuts)


def spread_over(points: int, times: int) -> list[int]:
    """At most `times` numbers of 1..points, evenly, the last one among them."""
    return sorted({round(points * part / times) for part in range(1, times + 1)} - {0})
