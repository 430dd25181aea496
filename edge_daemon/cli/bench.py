"""`edge-daemon bench`: the main job and the suites on a simulated rig."""

import sys
import tempfile
from pathlib import Path

import click


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Prove it on a simulated rig: real daemon process, real ptys, the boards' own firmware.

    Without a suite it runs the main job and shows it. The verdict comes from the simulated phone's own touch
    log, which the daemon cannot see. Exit status 0 only when every receipt agrees with it.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(tap, actions=24, seed=1, as_json=False, out=Path("out"), keep=None)


@command.command()
@click.option("--actions", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Draws the twin's hidden truth and the actions.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    help="Folder for the two pictures.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Keep ledger, logs and configuration in this folder (a short path, it holds sockets).",
)
def tap(actions: int, seed: int, as_json: bool, out: Path, keep: Path | None) -> None:
    """Taps, swipes, holds, keys and text, each receipt held against the phone's log."""
    import msgspec
    import trio
    from rich.console import Console

    from edge_daemon.bench.failures import bench_errors
    from edge_daemon.bench.show import Quiet, Terminal, show_summary
    from edge_daemon.bench.tap import TapReport, run_tap_suite

    console = Console(stderr=as_json)

    def run(directory: Path) -> TapReport:
        if as_json:
            return trio.run(run_tap_suite, actions, seed, directory, out, Quiet())
        with Terminal(console) as terminal:
            return trio.run(run_tap_suite, actions, seed, directory, out, terminal)

    with bench_errors(as_json, "tap"), tempfile.TemporaryDirectory(prefix="edge-bench-") as scratch:
        report = run(keep or Path(scratch))
    if as_json:
        click.echo(msgspec.json.encode(report.as_json()).decode())
    else:
        show_summary(console, report)
    sys.exit(0 if report.verdict.holds else 1)
