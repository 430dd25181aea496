"""The report's colours, for paper and for a dark screen; the data's are Okabe and Ito's, safe for the colour-blind."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """paper: the background. ink, quiet, faint: text, axes, help lines. errors: a matplotlib colour map, 0 faint."""

    paper: str
    ink: str
    quiet: str
    faint: str
    held_out: str
    fit: str
    limit: str
    errors: str


LIGHT = Palette(
    paper="#ffffff",
    ink="#1b1f24",
    quiet="#5b6570",
    faint="#d5dae0",
    held_out="#d55e00",
    fit="#0072b2",
    limit="#b3261e",
    errors="YlOrBr",
)
DARK = Palette(
    paper="#14181d",
    ink="#e8ebee",
    quiet="#9aa5b1",
    faint="#39424c",
    held_out="#ff8b3d",
    fit="#56b4e9",
    limit="#ff7b72",
    errors="inferno",
)
