"""The link suite's report for a person."""

from rich.console import Console
from rich.table import Table

from edge_daemon.bench.link import faults
from edge_daemon.bench.link.suite import RATIO_LIMIT, LinkReport


def show_report(console: Console, report: LinkReport) -> None:
    """A row per fault, then the figures, then what is wrong, if anything is."""
    table = Table("fault", "what happens", "runs", "recovered", "unknown")
    for name, tally in report.faults.items():
        meaning = (faults.FAULTS[name].__doc__ or "").strip()
        table.add_row(name, meaning, str(tally.runs), str(tally.recovered), str(tally.unknown))
    console.print(table)
    console.print(
        f"{report.virtual_runs} runs on a virtual clock, every frame of {report.positions}; "
        f"{report.process_runs} in real time with the firmware in {report.runtime}, sampled"
    )
    console.print(
        f"double executions {report.double_executions}, lost results {report.lost_results}; unknown only where "
        "the board restarted or forgot"
    )
    for result in report.fuzz:
        heap = "" if result.heap_growth_bytes is None else f", heap grew by {result.heap_growth_bytes} bytes"
        console.print(f"{result.receiver}: {result.frames} spoiled frames, {result.crashes} crashes{heap}")
    if report.round_trips is not None and report.floor is not None and report.loop_floor is not None:
        console.print(
            f"round trip p50 {report.round_trips.p50_us:.0f} µs; a bare echo {report.floor.p50_us:.0f} µs "
            f"(ratio {report.ratio_p50:.1f}, aimed at {RATIO_LIMIT:.0f}); an echo in the daemon's loop "
            f"{report.loop_floor.p50_us:.0f} µs"
        )
    for problem in report.problems:
        console.print(f"[red]✗[/] {problem}")
    console.print("[green]✓ held[/]" if report.holds else "[red]✗ did not hold[/]")
