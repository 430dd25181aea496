"""The suite's progress and its report for a person."""

import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID
from rich.table import Table

from edge_daemon.bench.bars import SuiteBars
from edge_daemon.bench.camera.suite import (
    FALSE_MOVING_PCT,
    FALSE_SETTLED_PCT,
    FRAME_INTERVAL_MS,
    IDLE_PCT,
    LOOK_S,
    RECOVER_S,
    SCREENSHOT_RATIO,
    TOLD_S,
    CameraReport,
)

PLAIN_EVERY_S = 10.0


class Watch(SuiteBars):
    """A bar for each part that counts, and a line for each phase; where no terminal is, a line now and then."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._tasks: dict[str, TaskID] = {}
        self._said_s: dict[str, float] = {}

    def phase(self, text: str) -> None:
        self._console.print(f"[dim]·[/] {escape(text)}", highlight=False)

    def progress(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done)
        if self._console.is_terminal:
            return
        now_s = time.monotonic()
        if done == total or now_s - self._said_s.get(what, 0.0) >= PLAIN_EVERY_S:
            self._said_s[what] = now_s
            self._console.print(f"  {what}: {done} of {total}", highlight=False)


def show_report(console: Console, report: CameraReport) -> None:
    """The figures against their limits, each trouble, then what is wrong, if anything is."""
    figures = report.as_json()
    samples = figures["samples"]
    console.print(
        f"{figures['scenes']} scenes, {samples['notes']} receipts with notes, {samples['looks']} looks; "
        f"seed {figures['seed']}, {figures['wall_s']:.0f} s, firmware ran in {figures['runtime']}",
        highlight=False,
    )
    console.print(_figures(figures))
    console.print(_troubles(figures))
    for problem in report.problems:
        console.print(f"[red]✗[/] {escape(problem)}", highlight=False)
    console.print("[green]✓ held[/]" if report.holds else "[red]✗ did not hold[/]")


def _figures(figures: dict[str, Any]) -> Table:
    table = Table("", "measured", "limit")
    for name, value, limit in (
        ("scenes falsely called settled", f"{figures['false_settled_pct']} %", f"{FALSE_SETTLED_PCT} %"),
        ("scenes falsely called moving", f"{figures['false_moving_pct']} %", f"{FALSE_MOVING_PCT} %"),
        ("age error, p99", f"{figures['age_ms_error_p99']} ms", f"{FRAME_INTERVAL_MS:.1f} ms"),
        ("wrong edgeMovedSince", figures["edge_moved_errors"], 0),
        ("wrong newerFrames", figures["newer_frames_errors"], 0),
        ("wrong settled", figures["settled_errors"], 0),
        ("stale pictures served", figures["stale_frames_served"], 0),
        ("wrong orientation", figures["orientation_errors"], 0),
        ("idle capture, 1080p at 30 fps", f"{figures['cpu_pct_idle']} % of a core", f"{IDLE_PCT} %"),
        ("a screenshot against its floor", figures["ratio"], SCREENSHOT_RATIO),
    ):
        table.add_row(name, str(value), str(limit))
    return table


def _troubles(figures: dict[str, Any]) -> Table:
    table = Table("trouble", "said after", "fresh picture after", "cleared after", "longest look")
    table.add_row("limit", f"{TOLD_S} s", f"{RECOVER_S} s", f"{TOLD_S} s", f"{LOOK_S} s", style="dim")
    for name, run in figures["faults"].items():
        table.add_row(
            name,
            f"{run['told_s']} s",
            f"{figures['recover_s'][name]} s",
            f"{run['cleared_s']} s",
            f"{run['longest_look_s']} s",
        )
    return table
