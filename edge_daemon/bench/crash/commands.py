"""What `edge-daemon bench crash` does beside parsing options. Nothing of the product is loaded before a mutation."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from edge_daemon.bench.crash.mutations import mutate

if TYPE_CHECKING:
    from rich.console import Console

    from edge_daemon.bench.crash.play import History
    from edge_daemon.bench.crash.suite import Plan

REPLAY_FORM = "SEED, or SEED:FAULT:KIND-OF-POINT:NUMBER, or that with :after"


def run_suite(plan: "Plan", *, as_json: bool, as_markdown: bool) -> int:
    """Runs and shows it; returns the exit status: 0 pass, 1 fail, 3 nothing wrong in a part of it."""
    import msgspec
    import trio
    from rich.console import Console

    from edge_daemon.bench.crash.show import Bars, markdown, show_report
    from edge_daemon.bench.crash.suite import run_crash_suite
    from edge_daemon.bench.failures import bench_errors

    with bench_errors(as_json, "crash"), Bars(Console(stderr=True)) as bars:
        report = trio.run(run_crash_suite, plan, bars)
    if as_json:
        click.echo(msgspec.json.encode(report.as_json()).decode())
    elif as_markdown:
        click.echo(markdown(report.as_json()), nl=False)
    else:
        show_report(Console(), report)
    return {"pass": 0, "fail": 1, "partial": 3}[report.verdict]


def replay(what: str, mutation: str | None, *, as_json: bool) -> int:
    """Plays one history again and shows what happened in it; returns the exit status: 0 when no promise was broken."""
    if mutation is not None:
        try:
            mutate(mutation)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    import msgspec
    from rich.console import Console

    history = play_again(what)
    if as_json:
        click.echo(msgspec.json.encode(asdict(history)).decode())
    else:
        _show_history(Console(), history)
    return 1 if history.counts.violations or history.problems else 0


def play_again(what: str) -> "History":
    """The history of that name, with its trace. Raises click.BadParameter for what names none."""
    from edge_daemon.bench.crash.faults import FAULTS
    from edge_daemon.bench.crash.play import play, play_random
    from edge_daemon.bench.crash.points import POINTS

    seed, *rest = what.split(":")
    after = rest[3:] == ["after"]
    if not seed.isdecimal() or len(rest) not in (0, 3, 4) or (len(rest) == 4 and not after):
        raise click.BadParameter(f"{what!r} is no history; give {REPLAY_FORM}")
    if not rest:
        return play_random(int(seed), trace=True)
    fault, kind_name, number = rest[:3]
    kind = next((kind for kind in POINTS if kind.replace(" ", "-") == kind_name), None)
    if fault not in FAULTS:
        raise click.BadParameter(f"no fault is called {fault!r}; there are {', '.join(FAULTS)}")
    if kind is None:
        kinds = ", ".join(kind.replace(" ", "-") for kind in POINTS)
        raise click.BadParameter(f"no kind of point is called {kind_name!r}; there are {kinds}")
    if kind not in FAULTS[fault].kinds:
        raise click.BadParameter(
            f"{fault} does not strike at a {kind}; it does at: {', '.join(FAULTS[fault].kinds)}"
        )
    if not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{number!r} is no number of a point; they count from 1")
    return play(int(seed), fault, kind, int(number), after, trace=True)


def _show_history(console: "Console", history: "History") -> None:
    for line in history.trace:
        # What a trace says is data, not markup.
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    told = {name: count for name, count in asdict(history.counts).items() if count}
    console.print(
        f"struck: {history.struck}, keys: {history.keys}, {history.virtual_s:.1f} s, counts: {told or 'none'}"
    )
    for problem in history.problems:
        console.print(f"✗ {problem}", markup=False, highlight=False, soft_wrap=True)


def crash_command(
    seed: int,
    *,
    quick: bool,
    nightly: bool,
    seeds: int | None,
    faults: tuple[str, ...],
    replay_what: str | None,
    mutation: str | None,
    workers: int | None,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """All of the command; ends the process with its status."""
    if mutation is not None and replay_what is None:
        raise click.UsageError("--mutation goes with --replay: the suite tries every mutation by itself")
    if replay_what is not None:
        sys.exit(replay(replay_what, mutation, as_json=as_json))
    if quick and nightly:
        raise click.UsageError("--quick and --nightly exclude each other")
    import os
    from dataclasses import replace

    from edge_daemon.bench.crash.faults import FAULTS
    from edge_daemon.bench.crash.suite import FULL, NIGHTLY, QUICK, Plan

    for name in faults:
        if name not in FAULTS:
            raise click.BadParameter(f"no fault is called {name!r}; there are {', '.join(FAULTS)}")
    effort = QUICK if quick else NIGHTLY if nightly else FULL
    if seeds is not None:
        effort = replace(effort, seeds=seeds)
    plan = Plan(seed, effort, workers or os.cpu_count() or 1, tuple(dict.fromkeys(faults)))
    sys.exit(run_suite(plan, as_json=as_json, as_markdown=as_markdown))
