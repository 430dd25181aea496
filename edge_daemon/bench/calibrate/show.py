"""The suite's progress and its report for a person."""

from rich.console import Console
from rich.table import Table

from edge_daemon.bench.bars import SuiteBars
from edge_daemon.bench.calibrate.run import Outcome
from edge_daemon.bench.calibrate.solver import MAX_LIMIT_MM, P95_LIMIT_MM
from edge_daemon.bench.calibrate.suite import CAMERA_LIMIT_MM, RIG_TIME_LIMIT_S, CalibrateReport


class Watch(SuiteBars):
    """A bar that grows with each calibration, and a line for each."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, only_on_terminal=False)
        self._task = self._bars.add_task("calibrating simulated rigs", total=total)

    def __call__(self, outcome: Outcome) -> None:
        self._bars.advance(self._task)
        self._console.print(f"[dim]·[/] {describe(outcome)}")


def describe(outcome: Outcome) -> str:
    """One calibration on one line."""
    head = f"seed {outcome.seed}" + (f", broken by {outcome.mutation}" if outcome.mutation else "")
    if outcome.refusal:
        return f"{head}: refused, {outcome.refusal}: {outcome.because}"
    if outcome.landing is None:
        return f"{head}: accepted"
    return (
        f"{head}: accepted with {outcome.touches} touches in {outcome.rig_time_s:.0f} s; later taps p50 "
        f"{outcome.landing.p50_mm:.3f}, p95 {outcome.landing.p95_mm:.3f}, max {outcome.landing.max_mm:.3f} mm"
    )


def show_report(console: Console, report: CalibrateReport) -> None:
    """The figures against their limits, then what is wrong, if anything is."""
    figures = report.as_json()
    table = Table("worst of all accepted rigs", "measured", "limit")
    for name, value, limit in (
        ("camera to screen, max", figures["camera_to_screen_max_mm"], f"{CAMERA_LIMIT_MM} mm"),
        ("later taps, p50", figures["tap_p50_mm"], ""),
        ("later taps, p95", figures["tap_p95_mm"], f"{P95_LIMIT_MM} mm"),
        ("later taps, max", figures["tap_max_mm"], f"{MAX_LIMIT_MM} mm"),
        ("time at the rig", figures["rig_time_s"], f"{RIG_TIME_LIMIT_S:.0f} s"),
        ("touches", figures["taps_per_calibration"], ""),
    ):
        table.add_row(name, str(value), limit)
    console.print(table)
    console.print(
        f"{figures['accepted']} of {figures['seeds']} rigs accepted, each then judged by {figures['taps_per_seed']} "
        "taps in two orientations against the phone's own log"
    )
    for name, runs in figures["mutations"].items():
        console.print(f"broken by {name}: refused in {runs['caught']} of {runs['runs']}")
    for problem in report.problems:
        console.print(f"[red]✗[/] {problem}")
    console.print("[green]✓ held[/]" if report.holds else "[red]✗ did not hold[/]")
