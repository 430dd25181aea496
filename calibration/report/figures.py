"""The report's figures. Built on matplotlib's objects and not on pyplot, which keeps global state."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.tri import Triangulation

from calibration.acceptance import Acceptance
from calibration.report.palette import Palette
from calibration.report.touch_errors import TouchError
from calibration.screen import ScreenGeometry

UM_PER_MM = 1000.0
PNG_DPI = 200
# Arrows on the map are drawn this many times as long, the largest of these that keeps the longest below ARROW_MAX_MM.
_MAGNIFICATIONS = (100, 50, 20, 10, 5, 1)
_ARROW_MAX_MM = 12.0
_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "svg.hashsalt": "calibration report",
}


def error_map(
    screen: ScreenGeometry, errors: Sequence[TouchError], acceptance: Acceptance, palette: Palette
) -> Figure:
    """The held-out error over the screen in mm: straight between the places, nothing said beyond them.

    The colours go from 0 to the limit of the worst touch, so that two reports can be compared.
    """
    held_out = [error for error in errors if error.kind == "held out"]
    with _drawing(3.5, 6.4, palette) as (figure, axes):
        axes.add_patch(
            Rectangle((0, 0), screen.width_mm, screen.height_mm, fill=False, ec=palette.ink, lw=1.0, zorder=2)
        )
        _error_field(figure, axes, held_out, acceptance, palette)
        for error in errors:
            if error.kind == "fit":
                axes.plot(*error.place_mm, "o", ms=3.0, mfc="none", mec=palette.fit, mew=0.7, zorder=3)
        magnified = _magnification(held_out)
        places = np.array([error.place_mm for error in held_out])
        arrows = np.array([error.error_mm for error in held_out]) * magnified
        axes.quiver(
            *places.T,
            *arrows.T,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            width=0.008,
            color=palette.held_out,
            ec=palette.paper,
            lw=0.4,
            zorder=5,
        )
        _name_places(axes, screen, held_out, palette)
        axes.set_xlim(-4, screen.width_mm + 4)
        axes.set_ylim(screen.height_mm + 4, -4)
        axes.set_aspect("equal")
        axes.set_xlabel("x, mm")
        axes.set_ylabel("y, mm")
        axes.set_title(f"Held-out error, µm; arrows ×{magnified}")
    return figure


def scatter(errors: Sequence[TouchError], acceptance: Acceptance, palette: Palette) -> Figure:
    """Each touch's error vector in µm, with circles at the two limits and a cross at the mean held-out error."""
    with _drawing(3.7, 3.6, palette) as (figure, axes):
        p95_um, max_um = acceptance.p95_limit_mm * UM_PER_MM, acceptance.max_limit_mm * UM_PER_MM
        reach = 1.12 * max(max_um, *(error.distance_mm * UM_PER_MM for error in errors))
        axes.axhline(0, color=palette.faint, lw=0.7, zorder=1)
        axes.axvline(0, color=palette.faint, lw=0.7, zorder=1)
        for radius, style, what in ((p95_um, (0, (5, 3)), "p95"), (max_um, "solid", "max")):
            axes.add_patch(Circle((0, 0), radius, fill=False, ec=palette.limit, lw=0.9, ls=style, zorder=2))
            axes.annotate(
                f"{what} limit {radius / UM_PER_MM:.2f} mm",
                (0, -radius),
                (0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                color=palette.limit,
                fontsize=7,
                bbox={"boxstyle": "round,pad=0.1", "fc": palette.paper, "ec": "none", "alpha": 0.75},
                zorder=3,
            )
        _dots(axes, errors, "fit", "o", palette.fit, palette, filled=False)
        _dots(axes, errors, "dropped", "x", palette.fit, palette, filled=True)
        _dots(axes, errors, "held out", "o", palette.held_out, palette, filled=True)
        mean = (
            np.array([error.error_mm for error in errors if error.kind == "held out"]).mean(axis=0)
            * UM_PER_MM
        )
        axes.plot(*mean, "+", ms=11, mew=1.4, color=palette.ink, zorder=6, label="held-out mean")
        axes.set_xlim(-reach, reach)
        axes.set_ylim(reach, -reach)
        axes.set_aspect("equal")
        axes.set_xlabel("error in x, µm")
        axes.set_ylabel("error in y, µm (down)")
        axes.set_title("Errors of single touches")
        _legend(axes, palette, "lower right")
    return figure


def distribution(errors: Sequence[TouchError], acceptance: Acceptance, palette: Palette) -> Figure:
    """What share of the touches lies within a distance, in mm, with the two limits."""
    with _drawing(3.7, 2.5, palette) as (figure, axes):
        reach = 1.06 * max(acceptance.max_limit_mm, *(error.distance_mm for error in errors))
        for kind, colour, width in (("fit", palette.fit, 1.0), ("held out", palette.held_out, 1.8)):
            distances = sorted(error.distance_mm for error in errors if error.kind == kind)
            if distances:
                share = np.arange(len(distances) + 1) / len(distances) * 100.0
                label = f"{kind.replace(' ', '-')} ({len(distances)})"
                axes.step(
                    [0.0, *distances, reach],
                    [*share, 100.0],
                    where="post",
                    color=colour,
                    lw=width,
                    label=label,
                )
        for limit_mm, style, what in (
            (acceptance.p95_limit_mm, (0, (5, 3)), "p95 limit"),
            (acceptance.max_limit_mm, "solid", "max limit"),
        ):
            axes.axvline(limit_mm, color=palette.limit, lw=0.9, ls=style)
            axes.annotate(
                what,
                (limit_mm, 4),
                (-3, 0),
                textcoords="offset points",
                rotation=90,
                ha="right",
                va="bottom",
                color=palette.limit,
                fontsize=7,
            )
        axes.axhline(95, color=palette.faint, lw=0.7, zorder=1)
        axes.set_xlim(0, reach)
        axes.set_ylim(0, 103)
        axes.set_yticks([0, 50, 95], ["0 %", "50 %", "95 %"])
        axes.set_xlabel("distance from the target, mm")
        axes.set_title("Share of touches within a distance")
        _legend(axes, palette, "center right")
    return figure


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg". Equal figures give equal bytes: no date is written."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(
            buffer, format=kind, dpi=PNG_DPI, metadata={"Date": None} if kind == "svg" else {"Software": None}
        )
    return buffer.getvalue()


@contextlib.contextmanager
def _drawing(width_in: float, height_in: float, palette: Palette) -> Iterator[tuple[Figure, Axes]]:
    colours: dict[Any, Any] = {
        "text.color": palette.ink,
        "axes.titlecolor": palette.ink,
        "axes.labelcolor": palette.quiet,
        "axes.edgecolor": palette.quiet,
        "xtick.color": palette.quiet,
        "ytick.color": palette.quiet,
        "axes.facecolor": palette.paper,
        "figure.facecolor": palette.paper,
    }
    with matplotlib.rc_context({**_STYLE, **colours}):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=2.5, width=0.7)
        yield figure, axes


