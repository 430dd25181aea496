"""Quantities as the wire carries them; what does not fit is refused, never clamped."""

import math

from edge_daemon.boards.errors import ArgumentRefused


def micrometres(**lengths_mm: float) -> list[int]:
    """Named millimetres as whole micrometres. Raises ArgumentRefused for one that is not finite."""
    for name, length_mm in lengths_mm.items():
        if not math.isfinite(length_mm):
            raise ArgumentRefused(f"{name} is {length_mm}; a place needs finite millimetres")
    return [round(length_mm * 1000) for length_mm in lengths_mm.values()]


def milliseconds(name: str, value: int) -> int:
    """The value itself. Raises ArgumentRefused where the wire could not carry it."""
    if not 0 <= value <= 0xFFFF:
        raise ArgumentRefused(f"{name} is {value}; the wire carries 0 to 65535")
    return value
