"""The run as a person sees it: a progress bar, one row per action, a summary."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from calibration.procedure import Progress
from calibration.result import DeviceCalibration
from edge_daemon.bench.stage import SCREEN_MM
from edge_daemon.bench.tap import TapReport
from edge_daemon.bench.text import LayoutResult
from edge_daemon.bench.verdict import Attempt, landing_error_mm

_ROW = "{number:>3} {kind:<9} {target:<13} {touched:<14} {error:>5}  {notes:<25} {hover:>6}  {status}"


class Quiet:
    """Shows nothing: for `--json`."""

    def phase(self, text: str) -> None: ...

    def calibrating(self, progress: Progress) -> None: ...

    def calibrated(self, calibration: DeviceCalibration) -> None: ...

    def attempted(self, attempt: Attempt, count: int) -> None: ...


class Terminal:
    """Rows as they happen, with one bar below them. Used as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._calibration = self._bar.add_task("calibrating", total=None, visible=False)
        self._actions = self._bar.add_task("acting", total=None, visible=False)

    def __enter__(self) -> "Terminal":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def phase(self, text: str) -> None:
        self._console.print(f"[dim]·[/] {text}")

    def calibrating(self, progress: Progress) -> None:
        self._bar.update(
            self._calibration,
            visible=True,
            total=progress.steps,
            completed=progress.number - 1,
            description=f"calibrating: {progress.step.title.lower()}, {progress.touches} touches",
        )

    def calibrated(self, calibration: DeviceCalibration) -> None:
        self._bar.update(self._calibration, visible=False)
        acceptance = calibration.acceptance
        assert acceptance is not None, "a hand's calibration has a verdict"
        self._console.print(
            f"[dim]·[/] calibrated with {len(calibration.touches)} touches; {len(acceptance.touches)} held-out "
            f"touches landed within {acceptance.max_mm:.2f} mm"
        )
        self._console.print(
            _ROW.format(
                number="#",
                kind="action",
                target="grid target",
                touched="phone touched",
                error="mm",
                notes="frame notes",
                hover="ms",
                status="receipt",
            ),
            style="bold",
            highlight=False,
            soft_wrap=True,
        )

    def attempted(self, attempt: Attempt, count: int) -> None:
        self._bar.update(self._actions, visible=True, total=count, completed=attempt.number)
        committed = attempt.status == "committed"
        self._console.print(
            _ROW.format(**_cells(attempt)),
            style=None if committed else "bold red",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _cells(attempt: Attempt) -> dict[str, Any]:
    landing = landing_error_mm(attempt, SCREEN_MM)
    action = attempt.step.action or {}
    target = attempt.step.target
    if target is not None:
        aimed = f"{target[0]:.1f}, {target[1]:.1f}"
    elif attempt.step.kind == "typeText":
        aimed = f"{len(action['text'])} characters"
    else:
        aimed = str(action.get("key", ""))
    return {
        "number": attempt.number,
        "kind": attempt.step.kind,
        "target": aimed,
        "touched": f"{landing[1][0]:.1f}, {landing[1][1]:.1f}" if landing else "",
        "error": f"{landing[0]:.2f}" if landing else "",
        "notes": _notes((attempt.receipt or {}).get("frameNotes")),
        "hover": f"{attempt.hover_ms:.0f}" if attempt.hover_ms is not None else "",
        "status": attempt.status,
    }


def _notes(notes: dict[str, Any] | None) -> str:
    if notes is None:
        return ""
    words = [f"{notes['ageMs']:.0f} ms", f"{notes['newerFrames']} newer"]
    if notes["edgeMovedSince"]:
        words.append("edge moved")
    words.append("settled" if notes["settled"] else "unsettled")
    return ", ".join(words)


def show_summary(console: Console, report: TapReport) -> None:
    """The counts, and in words whatever disagreed."""
    verdict, landing = report.verdict, report.verdict.landing()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("firmware ran in", report.runtime)
    table.add_row(
        "actions",
        f"{verdict.actions}: {verdict.committed} committed, {verdict.failed} failed, "
        f"{verdict.outcome_unknown} unknown",
    )
    table.add_row(
        "against the phone's own log",
        f"{verdict.double_touches} double, {verdict.missing_touches} "
        f"missing touches, {verdict.lost_receipts} lost receipts",
    )
    if landing["max"] is not None:
        table.add_row(
            "landing error",
            f"p50 {landing['p50']} mm, p95 {landing['p95']} mm, max {landing['max']} mm "
            f"({len(verdict.landing_mm)} touches)",
        )
    table.add_row("seed, time", f"{report.seed}, {report.wall_s:.0f} s")
    for path in report.pictures:
        table.add_row("picture", str(path))
    console.print()
    console.print(table)
    for problem in verdict.problems:
        console.print(f"[red]✗[/] {problem}", highlight=False)
    if verdict.holds:
        console.print("[bold green]✓ every receipt agrees with what the phone saw[/]")
    else:
        console.print("[bold red]✗ the receipts and the phone's log do not agree[/]")


def show_text_layout(console: Console, result: LayoutResult) -> None:
    """One layout of the text suite, as soon as it is through."""
    mark = "[green]✓[/]" if result.equal else "[red]✗[/]"
    lossy = result.lossy
    console.print(
        f"{mark} {result.layout}: {result.characters} characters, clean line {result.clean.wall_s:.1f} s, "
        f"caps lock on and {lossy.lost_frames} of {lossy.frames} frames lost {lossy.wall_s:.1f} s, "
        f"{lossy.retransmits} retransmits",
        highlight=False,
    )
    for run in (result.clean, lossy):
        if run.problem:
            console.print(f"  [red]✗[/] {escape(run.problem)}", highlight=False)
