"""The suite's progress, and its report for a person: as a table at the terminal, or as Markdown."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID
from rich.table import Table

from edge_daemon.bench.bars import SuiteBars
from edge_daemon.bench.crash.report import CrashReport
from edge_daemon.bench.crash.suite import Watch
from edge_daemon.bench.crash.tasks import PROMISED_ZERO

Json = Mapping[str, Any]
NAMED = ("double_touches", "lost_receipts", "wrong_not_found")
"""The columns of their own; what else must be zero is added up."""


class Bars(SuiteBars, Watch):
    """A bar for each part of the suite; where nobody sees a bar move, a line for each tenth of it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._sizes: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._tasks: dict[str, TaskID] = {}

    def begins(self, part: str, size: int) -> None:
        self._tasks[part] = self._bars.add_task(part, total=size)
        self._sizes[part], self._done[part] = size, 0

    def advances(self, part: str, done: int) -> None:
        self._bars.advance(self._tasks[part], done)
        size, before = self._sizes[part], self._done[part]
        self._done[part] = before + done
        if not self._console.is_terminal and 10 * before // size < 10 * (before + done) // size:
            self._console.print(f"· {part}: {before + done} of {size}", highlight=False)


def show_report(console: Console, report: CrashReport) -> None:
    """Faults and outcomes, then the other parts, then what is wrong, if anything is."""
    figures = report.as_json()
    head, *rows = rows_of(figures)
    # Within 80 columns, and without a name broken in two.
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column(head[0], no_wrap=True)
    for name in head[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in lines_of(figures):
        console.print(line, soft_wrap=True)
    for problem in figures["problems"]:
        # What a problem quotes is data, not markup.
        console.print("[red]✗[/]", escape(problem), highlight=False, soft_wrap=True)
    console.print(
        {
            "pass": "[green]✓ every promise was kept[/]",
            "partial": "[yellow]nothing was broken in what was tried, which is not all[/]",
            "fail": "[red]✗ did not hold[/]",
        }[report.verdict]
    )


def markdown(figures: Json) -> str:
    """The same for a document, from the suite's JSON object."""
    head, *rows = rows_of(figures)
    rule = ["---", *("---:" for _ in head[1:])]
    table = [_markdown_row(row) for row in (head, rule, *rows)]
    return "\n".join([*table, "", *(f"- {line}" for line in lines_of(figures)), ""])


def rows_of(figures: Json) -> list[list[str]]:
    """Head and rows: each fault, the random histories, the real kills."""
    head = [
        "fault",
        "runs",
        "struck",
        "keys",
        "double",
        "lost",
        "wrong not found",
        "other wrong",
        "unknown",
    ]
    rows = [_row(name, row) for name, row in figures["by_fault"].items()]
    if figures["random"]["histories"]:
        rows.append(_row("random, mixed", figures["random"]))
    kills = figures["real_kills"]
    if not kills["kills"]:
        return [head, *rows]
    rows.append(
        _row("kill -9 of real processes", {"histories": kills["kills"], "struck": kills["kills"], **kills})
    )
    return [head, *rows]


def lines_of(figures: Json) -> list[str]:
    """The rest, a sentence each."""
    points = ", ".join(f"{count} of {kind}" for kind, count in figures["points"].items())
    lines = [
        f"seed {figures['seed']}; the base scenario has {figures['cut_points']} points: {points}",
        "each fault is armed before the rig is switched on, and strikes at every point that is tried, from the first "
        "write of the daemon's first start on; what it effected there is said below",
        f"{figures['histories']} histories; unknown {figures['unknown']}, before the first byte had left "
        f"{figures['unknown_unsent']}, outside the window {figures['unknown_outside_window']}",
    ]
    for name, row in figures["by_fault"].items():
        seen = ", ".join(f"{what} {count}" for what, count in row["seen_in_histories"].items())
        lines.append(f"{name} showed in {row['histories']} histories: {seen or 'nothing'}")
    for name, tried in figures["by_mutation"].items():
        told = ", ".join(f"{what.replace('_', ' ')} {count}" for what, count in tried["caught_by"].items())
        lines.append(f"mutation {name}: {told or 'not caught'} in {tried['histories']} histories")
    kills = figures["real_kills"]
    if kills["kills"]:
        moments = ", ".join(f"{count} {moment}" for moment, count in kills["moments"].items())
        felt = ", ".join(f"{what} {count}" for what, count in kills["felt"].items())
        lines.append(
            f"{kills['kills']} kills of real processes ({moments}), {kills['board_resets']} with a board's restart, "
            f"{kills['cable_flaps']} with a cable that went and came back, "
            f"{kills['plane_cuts']} after the plane was cut off: {kills['keys']} keys, {kills['touches']} touches, "
            f"{kills['s_per_kill']} s a kill; as the phones felt it: {felt}"
        )
    if figures["cost"] is not None:
        lines.append(f"cost: {_cost(figures['cost'])}")
    return [*lines, f"{figures['wall_s']} s"]


def _row(name: str, row: Json) -> list[str]:
    other = sum(row.get(what, 0) for what in PROMISED_ZERO if what not in NAMED)
    counts = [row["histories"], row["struck"], row["keys"], *(row.get(what, 0) for what in NAMED), other]
    return [name.replace("_", " "), *map(str, counts), str(row.get("unknown", 0))]


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cost(cost: Json) -> str:
    return ", ".join(f"{name} {value}" for name, value in cost.items())
