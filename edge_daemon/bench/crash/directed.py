"""The histories in which each mutation does harm: few, so that all of them take seconds."""

from dataclasses import dataclass

from edge_daemon.bench.crash.points import PointKind
from edge_daemon.bench.crash.tasks import Cut, PlayCuts


@dataclass(frozen=True)
class Spread:
    """A fault at so many points of a kind, spread evenly over what the base scenario does; its points may come to be
    others."""

    fault: str
    kind: PointKind
    times: int
    after: bool = False


@dataclass(frozen=True)
class Directed:
    """Where a mutation does harm, and the count that must tell: another one may be a mere consequence."""

    told_by: str
    spread: Spread


DIRECTED: dict[str, Directed] = {
    "no_dedup_check": Directed("double_touches", Spread("duplicate_dispatch", "socket write", 3)),
    "no_pending_write": Directed("wrong_not_found", Spread("process_death", "serial write", 8)),
    "no_fsync": Directed("lost_receipts", Spread("power_cut_nothing_kept", "serial write", 6)),
    "blind_resend": Directed("double_touches", Spread("line_silent", "serial read", 8)),
    "token_in_memory_only": Directed("fencing_violations", Spread("killed_and_stale", "disk sync", 8)),
    "found_false_after_restored_ledger": Directed(
        "wrong_not_found", Spread("ledger_restored", "serial write", 12)
    ),
    "expiry_ignored": Directed("late_violations", Spread("expired", "serial write", 4)),
    "lease_end_ignored": Directed("late_violations", Spread("lease_runs_out", "serial write", 6)),
    "cancel_ignored": Directed("cancel_violations", Spread("canceled", "disk write", 16)),
    "hold_in_memory_only": Directed("held_violations", Spread("held_and_killed", "serial read", 4)),
    "park_in_memory_only": Directed("held_violations", Spread("parked_and_killed", "serial read", 4)),
    "stop_ignored": Directed("held_violations", Spread("emergency_stop", "serial read", 8)),
    "conflict_ignored": Directed("conflict_violations", Spread("other_arguments", "socket write", 6)),
    "asked_too_early": Directed("wrong_not_found", Spread("disk_slow", "disk write", 6)),
    "swipe_cut_short": Directed("wrong_words", Spread("wall_clock_back", "serial write", 2)),
    "character_left_out": Directed("stray_touches", Spread("wall_clock_back", "serial read", 2)),
    "ids_since_boot": Directed("unknown_outside_window", Spread("machine_rebooted", "disk sync", 12)),
    "asked_once": Directed("unknown_outside_window", Spread("cable_flaps", "serial read", 6)),
    "given_up_early": Directed("unknown_outside_window", Spread("cable_pull_long", "serial write", 10)),
    "resolution_not_pushed": Directed("lost_receipts", Spread("board_reset_mid_motion", "disk write", 8)),
    "spent_keys_forgotten": Directed("double_touches", Spread("pruned", "disk write", 6)),
    "outbox_in_memory_only": Directed("lost_receipts", Spread("process_death", "socket write", 6)),
}


def directed(mutation: str, seed: int, points: dict[PointKind, int]) -> PlayCuts:
    """The task, the same with the mutation and without; `points`: how many the base scenario of `seed` has."""
    spread = DIRECTED[mutation].spread
    cuts = tuple(
        Cut(seed, spread.fault, spread.kind, n, spread.after)
        for n in spread_over(points[spread.kind], spread.times)
    )
    return PlayCuts(cuts)


def spread_over(points: int, times: int) -> list[int]:
    """At most `times` numbers of the second half of 1..points, evenly, the last one among them: before that the daemon
    starts, and there is nothing to do."""
    half = points // 2
    return sorted({half + round((points - half) * part / times) for part in range(1, times + 1)} - {0})
