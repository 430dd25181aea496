"""`edge-daemon bench`: the main job and the suites on a simulated rig."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

_json = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else."
)
_keep = click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Keep ledger, logs and configuration in this folder (a short path, it holds sockets).",
)


def _echo(report: Mapping[str, Any]) -> None:
    """One JSON object, for programs."""
    import msgspec

    click.echo(msgspec.json.encode(report).decode())


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
@_json
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    help="Folder for the two pictures.",
)
@_keep
def tap(actions: int, seed: int, as_json: bool, out: Path, keep: Path | None) -> None:
    """Taps, swipes, holds, keys and text, each receipt held against the phone's log."""
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
        _echo(report.as_json())
    else:
        show_summary(console, report)
    sys.exit(0 if report.verdict.holds else 1)


@command.command()
@click.option(
    "--characters", type=click.IntRange(1, 4096), default=4096, show_default=True, help="Length of each text."
)
@click.option(
    "--layout",
    "names",
    multiple=True,
    type=click.Choice(["us", "uk", "de", "fr"]),
    help="Only this keyboard layout; may be given again. All four otherwise.",
)
@click.option(
    "--loss",
    type=click.FloatRange(0, 0.2),
    default=0.05,
    show_default=True,
    help="Share of the frames that the bad line loses, each way.",
)
@click.option(
    "--poll-ms",
    type=click.FloatRange(1, 32),
    default=1.0,
    show_default=True,
    help="How often the phone asks for a report. 8 is usual; 1 makes the suite eight times as fast.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Draws texts and losses."
)
@_json
def text(
    characters: int, names: tuple[str, ...], loss: float, poll_ms: float, seed: int, as_json: bool
) -> None:
    """Long texts through every keyboard layout, over a clean line and over one that loses frames."""
    import trio
    from rich.console import Console

    from edge_daemon.bench.failures import bench_errors
    from edge_daemon.bench.show import show_text_layout
    from edge_daemon.bench.text import LAYOUTS, TextReport, run_text_suite

    console = Console(stderr=as_json)

    def run(directory: Path) -> TextReport:
        return trio.run(
            run_text_suite,
            names or tuple(LAYOUTS),
            characters,
            loss,
            poll_ms,
            seed,
            directory,
            lambda result: show_text_layout(console, result),
        )

    with bench_errors(as_json, "text"), tempfile.TemporaryDirectory(prefix="edge-bench-") as scratch:
        report = run(Path(scratch))
    if as_json:
        _echo(report.as_json())
    elif not report.holds:
        console.print("[bold red]✗ not every text arrived as it was sent, or no frame was lost[/]")
    else:
        console.print(f"[bold green]✓ every text arrived equal[/] (firmware ran in {report.runtime})")
    sys.exit(0 if report.holds else 1)


@command.command()
@_json
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Draws what each fault does in detail, and the sampled positions.",
)
@click.option("--quick", is_flag=True, help="Each position once, fewer samples, 50,000 spoiled frames.")
def link(as_json: bool, seed: int, quick: bool) -> None:
    """Every fault at every frame between daemon and board, spoiled frames by the million, round trips.

    The verdict comes from what the hand's drives were told, not from the link's own word. Round trips are
    reported and do not decide it.
    """
    from rich.console import Console

    from edge_daemon.bench.failures import bench_errors
    from edge_daemon.bench.link.show import show_report
    from edge_daemon.bench.link.suite import FULL, QUICK, run_link_suite

    console = Console(stderr=as_json)
    with bench_errors(as_json, "link"), tempfile.TemporaryDirectory(prefix="edge-bench-") as scratch:
        report = run_link_suite(
            seed, QUICK if quick else FULL, Path(scratch), lambda text: console.print(f"[dim]·[/] {text}")
        )
    if as_json:
        _echo(report.as_json())
    else:
        show_report(console, report)
    sys.exit(0 if report.holds else 1)


