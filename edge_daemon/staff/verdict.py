"""A verdict as a technician reads it."""

from rich.table import Table

from calibration.acceptance import Acceptance


def verdict_table(acceptance: Acceptance) -> Table:
    """p50, p95 and the worst of the held-out touches, in mm and in grid units, against their limits."""
    good = acceptance.passed
    table = Table(
        "",
        "mm",
        "limit mm",
        "x grid",
        "y grid",
        title=f"[bold {'green' if good else 'red'}]{acceptance.verdict}[/]: {len(acceptance.touches)} held-out touches",
        caption=_caption(acceptance),
    )
    table.add_row("p50", f"{acceptance.p50_mm:.3f}", "", "", "")
    table.add_row(
        "p95",
        f"{acceptance.p95_mm:.3f}",
        f"{acceptance.p95_limit_mm:.2f}",
        f"{acceptance.p95_x_grid:.1f}",
        f"{acceptance.p95_y_grid:.1f}",
    )
    table.add_row(
        "max",
        f"{acceptance.max_mm:.3f}",
        f"{acceptance.max_limit_mm:.2f}",
        f"{acceptance.max_x_grid:.1f}",
        f"{acceptance.max_y_grid:.1f}",
    )
    return table


def _caption(acceptance: Acceptance) -> str:
    worst = acceptance.worst
    where = f"worst at ({worst.target_mm[0]:.1f}, {worst.target_mm[1]:.1f}) mm of the screen"
    if acceptance.passed:
        return where
    cause = f"; likely cause: {acceptance.cause}" if acceptance.cause else ""
    return f"{acceptance.failing}; {where}{cause}"