def _error_field(
    figure: Figure, axes: Axes, held_out: Sequence[TouchError], acceptance: Acceptance, palette: Palette
) -> None:
    places = np.array([error.place_mm for error in held_out])
    if len(places) < 3 or np.linalg.matrix_rank(places - places.mean(axis=0), tol=1.0) < 2:
        return  # no area between places on one line
    levels = np.linspace(0.0, acceptance.max_limit_mm, 11)
    colours = matplotlib.colormaps[palette.errors].with_extremes(over=palette.limit)
    field = axes.tricontourf(
        Triangulation(*places.T),
        [error.distance_mm for error in held_out],
        levels=levels,
        cmap=colours,
        norm=BoundaryNorm(levels, colours.N, extend="max"),
        extend="max",
        zorder=1,
    )
    bar = figure.colorbar(field, ax=axes, orientation="horizontal", fraction=0.03, pad=0.02, aspect=32)
    limit_mm = acceptance.p95_limit_mm
    bar.set_ticks(sorted({0.0, 0.1, 0.2, limit_mm, acceptance.max_limit_mm}))
    bar.ax.axvline(limit_mm, color=palette.limit, lw=1.2)
    bar.outline.set_edgecolor(palette.quiet)
    bar.ax.tick_params(length=2, labelsize=7.5)
    bar.set_label("error between the places, mm; red line: p95 limit", fontsize=7.5)


def _name_places(
    axes: Axes, screen: ScreenGeometry, held_out: Sequence[TouchError], palette: Palette
) -> None:
    worst = max(held_out, key=lambda error: error.distance_mm)
    for error in held_out:
        axes.plot(*error.place_mm, "o", ms=4.5, mfc=palette.held_out, mec=palette.paper, mew=0.7, zorder=6)
        left = error.place_mm[0] > screen.width_mm / 2
        axes.annotate(
            f"{error.distance_mm * UM_PER_MM:.0f}" + (" worst" if error is worst else ""),
            error.place_mm,
            (-5, 0) if left else (5, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=7.5,
            fontweight="bold" if error is worst else "normal",
            bbox={"boxstyle": "round,pad=0.15", "fc": palette.paper, "ec": "none", "alpha": 0.75},
            zorder=7,
        )


def _magnification(errors: Sequence[TouchError]) -> int:
    longest_mm = max(error.distance_mm for error in errors)
    return next((times for times in _MAGNIFICATIONS if times * longest_mm <= _ARROW_MAX_MM), 1)


def _dots(
    axes: Axes,
    errors: Sequence[TouchError],
    kind: str,
    marker: str,
    colour: str,
    palette: Palette,
    *,
    filled: bool,
) -> None:
    chosen = np.array([error.error_mm for error in errors if error.kind == kind]).reshape(-1, 2) * UM_PER_MM
    if len(chosen):
        label = {"held out": "held-out", "fit": "fit", "dropped": "dropped by the fit"}[kind]
        axes.plot(
            *chosen.T,
            marker,
            ms=4.5 if filled else 3.8,
            mfc=colour if filled else "none",
            mec=(palette.paper if marker == "o" else colour) if filled else colour,
            mew=0.6 if filled and marker == "o" else 0.9,
            label=f"{label} ({len(chosen)})",
            zorder=5 if filled else 4,
        )


def _legend(axes: Axes, palette: Palette, where: Literal["lower right", "center right"]) -> None:
    legend = axes.legend(
        loc=where, fontsize=7, frameon=True, framealpha=0.85, borderpad=0.4, handletextpad=0.4
    )
    legend.get_frame().set(facecolor=palette.paper, edgecolor="none")
    for text in legend.get_texts():
        text.set_color(palette.ink)