@command.command()
@click.option("--seeds", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many rigs.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=1,
    show_default=True,
    help="The first rig's hidden truth.",
)
@click.option(
    "--mutants",
    type=click.IntRange(0, 1000),
    help="On how many rigs each deliberate defect is tried; one for every five seeds otherwise.",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Calibrations at the same time; one a processor otherwise."
)
@_json
def calibrate(seeds: int, seed: int, mutants: int | None, workers: int | None, as_json: bool) -> None:
    """Whole calibrations of simulated rigs in virtual time, each judged by 1,000 later taps.

    The solver runs in a process of its own and has pictures, touches and pages, nothing else. What it accepted is
    held against the phone's own touch log and the camera's real geometry. Then the calibration is broken on
    purpose, and acceptance must refuse it.
    """
    import os

    import trio
    from rich.console import Console

    from edge_daemon.bench.calibrate.mutations import MUTATIONS
    from edge_daemon.bench.calibrate.show import Watch, show_report
    from edge_daemon.bench.calibrate.suite import run_calibrate_suite
    from edge_daemon.bench.failures import bench_errors

    console = Console(stderr=as_json)
    tried = mutants if mutants is not None else max(1, seeds // 5)
    with bench_errors(as_json, "calibrate"), Watch(console, seeds + tried * len(MUTATIONS)) as watch:
        report = trio.run(run_calibrate_suite, seed, seeds, tried, workers or os.cpu_count() or 1, watch)
    if as_json:
        _echo(report.as_json())
    else:
        show_report(console, report)
    sys.exit(0 if report.holds else 1)


@command.command()
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=1,
    show_default=True,
    help="Draws the scenes, the rig's hidden truth, and what plane, staff and chance do.",
)
@click.option("--scenes", type=click.IntRange(1, 100_000), help="How many scenes; 2,000 otherwise.")
@click.option("--quick", is_flag=True, help="120 scenes, 40 bound actions, three of the camera's troubles.")
@_json
@_keep
def camera(seed: int, scenes: int | None, quick: bool, as_json: bool, keep: Path | None) -> None:
    """What the daemon sees and says of it: settled or not, how old, what moved since, in every trouble of a camera.

    Scenes by the thousand are held against what was drawn. On a whole simulated rig each receipt's notes and each
    picture are held against the camera's true exposures, the boards' lines and what the bench itself did to the hand.
    """
    import os
    from dataclasses import replace

    import trio
    from rich.console import Console

    from edge_daemon.bench.camera.show import Watch, show_report
    from edge_daemon.bench.camera.suite import FULL, QUICK_PLAN, CameraReport, run_camera_suite
    from edge_daemon.bench.failures import bench_errors

    console, aside = Console(), Console(stderr=True)
    plan = QUICK_PLAN if quick else FULL
    if scenes is not None:
        plan = replace(plan, scenes=scenes)

    def run(directory: Path) -> CameraReport:
        with Watch(aside) as watch:
            return trio.run(run_camera_suite, seed, plan, os.cpu_count() or 1, directory, watch)

    with bench_errors(as_json, "camera"), tempfile.TemporaryDirectory(prefix="edge-bench-") as scratch:
        report = run(keep or Path(scratch))
    if as_json:
        _echo(report.as_json())
    else:
        show_report(console, report)
    sys.exit(0 if report.holds else 1)


@command.command()
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=1,
    show_default=True,
    help="Draws the base scenario, the sampled points and the kills; the first of the random histories.",
)
@click.option(
    "--quick", is_flag=True, help="Sampled points, a few hundred random histories, a handful of kills."
)
@click.option("--nightly", is_flag=True, help="100,000 random histories.")
@click.option("--seeds", type=click.IntRange(0, 10_000_000), help="How many random histories.")
@click.option("--fault", "faults", multiple=True, help="Only this fault, at every point; may be given again.")
@click.option(
    "--replay", "replay_what", help="One history again, with all that happens in it: as a problem names it."
)
@click.option("--mutation", help="With --replay: the product broken in this way.")
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Histories at the same time; one a processor otherwise."
)
@_json
@click.option("--markdown", "as_markdown", is_flag=True, help="The report as Markdown, for a document.")
def crash(**asked: Any) -> None:
    """At most one touch per key, no receipt lost: against crashes, power cuts, bad lines and disks, and people.

    Daemon, boards, plane and phones in one process on a virtual clock: every fault at every durable write, sync, serial
    write and read and socket write; random histories; then the product broken on purpose, which must be noticed; then
    kill -9 of real processes. The phones' own logs and the plane's notebook decide. Exit status 0 only when every zero
    is zero, every mutation was caught and nothing was left out; 3 when that holds for the part that was asked for.
    """
    from edge_daemon.bench.crash.commands import crash_command

    crash_command(**asked)
