"""Whether anything that the daemon left behind, or told, holds a piece of a text that was typed."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from edge_daemon.bench.crash.real_wishes import INSIDE

PIECE = 8
"""Letters: so many in a row of a text, drawn at random, stand nowhere by chance."""
_RUNS = re.compile(rb"[%b]{%d,}" % (INSIDE.encode(), PIECE))
_HEX_RUNS = re.compile(rb"(?:[67][0-9a-fA-F][ :]?){%d,}" % PIECE)
_WIDE_RUNS = re.compile(rb"(?:[%b]\0){%d,}" % (INSIDE.encode(), PIECE))


def leaks(texts: Iterable[str], directory: Path, said: Iterable[str]) -> list[str]:
    """A phrase for each file below `directory` that holds a piece of a text, and one when what was said does."""
    pieces = {piece for text in texts for piece in _pieces(text.encode())}
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_file() and _holds(path.read_bytes(), pieces):
            found.append(f"a piece of a typed text stands in {path.relative_to(directory)}")
    if any(_holds(one.encode(), pieces) for one in said):
        found.append("a piece of a typed text stands in what the plane was told")
    return found


def _holds(content: bytes, pieces: set[bytes]) -> bool:
    return any(piece in pieces for run in _runs(content) for piece in _pieces(run))


def _runs(content: bytes) -> Iterator[bytes]:
    """Letters in a row, as they are, as hexadecimal digits, and in UTF-16."""
    yield from _RUNS.findall(content)
    for run in _HEX_RUNS.findall(content):
        yield bytes.fromhex(re.sub(rb"[ :]", b"", run).decode())
    for run in _WIDE_RUNS.findall(content):
        yield run[::2]


def _pieces(run: bytes) -> Iterator[bytes]:
    """Every PIECE of it. A text's own has letters only."""
    for at in range(len(run) - PIECE + 1):
        yield run[at : at + PIECE]
